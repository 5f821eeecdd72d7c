"""Transcripts of congressional hearings, as govinfo publishes them in htm.

In: a file's bytes and name. Out: one document per hearing, with speakers' turns and inserted matter.
It must not know other sources: what they share is in `samplers.formats`.
"""
