"""Candidate by criterion 5, confirmed by what holds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.canonical import rounded
from runner.schemas import Rule
from runner.tiers import meets_criterion_5, shortfalls
from tests.example_results import RULE


@pytest.mark.parametrize(
    ("gain", "recall", "meets"),
    [
        (0.02, 0.0, True),
        (0.0199, 0.0, False),
        (0.01995001, 0.0, True),
        (498_750_001 / 25e9, 0.0, False),
        (0.01994999, 0.0, False),
        (0.02, -0.02, True),
        (0.02, -0.0201, False),
        (0.02, -0.02004999, True),
        (0.02, -0.02005001, False),
        (0.02 - 1e-12, -0.02 - 1e-12, True),
        (0.5, -0.5, False),
        (-0.5, 0.5, False),
        (0.0, 0.0, False),
    ],
)
def test_criterion_5_compares_the_four_places_of_the_page(gain, recall, meets):
    assert meets_criterion_5(gain, recall, RULE) is meets


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


GOOD = {"gain": 0.05, "p_adjusted": 0.01, "p_skew": 0.02, "guard": "non-inferior", "gate": "pass", "judged": 1.0}


def missing(**changes):
    return shortfalls(**{**GOOD, **changes}, rule=RULE, alpha=0.05)


def test_a_cell_that_meets_every_condition_falls_short_of_nothing():
    assert missing() == []
    assert missing(gain=0.02, p_adjusted=0.05) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gain": 0.0199}, "gains less than 0.02"),
        ({"p_adjusted": 0.0501}, "may be chance (adjusted p 0.0501)"),
        ({"p_skew": 0.0501}, "may be chance, since its differences are skewed (p 0.0501)"),
        ({"p_adjusted": None, "p_skew": None}, "has no p adjusted over the preregistered family"),
        ({"guard": "inconclusive"}, "may lose more than 0.02 Recall@10"),
        ({"guard": "inferior"}, "loses more than 0.02 Recall@10"),
        ({"gate": "fail"}, "does not pass the null gate (fail)"),
        ({"gate": "insufficient"}, "does not pass the null gate (insufficient)"),
        ({"judged": 0.9999}, "has unjudged hits"),
    ],
)
def test_each_condition_alone_keeps_a_cell_from_being_confirmed(change, said):
    (found,) = missing(**change)
    assert said in found


def test_every_condition_that_is_missed_is_named():
    assert len(missing(gain=0.0, p_adjusted=0.9, guard="inferior", gate="fail", judged=0.5)) == 5
