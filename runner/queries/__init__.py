"""Queries for a version: what to read, and what is wrong with what was written.

In: the sampled documents and the kinds of query of a source. Out: a reading pack, a report on each query, and rows
added to queries.yaml with every other byte kept.
It must not know grades or scores: plain BM25 over the sample is all it searches.
"""
