"""Bills and resolutions of govinfo, and of Markdown derived from Congress.gov.

In: a file's bytes and name. Out: one document per bill version.
It must not know other sources: what they share is in `samplers.formats`.
"""
