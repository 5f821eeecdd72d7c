"""Cells that return the same lists are one hypothesis, and one that returns the baseline's is none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.decide.sample_size import error_for
from tests.support.example_results import row
from tests.support.judge_cases import BASELINE, evening, plan

CELLS = [f"cell-{number} x whole_doc" for number in range(1, 5)]
MADE = evening(3, n_cells=5, lift=0.8, n_queries=12)


def listing(lists, first=()):
    """An evening of these cells in the plan's order, each with the lists of the made cell that it is given."""
    runs = {cell: replace(MADE.runs[of], cell=cell) for cell, of in lists.items()}
    settings = plan(cells=[*lists], baseline=BASELINE, first=[*first])
    return replace(MADE, plan=settings, runs=runs, registered=frozenset(runs))


@pytest.mark.parametrize(
    ("lists", "first", "stands"),
    [
        ([1, 2, 3], [], {}),
        ([1, 1, 2], [], {"b": "a"}),
        ([1, 1, 1], [], {"b": "a", "c": "a"}),
        # What the plan names first stands for others, wherever it is listed.
        ([1, 1, 2], ["b"], {"a": "b"}),
        ([1, 1, 2], ["b", "a"], {"a": "b"}),
        ([0, 1, 0], ["c"], {"a": BASELINE, "c": BASELINE}),
        ([0, 0, 0], ["a"], {"a": BASELINE, "b": BASELINE, "c": BASELINE}),
    ],
)
def test_the_first_in_the_plans_order_stands_for_all_with_its_lists(lists, first, stands):
    named = {name: f"{name} x whole_doc" for name in "abc"} | {BASELINE: BASELINE}
    given_lists = {named[name]: [BASELINE, *CELLS][number] for name, number in zip("abc", lists, strict=True)}
    compared = listing({BASELINE: BASELINE, **given_lists}, [named[name] for name in first])
    stands = {named[name]: named[of] for name, of in stands.items()}
    assert compared.same_lists == stands
    left = [cell for cell in given_lists if cell not in stands]
    assert compared.family == left
    assert compared.gain_tests.keys() == compared.expected_gains.keys() == {*left}
    for cell, of in stands.items():
        test = compared.tests[cell]
        assert (test.p_gain, test.bar) == (None, None)
        assert test.simultaneous == (None if of == BASELINE else compared.tests[of].simultaneous)


def test_the_incumbent_stands_for_others_and_is_held_against_none_of_them():
    twin, other, place = (f"{name} x whole_doc" for name in ("twin", "other", "place"))
    compared = listing({BASELINE: BASELINE, twin: CELLS[0], other: CELLS[1], place: CELLS[0]}, [twin])
    compared = replace(compared, plan=compared.plan.model_copy(update={"incumbent": place}))
    assert compared.same_lists == {twin: place}
    assert compared.over_incumbent.keys() == compared.switch_gains.keys() == {other}


@given(st.lists(st.sampled_from([BASELINE, *CELLS]), min_size=1, max_size=3), st.integers(0, 2), st.integers(0, 2))
def test_twins_change_no_figure_of_any_other_cell(twins, n_first, place):
    own = {cell: cell for cell in CELLS[:3]}
    known = {BASELINE: BASELINE, **own}
    copies = {f"twin-{number} x whole_doc": of for number, of in enumerate(twins) if of in known}
    alone = listing(known, CELLS[:n_first])
    # They may stand anywhere after the cell that they repeat.
    among = listing({**known, **copies}, CELLS[:n_first])
    assert among.gain_tests == alone.gain_tests
    assert among.expected_gains == alone.expected_gains
    assert {cell: among.tests[cell] for cell in alone.tests} == alone.tests
    assert among.false_alarm() == alone.false_alarm()
    assert among.copies == {}
    rows = [row(cell, 0.1).model_copy(update={"same_as": among.same_lists.get(cell, "")}) for cell in among.runs]
    cell = CELLS[place]
    assert error_for(among.plan, cell, rows) == error_for(alone.plan, cell)
