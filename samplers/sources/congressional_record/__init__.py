"""Pages of the daily Congressional Record, as govinfo serves them.

In: a file's bytes and name. Out: one document per page, with topics and speakers' turns.
It must not know other sources: what they share is in `samplers.formats`.
"""
