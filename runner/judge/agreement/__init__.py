"""How far two readings of the same pairs agree.

In: labels, and the runs that found each pair. Out: kappa and binary agreement with intervals over queries, and a test
per cell of whether the first judge favours what that cell finds.
It must not know scores or the decision: it reports on judges and blocks nothing itself.
"""
