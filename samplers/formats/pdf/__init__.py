"""PDF to the text of its pages.

In: PDF bytes. Out: each page's text in lines; DocumentError if PDFium fails or takes too long.
PDFium is native code, which a hostile file can crash, hang or have unpack gigabytes. It therefore runs in a child
process (start-up 0.1 s, a page 2 ms), ended after some files or by one, and must not be imported here.
"""
