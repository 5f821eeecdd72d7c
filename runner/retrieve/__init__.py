"""Vectors and texts to runs, and runs to the pool.

In: chunks, vectors, queries, a cell's name. Out: up to 100 documents per query in a fixed order, each with its best
chunk, the same bytes on every machine; and the pairs within the pool's depth.
It must not know grades: a ranking never depends on what was judged.
"""
