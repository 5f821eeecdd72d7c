"""One system against published means and against another system.

In: per-query scores, from a file or from a cell of results.json. Out: intervals and paired tests, as data and as text.
It must not know the plan or the gate: it compares what it is given.
"""
