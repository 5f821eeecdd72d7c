import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.eval_set.batches import all_rows, batch_files, read_batch
from runner.eval_set.labels import load_labels
from runner.eval_set.runs import run_bytes
from runner.eval_set.version import load_queries
from runner.judge.second_reading import (
    chosen_pairs,
    export_doubles,
    moving_pairs,
    second_reading_step,
    unread_twice,
    waits_for_nobody,
)
from tests.support.graded_sets import run_of
from tests.support.small_judging import answer, everything, export, give
from tests.support.small_set import edit_plan

PAIRS = [(f"q{q:02d}", f"d{d}") for q in range(25) for d in range(40)]
GRADES = {pair: (0, 0, 0, 0, 1, 1, 2, 3)[number % 8] for number, pair in enumerate(PAIRS)}


def drawn(grades, share, moving=(), seed=1):
    return chosen_pairs(grades, share, moving, relevant_grade=2, seed=seed)


@given(
    st.dictionaries(st.tuples(st.text("q1", min_size=1), st.text("d2", min_size=1)), st.integers(0, 3)), st.floats(0, 1)
)
def test_half_of_a_share_is_relevant_and_no_smaller_share_of_the_relevant_pairs_is_read(grades, share):
    assert drawn(grades, 1.0) == sorted(grades)
    chosen = drawn(grades, share)
    assert len(chosen) == len(set(chosen)) <= len(grades)
    assert share * len(grades) - 1e-6 <= len(chosen) <= share * len(grades) + 1
    relevant = [pair for pair in grades if grades[pair] >= 2]
    n_relevant = len(set(relevant) & set(chosen))
    assert n_relevant >= min(len(relevant), len(chosen) / 2)
    assert n_relevant >= share * len(relevant) - 1e-6
    # More than half are relevant only if the others do not suffice, or if most pairs are relevant.
    others = len(grades) - len(relevant)
    assert n_relevant <= max(len(chosen) / 2, share * len(relevant), len(chosen) - others) + 1


def test_a_tenth_holds_as_large_a_part_of_the_grades_of_either_half_and_a_larger_share_holds_it():
    chosen = drawn(GRADES, 0.1)
    assert Counter(GRADES[pair] for pair in chosen) == {0: 33, 1: 17, 2: 25, 3: 25}
    assert set(chosen) <= set(drawn(GRADES, 0.3))
    assert len({query_id for query_id, _ in chosen}) > 20, "spread over the queries"
    assert drawn(GRADES, 0.1) == chosen != drawn(GRADES, 0.1, seed=2)


