"""Partial pooling of gains over sources, by exact Gaussian algebra over a grid of one scale.

A cell's gain over the baseline of its source is y = theta + e. Its error e is what other queries would have changed;
cells of one source share queries and baseline, so errors come with a covariance. Its true gain is
theta = effect of its encoder + effect of its kind of chunker + u, where u ~ N(0, tau^2) is the source's and cell's own.
Effects are N(0, effect_sd^2) and tau is half-normal(tau_scale) (Gelman 2006), both weak beside what gains in nDCG@10
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

GRID = 80
"""Values of tau, evenly from 0 to TOP scales; a value is the middle of its step, so none is 0."""

TOP = 4.0

_Z = NormalDist()


class Priors(NamedTuple):
    """SD of an effect, scale of tau, and the gain that counts, all in nDCG@10."""

    effect_sd: float = 0.1
    tau_scale: float = 0.03
    min_gain: float = 0.02


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
    """A posterior: mean, SD, central 95 % interval, and the probabilities of a gain above 0 and above the bar."""

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
    """How far a source's mean gain lies from what the other sources predict, and p of a distance so large.

    `p` is two-sided and for this source alone.
    """

    source: str
    gain: float
    predicted: float
    p: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """Effects by name, in the order of their first cells; cells in the order given; sources, the oddest one first.

    Effects that always come together cannot be told apart, and stand as one: "bm25 + whole documents". `predicted` has,
    by the effects of a cell, the true gain of such a cell in a source that is not among these. `tau` is the posterior
    mean of the scatter that no effect explains. `odd` is empty for a single source.
    """

    effects: dict[str, Estimate]
    cells: tuple[PooledCell, ...]
    predicted: dict[tuple[str, ...], Estimate]
    odd: tuple[OddOne, ...]
    tau: float


def pool(sources: Sequence[SourceGains], priors: Priors = Priors()) -> Pooled:  # noqa: B008  # it is immutable
    """The posterior given all sources; ValueError if there is none, or one without a cell.

    >>> alone = SourceGains("bills", ("a",), (("structural",),), np.array([0.05]), np.array([[0.0004]]), 100)
    >>> round(pool([alone]).effects["structural"].mean, 3)
    0.045
    """
    if not sources or not all(source.cells for source in sources):
        raise ValueError("pooling takes one source or more, each with a cell beside its baseline")
    kinds = [kind for source in sources for kind in source.effects]
    sources = _with_joint_effects(sources)
    names = _names(sources)
    parts = _given(sources, names, priors)
    weights = np.array([part.weight for part in parts])
    effects = {
        name: _estimate([(part.effects[i], part.effect_sds[i]) for part in parts], weights, priors.min_gain)
        for i, name in enumerate(names)
    }
    cells, at = [], 0
    for source in sources:
        for place, cell in enumerate(source.cells):
            known = _estimate([(part.gains[at], part.gain_sds[at]) for part in parts], weights, priors.min_gain)
            error = math.sqrt(source.covariance[place, place])
            cells.append(PooledCell(source.source, cell, float(source.gains[place]), error, known))
            at += 1
    design = dict(zip(kinds, _design(sources, names), strict=True))
    predicted = {
        kind: _estimate(
            [(mean, math.sqrt(spread)) for mean, spread in _elsewhere(sources, names, row, parts, priors)],
            weights,
            priors.min_gain,
        )
        for kind, row in design.items()
    }
    odd = [_odd_one(sources, names, place, priors) for place in range(len(sources))] if len(sources) > 1 else []
    tau = float(weights @ np.array([part.tau for part in parts]))
    return Pooled(effects, tuple(cells), predicted, tuple(sorted(odd, key=lambda one: one.p)), tau)


def pooled_apart(sources: Sequence[SourceGains], encoder: str, priors: Priors) -> Pooled:
    """Cells that only keep the vectors of the baseline's encoder in fewer bits or numbers pooled by themselves.

    They lie within thousandths of the baseline in every source, so with them in it one scale of scatter would be near 0
    and pull every other cell onto its effect. `odd` and `tau` are those of the other cells, if there are any.
    """

    def one_kind(source: SourceGains, *, shrunk: bool) -> SourceGains:
        told = (len(of_cell) == 1 and of_cell[0].startswith(f"{encoder}@") for of_cell in source.effects)
        return _cells_of(source, [at for at, is_shrunk in enumerate(told) if is_shrunk == shrunk])

    groups = ([one_kind(source, shrunk=shrunk) for source in sources] for shrunk in (False, True))
    found = [pool(held, priors) for group in groups if (held := [source for source in group if source.cells])]
    first, *others = found
    for other in others:
        first = replace(
            first,
            effects=first.effects | other.effects,
            cells=first.cells + other.cells,
            predicted=first.predicted | other.predicted,
        )
    return first


def _cells_of(source: SourceGains, places: Sequence[int]) -> SourceGains:
    return replace(
        source,
        cells=tuple(source.cells[at] for at in places),
        effects=tuple(source.effects[at] for at in places),
        gains=source.gains[list(places)],
        covariance=source.covariance[np.ix_(places, places)],
    )


def _names(sources: Sequence[SourceGains]) -> list[str]:
    return list(dict.fromkeys(name for source in sources for of_cell in source.effects for name in of_cell))


def _with_joint_effects(sources: Sequence[SourceGains]) -> list[SourceGains]:
    """The sources with one name for effects that the same cells have."""
    together: dict[bytes, list[str]] = {}
    names = _names(sources)
    for name, column in zip(names, _design(sources, names).T, strict=True):
        together.setdefault(column.tobytes(), []).append(name)
    joint = {name: " + ".join(group) for group in together.values() for name in group}
    return [
        replace(source, effects=tuple(tuple(dict.fromkeys(joint[name] for name in each)) for each in source.effects))
        for source in sources
    ]


class _Part(NamedTuple):
    """The posterior given one tau: its share, means and SDs of effects and gains."""

    tau: float
    weight: float
    effects: Floats
    effect_sds: Floats
    gains: Floats
    gain_sds: Floats


def _design(sources: Sequence[SourceGains], names: Sequence[str]) -> Floats:
    """(cells, effects): 1 where a cell has an effect."""
    rows = [[float(name in of_cell) for name in names] for source in sources for of_cell in source.effects]
    return np.array(rows).reshape(-1, len(names))


def _covariance(sources: Sequence[SourceGains]) -> Floats:
    """The errors of all cells: those of two sources are independent."""
    size = sum(len(source.cells) for source in sources)
    found, at = np.zeros((size, size)), 0
    for source in sources:
        end = at + len(source.cells)
        found[at:end, at:end] = source.covariance
        at = end
    return found


def _given(sources: Sequence[SourceGains], names: Sequence[str], priors: Priors) -> list[_Part]:
    """The posterior at every tau of the grid, weights adding up to 1."""
    design, errors = _design(sources, names), _covariance(sources)
    y = np.concatenate([source.gains for source in sources])
    shared = priors.effect_sd**2 * design
    parts, logs = [], []
    for tau in (priors.tau_scale * TOP * (step + 0.5) / GRID for step in range(GRID)):
        prior = shared @ design.T + tau**2 * np.eye(len(y))
        whole = prior + errors
        solved = np.linalg.solve(whole, np.column_stack([y, prior, shared]))
        alpha, of_gains, of_effects = solved[:, 0], solved[:, 1 : 1 + len(y)], solved[:, 1 + len(y) :]
        gain_variances = np.diag(prior) - np.einsum("ij,ij->j", prior, of_gains)
        effect_variances = priors.effect_sd**2 - np.einsum("ij,ij->j", shared, of_effects)
        logs.append(-0.5 * (np.linalg.slogdet(whole)[1] + y @ alpha) - 0.5 * (tau / priors.tau_scale) ** 2)
        sds = [np.sqrt(np.maximum(0.0, variances)) for variances in (effect_variances, gain_variances)]
        parts.append(_Part(tau, 0.0, shared.T @ alpha, sds[0], prior @ alpha, sds[1]))
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    return [part._replace(weight=float(weight)) for part, weight in zip(parts, weights, strict=True)]


def _estimate(parts: Sequence[tuple[float, float]], weights: Floats, bar: float) -> Estimate:
    """The mixture of Gaussians, given their means and SDs."""
    means, sds = (np.array(column) for column in zip(*parts, strict=True))
    mean = float(weights @ means)
    sd = math.sqrt(float(weights @ (sds**2 + (means - mean) ** 2)))
    low, high = (_quantile(share, means, sds, weights) for share in (0.025, 0.975))
    above = [1 - _below(bound, means, sds, weights) for bound in (0.0, bar)]
    return Estimate(mean, sd, low, high, *above)


def _below(value: float, means: Floats, sds: Floats, weights: Floats) -> float:
    """The mixture's probability below a value."""
    parts = zip(weights.tolist(), means.tolist(), sds.tolist(), strict=True)
    return float(sum(w * (_Z.cdf((value - mean) / sd) if sd else mean < value) for w, mean, sd in parts))


