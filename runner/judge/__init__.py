"""The pool to labels: batches out, answers in.

In: pairs of query and document, the judge's prompt, answers of people and models. Out: batches that name no system,
and rows of labels.jsonl, each checked against the batch that asked for it.
It must not know which cell found a document, except in `agreement`, nor what a grade does to a score.
"""
