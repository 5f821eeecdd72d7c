"""Whether the ranking of cells would hold in a smaller or larger collection.

In: runs, qrels and the number of documents. Out: nDCG@10 expected at other sizes with intervals, a back-test of the
method, and sentences that claim no more than it carries.
It must not know the decision: it is shown beside it and decides nothing.
"""