@given(st.integers(0, 99), st.floats(0, 1), st.integers(0, 1000))
def test_pairs_that_move_a_difference_are_read_again_before_any_other_of_their_half(seed, share, n_moving):
    moving = set(PAIRS[:: max(1, 1000 // max(1, n_moving))][:n_moving])
    chosen = set(drawn(GRADES, share, moving, seed))
    for relevant in (True, False):
        half = {pair for pair in GRADES if (GRADES[pair] >= 2) is relevant}
        assert len(moving & half & chosen) == min(len(moving & half), len(half & chosen))
        part, whole = (Counter(GRADES[pair] for pair in pairs) for pairs in (moving & half & chosen, moving & half))
        for grade, n_pairs in whole.items():
            assert abs(part[grade] / n_pairs - part.total() / whole.total()) * n_pairs <= 1.01


def test_a_pair_moves_a_difference_if_the_baseline_alone_or_the_cell_alone_has_it(version):
    plan = version.plan()
    other = next(cell for cell in plan.cells if cell != plan.baseline)
    plan = plan.model_copy(update={"first": [other]})
    query_ids = [query.id for query in load_queries(version.queries_path)]
    assert moving_pairs(version, plan) == set()
    for cell, documents in ((plan.baseline, [*"kjihgfedcb1"]), (other, [*"kjihgfedca1"])):
        run = run_of(dict.fromkeys(query_ids, documents), cell)
        version.run_path(cell).parent.mkdir(parents=True, exist_ok=True)
        version.run_path(cell).write_bytes(run_bytes(run))
    # 1 is below the tenth place in both, and c to k are in both.
    assert moving_pairs(version, plan) == {(query_id, name) for query_id in query_ids for name in "ab"}


@pytest.fixture(name="judged")
def _judged(version):
    """A version whose first 100 pairs are judged."""
    missing = everything(version)
    (path, *_) = export(version, missing[:100])
    grades = (0, 0, 0, 1, 2, 3)
    sources = {query.id: query.source_document for query in load_queries(version.queries_path)}
    given = (
        answer(*row.pair, 3 if sources[row.query_id] == row.doc_id else grades[number % 6])
        for number, row in enumerate(read_batch(path))
    )
    give(version, *given, judge="first")
    return version


def test_a_second_judge_gets_the_row_of_the_first_without_any_grade(judged):
    labels = load_labels(judged.labels_path)
    done = export_doubles(judged, labels, 0.1)
    assert (done.judged, done.pairs, done.waiting) == (100, 10, 10)
    (path,) = done.paths
    shown = {(row.query_id, row.doc_id): row.evidence_sha256 for row in all_rows(judged.judging)}
    for row in read_batch(path):
        assert shown[row.query_id, row.doc_id] == row.evidence_sha256
        assert row.batch == "double-0001"
    assert not re.search('"grade"|"reason"|"judge"', path.read_text(encoding="utf-8"))


def test_asking_again_exports_no_pair_again_and_more_only_for_a_larger_share(judged):
    labels = load_labels(judged.labels_path)
    first = export_doubles(judged, labels, 0.1)
    content = first.paths[0].read_bytes()
    assert export_doubles(judged, labels, 0.1) == first
    more = export_doubles(judged, labels, 0.3)
    assert (more.pairs, len(batch_files(judged.judging, "double"))) == (30, 2)
    assert first.paths[0].read_bytes() == content


def test_the_second_reading_is_another_judges_first_round_and_changes_no_scored_grade(judged):
    (path,) = export_doubles(judged, load_labels(judged.labels_path), 0.1).paths
    answers = [answer(row.query_id, row.doc_id, 3) for row in read_batch(path)]
    with pytest.raises(InputError, match="is for a second judge, and first graded"):
        give(judged, *answers, name=f"{path.stem}.jsonl", judge="first")
    give(judged, *answers, name=f"{path.stem}.jsonl", judge="second")
    labels = load_labels(judged.labels_path)
    assert [(label.judge, label.round, label.batch) for label in labels[100:]] == [("second", 1, "double-0001")] * 10
    assert export_doubles(judged, labels, 0.1).waiting == 0


def test_without_labels_or_without_batches_it_is_said_what_is_missing(version, judged):
    with pytest.raises(InputError, match="no judged pairs yet"):
        export_doubles(version, (), 0.1)
    labels = load_labels(judged.labels_path)
    plan = judged.plan().model_copy(update={"judges": None})
    assert waits_for_nobody(judged, plan, labels)
    for path in batch_files(judged.judging):
        path.unlink()
    assert not waits_for_nobody(judged, plan, labels), "no second reading is advised that cannot be had"
    with pytest.raises(InputError, match="no judged pair is in a batch"):
        export_doubles(judged, labels, 0.1)


def test_source_documents_that_a_model_graded_too_low_are_read_again_whatever_the_share(version):
    sources = {(query.id, query.source_document) for query in load_queries(version.queries_path)}
    export(version, sources)
    low = set(sorted(sources)[:3])
    given = [answer(*pair, 1 if pair in low else 3) for pair in sorted(sources)]
    plan = version.plan().model_copy(update={"judges": None})
    give(version, *given, judge="first", model="")
    assert unread_twice(version, plan) == [], "grades of people alone wait for nobody"
    version.labels_path.unlink()
    give(version, *given, judge="first")
    (path,) = unread_twice(version, plan)
    assert {row.pair for row in read_batch(path)} == low
    assert unread_twice(version, plan) == [path]
    # Deleted, it would be written anew, and a plan without judges has nobody to ask.
    edit_plan(version, judges=None)
    ways = second_reading_step(version, [path], "run").ways
    assert ["delete" in " ".join(ways), "--judge " in ways[0]] == [False, False]
    give(version, *(answer(*pair, 1) for pair in low), name=f"{path.stem}.jsonl", judge="second")
    assert unread_twice(version, plan) == []
