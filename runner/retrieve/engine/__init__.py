"""The production database: its schema as it is assumed, opened read-only, and its own searches.

In: an SQLite file in that schema, or a sample's chunks to fill one with. Out: chunks by bits rescored, by exact
distance and by FTS5, as rankings of documents; and the runs of engine cells.
It must not know what is expected of a database: checks and verdict are `runner.substrate`'s.
"""
