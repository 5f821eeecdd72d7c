"""Weaknesses that a result declares, from its own figures."""

import pytest

from runner.schemas import QueryRow
from runner.weaknesses import declared_weaknesses
from tests.example_results import BASELINE, BETTER, PLAN, SPARSE, results, row

QUERIES = [QueryRow(id=f"q{i:02}", text="text", kind="topic", origin="harvested") for i in range(25)]
LABELS = results(row(BETTER), row(BASELINE)).labels


def said_of(*rows, labels=LABELS, queries=QUERIES):
    return " | ".join(declared_weaknesses(PLAN, queries, rows, labels))


def with_gains(cell, per_query):
    """The cell with these differences in nDCG@10, whose baseline scores 0 throughout."""
    mean = sum(per_query) / len(per_query)
    found = row(cell, mean)
    without = [(sum(per_query) - gain) / (len(per_query) - 1) for gain in per_query]
    moves = [abs(value - mean) for value in without]
    test = found.test.model_copy(
        update={"left_out": [min(without), max(without)], "influential": QUERIES[moves.index(max(moves))].id}
    )
    scores = found.scores["ndcg@10"].model_copy(update={"per_query": [round(gain * 10**9) for gain in per_query]})
    return found.model_copy(update={"test": test, "scores": found.scores | {"ndcg@10": scores}})


def test_the_query_that_makes_a_gain_is_named_even_where_another_moves_the_mean_more():
    made = with_gains(BETTER, [0.0] * 20 + [0.9, 0.9, 0.0, 0.0, -1.0])
    assert made.test.influential == "q24"
    said = said_of(made, row(BASELINE))
    assert f"One query carries much of a result. Without query q20 the difference of {BETTER} is -0.0042." in said


@pytest.mark.parametrize("gains", [[0.1] * 25, [-0.4, -0.4] + [0.0] * 23])
def test_no_query_is_named_where_the_gain_does_not_hang_on_one_or_is_no_gain(gains):
    assert "One query" not in said_of(with_gains(BETTER, gains), row(BASELINE))


def test_power_is_that_of_the_measured_scatter_and_of_nothing_where_cells_do_not_scatter():
    rows = row(BETTER), row(SPARSE), row(BASELINE)
    said = "25 queries show a difference of 0.088 nDCG@10 in one cell with 80 % power (SD of differences 0.150"
    assert said_of(*rows).startswith(said)
    same = row(BETTER)
    same = same.model_copy(update={"test": same.test.model_copy(update={"sd": 0.0})})
    assert "80 % power" not in said_of(same, row(BASELINE))


def test_a_guard_that_does_not_know_is_counted():
    rows = row(BETTER), row(SPARSE, guard="non-inferior"), row(BASELINE)
    assert "falls by more than 0.02 is not known for 1 of 2 cells" in said_of(*rows)
    assert "is not known for" not in said_of(*rows[1:])


def test_labels_and_queries_that_were_made_for_the_evaluation_are_declared():
    twice = LABELS.model_copy(update={"second_readings": 3})
    assert "graded once" in said_of(row(BASELINE))
    assert "graded more than once" in said_of(row(BASELINE), labels=twice)
    written = [query.model_copy(update={"origin": "generated"}) for query in QUERIES[:5]] + QUERIES[5:]
    assert "5 of 25 queries were written for this evaluation (5 are marked" in said_of(row(BASELINE), queries=written)
    assert "were written" not in said_of(row(BASELINE))
