"""The tier of a result, and the sentences that an operator reads."""

import re

import pytest

from runner.base.figures import round4
from runner.decide.outcome import outcome
from runner.decide.sample_size import error_for, settling
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.results import NoiseFloor
from runner.score.expected_loss import Gain, believed
from runner.score.power import assurance, least_gain
from tests.support.example_results import BASELINE, BETTER, HYBRID, PLAN, SPARSE, control, outcome_inputs, row

GOOD = {"p": 0.004}


def found_by(*rows, **facts):
    return outcome(outcome_inputs(*rows, **facts))


@pytest.mark.parametrize(("doubt", "tier"), [(0.03, "baseline kept"), (0.2, "inconclusive")])
def test_without_a_candidate_the_baseline_is_kept_if_knowing_the_best_is_not_worth_a_switch(doubt, tier):
    inputs = outcome_inputs(row(BETTER, -0.05, doubt=doubt), row(SPARSE, -0.2), row(BASELINE))
    found = outcome(inputs)
    assert (found.tier, found.candidates, found.confirmed) == (tier, [], [])
    assert inputs.worth_of_knowing == round4(inputs.beliefs.best([0, 1]))
    assert (inputs.worth_of_knowing <= 0.02) == (tier == "baseline kept")
    assert (found.recommended, "Recommended" in found.next_step) == (BASELINE, False)
    assert ("Ruled out" in found.sentence, BETTER in found.sentence) == (False, tier == "inconclusive")
    assert found.next_step.startswith("Try other cells: ") == (tier == "baseline kept")
    assert (found.assurance is None) == (tier == "baseline kept")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"recall_state": "shown to fall"}, "is shown to lose more than 0.02 Recall@10"),
        ({"verdict": "fail"}, "fails the null gate"),
    ],
)
def test_a_cell_that_could_not_be_chosen_leaves_nothing_open_and_is_named(change, why):
    found = found_by(row(BETTER, 0.01, doubt=0.2, **change), row(SPARSE, -0.3), row(BASELINE))
    assert found.tier == "baseline kept"
    assert f"Ruled out: {BETTER} {why}." in found.sentence


def test_a_kept_baseline_says_how_many_intervals_reach_the_gain_that_was_not_found():
    found = found_by(row(BETTER, -0.05, half=0.07), row(SPARSE, -0.2), row(BASELINE))
    assert "the interval of 1 of 2 other cells reaches it" in found.not_shown
    assert "reaches it" not in found_by(row(BETTER, -0.05), row(BASELINE)).not_shown


def test_a_null_gate_that_cannot_decide_about_a_cell_leaves_it_open():
    found = found_by(row(BETTER, 0.01, doubt=0.2, verdict="insufficient"), row(BASELINE))
    assert found.tier == "inconclusive"
    assert found.next_step == f"Find out first why {BETTER} does not pass the null gate (insufficient)."


@pytest.mark.parametrize(("believed", "chosen"), [(0.05, BETTER), (0.01, BASELINE)])
def test_what_is_recommended_stands_before_what_would_confirm_it(believed, chosen):
    for p in (0.5, 0.001):
        found = found_by(row(BETTER, 0.1, believed=believed, p=p), row(BASELINE))
        assert found.recommended == chosen
        assert found.next_step.startswith(f"Recommended: {chosen} (")
    assert found_by(row(BETTER, 0.1), row(BASELINE), unjudged=1).recommended == BASELINE


def test_candidates_come_best_first_with_the_rules_false_alarms_and_what_they_lack():
    found = found_by(row(SPARSE, 0.09), row(HYBRID, 0.06, -0.03), row(BETTER, 0.03), row(BASELINE))
    assert (found.tier, found.candidates, found.confirmed) == ("candidate", [SPARSE, BETTER], [])
    assert found.sentence.startswith("2 candidates; the best, bm25 x whole_doc, gains +0.09 nDCG@10")
    assert "(simultaneous 95 % interval +0.04 to +0.14)" in found.sentence
    assert found.false_alarm == 0.61
    assert "If each of the 3 cells equalled the baseline, there would still be a candidate in 61 %" in found.sentence
    assert "it is not told from chance (p 0.50)." in found.not_shown
    assert "picking the best of 3" in found.not_shown
    alone = found_by(row(BETTER, 0.03), row(BASELINE))
    assert alone.sentence.startswith(f"Candidate: {BETTER}")
    assert "If it equalled the baseline, there would still be a candidate in 61 %" in alone.sentence
    assert "picking the best" not in alone.not_shown


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "in 0 %"), (0.004, "in less than 1 %"), (0.5, "in 50 %"), (0.996, "in more than 99 %"), (1.0, "in 100 %")],
)
def test_false_alarms_that_are_rare_or_nearly_sure_are_not_rounded_to_never_or_always(share, said):
    assert said in found_by(row(BETTER, 0.03), row(BASELINE), false_alarm=share).sentence


