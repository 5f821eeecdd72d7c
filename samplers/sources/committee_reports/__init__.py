"""Committee reports of House and Senate, as govinfo serves their text.

In: a file's bytes and name. Out: one document per report, with headings, tables and items.
It must not know other sources: what they share is in `samplers.formats`.
"""
