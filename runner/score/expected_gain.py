"""What is believed of a cell's true gain: its kind's prior, moved by what its own queries show.

Both are normal, so that Bayes' rule has a closed form (Gelman et al. 2013, section 2.5). Nothing of another cell has a
way in: what other cells and sources can tell stands in the prior, which was frozen before anything was judged.
"""

import math

import numpy as np

from runner.base.records import SCORE_UNIT, Ints
from runner.eval_set.kinds import kind_of
from runner.eval_set.shapes.plan import Normal, ScoredPlan
from runner.score.flips import Weights, counted
from runner.score.gain_test import effective_number


def updated(before: Normal, measured: float, error: float) -> tuple[float, float]:
    """Return mean and SD of a true gain once `measured` is seen with a standard error; 0 leaves no doubt.

    >>> mean, sd = updated(Normal(mean=0.0, sd=0.03), 0.05, 0.04)
    >>> round(mean, 3), round(sd, 3)
    (0.018, 0.024)
    """
    # The mean lies between the prior's and the measured one, nearer to the one that is known better.
    believed, seen = before.sd**2, error**2
    mean = (believed * measured + seen * before.mean) / (believed + seen)
    return mean, math.sqrt(believed * seen / (believed + seen))


def expected_gain(cell: str, differences: Ints, plan: ScoredPlan, weights: Weights = None, *, over: str = "") -> Normal:
    """Return what is believed of a cell; `differences` (queries,) in units of 1e-9, to the baseline or the cell `over`.

    Before its queries a gain over another cell is the difference of what is believed of both, as if independent.

    ValueError for fewer than 2 queries.
    """
    n_queries = len(differences)
    if n_queries < 2:
        raise ValueError(f"{n_queries} queries say nothing of how far differences scatter; 2 are the least")
    before = plan.prior.kinds[kind_of(cell, plan.baseline)]
    if over:
        other = plan.prior.kinds[kind_of(over, plan.baseline)]
        gain, spread = before.mean - other.mean, math.hypot(before.sd, other.sd)
        before = Normal(mean=max(-1.0, min(1.0, gain)), sd=min(1.0, spread))  # as far as a plan may go
    values, own = differences / SCORE_UNIT, counted(weights, n_queries)
    measured = float(np.average(values, weights=own))
    variance = float(np.average((values - measured) ** 2, weights=own))
    mean, sd = updated(before, measured, math.sqrt(variance / (effective_number(own.tolist()) - 1)))
    return Normal(mean=mean, sd=sd)
