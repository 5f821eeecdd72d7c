"""What each choice is expected to cost: posteriors of the cells' true gains under a stated prior.

A cell's mean difference to the baseline is y = g + e. Its true gain g is N(mean, sd^2) before anything is judged, as
the plan's `prior` says, alike and independent for all cells. The errors e are normal with the standard error that the
cell's own queries show, and one correlation for every two cells, the mean of those observed: they share the baseline
and its luck with these queries. All correlations apart, as 25 queries estimate them, choose worse; so does leaving them
out (docs/statistics.md; Ledoit & Wolf 2004 on the constant correlation). Everything is Gaussian and in closed form.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints
from runner.eval_set.shapes.paired import ExpectedLoss
from runner.eval_set.shapes.plan import Plan, Prior

_Z = NormalDist()


class Gain(NamedTuple):
    """A normal posterior of a true gain in nDCG@10; `sd` is above 0."""

    mean: float
    sd: float

    def above(self, bar: float) -> float:
        """The probability of a gain above `bar`."""
        return _Z.cdf((self.mean - bar) / self.sd)

    def excess(self, bar: float) -> float:
        """E[max(0, gain - bar)]."""
        z = (self.mean - bar) / self.sd
        return max(0.0, self.sd * (_Z.pdf(z) + z * _Z.cdf(z)))


def expected_losses(differences: Ints, plan: Plan) -> list[ExpectedLoss]:
    """What switching to each cell, and what keeping the baseline instead, is expected to cost.

    `differences` are (cells, queries), cell minus baseline, in units of 1e-9. With g a cell's true gain and k the
    plan's switching cost, switching is expected to lose E[max(0, k - g)] and keeping E[max(0, g - k)]: what the better
    of the two would have been worth more. They differ by k - E[g], so switching is expected to lose less if E[g] > k.
    """
    return [expected_loss(gain, plan) for gain in posterior(differences, plan.prior)]


def expected_loss(gain: Gain, plan: Plan) -> ExpectedLoss:
    """The same of one cell, of whose true gain this is believed."""
    cost, keeping = plan.switching_cost, gain.excess(plan.switching_cost)
    return ExpectedLoss(
        gain=gain.mean,
        p_above_0=gain.above(0.0),
        p_above_bar=gain.above(plan.rule.min_gain),
        switching=max(0.0, keeping + cost - gain.mean),
        keeping=keeping,
    )


def posterior(differences: Ints, prior: Prior) -> list[Gain]:
    """The posterior of each row's true mean; ValueError for fewer than 2 queries.

    >>> round(posterior(np.array([[-100_000_000, 300_000_000] * 50]), Prior(mean=-0.045, sd=0.055))[0].mean, 3)
    0.083
    """
    n_queries = differences.shape[1]
    if n_queries < 2:
        raise ValueError(f"{n_queries} queries say nothing of how far differences scatter; 2 are the least")
    values = differences / SCORE_UNIT
    means, errors = values.mean(axis=1), values.std(axis=1, ddof=1) / math.sqrt(n_queries)
    shared = _mean_correlation(values - means[:, None])
    # The covariance of y is diag(own) + shared * errors errors', whose inverse is in closed form (Sherman-Morrison).
    own = prior.sd**2 + (1 - shared) * errors**2
    scaled = errors / own
    together = shared / (1 + shared * float(scaled @ errors))
    away = means - prior.mean
    pulled = away / own - together * float(scaled @ away) * scaled
    narrowed = 1 / own - together * scaled**2
    return [
        Gain(prior.mean + prior.sd**2 * by, max(1e-9, prior.sd * math.sqrt(max(0.0, 1 - prior.sd**2 * less))))
        for by, less in zip(pulled.tolist(), narrowed.tolist(), strict=True)
    ]


def _mean_correlation(centred: NDArray[np.float64]) -> float:
    """The mean correlation of two different rows that scatter; 0 if there are no two."""
    lengths = np.sqrt((centred**2).sum(axis=1))
    rows = centred[lengths > 0] / lengths[lengths > 0, None]
    n = len(rows)
    return 0.0 if n < 2 else float((rows.sum(axis=0) ** 2).sum() - n) / (n * (n - 1))
