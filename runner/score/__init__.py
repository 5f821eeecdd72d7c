"""Runs and grades to scores, intervals and paired tests.

In: runs, qrels and a plan's seeds and levels. Out: per-query values as whole units of 1e-9, means with intervals,
differences with p-values, power and recall guards.
It must not know the null gate, tiers or the decision: it states figures and draws no conclusion.
"""
