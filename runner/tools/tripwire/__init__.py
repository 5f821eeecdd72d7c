"""Golden queries against a committed snapshot.

In: rankings, the right answers, a snapshot and a tolerance. Out: each figure that fell, or a new snapshot.
It must not know how a ranking was made.
"""
