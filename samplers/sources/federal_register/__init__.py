"""Documents of the Federal Register: whole issues, or single ones.

In: a file's bytes and name. Out: one document per rule, notice or proclamation.
It must not know other sources: what they share is in `samplers.formats`.
"""
