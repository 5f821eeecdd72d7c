"""Places of marks in the drawings of a page: axes with round ticks, the dots of a null, and a cell's shape."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runner.base.figures import places, signed
from runner.decide.tiers import interval_of, stand
from runner.eval_set.shapes.results import CellResult, Results

MARGIN = 2.0
"""Per cent of the width that is left free at either end, so that marks at the ends are whole."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Axis(NamedTuple):
    """From `low` to `high`, both shown; the ticks are the multiples of `step`. Places are per cent of the width."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> float:
        """Return the place of a value; one beyond an end stands at that end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (100 - 2 * MARGIN), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The places of the multiples of `step` with what they say, signed if some are below 0."""
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        # A step such as 0.25 takes a digit more than its power of ten.
        if round(self.step * 10**digits, 6) % 1:
            digits += 1
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        text = signed if self.low < 0 else places
        values = [number * self.step for number in range(first, last + 1)]
        return [(self.at(value), text(value, digits)) for value in values]


UNIT = Axis(0.0, 1.0, 0.2)
"""nDCG@10 from its least to its greatest: the axis of every strip of the null gate."""


def axis_over(values: Iterable[float]) -> Axis:
    """Return an axis that holds all values, and 0, between ends that are multiples of its step; about five ticks."""
    held = [0.0, *values]
    low, high = min(held), max(held)
    # Values that are all 0 have an axis around them nevertheless.
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    # The least round step of which at most five fit between the ends.
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in _STEPS if size * power >= rough - 1e-12)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)


def gain_axis(results: Results, *held: float) -> Axis:
    """Return the axis of the differences in nDCG@10 with their intervals, which holds further values too."""
    tested = [(row.differences["ndcg@10"].mean, row.test) for row in results.cells if row.test is not None]
    return axis_over([*held, *(end for gain, test in tested for end in (gain, *interval_of(test)))])


def recall_axis(results: Results, *held: float) -> Axis:
    """Return the axis of the differences in Recall@10 with their bounds."""
    bounds = [(row.differences["recall@10"].mean, *row.recall_bound) for row in results.cells if row.recall_bound]
    return axis_over([*held, *(end for ends in bounds for end in ends)])


SHAPES = {
    "baseline": "line",
    "confirmed": "diamond",
    "candidate": "disc",
    "late candidate": "disc",
    "exploratory": "square",
    "other": "ring",
    "above": "diamond",
    "below": "ring",
    "not told apart": "ring",
    "not passed": "cross",
}
"""The shape of a cell's mark by what the rule says of it; the last four if nothing is decided."""


def standing(row: CellResult) -> str:
    """Return what the rule says of a cell, or, if nothing is decided, its side of the baseline: a key of SHAPES."""
    if row.test is None:
        return "baseline"
    if row.role == "compared":
        return stand(row) or "not told apart" if row.gate.verdict == "pass" else "not passed"
    if row.confirmed:
        return "confirmed"
    late = row.role == "exploratory"
    if row.meets_criterion_5:
        return "late candidate" if late else "candidate"
    return "exploratory" if late else "other"


HEIGHT = 44
GROUND = 41
"""Pixels from the top of a strip, where dots stand; columns of dots grow upwards from there."""

TALLEST = 32
DOT = 5.0
"""Pixels that a dot takes in a column; less if a column would be higher than TALLEST."""

COLUMN = 1.25
"""Per cent of the width that a column of dots gathers."""


def dots(values: Sequence[float]) -> str:
    """Return the SVG path of a null's draws, ascending, as a quantile dot plot (Kay et al. 2016, CHI, 5092-5103).

    Dots stand in columns, each in the middle of the values that it gathers (Wilkinson 1999). A path of lines without
    length, which round caps draw as dots, takes a tenth of what circles take.
    """
    columns: list[list[float]] = []
    # A draw opens a column if it lies a column's width past the first of the last one.
    for at in map(UNIT.at, values):
        if not columns or at - columns[-1][0] >= COLUMN:
            columns.append([])
        columns[-1].append(at)
    # Dots of a high column overlap, so that it ends below the next strip.
    step = round(min(DOT, TALLEST / max(map(len, columns), default=1)), 1)
    return "".join(
        f"M{round((column[0] + column[-1]) / 2, 2):g} {round(GROUND - step / 2, 1):g}h0"
        + f"m0-{step:g}h0" * (len(column) - 1)
        for column in columns
    )
