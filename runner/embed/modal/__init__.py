"""Encoders on Modal: one app for all of them.

In: planned batches of texts, an encoder's pins, a meter. Out: vectors, counted tokens and the container's facts.
It must not know chunks, cells or the store. `app` runs in the container and imports nothing heavy at its top.
"""
