"""How a planned look ends, from made-up figures."""

from dataclasses import replace

import pytest

from runner.decide.look_end import look_result, with_look
from runner.decide.outcome import outcome
from runner.score.looks import look_after
from tests.support.example_results import BASELINE, BETTER, SPARSE, control, outcome_inputs, row

LOOKS = [25, 50, 100]
HOPELESS = [row(BASELINE), row(BETTER, -0.3), row(SPARSE, -0.4)]


def ended(number, *rows, **facts):
    """The look's result and the outcome in its words."""
    inputs = outcome_inputs(*rows, **facts)
    inputs = replace(inputs, plan=inputs.plan.model_copy(update={"looks": LOOKS}))
    said, kept = outcome(inputs), ["0" * 64] * (number - 1)
    found = look_result(inputs, said, look_after(inputs.plan, kept), kept)
    assert (found.number, found.of, found.queries, found.planned) == (number, 3, LOOKS[number - 1], 100)
    assert found.kept == kept
    return found.ended, said, with_look(said, inputs, found)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_confirmed_cell_ends_any_look_and_says_what_needs_no_judge(number):
    end, said, told = ended(number, row(BETTER, 0.2, p=0.0001), row(BASELINE))
    assert end == "confirmed"
    assert told.sentence.startswith(said.sentence)
    assert (f"{100 - LOOKS[number - 1]} queries" in told.sentence) == (number < 3)


@pytest.mark.parametrize(("number", "end"), [(1, "next look"), (2, "next look"), (3, "last look")])
def test_an_open_look_is_followed_by_the_next_one_until_there_is_none(number, end):
    found, said, told = ended(number, row(BETTER, 0.05), row(BASELINE))
    assert found == end
    assert (told == said) == (end == "last look")
    if end == "next look":
        assert f"add {LOOKS[number] - LOOKS[number - 1]} queries" in told.next_step
        assert BETTER in told.sentence
        assert told.tier == said.tier


def test_a_look_without_hope_ends_the_version_where_another_one_could_follow():
    assert [ended(number, *HOPELESS)[0] for number in (1, 2, 3)] == ["stopped", "stopped", "last look"]
    end, said, told = ended(1, *HOPELESS)
    assert end == "stopped"
    assert told.sentence.endswith(said.sentence)
    assert told.sentence != said.sentence
    assert told.next_step == said.next_step


@pytest.mark.parametrize(
    "changes",
    [{"verdict": "fail"}, {"role": "exploratory"}],
)
def test_cells_that_could_never_be_confirmed_give_no_hope(changes):
    assert ended(2, row(BETTER, 0.1, **changes), *HOPELESS)[0] == "stopped"
    assert ended(2, row(BETTER, 0.1), *HOPELESS)[0] == "next look"


def test_what_more_queries_do_not_mend_leaves_the_look_open():
    rows = row(BETTER, 0.2, p=0.0001), row(BASELINE)
    assert ended(1, *rows, unjudged=3)[0] is None
    assert ended(1, *rows, controls=[control("oracle", "pass", behaves=False)])[0] is None
    few = row(BETTER, 0.2), row(BASELINE, verdict="insufficient")
    assert [ended(number, *few)[0] for number in (1, 3)] == ["next look", None]
    assert ended(1, row(BETTER, 0.2), row(BASELINE, verdict="fail"))[0] is None


def test_results_without_planned_looks_say_nothing_of_any():
    inputs = outcome_inputs(row(BETTER, 0.05), row(BASELINE))
    said = outcome(inputs)
    assert look_result(inputs, said, look_after(inputs.plan, ()), ()) is None
    assert with_look(said, inputs, None) is said
