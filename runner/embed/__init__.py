"""Documents to chunks, and texts to vectors: on this machine, on Modal, or over HTTP.

In: documents, a chunker's name, an encoder's row of the catalog, a budget. Out: chunks and float32 vectors in the
store, one row per text, with a record of where and how they were made.
It must not know grades or scores, and it never replaces an encoder that fails by another.
"""
