"""A comparison from plain lists, for tests of what stands beside the scores."""

import numpy as np

from runner.base.records import Hit, Run, Span
from runner.eval_set.shapes.queries import QueryRow
from runner.score.comparison import Comparison
from tests.support.example_results import BASELINE, PLAN

BOOTSTRAP = PLAN.bootstrap.model_copy(update={"resamples": 200})


def ranked(cell, rankings):
    """A run of one-character passages, best first."""
    return Run(cell, {q: tuple(Hit(d, 1.0, Span(0, 1)) for d in docs) for q, docs in rankings.items()})


def comparison(rankings, qrels, *, queries=None, lengths=None, published=False, **plan):
    """The cells' rankings (cell -> query_id -> documents) under these judgments; the first cell has all queries."""
    first = next(iter(rankings.values()))
    return Comparison(
        plan=PLAN.model_copy(update={"bootstrap": BOOTSTRAP, **plan}),
        queries=queries or [QueryRow(id=query_id, text=query_id, kind="topic", origin="person") for query_id in first],
        runs={cell: ranked(cell, found) for cell, found in rankings.items()},
        qrels=qrels,
        facts={},
        registered=frozenset(rankings),
        document_lengths=lengths or {},
        published=published,
    )


def random_case(seed, cells=(BASELINE,), *, n_queries=12, judged_share=0.6, relevant=(0.6, 0.2, 0.1, 0.1)):
    """Rankings of random length over sixty documents, and grades for a share of all pairs; some queries have none."""
    rng = np.random.default_rng(seed)
    docs = [f"d{i:02}" for i in range(60)]
    names = [f"q{i:02}" for i in range(n_queries)]
    rankings = {
        cell: {q: rng.permutation(docs)[: rng.choice([0, 1, 7, 15, 60])].tolist() for q in names} for cell in cells
    }
    qrels = {
        q: {d: int(rng.choice(4, p=relevant)) for d in docs if rng.random() < judged_share}
        for q in names
        if rng.random() < 0.9
    }
    return rankings, qrels
