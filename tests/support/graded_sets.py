"""Small graded eval sets without text: documents, chunk counts, lengths, qrels, and runs made of lists."""

import numpy as np

from runner.base.records import Hit, Run, Span
from runner.gate.gate import Gate
from runner.gate.nulls import GRADED

DOCS = [f"d{i:03}" for i in range(200)]
CHUNKS = {doc_id: 1 + i % 17 for i, doc_id in enumerate(DOCS)}
LENGTHS = {doc_id: 900 * CHUNKS[doc_id] + i % 7 for i, doc_id in enumerate(DOCS)}
SETTINGS = {"draws": 500, "tau": 0.05, "alpha": 0.05, "seed": 1}


def graded(n_queries, seed=0):
    """Eight graded documents a query, and one of grade 3 that is its own."""
    rng = np.random.default_rng(seed)
    return {
        f"q{i:02}": {DOCS[j]: int(rng.integers(0, 4)) for j in rng.choice(len(DOCS), 8, replace=False)} | {DOCS[i]: 3}
        for i in range(n_queries)
    }


def run_of(rankings, cell="cell"):
    """A run of one-character passages, best first."""
    return Run(cell, {q: tuple(Hit(d, 1.0, Span(0, 1)) for d in docs) for q, docs in rankings.items()})


def oracle(qrels):
    return run_of({q: sorted(grades, key=lambda d: (-grades[d], d)) for q, grades in qrels.items()})


def in_one_stratum(qrels):
    return dict.fromkeys(qrels, "")


def gate_of(qrels, strata=None, lengths=LENGTHS, nulls=GRADED, **settings):
    return Gate.of(list(qrels), qrels, strata or in_one_stratum(qrels), lengths, nulls=nulls, **SETTINGS | settings)


def verdict(run, qrels, strata=None, **settings):
    return gate_of(qrels, strata, **settings).judge(run, CHUNKS)


def verdicts(found):
    return {null.name: null.verdict for null in found.nulls}
