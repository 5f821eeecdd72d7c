import numpy as np
import pytest

from runner.gate.diagnosis import diagnosis
from tests.support.graded_sets import CHUNKS, DOCS, SETTINGS, gate_of, graded, oracle, run_of, verdict


def said_of(run, qrels, **settings):
    gate = gate_of(qrels, **settings)
    return diagnosis(run, gate.judge(run, CHUNKS), gate.blind(run), settings.get("alpha", SETTINGS["alpha"]))


def lists(run):
    return {query_id: [hit.doc_id for hit in hits] for query_id, hits in run.hits.items()}


def test_of_a_run_that_passes_nothing_is_said():
    qrels = graded(25)
    assert said_of(oracle(qrels), qrels) == ""


def of_other_queries(qrels):
    names = list(qrels)
    return lists(oracle({q: qrels[names[(i + 7) % 25]] for i, q in enumerate(names)}))


NAMED = {
    "one vector": (
        lambda qrels: dict.fromkeys(qrels, DOCS[::-1][:100]),
        "every query gets the same 10 documents: the retriever ignores the query; the run fails perm",
    ),
    "a short list": (lambda qrels: dict.fromkeys(qrels, DOCS[:3]), "every query gets the same 3 documents"),
    "one document": (lambda qrels: dict.fromkeys(qrels, DOCS[:1]), "every query gets the same document:"),
    "no hit": (
        lambda qrels: {q: [] for q in qrels},
        "every query gets no document at all: nothing was retrieved; ",
    ),
    "labels of other queries": (
        of_other_queries,
        "rankings fit other queries' judgments as well as their own: labels may belong to other queries, or the run to "
        "other queries' text; ",
    ),
    "upside down after the cut": (
        lambda qrels: {q: found[::-1] for q, found in lists(oracle(qrels)).items()},
        "the first ten documents in random order do better than in the run's own: scores may be sorted worst first; ",
    ),
    "upside down before the cut": (
        lambda qrels: {q: sorted(DOCS[:60], key=lambda d: grades.get(d, 0)) for q, grades in qrels.items()},
        "no query gets a relevant document among its first ten: scores may be sorted worst first, or ",
    ),
    "nothing relevant": (
        lambda qrels: {q: [d for d in DOCS if d not in grades][:10] for q, grades in qrels.items()},
        "no query gets a relevant document among its first ten",
    ),
}


@pytest.mark.parametrize("defect", NAMED)
def test_a_defect_is_named_first(defect):
    qrels = graded(25)
    make, begins = NAMED[defect]
    assert said_of(run_of(make(qrels)), qrels).startswith(begins)


def test_half_of_the_queries_with_one_list_are_named_even_where_the_others_carry_the_run_through_the_gate():
    qrels = graded(24)
    found = lists(oracle(qrels))
    run = run_of({q: DOCS[90:100] if i < 12 else found[q] for i, q in enumerate(qrels)})
    assert verdict(run, qrels).verdict == "pass"
    assert said_of(run, qrels) == "12 of 24 queries get the same 10 documents: there the retriever ignores the query."
    run = run_of({q: DOCS[90:100] if i < 11 else found[q] for i, q in enumerate(qrels)})
    assert said_of(run, qrels) == ""


def test_labels_of_other_queries_are_named_even_where_the_order_is_worse_than_chance():
    qrels = {q: grades | {DOCS[199]: 1} for q, grades in graded(25).items()}
    run = run_of({q: [DOCS[(i + 7) % 25], *DOCS[60:66], DOCS[199]] for i, q in enumerate(qrels)})
    gate = verdict(run, qrels)
    assert gate.nulls[4].p > 0.95
    assert diagnosis(run, gate, 0.0, SETTINGS["alpha"]).startswith(
        "rankings fit other queries' judgments as well as their own: labels may "
    )


def test_a_real_but_small_effect_is_not_called_none():
    qrels = graded(25)
    spare = {q: next(d for d in reversed(DOCS) if d not in grades) for q, grades in qrels.items()}
    worse = run_of({q: [spare[q], *found] for q, found in lists(oracle(qrels)).items()})
    assert said_of(worse, qrels, tau=0.8).startswith(
        "rankings fit other queries' judgments almost as well as their own: "
    )


def test_every_failed_null_is_listed_with_its_figures():
    qrels, rng = graded(25), np.random.default_rng(1)
    run = run_of({q: rng.choice(DOCS, 10, replace=False).tolist() for q in qrels})
    gate = verdict(run, qrels)
    failed = [null for null in gate.nulls if null.verdict == "fail"]
    assert len(failed) > 1
    for null in failed:
        assert f"{null.name} (p {null.p:.4f}, delta {null.delta:+.4f})" in diagnosis(run, gate, 0.0, SETTINGS["alpha"])


def test_a_set_that_can_decide_nothing_is_not_blamed_on_the_run():
    qrels = graded(3)
    said = said_of(oracle(qrels), qrels)
    assert "permuted qrels, most retrieved, length sorted" in said
    assert "fails" not in said


def test_queries_without_a_relevant_document_stand_first_and_nothing_is_guessed_of_a_run_that_has_hardly_others():
    """Twenty of 25 such queries were blamed on lengths or on a foreign index."""
    qrels = graded(25)
    run = run_of(of_other_queries(qrels))
    gate, guess = verdict(run, qrels), "labels may belong to other queries"
    empty, alpha = [*qrels][:20], SETTINGS["alpha"]
    said = diagnosis(run, gate, 0.0, alpha, empty)
    assert said.startswith(f"20 of 25 queries have no relevant document ({', '.join(empty[:5])}, ...)")
    assert guess not in said
    few = diagnosis(run, gate, 0.0, alpha, empty[:1])
    assert few.startswith(f"1 of 25 queries has no relevant document ({empty[0]})")
    assert guess in few
    assert diagnosis(oracle(qrels), verdict(oracle(qrels), qrels), 0.0, alpha, empty) == ""
