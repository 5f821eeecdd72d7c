"""The documents that queries were written from: where cells rank them, and which the judge missed."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from runner.eval_set.shapes.queries import QueryRow
from runner.score.comparison import Comparison
from runner.score.source_documents import kendall_tau, missed_sources, source_documents
from tests.support.example_results import PLAN
from tests.support.graded_sets import run_of

LISTS = st.lists(st.sampled_from("abcd"), unique=True)
ROWS = st.lists(
    st.tuples(
        LISTS, LISTS, st.sampled_from(["", *"abcd"]), st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))
    ),
    min_size=1,
    max_size=6,
)


def compared(rows):
    """Cell and baseline over queries, each with both lists, its source document and its grades."""
    ids = [f"q{place}" for place in range(len(rows))]
    queries = [
        QueryRow(id=name, text="words", kind="topic", origin="person", source_document=source)
        for name, (_, _, source, _) in zip(ids, rows, strict=True)
    ]
    plan = PLAN.model_copy(update={"baseline": "base", "cells": ["base", "cell"]})
    runs = {
        name: run_of({query_id: row[place] for query_id, row in zip(ids, rows, strict=True)}, name)
        for place, name in ((1, "base"), (0, "cell"))
    }
    return Comparison(plan, queries, runs, {name: row[3] for name, row in zip(ids, rows, strict=True)})


@given(ROWS)
def test_where_cells_rank_source_documents_and_which_the_judge_missed_is_counted_one_by_one(rows):
    found = source_documents(compared(rows), {("q0", "a"): [2]})
    sources = [(place, row) for place, row in enumerate(rows) if row[2]]
    if not sources:
        assert found is None
        return
    by_cell = found.cells
    for name, at in (("cell", 0), ("base", 1)):
        ranks = [row[at].index(row[2]) + 1 if row[2] in row[at] else math.inf for _, row in sources]
        assert by_cell[name].mrr.value == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks), abs=1e-8)
        assert by_cell[name].first_ten.value == pytest.approx(sum(rank <= 10 for rank in ranks) / len(ranks))
        for figure in (by_cell[name].mrr, by_cell[name].first_ten):
            assert 0 <= figure.low <= figure.value + 1e-9 <= figure.high + 2e-9
    # Missed is what has a grade, and one below 2.
    missed = [f"q{place}" for place, row in sources if row[3].get(row[2], 2) < 2]
    assert found.missed == {name: [2] if rows[0][2] == "a" and name == "q0" else [] for name in missed}
    expected = Counter()
    for _, (cell, baseline, source, judged) in sources:
        places = [names.index(source) if source in names else 9 for names in (cell, baseline)]
        if source in judged and places[0] != places[1]:
            side = "cell" if places[0] < places[1] else "baseline"
            expected[f"{side}_judged"] += 1
            expected[f"{side}_missed"] += judged[source] < 2
    sides = ("cell_judged", "cell_missed", "baseline_judged", "baseline_missed")
    assert {cell: [getattr(row, side) for side in sides] for cell, row in found.by_list.items()} == (
        {"cell": [expected[side] for side in sides]} if expected else {}
    )


def test_ten_places_count_as_the_first_ten_and_a_hundred_for_the_reciprocal_rank():
    names = [f"d{place}" for place in range(101)]
    rows = [(names, names, source, {}) for source in ("d9", "d10", "d99", "d100")]
    base = source_documents(compared(rows), {}).cells["base"]
    assert base.first_ten.value == 0.25
    assert base.mrr.value == pytest.approx((1 / 10 + 1 / 11 + 1 / 100 + 0) / 4, abs=1e-8)


def test_a_topic_counts_the_mean_of_its_wordings_and_counts_though_no_document_is_relevant():
    two = {"plain": "bridge money", "paraphrased": "who pays for spans", "source_document": "a"}
    queries = [
        QueryRow(id="q0", kind="topic", origin="person", **two),
        QueryRow(id="q1", text="words", kind="topic", origin="person", source_document="b"),
    ]
    lists = {"q0.plain": "abc", "q0.paraphrased": "bcda", "q1": "ab"}
    plan = PLAN.model_copy(update={"baseline": "base"})
    found = source_documents(Comparison(plan, queries, {"base": run_of(lists, "base")}, {"q1": {"a": 2, "b": 0}}), {})
    base = found.cells["base"]
    assert base.mrr.value == pytest.approx(((1 + 1 / 4) / 2 + 1 / 2) / 2)
    assert base.first_ten.value == 1
    assert found.missed == {"q1": []}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9))
def test_tau_is_scipys_and_undefined_if_all_are_level(pairs):
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    tau = kendall_tau(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert tau is None
    else:
        assert tau == pytest.approx(kendalltau(first, second).statistic)


def test_a_source_document_that_nobody_judged_is_not_a_missed_one():
    queries = compared([([], [], source, {}) for source in ("a", "b", "", "d")]).queries
    grades = {("q0", "a"): 1, ("q1", "b"): 2, ("q3", "a"): 0}
    assert missed_sources(queries, grades, 2) == {("q0", "a"): 1}
