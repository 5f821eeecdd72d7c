"""Partial pooling of gains over sources, by exact Gaussian algebra over a grid of one scale.

A cell's gain over the baseline of its source is y = theta + e. Its error e is what other queries would have changed;
cells of one source share queries and baseline, so errors come with a covariance. Its true gain is
theta = effect of its encoder + effect of its kind of chunker + u, where u ~ N(0, tau^2) is the source's and cell's own.
Effects are N(0, EFFECT_SD^2) and tau is half-normal(TAU_SCALE) (Gelman 2006), both weak beside what gains in nDCG@10
are. Given tau everything is Gaussian; tau is integrated over a grid. There is no sampler: the same input gives the
same figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

EFFECT_SD = 0.1
"""SD of an effect before any result, in nDCG@10."""

TAU_SCALE = 0.03
"""Scale of the scatter that no effect explains."""

MIN_GAIN = 0.02
"""The gain that counts."""

TAUS = [4 * TAU_SCALE * (step + 0.5) / 80 for step in range(80)]
"""The grid, evenly from 0 to four scales; a value is the middle of its step, so none is 0."""

EXACT = 1e-9
"""An SD up to which a gain counts as known; what lies below it is rounding."""

_Z = NormalDist()


@dataclass(frozen=True, slots=True)
class SourceGains:
    """Cells of one source against its baseline: gains (cells,) in nDCG@10, their covariance (cells, cells).

    `effects` names, per cell, what it has in common with cells of other sources, such as encoder and kind of chunker;
    what the baseline has too is left out.
    """

    source: str
    cells: tuple[str, ...]
    effects: tuple[tuple[str, ...], ...]
    gains: Floats
    covariance: Floats
    n_queries: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A posterior: mean, SD, central 95 % interval, and the probabilities of a gain above 0 and above MIN_GAIN."""

    mean: float
    sd: float
    low: float
    high: float
    p_above_0: float
    p_above_bar: float


@dataclass(frozen=True, slots=True)
class PooledCell:
    """A cell's gain as its source alone has it (with its standard error), and what it shrinks to."""

    source: str
    cell: str
    gain: float
    standard_error: float
    pooled: Estimate


@dataclass(frozen=True, slots=True)
class OddOne:
    """How far a source's mean gain lies from what the others predict, and this source's two-sided p."""

    source: str
    gain: float
    predicted: float
    p: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """Effects by name, in the order of their first cells; cells in the order given; sources, the oddest one first.

    Effects that always come together cannot be told apart, and stand as one: "bm25 + whole documents". `tau` is the
    posterior mean of the scatter that no effect explains. `odd` is empty for a single source.
    """

    effects: dict[str, Estimate]
    cells: tuple[PooledCell, ...]
    odd: tuple[OddOne, ...]
    tau: float


def pool(sources: Sequence[SourceGains]) -> Pooled:
    """Return the posterior given all sources; ValueError if there is none, or one without a cell.

    >>> alone = SourceGains("bills", ("a",), (("structural",),), np.array([0.05]), np.array([[0.0004]]), 100)
    >>> round(pool([alone]).effects["structural"].mean, 3)
    0.045
    """
    if not sources or not all(source.cells for source in sources):
        raise ValueError("pooling takes one source or more, each with a cell beside its baseline")
    sources = _with_joint_effects(sources)
    names = _names(sources)
    design = _design(sources, names)
    n_effects, n_cells = len(names), len(design)
    shared = np.vstack([np.eye(n_effects), design])
    own = np.vstack([np.zeros((n_effects, n_cells)), np.eye(n_cells)])
    found = posterior(sources, names, shared, own)
    estimates = [_estimate(found, place) for place in range(n_effects + n_cells)]
    cells = [
        PooledCell(source.source, cell, float(gain), math.sqrt(variance), estimate)
        for (source, cell, gain, variance), estimate in zip(
            (
                (source, *row)
                for source in sources
                for row in zip(source.cells, source.gains, np.diag(source.covariance), strict=True)
            ),
            estimates[n_effects:],
            strict=True,
        )
    ]
    odd = [_odd_one(sources, names, place) for place in range(len(sources))] if len(sources) > 1 else []
    return Pooled(
        dict(zip(names, estimates, strict=False)),
        tuple(cells),
        tuple(sorted(odd, key=lambda one: one.p)),
        float(found.weights @ np.array(TAUS)),
    )


def pooled_apart(sources: Sequence[SourceGains], encoder: str) -> Pooled:
    """Pool cells that only keep the vectors of the baseline's encoder in fewer bits or numbers by themselves.

    They lie within thousandths of the baseline in every source, so with them in it one scale of scatter would be near 0
    and pull every other cell onto its effect. `odd` and `tau` are those of the other cells, if there are any.
    """

    def one_kind(source: SourceGains, *, shrunk: bool) -> SourceGains:
        told = (len(of_cell) == 1 and of_cell[0].startswith(f"{encoder}@") for of_cell in source.effects)
        places = [at for at, is_shrunk in enumerate(told) if is_shrunk == shrunk]
        return replace(
            source,
            cells=tuple(source.cells[at] for at in places),
            effects=tuple(source.effects[at] for at in places),
            gains=source.gains[places],
            covariance=source.covariance[np.ix_(places, places)],
        )

    groups = ([one_kind(source, shrunk=shrunk) for source in sources] for shrunk in (False, True))
    first, *others = [pool(held) for group in groups if (held := [source for source in group if source.cells])]
    for other in others:
        first = replace(first, effects=first.effects | other.effects, cells=first.cells + other.cells)
    return first


