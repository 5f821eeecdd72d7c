from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import Hit, Run, Span
from runner.decide import ranked_lists as module
from runner.decide.ranked_lists import SHORT_DEPTH, ranked_lists, with_scores
from runner.eval_set.shapes.corpus import CorpusRow
from runner.eval_set.shapes.labels import Label
from tests.support.example_results import SHA

IDS = ("d1", "d2", "d3", "d4", "d5", "d6")
CORPUS = [
    CorpusRow(doc_id=name, url=f"https://example.org/{name}", sha256=SHA, stratum="", family="", n_chars=9)
    for name in IDS
]


def run(cell, *doc_ids, query_id="q1", **others):
    hits = {query_id: doc_ids, **others}
    return Run(
        cell,
        {
            name: tuple(Hit(doc_id, 1.0 - n / 100, Span(n, n + 9)) for n, doc_id in enumerate(found))
            for name, found in hits.items()
        },
    )


def label(doc_id, grade, judge="ann", number=1, **more):
    given = {"query_id": "q1", "reason": f"{judge} {number}: {grade}", "model": "", "spans": [], "batch": "batch-0001"}
    given |= {"prompt_sha256": SHA, "evidence_sha256": SHA, "judged_on": "2026-01-31", **more}
    return Label(doc_id=doc_id, grade=grade, judge=judge, round=number, **given)


def lists(runs, qrels, labels=(), *, depth=3, relevant_grade=2, query_ids=("q1",), corpus=CORPUS):
    return ranked_lists(
        query_ids,
        {one.cell: one for one in runs},
        qrels,
        labels,
        corpus,
        depth=depth,
        relevant_grade=relevant_grade,
    )


def names(made, place=0):
    return [made.documents[pair.document].doc_id for pair in made.queries[place].documents]


def test_scores_are_of_the_first_hits_of_the_cells_asked_for_and_a_file_without_any_stays_as_it_was():
    runs = [run("a", "d2", "d1", "d3"), run("b", "d5"), run("c", "d6")]
    made = lists(runs, {"q1": {}})
    assert "scores" not in made.model_dump()["queries"][0]
    scored = with_scores(made, {one.cell: one for one in runs}, {"q1": {"d4": 1, "d3": 1, "gone": 0}}, ["a", "b"], 2)
    assert scored.queries[0].scores == {"a": [1.0, 0.99], "b": [1.0]}
    assert scored.queries[0].unlisted == {"d4": 1}
    assert type(made).model_validate_json(scored.model_dump_json()) == scored


def test_documents_stand_as_in_the_corpus_with_their_address_and_without_title_and_text():
    made = lists([run("a", "d5", "d2")], {"q1": {"d4": 3}})
    assert [(one.doc_id, one.url, one.title) for one in made.documents] == [
        (name, f"https://example.org/{name}", "") for name in ("d2", "d4", "d5")
    ]
    assert all(pair.passages == [] for pair in made.queries[0].documents)


def test_a_relevant_document_that_no_cell_lists_is_there_and_one_below_the_grade_is_not():
    made = lists([run("a", "d1")], {"q1": {"d2": 2, "d3": 1, "d4": 3}})
    assert names(made) == ["d4", "d2", "d1"]
    assert [pair.grade for pair in made.queries[0].documents] == [3, 2, None]


def test_the_highest_grade_comes_first_then_the_best_place_then_the_id_and_what_nobody_judged_is_last():
    runs = [run("a", "d1", "d6", "d4"), run("b", "d3", "d5", "d2")]
    made = lists(runs, {"q1": {"d4": 1, "d5": 1, "d6": 1, "d2": 0, "d1": 3}})
    assert names(made) == ["d1", "d5", "d6", "d4", "d2", "d3"]


def test_what_nobody_judged_comes_after_published_grades_below_zero():
    made = lists([run("a", "d1", "d2")], {"q1": {"d2": -2}}, relevant_grade=1)
    assert [(name, pair.grade) for name, pair in zip(names(made), made.queries[0].documents, strict=True)] == [
        ("d2", -2),
        ("d1", None),
    ]


def test_the_scored_label_speaks_first_and_further_readings_follow_it():
    labels = [
        label("d1", 0, "zoe", 2),
        label("d1", 2, "ann", 1, model="m-1", spans=[[3, 8]]),
        label("d1", 3, "bob", 1, model="m-2"),
    ]
    (pair,) = lists([run("a", "d1")], {"q1": {"d1": 2}}, labels).queries[0].documents
    assert (pair.grade, pair.judge, pair.reason, pair.spans) == (2, "ann", "ann 1: 2", [[3, 8]])
    assert [(one.judge, one.model, one.round, one.grade, one.reason) for one in pair.readings] == [
        ("zoe", "", 2, 0, "zoe 2: 0"),
        ("bob", "m-2", 1, 3, "bob 1: 3"),
    ]


