"""Short passages of documents for a page, where they may be shown.

In: documents, queries, and what each cell found. Out: a few characters around the query's words.
It must not be called for documents that are not ours: their text never enters the record.
"""
