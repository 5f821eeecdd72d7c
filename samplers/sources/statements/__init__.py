"""Statements of Administration Policy, from PDF and the archive's index files.

In: a file's bytes and name. Out: one document per statement.
It must not know other sources: what they share is in `samplers.formats`.
"""
