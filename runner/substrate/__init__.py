"""The production database, read only, held to a decided record.

In: an SQLite file with its chunks, vectors and full-text index, and a version's record. Out: faults by stable names,
the same queries through every search of it, and post_bulk.json with a verdict.
It must not write to the database or change the record.
"""
