"""What all drawings share: linear and logarithmic axes with round ticks, places moved apart."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from runner.base.figures import places, signed

MARGIN = 2.0
"""Per cent of the width that is left free at either end, so that marks at the ends are whole."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

LABEL_GAP = 14
"""Pixels from the label of one line to the next."""


class Tick(NamedTuple):
    """Where a tick stands, and what it says."""

    at: float
    value: float
    text: str


class Bar(NamedTuple):
    """Where the line stands that cells are held to, and at which figure."""

    at: float
    value: float


class Whisker(NamedTuple):
    """Where a mean and both ends of its interval stand."""

    at: float
    left: float
    right: float


class Label(NamedTuple):
    """What a line says; its text stands before a line far to the right, else behind it."""

    at: float
    text: str

    @property
    def before(self) -> bool:
        """Whether there is more room on the left."""
        return self.at > 80


class Point(NamedTuple):
    """Where a point of a field stands, from its left and upper edge."""

    x: float
    y: float


class Axis(NamedTuple):
    """From `low` to `high`, both shown; `step` from tick to tick, multiples of which the ticks are.

    Places run from `start` to `end`, by default in per cent of the width, at so many `digits`.
    """

    low: float
    high: float
    step: float
    start: float = MARGIN
    end: float = 100 - MARGIN
    digits: int = 2

    def at(self, value: float) -> float:
        """The place of a value; one beyond an end stands at that end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), self.digits)

    def up(self, value: float) -> float:
        """Per cent from the upper edge, on an axis that runs upwards."""
        return round(100 - self.at(value), 2)

    def whisker(self, mean: float, low: float, high: float) -> Whisker:
        """The places of a mean and of both ends of its interval."""
        return Whisker(self.at(mean), self.at(low), self.at(high))

    def bar(self, value: float) -> Bar:
        """The line at a value."""
        return Bar(self.at(value), value)

    @property
    def zero(self) -> float:
        """The place of 0."""
        return self.at(0.0)

    @property
    def ticks(self) -> list[Tick]:
        """The multiples of `step` from `low` to `high`, signed if some are below 0."""
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        if round(self.step * 10**digits, 6) % 1:
            digits += 1
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        text = signed if self.low < 0 else places
        values = [number * self.step for number in range(first, last + 1)]
        return [Tick(self.at(value), round(value, 9), text(value, digits)) for value in values]


def axis_over(values: Iterable[float], *, include: Sequence[float] = (), ticks: int = 5) -> Axis:
    """An axis that holds all values, and `include`, between ends that are multiples of its step; about so many ticks.

    Without values, and where all are equal, it is a unit wide.
    """
    found = [*values, *include]
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in _STEPS if size * power >= rough - 1e-12)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)


_LEADING = (1.0, 2.0, 5.0)


class LogAxis(NamedTuple):
    """A logarithmic axis: `axis` is of decimal logarithms, `values` are those of its ticks; 0 stands at its left."""

    axis: Axis
    values: Sequence[float]

    def at(self, value: float) -> float:
        """The place of a value."""
        return self.axis.at(math.log10(value) if value else self.axis.low)


def log_axis(values: Sequence[float]) -> LogAxis:
    """An axis from the first to the last of these values, which ascend, with a tick at each."""
    ends = (math.log10(values[0]), math.log10(values[-1])) if len(values) > 1 else (0.0, 1.0)
    return LogAxis(Axis(*ends, 1.0), values)


def cost_axis(values: Sequence[float]) -> LogAxis:
    """An axis between powers of ten, or twice or five times one, that holds all values; 0 stands apart at its left."""
    costs = [value for value in values if value]
    first, last = math.floor(math.log10(min(costs))) - 1, math.ceil(math.log10(max(costs))) + 1
    rounds = [leading * 10.0**power for power in range(first, last + 1) for leading in _LEADING]
    below = max(value for value in rounds if value <= min(costs) * (1 + 1e-9))
    above = min(value for value in rounds if value >= max(costs) * (1 - 1e-9) and value > below)
    ticks = [value for value in rounds if below <= value <= above]
    if len(ticks) > (6 if all(values) else 5):
        ticks = [value for value in ticks if math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)]
    low, high = math.log10(below), math.log10(above)
    if all(values):
        return LogAxis(Axis(low, high, 1.0), ticks)
    return LogAxis(Axis(low - (high - low) / 5, high, 1.0), [0.0, *ticks])


def weight(value: float) -> str:
    """Bytes at three digits in the greatest fitting decimal unit."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if float(f"{value:.3g}") >= size:
            return f"{_three_digits(value / size)}\u202f{unit}"
    return f"{_three_digits(value)}\u202fB"


def duration(value: float) -> str:
    """Seconds at three digits."""
    return f"{_three_digits(value)}\u202fs"


def _three_digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"


Gap = Callable[[int, int], float]
"""The least distance from the place of the first number to that of the second, a later one."""


def spread_labels(wanted: Sequence[float], gap: Gap, low: float, high: float) -> list[float]:
    """Places from `low` to `high` in the order of `wanted`, which ascends, each as far from the others as `gap` asks.

    What touches is moved to both sides alike. If there is too little room, all gaps shrink by one factor.
    """
    count = len(wanted)
    longest = max(pushed([0.0] * count, gap, 0.0), default=0.0)
    shrunk = min(1, (high - low) / longest) if longest else 1

    def fits(first: int, second: int) -> float:
        return shrunk * gap(first, second)

    upwards, downwards = pushed(wanted, fits, low), _pulled(wanted, fits, high)
    middle = [(up + down) / 2 for up, down in zip(upwards, downwards, strict=True)]
    return _pulled(pushed(middle, fits, low), fits, high)


def pushed(wanted: Sequence[float], gap: Gap, low: float) -> list[float]:
    """The least places from `low` on, none below its wanted one, that are as far apart as asked; `wanted` ascends."""
    places: list[float] = []
    for number, place in enumerate(wanted):
        places.append(max([place, low, *(before + gap(other, number) for other, before in enumerate(places))]))
    return places


def _pulled(wanted: Sequence[float], gap: Gap, high: float) -> list[float]:
    """The greatest places at or below the wanted ones."""
    last = len(wanted) - 1
    mirrored = pushed([-place for place in reversed(wanted)], lambda one, two: gap(last - two, last - one), -high)
    return [-place for place in reversed(mirrored)]


def label_places(wanted: Sequence[float], high: float) -> list[float]:
    """Pixels for the labels of lines that end at `wanted`, in any order, LABEL_GAP apart if there is room."""
    ordered = sorted(range(len(wanted)), key=lambda number: (wanted[number], number))

    def gap(first: int, second: int) -> float:
        return float(LABEL_GAP * (second - first))

    found = spread_labels([wanted[number] for number in ordered], gap, 0.0, high)
    placed = {number: round(place, 1) for number, place in zip(ordered, found, strict=True)}
    return [placed[number] for number in range(len(wanted))]
