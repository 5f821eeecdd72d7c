"""Made-up evenings whose truth is known: cells that rank by true grades and luck, and judges that err as told."""

import numpy as np

from runner.eval_set.shapes.queries import QueryRow
from runner.judge.agreement.double_graded import Double
from runner.score.comparison import Comparison
from tests.support.example_results import BASELINE, PLAN
from tests.support.graded_sets import run_of
from tests.support.labels import label

DEPTH = 15
"""Documents that every cell retrieves; the pool is the union of them."""


def plan(draws=999, **fields):
    significance = PLAN.significance.model_copy(update={"draws": draws})
    return PLAN.model_copy(update={"significance": significance, **fields})


def comparison_of(rankings, qrels, *, settings=None):
    """A comparison of cells given as {cell: {query: documents, best first}}; all of them are preregistered."""
    first = next(iter(rankings.values()))
    return Comparison(
        plan=settings or plan(),
        queries=[QueryRow(id=query_id, text="words", kind="topic", origin="person") for query_id in first],
        runs={cell: run_of(ranked, cell) for cell, ranked in rankings.items()},
        qrels=qrels,
        facts={},
        registered=frozenset(rankings),
        document_lengths={},
    )


def evening(seed, *, lift=0.0, n_queries=50, n_cells=10, n_docs=60, settings=None):
    """The comparison by true grades, each cell ranking by true grade and luck of its own.

    The first challenger's eye for grades is sharper by `lift`: .5 gives it about .08 nDCG@10.
    """
    rng = np.random.default_rng(np.random.PCG64(seed))
    cells = [BASELINE, *(f"cell-{i} x whole_doc" for i in range(1, n_cells))]
    sharpness = np.full(n_cells, 0.9)
    sharpness[1:2] += lift
    rankings, qrels = {cell: {} for cell in cells}, {}
    for i in range(n_queries):
        query_id = f"q{i:03}"
        truth = _true_grades(rng, n_docs)
        scores = sharpness[:, None] * truth + 0.5 * rng.normal(size=n_docs) + rng.normal(size=(n_cells, n_docs))
        order = np.argsort(-scores, axis=1)[:, :DEPTH]
        for cell, top in zip(cells, order, strict=True):
            rankings[cell][query_id] = [f"d{doc:03}" for doc in top]
        qrels[query_id] = {f"d{doc:03}": int(truth[doc]) for doc in np.unique(order)}
    return comparison_of(rankings, qrels, settings=settings)


def _true_grades(rng, n_docs):
    """Few perfect documents, some good ones, many worthless ones; how many of each differs by query."""
    numbers = rng.poisson((2, 4, 7)) + np.array((1, 0, 0))
    grades = np.zeros(n_docs, np.int64)
    grades[: numbers.sum()] = np.repeat((3, 2, 1), numbers)[:n_docs]
    return rng.permutation(grades)


def off_by_one(qrels, rng, share=0.3):
    """`share` of the grades moved up or down by 1, where they can be, at random."""
    found = {}
    for query_id, grades in qrels.items():
        moved = np.where(rng.random(len(grades)) < share, rng.choice((-1, 1), len(grades)), 0)
        values = np.clip(np.array(list(grades.values())) + moved, 0, 3)
        found[query_id] = dict(zip(grades, values.tolist(), strict=True))
    return found


def favouring(qrels, run, by=1):
    """Grades raised by `by`, up to 3, for the run's first ten documents of every query."""
    found = {query_id: dict(grades) for query_id, grades in qrels.items()}
    for query_id, hits in run.hits.items():
        for hit in hits[:10]:
            found[query_id][hit.doc_id] = min(3, found[query_id][hit.doc_id] + by)
    return found


def read_twice(first, second, share, rng, *, judge="second", model="model-b"):
    """Second readings of `share` of the pairs: systematically over first grade and query, from a random start."""
    pairs = sorted((grade, query_id, doc_id) for query_id, row in first.items() for doc_id, grade in row.items())
    chosen = np.unique((rng.random() + np.arange(round(share * len(pairs)))) / share).astype(int)
    return tuple(
        Double(query, doc, grade, second[query][doc], "first", judge, "model-a", model)
        for grade, query, doc in (pairs[i] for i in chosen if i < len(pairs))
    )


def labels_of(scored, pairs, *, people=None, judge="a person", model=""):
    """The scored grades by a model, and after them another judge's of some pairs: those of `people`, else the same."""
    first = [label(q, d, grade, "first", "model-a") for q, row in scored.items() for d, grade in row.items()]
    return first + [label(q, d, (people or scored)[q][d], judge, model) for q, d in pairs]