def test_a_gain_that_holds_up_is_confirmed_and_stands_before_greater_ones_that_do_not():
    found = found_by(row(SPARSE, 0.2), row(BETTER, 0.1, **GOOD), row(HYBRID, 0.05, **GOOD), row(BASELINE))
    assert (found.tier, found.confirmed) == ("confirmed", [BETTER, HYBRID])
    assert found.candidates == [SPARSE, BETTER, HYBRID]
    assert found.sentence.startswith(f"2 cells are confirmed; the best, {BETTER}, gains +0.10 ")
    assert "over the baseline on 25 queries, p 0.0040, and passes the null gate." in found.sentence
    assert (
        f"What {SPARSE} is worth: it gains +0.20 but is not confirmed, as it is not told from chance" in found.not_shown
    )
    assert "the best of" not in found.not_shown


@pytest.mark.parametrize(("half", "said"), [(0.09, True), (0.08, False)])
def test_a_confirmed_gain_is_as_large_as_asked_for_only_where_its_interval_says_so(half, said):
    found = found_by(row(BETTER, 0.1, half=half, **GOOD), row(BASELINE))
    assert ("That its gain is 0.02 or more: beyond chance is that there is one." in found.not_shown) == said


def test_a_cell_outside_of_the_preregistered_family_is_a_candidate_at_most_and_needs_a_new_version():
    found = found_by(row(SPARSE, 0.2, role="exploratory", **GOOD), row(BASELINE))
    assert (found.tier, found.confirmed) == ("candidate", [])
    assert "(95 % interval" in found.sentence
    assert "was not preregistered, and so has no p" in found.not_shown
    assert f"names {SPARSE} first, with about {found.queries_needed} queries of its own" in found.next_step
    assert found.recommended == BASELINE


def test_what_would_settle_it_are_new_queries_with_the_chance_that_they_do():
    found = found_by(row(BETTER, 0.09), row(SPARSE), row(BASELINE))
    said = f"names {BETTER} first, with about {found.queries_needed} queries of its own: they confirm it with a chance"
    assert f"{said} of {100 * found.assurance:.0f} %." in found.next_step
    gain = believed(0.09, 0.15 / 5, PLAN.prior).gain
    assert found.assurance == assurance(found.queries_needed, gain, 0.15, 0.04, bar=0.02) >= 0.5


@pytest.mark.parametrize(("gain", "least"), [((0.10, 0.01), 0.8), ((0.04, 0.04), 0.5), ((0.0, 0.01), 0.0)])
def test_the_queries_named_are_the_fewest_that_reach_the_chance(gain, least):
    found = settling(PLAN, 0.2, Gain(*gain))
    chances = {n: assurance(n, gain, 0.2, 0.04, bar=PLAN.rule.min_gain) for n in range(25, 1001, 5)}
    if not least:
        assert found == (0, pytest.approx(max(chances.values()), rel=0.2))
        return
    assert found.chance == chances[found.queries] >= least
    assert all(chance < least for n, chance in chances.items() if n < 0.65 * found.queries)  # it goes in steps


SHARES = [(0, 0.00625, 0.00625), (1, 0.04, 0.01 / 7), (8, 0.00625, None)]


@pytest.mark.parametrize(("n_first", "first", "other"), SHARES)
def test_the_error_is_shared_as_the_plan_orders_its_cells(n_first, first, other):
    challengers = [cell for cell in PLAN.cells if cell != PLAN.baseline]
    plan = PLAN.model_copy(update={"first": challengers[:n_first]})
    assert error_for(plan, challengers[0]) == pytest.approx(first)
    if other is not None:
        assert error_for(plan, challengers[-1]) == pytest.approx(other)


def test_a_cell_that_equals_the_baseline_on_every_query_says_nothing_of_how_many_queries_are_needed():
    same = row(BETTER)
    same = same.model_copy(
        update={"test": same.test.model_copy(update={"sd": 0.0, "interval": [0.0, 0.0], "simultaneous": [0.0, 0.0]})}
    )
    found = found_by(same, row(BASELINE))
    assert (found.tier, found.queries_needed, found.detectable) == ("baseline kept", None, None)


def test_the_figures_are_those_of_the_cell_that_the_sentences_are_about():
    ahead = row(SPARSE, 0.2, -0.1)
    ahead = ahead.model_copy(update={"test": ahead.test.model_copy(update={"sd": 0.4})})
    found = found_by(ahead, row(BETTER, 0.05), row(BASELINE))
    assert BETTER in found.next_step
    assert found.detectable == least_gain(25, 0.15, 0.04, bar=0.02)


DOUBT = "is favoured by its judge (adjusted p 0.0100)"


