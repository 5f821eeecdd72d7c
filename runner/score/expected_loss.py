"""What each choice is expected to cost: posteriors of the cells' true gains, of all cells of a plan together.

The cells' mean differences to the baseline are y = g + e. What is believed of the true gains g beforehand has the mean
and the SD of the plan's prior, and the cells themselves say how far they differ: where they hardly do, the best of them
is taken for lucky.

g is normal about the mean with covariance tau^2 C. Either the cells hardly differ, or they do: tau has one of two
values, the lesser a third of the greater and believed with a chance of HARDLY. C is GAINS_ALIKE of each correlation
between the errors of two cells: what errs alike, as hybrids of one index do, gains alike. Errors e are normal with the
covariance that the queries show, of which ERRORS_ALIKE of each correlation is believed. Given tau all of it is
Gaussian.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from runner.base.records import SCORE_UNIT, Ints
from runner.eval_set.shapes.paired import ExpectedLoss
from runner.eval_set.shapes.plan import Prior, ScoredPlan
from runner.score.flips import Floats

HARDLY = 0.35
"""The chance that a plan's challengers hardly differ, by a third of the scatter that they have if they do."""

ERRORS_ALIKE, GAINS_ALIKE = 0.75, 0.85
"""How much of a correlation between two cells' errors is believed of the errors, and of the true gains."""

_POINTS = 2048
"""Points at which the best gain is summed, which takes it to about 1 %."""

_Z = NormalDist()


class Gain(NamedTuple):
    """What is believed of a true gain in nDCG@10: a normal distribution, a point if `sd` is 0."""

    mean: float
    sd: float

    def above(self, bar: float) -> float:
        """Return the probability of a gain above `bar`."""
        return _Z.cdf((self.mean - bar) / self.sd) if self.sd else float(self.mean > bar)

    def excess(self, bar: float) -> float:
        """Return E[max(0, gain - bar)]."""
        if not self.sd:
            return max(0.0, self.mean - bar)
        z = (self.mean - bar) / self.sd
        return max(0.0, self.sd * (_Z.pdf(z) + z * _Z.cdf(z)))


class Mixture(NamedTuple):
    """What is believed of a true gain: one of several normal distributions, with weights that add up to 1."""

    weights: Sequence[float]
    parts: Sequence[Gain]

    @property
    def gain(self) -> Gain:
        """The normal distribution of the same mean and SD."""
        mean = self._over([part.mean for part in self.parts])
        squares = self._over([part.sd**2 + (part.mean - mean) ** 2 for part in self.parts])
        return Gain(mean, math.sqrt(squares))

    def above(self, bar: float) -> float:
        """Return the probability of a gain above `bar`."""
        return min(1.0, self._over([part.above(bar) for part in self.parts]))

    def excess(self, bar: float) -> float:
        """Return E[max(0, gain - bar)]."""
        return self._over([part.excess(bar) for part in self.parts])

    def _over(self, values: Sequence[float]) -> float:
        return math.fsum(weight * value for weight, value in zip(self.weights, values, strict=True))


@dataclass(frozen=True)
class Beliefs:
    """What is believed of all cells' true gains at once, a Gaussian for every value of tau.

    `weights` (grid,) add up to 1; `means` (grid, cells); `covariances` (grid, cells, cells).
    """

    weights: Floats
    means: Floats
    covariances: Floats

    @cached_property
    def gains(self) -> list[Mixture]:
        """What is believed of each cell."""
        sds = np.sqrt(np.maximum(0.0, np.diagonal(self.covariances, axis1=1, axis2=2)))
        weights = self.weights.tolist()
        pairs = zip(self.means.T.tolist(), sds.T.tolist(), strict=True)
        return [Mixture(weights, list(map(Gain, means, sds))) for means, sds in pairs]

    def best(self, cells: Sequence[int]) -> float:
        """Return E[max(0, greatest gain)] of these cells: the worth of knowing which is best; 0 of none."""
        if not cells:
            return 0.0
        some = np.ix_(range(len(self.weights)), cells, cells)
        roots = np.linalg.cholesky(self.covariances[some] + 1e-12 * np.eye(len(cells)))
        gains = self.means[:, None, list(cells)] + _points(len(cells)) @ roots.transpose(0, 2, 1)
        return float(self.weights @ np.maximum(0.0, gains.max(axis=2)).mean(axis=1))


