"""What all drawings share: axes with round ticks, and where marks stand on them."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runner.base.figures import places, signed

MARGIN = 2.0
"""Per cent of the width that is left free at either end, so that marks at the ends are whole."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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


class Axis(NamedTuple):
    """From `low` to `high`, both shown; the ticks are the multiples of `step`. Places are per cent of the width."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> float:
        """The place of a value; one beyond an end stands at that end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (100 - 2 * MARGIN), 2)

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
