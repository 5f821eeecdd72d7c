"""The tier of a result, and the figures of the cell that it is about."""

import pytest

from runner.decide.sample_size import detectable, detectable_alone, error_for, to_prove, too_few
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.plan import Confirms
from runner.eval_set.shapes.results import NoiseFloor
from runner.retrieve.pool import likely_pairs
from runner.score.power import least_gain, power
from tests.support.example_results import (
    BASELINE,
    BETTER,
    HYBRID,
    PLAN,
    SPARSE,
    control,
    outcome_of,
    ranked,
    results,
    row,
)

GOOD = {"p": 0.004}


@pytest.mark.parametrize("change", [{"gain": 0.0199}, {"recall": -0.0201}, {"gain": -0.3}])
def test_without_a_candidate_the_baseline_is_kept_whatever_is_believed(change):
    rows = [row(BETTER, **{"gain": 0.05, "believed": 0.2} | change), row(SPARSE, -0.2), row(BASELINE)]
    assert (outcome_of(*rows).tier, outcome_of(*rows).recommended) == ("baseline kept", BASELINE)


@pytest.mark.parametrize(("believed", "chosen"), [(0.05, BETTER), (0.01, BASELINE)])
def test_what_is_recommended_is_expected_to_be_worth_its_switch_where_something_can_be_decided(believed, chosen):
    for p in (0.5, 0.001):
        assert outcome_of(row(BETTER, 0.1, believed=believed, p=p), row(BASELINE)).recommended == chosen
    assert outcome_of(row(BETTER, 0.1), row(BASELINE), unjudged=1).recommended == BASELINE


def test_candidates_come_best_first_with_the_rules_false_alarms():
    found = results(row(SPARSE, 0.09), row(HYBRID, 0.06, -0.03), row(BETTER, 0.03), row(BASELINE))
    assert (found.outcome.tier, found.candidates, found.confirmed) == ("candidate", [SPARSE, BETTER], [])
    assert found.outcome.false_alarm == 0.61


def test_a_gain_that_holds_up_is_confirmed_and_stands_before_greater_ones_that_do_not():
    found = results(row(SPARSE, 0.2), row(BETTER, 0.1, **GOOD), row(HYBRID, 0.05, **GOOD), row(BASELINE))
    assert (found.outcome.tier, found.confirmed) == ("confirmed", [BETTER, HYBRID])
    assert found.candidates == [SPARSE, BETTER, HYBRID]


def test_a_cell_outside_of_the_preregistered_family_is_a_candidate_at_most():
    found = results(row(SPARSE, 0.2, role="exploratory", **GOOD), row(BASELINE))
    assert (found.outcome.tier, found.confirmed, found.outcome.recommended) == ("candidate", [], BASELINE)


def test_new_queries_show_what_has_power_in_a_cell_that_is_tested_alone():
    assert power(50, detectable_alone(PLAN, 50, 0.2), 0.2, 0.05, bar=0.02) == pytest.approx(0.8)


SHARES = [(0, 0.05 / 7, 0.05 / 7), (1, 0.04, 0.01 / 6), (2, 0.02, 0.01 / 5), (7, 0.05 / 7, None)]


@pytest.mark.parametrize(("n_first", "first", "other"), SHARES)
def test_the_error_is_shared_as_the_plan_orders_its_cells(n_first, first, other):
    challengers = [cell for cell in PLAN.cells if cell != PLAN.baseline]
    plan = PLAN.model_copy(update={"first": challengers[:n_first]})
    assert error_for(plan, challengers[0]) == pytest.approx(first)
    if other is not None:
        assert error_for(plan, challengers[-1]) == pytest.approx(other)


def test_a_cell_that_equals_the_baseline_on_every_query_says_nothing_of_what_queries_show():
    same = row(BETTER)
    same = same.model_copy(
        update={"test": same.test.model_copy(update={"sd": 0.0, "interval": [0.0, 0.0], "simultaneous": [0.0, 0.0]})}
    )
    cells = ranked([same, row(BASELINE)])
    assert (outcome_of(*cells).tier, detectable(PLAN, 50, cells)) == ("baseline kept", None)


def test_the_figures_are_those_of_the_cell_in_question():
    ahead = row(SPARSE, 0.2, -0.1)
    ahead = ahead.model_copy(update={"test": ahead.test.model_copy(update={"sd": 0.4})})
    cells = ranked([ahead, row(BETTER, 0.05), row(BASELINE)])
    assert detectable(PLAN, 50, cells) == least_gain(50, 0.15, 0.02, bar=0.02)


def moved_by(moved):
    again = Difference(mean=moved, low=moved, high=moved, wins=1, ties=0, losses=0)
    return {"noise_floor": NoiseFloor(difference=again, max_change=0.5)}


BROKEN = control("popularity", passes=1)


@pytest.mark.parametrize(
    ("baseline", "facts", "barred_by"),
    [
        ("pass", {}, None),
        ("fail", {}, "baseline"),
        ("insufficient", {}, "baseline"),
        ("pass", {"controls": [control("constant"), BROKEN]}, "controls"),
        ("fail", {"controls": [BROKEN]}, "controls"),
        ("pass", moved_by(0.0199), None),
        ("pass", moved_by(-0.02), "noise"),
        ("pass", moved_by(0.02), "noise"),
        ("pass", {"unjudged": 7, "controls": [BROKEN]}, "unjudged"),
    ],
)
def test_nothing_is_decided_from_figures_that_cannot_be_relied_on(baseline, facts, barred_by):
    found = outcome_of(row(BETTER, 0.2, **GOOD), row(BASELINE, verdict=baseline), **facts)
    assert (found.tier, found.barred_by) == ("no decision" if barred_by else "confirmed", barred_by)


def test_a_baseline_alone_has_nothing_to_be_compared_with():
    found = outcome_of(row(BASELINE))
    assert (found.tier, found.false_alarm) == ("baseline kept", None)
    assert detectable(PLAN, 50, [row(BASELINE)]) is None


def test_what_a_budget_proves_is_said_beside_what_it_chooses():
    broad = PLAN.model_copy(update={"cells": [f"{cell} x whole_doc" for cell in "abcdefghij"]})
    pairs, asked = round(100 * likely_pairs(broad.pool_depth, 10)), int(100 * (10 / 2) ** 0.45)
    said = to_prove(broad, 100)
    assert f"{pairs:,}" in said
    assert f" {asked} " in said
    assert to_prove(broad, 10).endswith(too_few(int(10 * 5**0.45)))
    confirms = Confirms(version=1, cell="b x whole_doc", results_sha256="0" * 64)
    proving = broad.model_copy(update={"baseline": "a x whole_doc", "confirms": confirms})
    assert to_prove(proving, 100) == ""
    assert error_for(proving, "b x whole_doc") == broad.significance.alpha
