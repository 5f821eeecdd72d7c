"""Sections and appendices of the Code of Federal Regulations: annual, eCFR bulk data, versioner.

In: a file's bytes and name. Out: one document per section or appendix, paragraphs nested by their designators.
It must not know other sources: what they share is in `samplers.formats`.
"""
