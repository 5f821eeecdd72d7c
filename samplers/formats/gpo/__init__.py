"""GPO's SGML-like XML, as the Federal Register, CFR and eCFR are published in.

In: an element and a TextWriter. Out: its blocks and inline marks as text.
It must not know what a section or a document is: `sources` decides that.
"""
