"""Bill DTD, USLM 1.0 and USLM 2.x by one walk.

In: a parsed XML file. Out: text, nested sections with their labels, and what the file says of itself.
It must not know how a source cuts documents out of a file or cites them.
"""
