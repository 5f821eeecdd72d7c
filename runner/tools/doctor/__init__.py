"""Whether this installation works.

In: the checkout and the machine. Out: one finding per part of an evening, and one per planted defect that a gate, probe
or lock must catch.
It must not need a network or touch an eval set.
"""