def test_labels_of_another_query_or_document_are_not_mixed_in():
    runs = [run("a", "d1", q2=("d1", "d2"))]
    labels = [label("d1", 3, query_id="q2"), label("d2", 1, query_id="q2")]
    made = lists(runs, {"q1": {}, "q2": {"d1": 3, "d2": 1}}, labels, query_ids=("q1", "q2"))
    assert [(pair.grade, pair.judge) for pair in made.queries[0].documents] == [(None, "")]
    assert [(pair.grade, pair.reason) for pair in made.queries[1].documents] == [(3, "ann 1: 3"), (1, "ann 1: 1")]


def test_what_a_judge_said_of_a_topic_stands_beside_each_of_its_wordings():
    runs = [run("a", "d1", query_id="q1.plain", **{"q1.paraphrased": ("d1",)})]
    asked = ("q1.plain", "q1.paraphrased")
    qrels, topics = {query_id: {"d1": 2} for query_id in asked}, dict.fromkeys(asked, "q1")
    made = ranked_lists(
        asked, {"a": runs[0]}, qrels, [label("d1", 2)], CORPUS, depth=3, relevant_grade=2, topics=topics
    )
    assert [(query.documents[0].judge, query.documents[0].reason) for query in made.queries] == [
        ("ann", "ann 1: 2")
    ] * 2


def test_a_judged_document_that_the_collection_does_not_have_is_left_out():
    made = lists([run("a", "d1")], {"q1": {"gone": 3, "d2": 2}})
    assert names(made) == ["d2", "d1"]
    assert made.queries[0].hits["a"] == [[1, 0, 9]]


def test_relevant_documents_are_counted_as_recall_does_those_too_that_the_collection_lacks():
    judged = {"q1": {"gone": 3, "d1": 2, "d2": 1}, "q2": {}}
    made = lists([run("a", "d1", q2=())], judged, query_ids=("q1", "q2"))
    assert [query.relevant for query in made.queries] == [2, 0]


def test_a_cell_without_hits_and_a_query_without_judgments_have_empty_lists():
    made = lists([run("a"), run("b")], {})
    assert made.queries[0].documents == []
    assert made.queries[0].hits == {"a": [], "b": []}
    assert made.documents == []


@pytest.mark.parametrize(("most", "depth"), [(4 * 20, 20), (4 * 20 - 1, SHORT_DEPTH)])
def test_lists_are_cut_where_there_are_too_many_hits(monkeypatch, most, depth):
    monkeypatch.setattr(module, "MOST_HITS", most)
    corpus = [row.model_copy(update={"doc_id": f"d{n:02d}"}) for n, row in enumerate(CORPUS * 5)]
    found = [row.doc_id for row in corpus]
    runs = [run(cell, *found, q2=found) for cell in "ab"]
    made = lists(runs, {}, depth=20, query_ids=("q1", "q2"), corpus=corpus)
    assert made.depth == depth
    assert [len(hits) for query in made.queries for hits in query.hits.values()] == [depth] * 4
    assert len(made.documents) == depth


def test_a_short_depth_is_never_made_longer(monkeypatch):
    monkeypatch.setattr(module, "MOST_HITS", 1)
    assert lists([run("a", *IDS)], {}, depth=2).depth == 2


@given(
    st.lists(st.permutations(IDS), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(IDS), st.integers(0, 3)),
    st.integers(1, 6),
)
def test_whatever_the_runs_and_grades_every_list_can_be_read_back(orders, judged, depth):
    runs = [run(f"cell {n}", *order) for n, order in enumerate(orders)]
    made = lists(runs, {"q1": judged}, depth=depth)
    listed = names(made)
    for one in runs:
        expected = [(hit.doc_id, hit.span.start, hit.span.end) for hit in islice(one.hits["q1"], depth)]
        assert [(listed[row], start, end) for row, start, end in made.queries[0].hits[one.cell]] == expected
    assert len(set(listed)) == len(listed)
    assert {name for name, grade in judged.items() if grade >= 2} <= set(listed)
    grades = [pair.grade for pair in made.queries[0].documents]
    assert grades == sorted(grades, key=lambda grade: -(-1 if grade is None else grade))
    assert grades == [judged.get(name) for name in listed]


def test_a_pair_that_was_only_read_again_has_no_scored_grade_but_shows_the_reading():
    made = lists([run("a", "d1")], {}, [label("d1", 3, judge="bob", number=2)])
    (pair,) = made.queries[0].documents
    assert (pair.grade, pair.judge, pair.reason) == (None, "", "")
    assert [(reading.judge, reading.round, reading.grade) for reading in pair.readings] == [("bob", 2, 3)]
