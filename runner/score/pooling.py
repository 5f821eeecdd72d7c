"""What cells of a kind gain over several sources, by exact Gaussian algebra over a grid of one scale.

A source says y = m + u + e of a kind: the mean gain of its cells of that kind over its baseline. e is what other
queries would have changed, m what the kind gains anywhere, N(0, MEAN_SD^2) before any result, and u ~ N(0, tau^2) what
it gains more or less in this source. tau is half-normal(TAU_SCALE) (Gelman 2006; Röver et al. 2021). Given tau
everything is Gaussian; tau is summed over a grid. No sampler: the same input gives the same figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from runner.eval_set.catalog import PRIOR
from runner.eval_set.shapes.plan import Kind, Normal
from runner.score.expected_gain import updated

Floats = npt.NDArray[np.float64]

MEAN_SD = 0.5
"""SD of a kind's mean gain before any result, in nDCG@10: so wide that it draws no mean noticeably towards 0."""

TAU_SCALE = 0.2
"""Scale of how far sources scatter about it: sums do by .17 on citations, the most seen.

At half of it, 95 % intervals miss in 9 % if sources scatter by .2, and are as wide if they scatter little.
"""

TAUS = np.array([TAU_SCALE * NormalDist().inv_cdf(0.5 + (step + 0.5) / 400) for step in range(200)])
"""The grid: 200 quantiles of tau's prior, which so weigh alike before any result; the last is three scales."""

ENOUGH = 4
"""Sources from which on they alone say what a kind gains."""

_Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class SourceGains:
    """Cells of one source against its baseline: gains (cells,) in nDCG@10, their covariance (cells, cells)."""

    source: str
    cells: tuple[str, ...]
    kinds: tuple[Kind, ...]
    gains: Floats
    covariance: Floats
    n_queries: int

    def of_kind(self, kind: Kind) -> list[int]:
        """Return the places of the cells of a kind."""
        return [place for place, name in enumerate(self.kinds) if name == kind]


class Effect(NamedTuple):
    """A kind's mean gain over sources, with its SD and 95 % interval, and how far sources scatter about it."""

    sources: int
    mean: float
    sd: float
    low: float
    high: float
    scatter: float


def effect_of(kind: Kind, sources: Sequence[SourceGains]) -> Effect | None:
    """Return what cells of the kind gain, None if no source has one.

    >>> alone = SourceGains("bills", ("a",), ("structural",), np.array([0.05]), np.array([[0.0004]]), 100)
    >>> round(effect_of("structural", [alone]).mean, 3)
    0.045
    """
    own = [(source, places) for source in sources if (places := source.of_kind(kind))]
    if not own:
        return None
    # Means of a source's cells: how little these differ must not tell how little sources do.
    gains = np.array([source.gains[places].mean() for source, places in own])
    errors = np.array([source.covariance[np.ix_(places, places)].mean() for source, places in own])
    # (taus, sources): m is summed out in closed form; what is left is the likelihood of tau.
    spread = errors + TAUS[:, None] ** 2
    precision = MEAN_SD**-2 + (1 / spread).sum(axis=1)
    means = (gains / spread).sum(axis=1) / precision
    logs = -0.5 * ((np.log(spread) + gains**2 / spread).sum(axis=1) + np.log(precision) - precision * means**2)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = float(weights @ means)
    sd = math.sqrt(float(weights @ (1 / precision + (means - mean) ** 2)))
    scatter = math.sqrt(float(weights @ TAUS**2))
    return Effect(len(own), mean, sd, mean - _Z95 * sd, mean + _Z95 * sd, scatter)


def prior_of(sources: Sequence[SourceGains]) -> dict[Kind, Normal]:
    """Return what a cell of one more source is believed to gain, by kind, at four places.

    While fewer than ENOUGH sources have a kind, each that is missing says what the catalog does. So few cannot tell how
    far sources scatter: the prior has the mean and variance of that mixture, each with the catalog's own variance.
    """
    return {kind: _mixed(effect_of(kind, sources), default) for kind, default in PRIOR.items()}


def _mixed(effect: Effect | None, default: Normal) -> Normal:
    if effect is None:
        return default
    share = min(1.0, effect.sources / ENOUGH)
    own = effect.sd**2 + effect.scatter**2 if share == 1 else default.sd**2
    apart = share * (1 - share) * (effect.mean - default.mean) ** 2
    mean = share * effect.mean + (1 - share) * default.mean
    return Normal(mean=round(mean, 4), sd=round(math.sqrt(own + apart), 4))


@dataclass(frozen=True, slots=True)
class PooledCell:
    """A cell's gain as its source alone has it (with its standard error), and as the other sources leave it."""

    source: str
    cell: str
    kind: Kind
    gain: float
    standard_error: float
    expected: float
    sd: float


@dataclass(frozen=True, slots=True)
class OddOne:
    """How far a source's mean gain lies from what the others predict, and this source's two-sided p."""

    source: str
    gain: float
    predicted: float
    p: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """Effects by kind; cells in the order given, each under the prior of the *other* sources; the oddest source first.

    `odd` is empty for a single source.
    """

    effects: dict[Kind, Effect]
    prior: dict[Kind, Normal]
    cells: tuple[PooledCell, ...]
    odd: tuple[OddOne, ...]


def pool(sources: Sequence[SourceGains]) -> Pooled:
    """Return what the sources say together; ValueError if there is none, or one without a cell."""
    if not sources or not all(source.cells for source in sources):
        raise ValueError("pooling takes one source or more, each with a cell beside its baseline")
    effects = {kind: effect for kind in PRIOR if (effect := effect_of(kind, sources))}
    cells: list[PooledCell] = []
    odd = []
    for place, source in enumerate(sources):
        others = prior_of([*sources[:place], *sources[place + 1 :]])
        cells += _cells(source, others)
        odd.append(_odd_one(source, others))
    odd = sorted(odd, key=lambda one: one.p) if len(sources) > 1 else []
    return Pooled(effects, prior_of(sources), tuple(cells), tuple(odd))


def _cells(source: SourceGains, prior: dict[Kind, Normal]) -> list[PooledCell]:
    errors = np.sqrt(np.diag(source.covariance)).tolist()
    rows = zip(source.cells, source.kinds, source.gains.tolist(), errors, strict=True)
    return [
        PooledCell(source.source, cell, kind, gain, error, *updated(prior[kind], gain, error))
        for cell, kind, gain, error in rows
    ]


def _odd_one(source: SourceGains, prior: dict[Kind, Normal]) -> OddOne:
    """Hold the mean of a source's cells against what the others predict; cells of a kind are taken to err alike."""
    spread = source.covariance.copy()
    for kind in set(source.kinds):
        places = source.of_kind(kind)
        spread[np.ix_(places, places)] += prior[kind].sd ** 2
    gain, predicted = float(source.gains.mean()), float(np.mean([prior[kind].mean for kind in source.kinds]))
    z = abs(gain - predicted) / math.sqrt(float(spread.mean()))
    return OddOne(source.source, gain, predicted, 2 * NormalDist().cdf(-z))
