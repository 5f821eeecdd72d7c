"""Results to pages, tables and words on a terminal.

In: results.json, receipt.json, decision.json and a check's findings, as typed records. Out: self-contained HTML,
CSV, lines of text; the same bytes for the same input.
It must not compute a statistic or apply a rule: a threshold that decides something belongs to `decide`.
"""
