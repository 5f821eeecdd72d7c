"""The generator and the bootstrap of ruflo's significance script, number for number.

They are here for comparison with figures that were published with them. Two things differ from the script: a seed of
0 is used as it is (the script takes 42 in its place), and an empty sample is an error (the script returns NaN).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Interval

SEEDS = 1 << 32
"""Seeds are whole numbers from 0 to one less than this."""

_STEP = 0x6D2B79F5
_1, _7, _14, _15, _61 = (np.uint32(number) for number in (1, 7, 14, 15, 61))

Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Mean of a sample, its percentile interval, and the share of resampled means that are 0 or less."""

    mean: float
    interval: Interval
    share_at_most_zero: float


def uniforms(seed: int, count: int) -> NDArray[np.float64]:
    """Return the first `count` numbers of the generator, in [0, 1)."""
    return _mixed(_states(seed, np.arange(1, count + 1, dtype=np.uint64))) / SEEDS


def bootstrap(values: Sequence[float], *, resamples: int, seed: int) -> Bootstrap:
    """Return the script's bootstrap of a mean; ValueError for an empty sample, a seed outside SEEDS or no resamples.

    A resample draws one value after another, and resamples follow one another in the generator's sequence. Sums run
    from the first value drawn to the last, since their last bits decide what counts as 0 or less. The 95 % interval's
    ends are sorted means without interpolation: of 10,000, the 251st and the 9,751st.
    """
    if not values or resamples < 1:
        raise ValueError(f"{len(values)} values cannot be resampled {resamples} times")
    means = np.sort(_resampled_sums(np.array(values, np.float64), resamples, seed) / len(values))
    low, high = (float(means[int(share * resamples)]) for share in (0.025, 0.975))
    mean = float(np.add.accumulate(np.array(values, np.float64))[-1]) / len(values)
    return Bootstrap(mean, Interval(low, high), int((means <= 0).sum()) / resamples)


def _resampled_sums(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return sums of `resamples` draws with replacement; all resamples take their next value at once."""
    states = _states(seed, np.arange(resamples, dtype=np.uint64) * np.uint64(len(values)))
    sums = np.zeros(resamples)
    for _ in values:
        states += np.uint32(_STEP)
        sums += values[(_mixed(states) * (len(values) / SEEDS)).astype(np.int64)]
    return sums


def _states(seed: int, positions: NDArray[np.uint64]) -> Words:
    """Return the generator's state at positions of its sequence; it is a counter that wraps at 2 ** 32."""
    if not 0 <= seed < SEEDS:
        raise ValueError(f"mulberry32 takes a seed from 0 to {SEEDS - 1}, not {seed}")
    return (np.uint64(seed) + positions * np.uint64(_STEP)).astype(np.uint32)


def _mixed(states: Words) -> Words:
    first: Words = (states ^ (states >> _15)) * (states | _1)
    second: Words = first ^ (first + (first ^ (first >> _7)) * (first | _61))
    mixed: Words = second ^ (second >> _14)
    return mixed
