"""Scores, tests, gate and judges to results.json, an outcome and decision.json.

In: a version with its runs, cells and labels. Out: results.json as a pure function of them, the tier of each cell, the
receipt, and the decision by rule or by choice.
It must not know pages, clocks or paths. The rule stands here and nowhere else; `report` draws what it is given.
"""
