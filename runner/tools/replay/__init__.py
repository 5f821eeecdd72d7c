"""A version with results, embedded once more on some backend.

In: a version's record and its archive. Out: whether its numbers hold, and how far rounding alone moves them.
It must not write into the record: its runs and its ledger are under .work/.
"""
