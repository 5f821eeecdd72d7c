"""Systems by public collections, beside published values.

In: results.json of external evaluations, and docs/matrix/published.yaml. Out: docs/matrix/runs/, the matrix as a page,
as text and as data.
It must not evaluate anything or keep a collection's text.
"""
