"""Systems by public collections, beside published values.

In: results.json of external evaluations, and docs/matrix/published.yaml. Out: docs/matrix/runs/, and the matrix as a
page. It must not evaluate anything or keep a collection's text.
"""
