"""The production database: written as a decision says, and held to a decided record.

In: a source's documents as they were embedded, or an SQLite file with its chunks, vectors and full-text index, and a
version's record. Out: an index with its fingerprint, in that schema or as Parquet; faults by stable names, the same
queries through every search of it, and post_bulk.json with a verdict.
What checks a database must not write to it, and nothing here may change the record.
"""