def test_where_judges_alone_keep_a_cell_from_being_confirmed_more_readings_are_asked_for():
    doubted = row(BETTER, 0.1, **GOOD).model_copy(update={"confirmed": False, "short_of": [DOUBT]})
    found = found_by(doubted, row(BASELINE))
    assert found.tier == "candidate"
    assert found.next_step.endswith(
        "Have more pairs read by a second judge (labels double --share PART): by its scores "
        f"{BETTER} would be confirmed, but it {DOUBT}."
    )


def test_where_unjudged_hits_alone_keep_a_cell_from_being_confirmed_their_judgment_is_asked_for():
    short = {"confirmed": False, "short_of": ["has unjudged hits"], "unjudged": 4}
    holes = row(BETTER, 0.1, **GOOD).model_copy(update=short)
    assert found_by(holes, row(BASELINE)).next_step.endswith(f"Have the unjudged hits of {BETTER} judged.")


@pytest.mark.parametrize("verdict", ["fail", "insufficient"])
def test_nothing_is_decided_where_the_baseline_cannot_be_told_from_the_null_systems(verdict):
    found = found_by(row(BETTER, 0.2, **GOOD), row(BASELINE, verdict=verdict))
    assert found.tier == "no decision"
    assert repr(verdict) in found.sentence
    assert "(permuted qrels)" in found.sentence
    assert "Every query gets the same ten documents" in found.sentence


def test_nothing_is_decided_where_a_control_misbehaves_and_it_is_named():
    broken = [
        control("oracle", "pass", bound=1, behaves=False),
        control("popularity", passes=1, behaves=False),
        control("random", passes=44, draws=200, bound=21, behaves=False),
        control("constant"),
    ]
    found = found_by(row(BETTER, 0.2, **GOOD), row(BASELINE), controls=broken)
    assert found.tier == "no decision"
    for said in (
        "the oracle does not pass",
        "the popularity predictor passes, though",
        "the random predictor, which ignores the query, passes 44 of 200 times, where chance explains at most 21",
    ):
        assert said in found.sentence
    assert "constant" not in found.sentence
    assert found.next_step.startswith("Look at the labels")
    assert found_by(row(BASELINE), controls=broken[1:]).next_step.startswith("Run doctor")


@pytest.mark.parametrize(("moved", "tier"), [(0.0199, "confirmed"), (-0.02, "no decision"), (0.02, "no decision")])
def test_nothing_is_decided_where_the_baseline_differs_from_itself_by_what_a_winner_must_gain(moved, tier):
    again = Difference(mean=moved, low=moved, high=moved, wins=1, ties=0, losses=0)
    floor = NoiseFloor(difference=again, max_change=0.5, queries_changed=1)
    found = found_by(row(BETTER, 0.2, **GOOD), row(BASELINE), noise_floor=floor)
    assert found.tier == tier
    assert (f"differs from itself by {moved:+.2f} nDCG@10" in found.sentence) == (tier == "no decision")


def test_nothing_is_decided_while_pairs_are_unjudged():
    found = found_by(row(BETTER, 0.2, **GOOD), row(BASELINE), unjudged=7)
    assert found.tier == "no decision"
    assert "7 pairs of the pool are not judged yet" in found.sentence
    assert "1 pair of the pool is not judged yet" in found_by(row(BASELINE), unjudged=1).sentence


def test_a_baseline_alone_has_nothing_to_be_compared_with():
    found = found_by(row(BASELINE))
    assert (found.tier, found.queries_needed, found.detectable) == ("baseline kept", None, None)
    assert found.false_alarm is None


def test_the_gain_is_no_finer_than_its_interval_but_never_seems_to_reach_what_it_does_not():
    assert "gains +0.03 nDCG@10" in found_by(row(BETTER, 0.0312), row(BASELINE)).sentence
    short = found_by(row(BETTER, 0.0196, doubt=0.2), row(BASELINE)).not_shown
    assert "is +0.0196 nDCG@10" in short.replace("whose difference to it ", "")
    assert "gains +0.0204 nDCG@10" in found_by(row(BETTER, 0.0204, half=0.0004), row(BASELINE)).sentence


def test_no_sentence_is_finer_than_its_interval_allows():
    confirmed = found_by(row(SPARSE, 0.21234), row(BETTER, 0.12345, **GOOD), row(BASELINE))
    kept_open = found_by(row(BETTER, -0.03123, -0.02713, half=0.07, doubt=0.2), row(BASELINE))
    for found in (confirmed, kept_open):
        assert not re.search(r"[+-]0\.\d{4}", f"{found.sentence} {found.not_shown}")
    assert "it gains +0.21 but" in confirmed.not_shown
    assert "with -0.027 Recall@10" in kept_open.not_shown
