"""A corpus as a whole: reading, recognising, clustering, sampling.

In: a source's name and its files. Out: documents, clusters of near-duplicates, a stratified sample in hash order, and a
readiness report.
It must not know any format: a source's reader is all it calls.
"""
