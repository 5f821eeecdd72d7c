"""Formats that several sources share: XML, USLM, GPO's SGML and typesetting, PDF, Markdown.

In: bytes from strangers. Out: text with the spans of its sections, or a DocumentError.
It must not know sources: what a document is called and cited as is decided in `sources`.
"""
