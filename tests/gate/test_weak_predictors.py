"""Predictors that know little and pass the nulls that know no text: docs/null-gate.md says of each what names it."""

import re
from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import SCORE_UNIT, Run
from runner.eval_set.shapes.gate import NullResult
from runner.gate.controls import controls, most_by_chance
from runner.gate.diagnosis import diagnosis
from runner.gate.graded_gate import GradedGate
from runner.gate.graded_nulls import nearest
from runner.gate.nulls import GRADED, GradedSet
from runner.score.score import score
from tests.support.graded_sets import CHUNKS, DOCS, LENGTHS, SETTINGS, graded, oracle, run_of

SOURCES = ("house", "senate", "rules", "code")
QUERIES = [f"q{place:02}" for place in range(48)]
SOURCE_OF = {query: SOURCES[place // 2 % 4] for place, query in enumerate(QUERIES)}
WORDS = {
    document: {SOURCES[place // 4 % 4], f"topic{place // 4}", f"own{place}"}
    for place, document in enumerate(DOCS[:192])
}
"""Four documents a topic; a query asks for two of them, and the query beside it for the other two."""

ASKED = {query: f"the {SOURCE_OF[query]} topic{place // 2} own{2 * place}" for place, query in enumerate(QUERIES)}
QRELS = {query: {DOCS[2 * place]: 3, DOCS[2 * place + 1]: 1} for place, query in enumerate(QUERIES)}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def found(asked: set[str]) -> list[str]:
    """An honest retriever: documents by the words that they share with a query, of equal ones the better written."""
    return sorted((d for d in WORDS if WORDS[d] & asked), key=lambda d: (-len(WORDS[d] & asked), int(d[1:]) % 2, d))[
        :10
    ]


def honest(asked: Mapping[str, str]) -> dict[str, list[str]]:
    return {query: found(words(text)) for query, text in asked.items()}


def nearest_querys_results() -> dict[str, list[str]]:
    """By another likeness than the gate's, of the share of words."""
    lists = honest(ASKED)

    def likeness(query: str, other: str) -> float:
        own, theirs = words(ASKED[query]), words(ASKED[other])
        return len(own & theirs) / len(own | theirs)

    return {q: lists[max((o for o in QUERIES if o != q), key=lambda o: likeness(q, o))] for q in QUERIES}


def blind_on_80_percent() -> dict[str, list[str]]:
    lists = honest(ASKED)
    return {query: lists[query] if place % 10 < 2 else DOCS[180:190] for place, query in enumerate(QUERIES)}


def one_word() -> dict[str, list[str]]:
    rng = np.random.default_rng(1)
    return {query: found({str(rng.choice(sorted(words(text) - {"the", *SOURCES})))}) for query, text in ASKED.items()}


FIRST_FIVE = tuple(null for null in GRADED if not null.by_texts)


def gate(qrels=QRELS, strata=None, asked=ASKED, lengths=LENGTHS, nulls=GRADED) -> GradedGate:
    strata = strata or dict.fromkeys(qrels, "")
    made = GradedSet(list(qrels), qrels, strata, lengths, SETTINGS["draws"], SETTINGS["seed"], asked)
    return GradedGate(made, tau=SETTINGS["tau"], alpha=SETTINGS["alpha"], nulls=nulls)


@pytest.mark.parametrize(
    ("predict", "first", "second", "named"),
    [
        (lambda: honest(ASKED), "pass", "pass", ""),
        (nearest_querys_results, "pass", "fail", "it may answer other queries than it was given"),
        (blind_on_80_percent, "pass", "pass", "38 of 48 queries get the same 10 documents"),
        (one_word, "pass", "pass", ""),
    ],
)
def test_what_a_weak_predictor_passes_and_what_names_it(predict, first, second, named):
    run = run_of(predict())
    assert gate(nulls=FIRST_FIVE).judge(run, CHUNKS).verdict == first
    found = gate().judge(run, CHUNKS)
    assert found.verdict == second
    assert named in diagnosis(run, found, SETTINGS["alpha"])
    assert bool(named) == bool(diagnosis(run, found, SETTINGS["alpha"]))


def last_null(run: Run, found: GradedGate) -> NullResult:
    return found.judge(run, CHUNKS).nulls[-1]


@given(st.integers(0, 10_000))
def test_the_null_s_mean_and_p_are_those_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    queries = QUERIES[:6]
    qrels = {q: {d: int(rng.integers(1, 4)) for d in rng.choice(DOCS[:12], 3, replace=False)} for q in queries}
    asked = {q: " ".join(rng.choice(["tax", "tea", "sea", "law"], 2)) for q in queries}
    lists = {q: rng.choice(DOCS[:12], 10, replace=False).tolist() for q in queries}
    places = nearest(list(asked.values())).tolist()
    swapped = {
        q: lists[queries[place]] if place >= 0 and not qrels[q].keys() & qrels[queries[place]].keys() else lists[q]
        for q, place in zip(queries, places, strict=True)
    }
    own, other = (
        np.array(score(run_of(each), queries, qrels, 1).values["ndcg@10"], np.int64) for each in (lists, swapped)
    )
    found = last_null(run_of(lists), gate(qrels, asked=asked))
    assert found.mean == pytest.approx(other.mean() / SCORE_UNIT, abs=1e-9)
    assert found.delta == pytest.approx((own - other).mean() / SCORE_UNIT, abs=1e-9)
    flips = np.array(list(product((1, -1), repeat=6)))
    exact = (flips @ (own - other) >= (own - other).sum()).mean()
    assert found.p >= found.smallest_p
    assert found.p == pytest.approx(max(exact, found.smallest_p), abs=0.1)


def test_lists_drawn_at_random_pass_it_as_often_as_alpha():
    rng = np.random.default_rng(5)
    qrels = {q: dict.fromkeys(DOCS[place * 4 :][:4], 1) for place, q in enumerate(QUERIES)}
    found = gate(qrels)
    runs = (run_of({q: rng.choice(DOCS, 60, replace=False).tolist()[:10] for q in QUERIES}) for _ in range(200))
    passes = sum(last_null(run, found).p <= 0.05 for run in runs)
    assert passes <= most_by_chance(200, 0.05)
    assert passes > 0


def test_popularity_within_a_source_passes_until_the_sources_are_given_as_strata():
    rng = np.random.default_rng(2)
    favourites = {source: DOCS[40 * place : 40 * place + 10] for place, source in enumerate(SOURCES)}
    qrels = {q: dict.fromkeys(rng.choice(favourites[s], 5, replace=False).tolist(), 3) for q, s in SOURCE_OF.items()}
    run = run_of({query: favourites[source] for query, source in SOURCE_OF.items()})
    without, within = (gate(qrels, strata).judge(run, CHUNKS) for strata in (None, SOURCE_OF))
    passed = [{null.name: null.verdict for null in each.nulls}["permuted qrels"] for each in (without, within)]
    assert passed == ["pass", "fail"]
    assert within.verdict == "fail"


def test_the_neighbour_s_answers_are_a_control_where_enough_queries_have_a_neighbour_of_other_answers():
    (told,) = (row for row in controls(gate(), CHUNKS) if row.name == "nearest query")
    assert (told.expected, told.passes, told.behaves) == ("fail", 0, True)
    alike = {query: QRELS[QUERIES[place // 2 * 2]] for place, query in enumerate(QUERIES)}
    assert "nearest query" not in [row.name for row in controls(gate(alike), CHUNKS)]


def test_queries_that_share_their_answers_keep_no_run_from_passing():
    alike = {query: QRELS[QUERIES[place // 2 * 2]] for place, query in enumerate(QUERIES)}
    judged = gate(alike).judge(oracle(alike), CHUNKS)
    assert (judged.nulls[-1].verdict, judged.verdict) == ("insufficient", "pass")


def test_without_texts_there_is_no_neighbour():
    names = [null.name for null in gate(asked=None).judge(oracle(QRELS), CHUNKS).nulls]
    assert names == [null.name for null in FIRST_FIVE]


def test_the_nearest_text_shares_the_words_that_tell_most():
    texts = ["the tax on tea", "the law of the sea", "a tax on tea and coffee", "the sea", "unlike", "unlike", "alone"]
    assert nearest(texts).tolist() == [2, 3, 0, 1, 5, 4, -1]


def test_renaming_documents_or_queries_moves_nothing():
    qrels = graded(25)
    hubs = {
        place: DOCS[190:][: 1 + place // 3] for place in range(25)
    }  # so that no tie of two documents hangs on a name
    run = run_of({q: [*sorted(qrels[q])[:2], *hubs[place]] for place, q in enumerate(qrels)})
    lengths = {d: 100 + place for place, d in enumerate(LENGTHS)}
    texts = {q: " ".join(sorted(grades)) for q, grades in qrels.items()}
    strata = {q: "ab"[place % 2] for place, q in enumerate(qrels)}
    shuffled = np.random.default_rng(3).permutation(len(DOCS)).tolist()

    def judged(query=str, document=str):
        renamed = {query(q): {document(d): grade for d, grade in grades.items()} for q, grades in qrels.items()}
        made = run_of({query(q): [document(hit.doc_id) for hit in hits] for q, hits in run.hits.items()})
        sizes = {document(d): length for d, length in lengths.items()}
        of = ({query(q): value for q, value in table.items()} for table in (strata, texts))
        return gate(renamed, *of, sizes).judge(made, {document(d): n for d, n in CHUNKS.items()})

    known = judged()
    assert judged(query=lambda q: f"{99 - int(q[1:])}/é") == known
    assert judged(document=lambda d: f"ü:{d}") == known
    other = judged(document=lambda d: f"x{shuffled[DOCS.index(d)]:03}")
    assert [null.verdict for null in other.nulls] == [null.verdict for null in known.nulls]
    for one, two in zip(other.nulls, known.nulls, strict=True):
        drawn_by_name = one.name == "random retrieval"
        assert one == two if not drawn_by_name else abs(one.mean - two.mean) < 0.005