def _quantile(share: float, means: Floats, sds: Floats, weights: Floats) -> float:
    low, high = float((means - 10 * sds).min()), float((means + 10 * sds).max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, means, sds, weights) < share else (low, middle)
    return (low + high) / 2


def _odd_one(sources: Sequence[SourceGains], names: Sequence[str], place: int, priors: Priors) -> OddOne:
    """The source at `place` against what the others predict of the mean of its cells."""
    one, others = sources[place], [*sources[:place], *sources[place + 1 :]]
    own = _design([one], names).mean(axis=0)
    given = _given(others, names, priors)
    n_cells, error = len(one.cells), float(one.covariance.mean())
    predicted = _elsewhere(others, names, own, given, priors, n_cells)
    weights = np.array([part.weight for part in given])
    means, sds = np.array([(mean, math.sqrt(spread + error)) for mean, spread in predicted]).T
    gain = float(one.gains.mean())
    below = _below(gain, means, sds, weights)
    return OddOne(one.source, gain, float(weights @ means), 2 * min(below, 1 - below))


def _elsewhere(
    sources: Sequence[SourceGains],
    names: Sequence[str],
    row: Floats,
    parts: Sequence[_Part],
    priors: Priors,
    n_cells: int = 1,
) -> list[tuple[float, float]]:
    """Mean and variance, at every tau, of the mean true gain of `n_cells` cells of another source.

    `row` (effects,) is those cells' mean row of the design.
    """
    design, errors = _design(sources, names), _covariance(sources)
    y = np.concatenate([source.gains for source in sources])
    reach = priors.effect_sd**2 * design @ row
    found = []
    for part in parts:
        whole = priors.effect_sd**2 * design @ design.T + part.tau**2 * np.eye(len(y)) + errors
        solved = np.linalg.solve(whole, reach)
        spread = priors.effect_sd**2 * row @ row - reach @ solved + part.tau**2 / n_cells
        found.append((float(solved @ y), float(spread)))
    return found
