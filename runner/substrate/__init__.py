"""The production database that a decision filled, read and never written, held to the record of that decision.

What goes in is an SQLite file, a decided version and its encoder; what comes out is the report of post_bulk.json:
findings on its chunks, vectors and full text, and its searches beside the record's cells. Nothing here changes a
decision, and nothing before the decision knows this room.
"""
