"""The flow: sample, chunk, embed, retrieve, pool, judge, score, gate, decide, lock.

In: a version and the operator's choices as one record. Out: the version moved as far as it can go, and the next step
if a person must take it.
It must not do a stage's work: each step is one call into one room. It knows no flags and prints no page.
"""
