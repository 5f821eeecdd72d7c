"""PDF to the text of its pages.

In: PDF bytes. Out: each page's text in lines; DocumentError if PDFium fails or takes too long.
PDFium is native code, which a hostile file can crash, hang or have unpack gigabytes. It therefore runs in a child
process for each file (start-up 0.1 s, a page 2 ms), and must not be imported here.
"""
