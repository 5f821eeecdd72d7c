"""What each choice is expected to cost: posteriors of the cells' true gains under a stated prior.

A cell's mean difference to the baseline is y = g + e. Its true gain g is N(mean, sd^2) before anything is judged, as
the plan's `prior` says; e is normal with the standard error that the cell's queries show. So g given y is normal in
closed form. Each cell is weighed by itself: what other cells say of the baseline's luck with these queries was tried
and left out, since a cell that is far worse than the prior expects then makes all others look better than they scored
(docs/statistics.md).
"""

import math
from statistics import NormalDist
from typing import NamedTuple

from runner.base.records import SCORE_UNIT, Ints
from runner.eval_set.shapes.paired import ExpectedLoss
from runner.eval_set.shapes.plan import Plan, Prior

_Z = NormalDist()


class Gain(NamedTuple):
    """What is believed of a true gain in nDCG@10: a normal distribution, a point if `sd` is 0."""

    mean: float
    sd: float

    def above(self, bar: float) -> float:
        """The probability of a gain above `bar`."""
        return _Z.cdf((self.mean - bar) / self.sd) if self.sd else float(self.mean > bar)

    def excess(self, bar: float) -> float:
        """E[max(0, gain - bar)]."""
        if not self.sd:
            return max(0.0, self.mean - bar)
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
    """What is believed of each row's true mean; ValueError for fewer than 2 queries.

    >>> import numpy as np
    >>> rows = np.array([[-100_000_000, 300_000_000] * 50])
    >>> round(posterior(rows, Prior(mean=-0.03, sd=0.05))[0].mean, 3)
    0.082
    """
    n_queries = differences.shape[1]
    if n_queries < 2:
        raise ValueError(f"{n_queries} queries say nothing of how far differences scatter; 2 are the least")
    values = differences / SCORE_UNIT
    errors = values.std(axis=1, ddof=1) / math.sqrt(n_queries)
    return [believed(*one, prior) for one in zip(values.mean(axis=1).tolist(), errors.tolist(), strict=True)]


def believed(gain: float, error: float, prior: Prior) -> Gain:
    """What is believed of a true gain, of which `gain` was observed with this standard error."""
    share = prior.sd**2 / (prior.sd**2 + error**2)
    return Gain(prior.mean + share * (gain - prior.mean), prior.sd * math.sqrt(1 - share))