def _names(sources: Sequence[SourceGains]) -> list[str]:
    return list(dict.fromkeys(name for source in sources for of_cell in source.effects for name in of_cell))


def _with_joint_effects(sources: Sequence[SourceGains]) -> list[SourceGains]:
    """Return the sources with one name for effects that the same cells have."""
    together: dict[bytes, list[str]] = {}
    names = _names(sources)
    for name, column in zip(names, _design(sources, names).T, strict=True):
        together.setdefault(column.tobytes(), []).append(name)
    joint = {name: " + ".join(group) for group in together.values() for name in group}
    return [
        replace(source, effects=tuple(tuple(dict.fromkeys(joint[name] for name in each)) for each in source.effects))
        for source in sources
    ]


def _design(sources: Sequence[SourceGains], names: Sequence[str]) -> Floats:
    """Return (cells, effects): 1 where a cell has an effect."""
    rows = [[float(name in of_cell) for name in names] for source in sources for of_cell in source.effects]
    return np.array(rows).reshape(-1, len(names))


class Posterior(NamedTuple):
    """Per value of TAUS its share (taus,), and means and SDs (taus, targets) given it."""

    weights: Floats
    means: Floats
    sds: Floats


def posterior(
    sources: Sequence[SourceGains], names: Sequence[str], shared: Floats, own: Floats, fresh: float = 0.0
) -> Posterior:
    """Return the posterior of targets: `shared` (targets, effects) of the effects plus `own` (targets, cells) of the u.

    `fresh` times tau^2 is the variance that a target has from cells of no source among these.
    """
    design = _design(sources, names)
    y = np.concatenate([source.gains for source in sources])
    errors = np.zeros((len(y), len(y)))
    at = 0
    for source in sources:  # Errors of two sources are independent.
        end = at + len(source.cells)
        errors[at:end, at:end] = source.covariance
        at = end
    logs, means, sds = [], [], []
    for tau in TAUS:
        whole = EFFECT_SD**2 * design @ design.T + tau**2 * np.eye(len(y)) + errors
        reach = EFFECT_SD**2 * shared @ design.T + tau**2 * own
        solved = np.linalg.solve(whole, np.column_stack([y, reach.T]))
        before = EFFECT_SD**2 * (shared**2).sum(axis=1) + tau**2 * ((own**2).sum(axis=1) + fresh)
        means.append(reach @ solved[:, 0])
        sds.append(np.sqrt(np.maximum(0.0, before - np.einsum("ij,ji->i", reach, solved[:, 1:]))))
        logs.append(-0.5 * (np.linalg.slogdet(whole)[1] + y @ solved[:, 0]) - 0.5 * (tau / TAU_SCALE) ** 2)
    weights = np.exp(np.array(logs) - max(logs))
    return Posterior(weights / weights.sum(), np.array(means), np.array(sds))


def _estimate(found: Posterior, place: int) -> Estimate:
    """Return the figures of a mixture of Gaussians, that of one target."""
    weights, means, sds = found.weights, found.means[:, place], found.sds[:, place]
    mean = float(weights @ means)
    sd = math.sqrt(float(weights @ (sds**2 + (means - mean) ** 2)))
    low, high = (_quantile(share, means, sds, weights) for share in (0.025, 0.975))
    above = [1 - _below(bound, means, sds, weights) for bound in (0.0, MIN_GAIN)]
    return Estimate(mean, sd, low, high, *above)


def _below(value: float, means: Floats, sds: Floats, weights: Floats) -> float:
    """Return the mixture's probability of a value or less; what is known to a billionth is known."""
    parts = zip(weights.tolist(), means.tolist(), sds.tolist(), strict=True)
    return float(
        sum(w * (_Z.cdf((value - mean) / sd) if sd > EXACT else mean <= value + EXACT) for w, mean, sd in parts)
    )


def _quantile(share: float, means: Floats, sds: Floats, weights: Floats) -> float:
    low, high = float((means - 10 * sds).min()), float((means + 10 * sds).max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, means, sds, weights) < share else (low, middle)
    return (low + high) / 2


def _odd_one(sources: Sequence[SourceGains], names: Sequence[str], place: int) -> OddOne:
    """Hold the source at `place` against what the others predict of the mean of its cells."""
    one, others = sources[place], [*sources[:place], *sources[place + 1 :]]
    shared = _design([one], names).mean(axis=0, keepdims=True)
    unknown = np.zeros((1, sum(len(source.cells) for source in others)))
    found = posterior(others, names, shared, unknown, 1 / len(one.cells))
    means, sds = found.means[:, 0], np.sqrt(found.sds[:, 0] ** 2 + float(one.covariance.mean()))
    gain = float(one.gains.mean())
    below = _below(gain, means, sds, found.weights)
    return OddOne(one.source, gain, float(found.weights @ means), 2 * min(below, 1 - below))
