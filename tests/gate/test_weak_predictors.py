"""Predictors that know little and pass the gate: docs/null-gate.md says of each what names it."""

import re
from collections.abc import Mapping

import numpy as np
import pytest

from runner.gate.diagnosis import diagnosis
from runner.gate.gate import Gate
from tests.support.graded_sets import CHUNKS, DOCS, LENGTHS, SETTINGS, graded, run_of

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


def blind_on_80_percent(blind=lambda rng: DOCS[180:190]) -> dict[str, list[str]]:
    lists, rng = honest(ASKED), np.random.default_rng(5)
    return {query: lists[query] if place % 10 < 2 else blind(rng) for place, query in enumerate(QUERIES)}


def drawn_list(rng: np.random.Generator) -> list[str]:
    return rng.choice(DOCS, 10, replace=False).tolist()


def one_word() -> dict[str, list[str]]:
    rng = np.random.default_rng(1)
    return {query: found({str(rng.choice(sorted(words(text) - {"the", *SOURCES})))}) for query, text in ASKED.items()}


def gate(qrels=QRELS, strata=None, lengths=LENGTHS) -> Gate:
    return Gate.of(list(qrels), qrels, strata or dict.fromkeys(qrels, ""), lengths, **SETTINGS)


@pytest.mark.parametrize(
    ("predict", "named"),
    [
        (lambda: honest(ASKED), ""),
        (nearest_querys_results, ""),
        (blind_on_80_percent, "38 of 48 queries get the same 10 documents"),
        (lambda: blind_on_80_percent(drawn_list), "of 48 queries get lists that serve them no better than other"),
        (one_word, ""),
    ],
)
def test_a_weak_predictor_passes_and_the_diagnosis_names_what_it_can(predict, named):
    run = run_of(predict())
    judged, blind = gate().judge(run, CHUNKS), gate().blind(run)
    assert judged.verdict == "pass"
    assert named in diagnosis(run, judged, blind, SETTINGS["alpha"])
    assert bool(named) == bool(diagnosis(run, judged, blind, SETTINGS["alpha"]))


def test_renaming_documents_or_queries_moves_nothing():
    qrels = graded(25)
    hubs = {
        place: DOCS[190:][: 1 + place // 3] for place in range(25)
    }  # so that no tie of two documents hangs on a name
    run = run_of({q: [*sorted(qrels[q])[:2], *hubs[place]] for place, q in enumerate(qrels)})
    lengths = {d: 100 + place for place, d in enumerate(LENGTHS)}
    strata = {q: "ab"[place % 2] for place, q in enumerate(qrels)}
    shuffled = np.random.default_rng(3).permutation(len(DOCS)).tolist()

    def judged(query=str, document=str):
        renamed = {query(q): {document(d): grade for d, grade in grades.items()} for q, grades in qrels.items()}
        made = run_of({query(q): [document(hit.doc_id) for hit in hits] for q, hits in run.hits.items()})
        sizes = {document(d): length for d, length in lengths.items()}
        groups = {query(q): stratum for q, stratum in strata.items()}
        return gate(renamed, groups, sizes).judge(made, {document(d): n for d, n in CHUNKS.items()})

    known = judged()
    assert judged(query=lambda q: f"{99 - int(q[1:])}/é") == known
    assert judged(document=lambda d: f"ü:{d}") == known
    other = judged(document=lambda d: f"x{shuffled[DOCS.index(d)]:03}")
    assert [null.verdict for null in other.nulls] == [null.verdict for null in known.nulls]
    for one, two in zip(other.nulls, known.nulls, strict=True):
        drawn_by_name = one.name == "random retrieval"
        assert one == two if not drawn_by_name else abs(one.mean - two.mean) < 0.005
