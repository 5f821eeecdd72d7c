"""Places along a line, moved apart where what stands there would touch."""

from collections.abc import Callable, Sequence

Gap = Callable[[int, int], float]
"""The least distance from the place of the first number to that of the second, a later one."""


def apart(wanted: Sequence[float], gap: Gap, low: float, high: float) -> list[float]:
    """Places from `low` to `high` in the order of `wanted`, which ascends, each as far from the others as `gap` asks.

    What touches is moved to both sides alike. Where there is too little room, all gaps shrink by one factor.
    """
    count = len(wanted)
    longest = max(pushed([0.0] * count, gap, 0.0), default=0.0)
    shrunk = min(1.0, (high - low) / longest) if longest else 1.0

    def fits(first: int, second: int) -> float:
        return shrunk * gap(first, second)

    upwards, downwards = pushed(wanted, fits, low), _pulled(wanted, fits, high)
    between = [(up + down) / 2 for up, down in zip(upwards, downwards, strict=True)]
    return _pulled(pushed(between, fits, low), fits, high)


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
