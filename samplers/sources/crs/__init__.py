"""Products of the Congressional Research Service, as Markdown of saved pages.

In: a file's bytes and name. Out: one document per product, without what is the page's own.
It must not know other sources: what they share is in `samplers.formats`.
"""
