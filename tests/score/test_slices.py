import pytest

from runner.eval_set.shapes.queries import QueryRow
from runner.score.slices import slices
from tests.support.example_results import BASELINE, BETTER, results, row

SCORES = {"ndcg@10": 2, "recall@10": 3}


def sliced(*kinds_and_origins):
    """Cells that score one part in 2 or 3 of the places that are even, the baseline everywhere."""
    queries = [
        QueryRow(id=f"q{place}", text=f"need {place}", kind=kind, origin=origin)
        for place, (kind, origin) in enumerate(kinds_and_origins)
    ]
    rows = [row(BASELINE), row(BETTER)]
    for cell, step in zip(rows, (1, 2), strict=True):
        for measure, part in SCORES.items():
            values = [0 if place % step else 10**9 // part for place in range(len(queries))]
            cell.scores[measure] = cell.scores[measure].model_copy(update={"per_query": values})
    return slices(results(*rows).model_copy(update={"queries": queries}))


def test_a_part_that_holds_every_query_is_no_slice():
    assert sliced(*[("topic", "person")] * 12) == []


def test_means_are_those_of_the_parts_queries_by_origin_and_by_kind():
    found = sliced(*[("topic", "person")] * 3, *[("topic", "claude")] * 4, ("quote", "claude"))
    assert [(one.by, one.name, one.queries) for one in found] == [
        ("origin", "claude", 5),
        ("origin", "person", 3),
        ("kind", "quote", 1),
        ("kind", "topic", 7),
    ]
    assert found[1].cells == {BASELINE: pytest.approx((1 / 2, 1 / 3)), BETTER: pytest.approx((1 / 3, 2 / 9))}
    assert found[2].cells[BETTER] == (0, 0)
