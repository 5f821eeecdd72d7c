"""Files of a source to documents, and a sample of them.

In: a folder, ZIP, database or official feed. Out: documents with text, sections and facts, a seeded sample, and an
account of every file that could not be read.
It must not know queries, chunkers or anything that happens after the sample. `registry` names each source's reader.
"""
