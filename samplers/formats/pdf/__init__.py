"""PDF to paragraphs.

In: PDF bytes. Out: paragraphs in reading order, without running heads; DocumentError if PDFium fails or takes too long.
PDFium runs in a process of its own and must not be imported here.
"""
