"""A logarithmic axis of costs, and costs as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runner.report.chart import Axis

_LEADING = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Costs:
    """A logarithmic axis of costs from one round value to another; 0 stands apart at its left."""

    axis: Axis
    ticks: Sequence[float]

    def at(self, value: float) -> float:
        """Per cent of the width."""
        return self.axis.at(math.log10(value) if value else self.axis.low)


def cost_axis(values: Sequence[float]) -> Costs:
    """An axis between powers of ten, or twice or five times one, that holds all values above 0."""
    costs = [value for value in values if value]
    first, last = math.floor(math.log10(min(costs))) - 1, math.ceil(math.log10(max(costs))) + 1
    rounds = [leading * 10.0**power for power in range(first, last + 1) for leading in _LEADING]
    below = max(value for value in rounds if value <= min(costs) * (1 + 1e-9))
    above = min(value for value in rounds if value >= max(costs) * (1 - 1e-9) and value > below)
    ticks = [value for value in rounds if below <= value <= above]
    if len(ticks) > (6 if all(values) else 5):
        ticks = [value for value in ticks if _is_power(value)]
    low, high = math.log10(below), math.log10(above)
    if all(values):
        return Costs(Axis(low, high, 1.0), ticks)
    return Costs(Axis(low - (high - low) / 5, high, 1.0), [0.0, *ticks])


def _is_power(value: float) -> bool:
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)


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
