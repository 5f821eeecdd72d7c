import pytest

from runner.base.records import Query
from runner.score.slices import slices
from tests.support.example_results import BASELINE, SPARSE
from tests.support.pool_cases import comparison

NAMES = [f"q{i:02}" for i in range(12)]


def sliced(queries):
    """Every query is answered by a document of its own; the baseline finds all of them, BM25 those of even queries."""
    answers = {query.query_id: f"d-{query.query_id}" for query in queries}
    rankings = {
        BASELINE: {q: [d] for q, d in answers.items()},
        SPARSE: {q: [d] if int(q[1:]) % 2 == 0 else ["x"] for q, d in answers.items()},
    }
    qrels = {q: {d: 3} for q, d in answers.items()}
    lengths = dict.fromkeys(answers.values(), 100)
    return slices(comparison(rankings, qrels, queries=queries, lengths=lengths))


def test_a_part_that_holds_every_query_is_no_slice():
    assert sliced([Query(name, name, "topic", "person") for name in NAMES]) == []


def test_means_by_origin_are_those_of_its_queries():
    made = [Query(q, q, "topic", "person" if int(q[1:]) < 3 else "claude") for q in NAMES]
    hand = next(one for one in sliced(made) if one.name == "person")
    generated = next(one for one in sliced(made) if one.name == "claude")
    assert (hand.by, hand.queries, generated.queries) == ("origin", 3, 9)
    assert hand.cells[BASELINE].ndcg == hand.cells[BASELINE].recall == 1
    assert hand.cells[SPARSE].ndcg == pytest.approx(2 / 3)
    assert generated.cells[SPARSE].recall == pytest.approx(4 / 9)


def test_kinds_are_sliced_if_there_are_several_and_strata_are_not():
    made = [Query(q, q, "quote" if i % 2 else "topic", "person", stratum=f"s{i % 2}") for i, q in enumerate(NAMES)]
    assert [(one.by, one.name, one.cells[SPARSE].ndcg) for one in sliced(made)] == [
        ("kind", "quote", 0.0),
        ("kind", "topic", 1.0),
    ]
