"""The null gate, which asks whether a system that knows nothing of the query would score as well.

In: a run, qrels, document lengths, a number of draws and a seed. Out: a verdict per run with nulls and p-values, and
the verdicts on made-up predictors that prove the gate works.
It must not know cells, tiers or which system it grades.
"""