def beliefs(differences: Ints, prior: Prior) -> Beliefs:
    """Return what is believed of the rows' true means; `differences` are (cells, queries), in units of 1e-9.

    ValueError for fewer than 2 queries.

    >>> rows = np.array([[-100_000_000, 300_000_000] * 50])
    >>> round(beliefs(rows, Prior(mean=-0.03, sd=0.05)).gains[0].gain.mean, 3)
    0.087
    """
    n_queries = differences.shape[1]
    if n_queries < 2:
        raise ValueError(f"{n_queries} queries say nothing of how far differences scatter; 2 are the least")
    values = differences / SCORE_UNIT
    return _posterior(values.mean(axis=1), np.atleast_2d(np.cov(values)) / n_queries, prior)


def _posterior(measured: Floats, covariance: Floats, prior: Prior) -> Beliefs:
    """Return beliefs once `measured` is seen; `covariance` is that of the errors as the queries show it."""
    scatter = np.sqrt(np.diagonal(covariance))
    scatter = np.where(scatter > 0, scatter, np.inf)  # what does not scatter correlates with nothing
    correlations = covariance / np.outer(scatter, scatter)
    np.fill_diagonal(correlations, 1.0)
    # The two scatters, such that together they have the SD of the prior.
    chances = np.array([HARDLY, 1 - HARDLY])
    taus = prior.sd * np.array([1 / 3, 1.0]) / math.sqrt(HARDLY / 9 + 1 - HARDLY)
    before = taus[:, None, None] ** 2 * _alike(correlations, GAINS_ALIKE)
    return _updated(measured, _alike(covariance, ERRORS_ALIKE), prior.mean, before, -2 * np.log(chances))


def _alike(matrix: Floats, share: float) -> Floats:
    """Return the matrix with this share of what stands beside its diagonal."""
    return matrix * (share + (1 - share) * np.eye(len(matrix)))


def _updated(measured: Floats, errors: Floats, mean: float, before: Floats, penalties: Floats) -> Beliefs:
    """Apply Bayes' rule to gains that were measured with errors of this covariance.

    `before` (grid, cells, cells) has what is believed of the gains about `mean`, and `penalties` (grid,) how unlikely
    each is: minus twice the logarithm of its chance.
    """
    surprise = measured - mean
    whole = before + errors
    solved = np.linalg.solve(whole, np.broadcast_to(surprise[:, None], (*whole.shape[:2], 1)))[..., 0]
    logs = -0.5 * (np.linalg.slogdet(whole)[1] + solved @ surprise + penalties)
    # Less the greatest, so that none of them underflows.
    weights = np.exp(logs - logs.max())
    means = mean + np.einsum("kij,kj->ki", before, solved)
    return Beliefs(weights / weights.sum(), means, before - before @ np.linalg.solve(whole, before))


def expected_losses(believed: Beliefs, plan: ScoredPlan) -> list[ExpectedLoss]:
    """Return what switching to each cell, and what keeping the baseline instead, is expected to cost.

    With g a cell's true gain and k the plan's switching cost, switching is expected to lose E[max(0, k - g)] and
    keeping E[max(0, g - k)]: what the better of the two would have been worth more. They differ by k - E[g], so
    switching is expected to lose less if E[g] > k.
    """
    return [expected_loss(gain, plan) for gain in believed.gains]


def expected_loss(believed: Gain | Mixture, plan: ScoredPlan) -> ExpectedLoss:
    """Return the same of one cell, of whose true gain this is believed."""
    gain = believed.mean if isinstance(believed, Gain) else believed.gain.mean
    cost, keeping = plan.switching_cost, believed.excess(plan.switching_cost)
    return ExpectedLoss(
        gain=gain,
        p_above_0=believed.above(0.0),
        p_above_bar=believed.above(plan.rule.min_gain),
        switching=max(0.0, keeping + cost - gain),
        keeping=keeping,
    )


@cache
def _points(n_cells: int) -> Floats:
    """Return _POINTS of a normal distribution in so many dimensions, evenly spread (Roberts' additive steps)."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (n_cells + 1))
    steps = np.array([root ** -(place + 1) for place in range(n_cells)])
    even = (0.5 + np.arange(1, _POINTS + 1)[:, None] * steps) % 1
    return np.array([[_Z.inv_cdf(place) for place in point] for point in np.clip(even, 1e-9, 1 - 1e-9).tolist()])
