"""Judges planted over a made set whose truth is known, and the named checks that catch them."""

from types import SimpleNamespace

import numpy as np
import pytest

from runner.decide.judge_checks import failed_checks
from runner.decide.judging import judging
from runner.eval_set.shapes.judges import Estimate
from runner.eval_set.shapes.queries import QueryRow
from runner.gate.controls import controls
from runner.gate.gate import Gate
from runner.gate.nulls import GRADED
from runner.judge.second_reading import chosen_pairs
from runner.score.comparison import Comparison
from runner.score.source_documents import source_documents
from tests.support.example_results import BASELINE, control
from tests.support.graded_sets import SETTINGS, run_of
from tests.support.judge_cases import plan
from tests.support.labels import label

N_QUERIES, N_DOCS = 50, 200
DOCS = [f"d{doc:03}" for doc in range(N_DOCS)]
SHORT = np.arange(N_DOCS) % 2 == 0
LENGTHS = {doc: 1_000 if SHORT[place] else 20_000 for place, doc in enumerate(DOCS)}
CHUNKS = {doc: 1 if SHORT[place] else 10 for place, doc in enumerate(DOCS)}
CELLS = {
    BASELINE: (1.0, 0.0, 0.0),
    "sharp x whole_doc": (1.6, 0.0, 0.0),
    "dull x whole_doc": (0.7, 0.0, 0.0),
    "for-short x whole_doc": (0.8, 1.8, 0.0),
    "for-titles x whole_doc": (0.8, 0.0, 2.5),
    "for-both x whole_doc": (0.6, 1.8, 2.5),
}
"""How much each cell ranks by true grade, by shortness and by words of the title; the rest is luck."""


def world(seed):
    """Every query's true grades, and which documents have its words in their titles, (queries, documents) each."""
    rng = np.random.default_rng(np.random.PCG64(seed))
    truth = np.zeros((N_QUERIES, N_DOCS), np.int64)
    for row in truth:
        row[rng.choice(N_DOCS, 16, replace=False)] = [3] * 2 + [2] * 4 + [1] * 10
    titles = rng.random(truth.shape) < np.where(truth >= 2, 0.3, 0.06)
    orders = {
        cell: np.argsort(-(own * truth + short * SHORT + title * titles + rng.normal(size=truth.shape)), axis=1)
        for cell, (own, short, title) in CELLS.items()
    }
    return truth, titles, orders, rng


def judged(judge, second, seed=4):
    """What results say of a judge who gives `judge(truth, titles)`, beside a reader who gives `second` of those."""
    truth, titles, orders, rng = world(seed)
    ids = [f"q{row:02}" for row in range(N_QUERIES)]
    queries = [
        QueryRow(
            id=name, text="w", kind="topic", origin="person", source_document=DOCS[rng.choice(np.flatnonzero(row == 3))]
        )
        for name, row in zip(ids, truth, strict=True)
    ]
    runs = {
        cell: run_of({name: [DOCS[doc] for doc in row[:30]] for name, row in zip(ids, order, strict=True)}, cell)
        for cell, order in orders.items()
    }
    first = np.clip(judge(truth, titles), 0, 3)
    again = np.clip(second(truth, first, rng), 0, 3)
    pool = sorted(
        {(name, hit.doc_id) for run in runs.values() for name, hits in run.hits.items() for hit in hits[:10]}
        | {(query.id, query.source_document) for query in queries}
    )
    place = {name: number for number, name in enumerate(ids)} | {doc: number for number, doc in enumerate(DOCS)}
    grades = {(name, doc): int(first[place[name], place[doc]]) for name, doc in pool}
    twice = chosen_pairs(grades, 0.15, relevant_grade=2, seed=seed)
    reasons = (lambda pair, who: f"why of {pair}") if second is copied else (lambda pair, who: f"{who} on {pair}")
    labels = [label(*pair, grade, "one", "claude-a", reason=reasons(pair, "one")) for pair, grade in grades.items()]
    labels += [
        label(*pair, int(again[place[pair[0]], place[pair[1]]]), "two", "gpt-b", reason=reasons(pair, "two"))
        for pair in twice
    ]
    qrels = {name: {doc: grade for (query, doc), grade in grades.items() if query == name} for name in ids}
    comparison = Comparison(
        plan(relevant_grade=2), queries, runs, qrels, registered=frozenset(CELLS), document_lengths=LENGTHS
    )
    gate = Gate.of(ids, qrels, dict.fromkeys(ids, ""), LENGTHS, nulls=GRADED, **SETTINGS)
    return SimpleNamespace(
        plan=comparison.plan,
        judging=judging(comparison, labels),
        sources=source_documents(comparison, {}),
        cells=[
            SimpleNamespace(cell=cell, test=None if cell == BASELINE else "", gate=gate.judge(runs[cell], CHUNKS))
            for cell in sorted(runs, key=lambda cell: (-comparison.means[cell]["ndcg@10"].mean, cell))
        ],
        controls=controls(gate, CHUNKS),
    )


def fair(truth, titles):
    return truth


def for_short(truth, titles):
    return truth + np.where(SHORT, 1, -1) * (truth > 0) + SHORT


def by_title(truth, titles):
    return np.where(titles, 3, 0)


def all_alike(truth, titles):
    return np.full_like(truth, 2)


def careful(truth, first, rng):
    """A reader of the truth who is one off in every tenth pair."""
    return truth + np.where(rng.random(truth.shape) < 0.1, rng.choice((-1, 1), truth.shape), 0)


def copied(truth, first, rng):
    return first


def grades_copied(truth, first, rng):
    return first


JUDGES = {
    "fair": (fair, careful, []),
    "favours short documents": (for_short, careful, ["agreement", "favour", "tau"]),
    "grades by words of the title": (by_title, careful, ["agreement", "favour", "tau"]),
    "gives one grade to everything": (all_alike, careful, ["agreement", "tau"]),
    "is copied": (fair, copied, ["copy"]),
    "is copied but for the reasons": (fair, grades_copied, ["copy"]),
    "favours short documents and is copied": (for_short, copied, ["copy", "tau"]),
    "grades by words of the title and is copied": (by_title, copied, ["copy", "tau"]),
    "gives one grade to everything and is copied": (all_alike, copied, ["copy", "tau"]),
}


@pytest.mark.parametrize("name", JUDGES)
def test_a_planted_judge_is_caught_by_the_checks_named_and_a_fair_one_by_none(name, monkeypatch):
    monkeypatch.setattr("runner.decide.judging.two_level", lambda *args, **given: None)  # no check asks it
    judge, second, expected = JUDGES[name]
    assert failed_checks(judged(judge, second)) == expected


def test_a_judge_whose_best_cell_loses_source_documents_and_a_gate_that_fails_are_caught(monkeypatch):
    monkeypatch.setattr("runner.decide.judging.two_level", lambda *args, **given: None)
    found = judged(by_title, copied)
    worse = {"difference": Estimate(value=-0.1, low=-0.2, high=-0.01)}
    cells = {cell: row.model_copy(update=worse) for cell, row in found.sources.cells.items()}
    found.sources = found.sources.model_copy(update={"cells": cells, "tau": 0.9})
    assert failed_checks(found) == ["copy", "sources"]
    found.controls = [control("random", passes=1)]
    assert failed_checks(found) == ["copy", "sources", "gate"]
    found.controls, baseline = [], next(row for row in found.cells if row.test is None)
    baseline.gate = SimpleNamespace(verdict="insufficient")
    assert failed_checks(found)[-1] == "gate"
