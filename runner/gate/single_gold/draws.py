"""The four nulls of a named measure: moments without a draw, draws of all queries and many trials at once."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from runner.gate.single_gold.bench import Inputs
from runner.gate.single_gold.moments import Stratum, moments, reach, stratified
from runner.gate.single_gold.outcome import Outcome, Progress
from runner.gate.single_gold.rank_measures import Floats, Measure
from runner.retrieve.ranking import Ints

_NUMBERS_AT_ONCE = 1 << 18


def named_outcomes(
    inputs: Inputs, measure: Measure, progress: Progress, generator: np.random.Generator | None
) -> dict[str, Outcome]:
    """Every stratum's outcome by name: exact moments, and with a generator also draws."""
    with progress.stage("real"):
        strata = stratified(inputs, measure)
    outcomes = {}
    for name, stratum in zip(inputs.strata, strata, strict=True):
        expected, variance = moments(stratum)
        draws = None if generator is None else _draws(stratum, inputs.n_trials, progress, generator)
        limits = reach(stratum.gold, stratum.relevant, stratum.by_rank, stratum.n_pool)
        outcomes[name] = Outcome(stratum.real(), expected, variance, draws, limits, len(stratum.counts) == 1)
        progress.advance(len(stratum.gold))
    return outcomes


def _draws(stratum: Stratum, trials: int, progress: Progress, generator: np.random.Generator) -> Floats:
    """Sums over the queries of the nulls A to D (4, trials)."""
    with progress.stage("null_a"):
        permuted = permuted_totals(stratum, trials, generator)
    with progress.stage("null_b"):
        uniform = uniform_totals(stratum, trials, generator)
    with progress.stage("null_c"):
        random = random_totals(stratum, trials, generator)
    with progress.stage("null_d"):
        marginal = marginal_totals(stratum, trials, generator)
    return np.stack([permuted, uniform, random, marginal])


def permuted_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null A: the sum over the queries (trials,), labels exchanged by a permutation, which may leave them in place."""
    labels = np.arange(len(stratum.counts))
    totals = []
    for turn in _turns(stratum, trials):
        permuted = generator.permuted(np.tile(labels, (turn, 1)), axis=1)
        totals.append(_totals(stratum, permuted[:, stratum.gold]))
    return np.concatenate(totals)


def uniform_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null B: the sum over the queries (trials,), every label equally likely for each."""
    shape = len(stratum.counts), len(stratum.gold)
    return np.concatenate(
        [_totals(stratum, generator.integers(shape[0], size=(turn, shape[1]))) for turn in _turns(stratum, trials)]
    )


def marginal_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null D: the sum over the queries (trials,), each given the gold of a query drawn at random."""
    n = len(stratum.gold)
    return np.concatenate(
        [_totals(stratum, stratum.gold[generator.integers(n, size=(turn, n))]) for turn in _turns(stratum, trials)]
    )


def random_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null C: the sum over the queries (trials,) of lists drawn from the pool without replacement.

    The gold's rank in such a list, were it as long as the pool, is uniform on 1 to the pool's size: one number a list.
    """
    by_rank = np.append(stratum.by_rank, 0.0)
    n = int(stratum.relevant.sum())
    totals = []
    for turn in _turns(stratum, trials):
        places = generator.integers(stratum.n_pool, size=(turn, n))
        totals.append(by_rank[np.minimum(places, len(stratum.by_rank))].sum(axis=1))
    return np.concatenate(totals)


def _totals(stratum: Stratum, assigned: Ints) -> Floats:
    """Sums over the queries (trials,) where `assigned` (trials, queries) are their golds."""
    hits: NDArray[np.bool_] = assigned[:, stratum.query] == stratum.label
    totals: Floats = hits @ stratum.value
    return totals


def _turns(stratum: Stratum, trials: int) -> Iterator[int]:
    """Numbers of trials that add up to `trials`, few enough at a time for memory."""
    most = max(1, _NUMBERS_AT_ONCE // max(len(stratum.gold), len(stratum.query)))
    for start in range(0, trials, most):
        yield min(most, trials - start)
