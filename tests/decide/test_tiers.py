"""Candidate by criterion 5, confirmed by what holds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import rounded
from runner.base.figures import figure_beside_bar, round4
from runner.decide.tiers import (
    CellFigures,
    cell_in_question,
    criteria,
    greatest_gain,
    interval_of,
    meets_criterion_5,
    reaches_gain,
    recommendation,
    unmet_criteria,
)
from runner.eval_set.shapes.paired import OverIncumbent
from runner.eval_set.shapes.plan import Rule
from runner.score.gain_test import GainTest
from tests.support.example_results import BASELINE, BETTER, HYBRID, PLAN, RULE, SPARSE, row


@given(st.integers(-25 * 10**9, 25 * 10**9), st.integers(-25 * 10**9, 25 * 10**9))
def test_criterion_5_is_what_a_reader_of_the_page_would_say(gain, recall):
    """Means of 25 queries in units of 1e-9; the page reads them from results.json."""
    gain, recall = gain / (25 * 10**9), recall / (25 * 10**9)
    stored_gain, stored_recall = rounded([gain, recall])
    shown = float(f"{stored_gain:+.4f}") >= 0.02 and float(f"{stored_recall:+.4f}") >= -0.02
    assert meets_criterion_5(gain, recall, RULE) is shown


def test_another_rule_is_applied_as_it_is_written():
    strict = Rule(min_gain=0.05, max_recall_loss=0.0)
    assert meets_criterion_5(0.05, 0.0, strict)
    assert not meets_criterion_5(0.0499, 0.0, strict)
    assert not meets_criterion_5(0.05, -0.0001, strict)


GOOD = CellFigures(gain=0.05, recall=0.0, n_queries=50, test=GainTest(0.01, 0.04), gate="pass", judged=1.0)


def missing(**changes):
    return unmet_criteria(GOOD._replace(**changes), RULE)


def test_a_cell_that_meets_every_condition_falls_short_of_nothing():
    assert missing() == []
    assert missing(gain=0.02, test=GainTest(0.04, 0.04)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gain": 0.0199}, "gains less than 0.02"),
        ({"test": GainTest(0.00143, 0.01 / 7)}, "is not told from chance (p 0.00143, bar 0.001429)"),
        ({"test": None}, "was not preregistered"),
        ({"recall": -0.0201}, "loses more than 0.02 Recall@10"),
        ({"gate": "fail"}, "does not pass the null gate (fail)"),
        ({"gate": "insufficient"}, "does not pass the null gate (insufficient)"),
        ({"judged": 0.9999}, "has unjudged hits"),
        ({"n_queries": 49}, "was asked fewer than 50 queries"),
    ],
)
def test_each_condition_alone_keeps_a_cell_from_being_confirmed(change, said):
    (found,) = missing(**change)
    assert said in found


@given(
    st.builds(
        CellFigures,
        gain=st.sampled_from([0.0199, 0.02, 0.05]),
        recall=st.sampled_from([-0.0201, -0.02, 0.0]),
        n_queries=st.sampled_from([49, 50, 300]),
        test=st.sampled_from([None, GainTest(0.0401, 0.04), GainTest(0.04, 0.04)]),
        gate=st.sampled_from(["pass", "fail", "insufficient"]),
        judged=st.sampled_from([0.9999, 1.0]),
    )
)
def test_one_list_of_criteria_is_behind_candidates_and_confirmed_cells(cell):
    by_name = {one.name: one for one in criteria(cell, RULE)}
    assert list(by_name) == ["gain", "chance", "recall", "gate", "judged", "queries"]
    assert meets_criterion_5(cell.gain, cell.recall, RULE) == bool(by_name["gain"].met and by_name["recall"].met)
    unmet = unmet_criteria(cell, RULE)
    assert unmet == [one.lacks for one in by_name.values() if not one.met]
    assert by_name["chance"].met is (None if cell.test is None else cell.test.p <= cell.test.bar)
    assert by_name["queries"].met is (cell.n_queries >= 50)
    assert by_name["gate"].met is {"pass": True, "fail": False}.get(cell.gate)
    assert (by_name["gain"].figure, by_name["gain"].bound) == (cell.gain, 0.02)
    assert (by_name["recall"].figure, by_name["recall"].bound) == (cell.recall, -0.02)


def test_a_row_of_results_is_short_of_what_its_figures_lack():
    tested = row(BETTER, 0.03)
    assert unmet_criteria(CellFigures.of(tested, 50), RULE) == tested.short_of
    with pytest.raises(ValueError, match=BASELINE):
        CellFigures.of(row(BASELINE), 50)


def test_the_cell_in_question_is_the_best_of_those_that_came_furthest():
    ahead, candidate = row(SPARSE, 0.1, -0.1), row(BETTER, 0.03)
    confirmed = candidate.model_copy(update={"short_of": []})
    assert cell_in_question([ahead, candidate, row(HYBRID, 0.025), row(BASELINE)]) == candidate
    assert cell_in_question([ahead, row(HYBRID, 0.04), confirmed]) == confirmed
    assert cell_in_question([ahead, row(BETTER, 0.005), row(BASELINE)]) == ahead
    assert cell_in_question([row(BASELINE)]) is None


@pytest.mark.parametrize(
    "change",
    [{"recall": -0.03}, {"gain": 0.019, "believed": 0.1}, {"verdict": "insufficient"}, {"role": "exploratory"}],
)
def test_what_is_recommended_meets_criterion_5_passes_the_gate_and_was_preregistered(change):
    good, other = row(BETTER, 0.05), row(SPARSE, **{"gain": 0.1} | change)
    assert recommendation([other, good, row(BASELINE)], PLAN)[0] == BETTER
    assert recommendation([other, row(BASELINE)], PLAN)[0] == BASELINE


def test_a_cell_with_unjudged_hits_and_one_that_is_not_worth_its_switch_are_not_recommended():
    holes = row(SPARSE, 0.1).model_copy(update={"unjudged": 1})
    assert recommendation([holes, row(BASELINE)], PLAN)[0] == BASELINE
    dear = PLAN.model_copy(update={"switching_cost": 0.06})
    better = row(BETTER, 0.05)
    assert recommendation([better, row(BASELINE)], dear)[0] == BASELINE
    shrunk, greater = row(SPARSE, 0.2, believed=0.03), row(HYBRID, 0.04)
    assert recommendation([shrunk, greater, row(BASELINE)], PLAN)[0] == HYBRID


def over(cell, gain, expected=None):
    """A candidate that is expected to gain so much over the incumbent."""
    made = row(cell, 0.05)
    believed = made.expected.model_copy(update={"mean": gain if expected is None else expected})
    against = OverIncumbent(differences=made.differences, test=made.test, expected=believed)
    return made.model_copy(update={"over_incumbent": against})


INCUMBENT = row(BETTER, 0.05, role="incumbent")
HELD = PLAN.model_copy(update={"incumbent": BETTER})


@pytest.mark.parametrize(
    ("cells", "chosen", "said"),
    [
        ([over(HYBRID, 0.0201), INCUMBENT], HYBRID, "over the incumbent is more than the 0.02"),
        ([over(HYBRID, 0.02), INCUMBENT], BETTER, "over the incumbent is no more than the 0.02"),
        ([over(HYBRID, 0.0), INCUMBENT], BETTER, "the expected 0.000 over the incumbent is no more"),
        ([over(HYBRID, 0.03), over(SPARSE, 0.04), INCUMBENT], SPARSE, "+0.040 over the incumbent"),
        ([INCUMBENT], BETTER, "no other cell is a candidate"),
        ([row(SPARSE, 0.3, role="exploratory"), INCUMBENT], BETTER, "no other cell is a candidate"),
        # An incumbent that is no candidate any more is still what runs, and criterion 6 holds where nothing is one.
        ([over(HYBRID, 0.01), row(BETTER, 0.01, role="incumbent")], BETTER, "no more than"),
        ([row(HYBRID, 0.01), row(BETTER, 0.01, role="incumbent")], BASELINE, "no cell met criterion 5"),
    ],
)
def test_a_switch_is_held_against_the_incumbent(cells, chosen, said):
    found = recommendation([*cells, row(BASELINE)], HELD)
    assert found[0] == chosen
    assert said in found[1]


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(-500, 500).map(lambda gain: gain / 10_000)),
    st.sets(st.sampled_from(["a", "b", "c", "in"])),
    st.sampled_from(["", "in"]),
    st.integers(0, 300).map(lambda cost: cost / 10_000),
)
def test_what_is_recommended_beats_what_is_in_place_by_more_than_the_cost(gains, eligible, incumbent, cost):
    plan = PLAN.model_copy(update={"incumbent": incumbent, "switching_cost": cost})
    believed = {cell: row(HYBRID, 0.05).expected.model_copy(update={"mean": gain}) for cell, gain in gains.items()}
    found = greatest_gain(eligible, believed, plan)
    able = {cell: gain for cell, gain in gains.items() if cell in eligible and gain > cost}
    if not eligible:
        assert found == BASELINE
    elif able:
        assert found in able
        assert gains[found] == max(able.values())
    else:
        assert found == (incumbent or BASELINE)


@pytest.mark.parametrize(
    ("value", "bar", "said"),
    [
        (0.0372, 0.02, "+0.037"),
        (0.0199, 0.02, "+0.0199"),
        (0.02004, 0.02, "+0.020"),
        (0.0201, 0.02, "+0.0201"),
        (-0.0034, 0.02, "-0.003"),
        (-0.0004, 0.02, "-0.0004"),
        (-0.00004, 0.02, "0.000"),
        (0.01995001, 0.02, "+0.020"),
    ],
)
def test_a_figure_has_three_places_and_as_many_more_as_show_its_side_of_zero_and_of_the_bar(value, bar, said):
    assert figure_beside_bar(value, bar) == said


@given(st.floats(-1, 1), st.sampled_from([0.0, 0.02, -0.02]), st.integers(1, 4))
def test_a_figure_never_reads_as_if_it_were_on_the_other_side_of_zero_or_of_the_bar(value, bar, fewest):
    read = float(figure_beside_bar(value, bar, fewest))
    compared = round4(value)
    assert (read > bar, read < bar) == (compared > bar, compared < bar)
    assert (read > 0, read < 0) == (compared > 0, compared < 0)


def test_a_cell_outside_of_the_family_has_the_interval_of_its_own_test():
    tested = row(BETTER, 0.03).test
    assert interval_of(tested) == tested.simultaneous
    assert interval_of(tested.model_copy(update={"simultaneous": None})) == tested.interval


@pytest.mark.parametrize(("high", "reached"), [(0.02, True), (0.01996, True), (0.0199, False)])
def test_an_interval_reaches_the_gain_that_it_ends_at(high, reached):
    tested = row(BETTER, 0.01)
    test = tested.test.model_copy(update={"simultaneous": [-0.01, high]})
    assert reaches_gain(tested.model_copy(update={"test": test}), RULE) is reached
    assert not reaches_gain(row(BASELINE), RULE)
