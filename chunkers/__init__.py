"""Documents to chunks, by versioned names.

In: one document with its sections. Out: spans of its text in order, with their token counts; the same for ever under
the same name, held by golden digests.
A chunker must not know queries, encoders or the other documents, and it must not change text.
"""
