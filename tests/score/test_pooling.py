"""What kinds of cell gain over sources, held to Bayes' rule worked out another way."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from runner.eval_set.catalog import PRIOR
from runner.score.expected_gain import updated
from runner.score.pooling import ENOUGH, MEAN_SD, SHARED, TAU_SCALE, TAUS, SourceGains, effect_of, pool, prior_of


def source(name, gains, kinds=("structural",), sds=0.04, shared=0.0):
    """A source whose cells have these gains and errors; `shared` is the correlation of the errors."""
    gains = np.array(gains, float)
    sds = np.broadcast_to(np.array(sds, float), gains.shape)
    correlation = np.full((len(gains), len(gains)), shared) + (1 - shared) * np.eye(len(gains))
    cells = tuple(f"cell {n}" for n in range(len(gains)))
    return SourceGains(name, cells, tuple(kinds), gains, correlation * np.outer(sds, sds), 25)


def test_one_cell_is_the_integral_over_mean_and_scatter():
    y, error = 0.05, 0.02

    def density(tau, power):
        own = tau**2 + error**2
        whole = MEAN_SD**2 + own
        mean, variance = MEAN_SD**2 / whole * y, MEAN_SD**2 * own / whole
        moment = (1.0, mean, variance + mean**2, tau**2)[power]
        return stats.halfnorm.pdf(tau, scale=TAU_SCALE) * stats.norm.pdf(y, 0, math.sqrt(whole)) * moment

    total, first, second, squares = (integrate.quad(density, 0, 0.6, args=(power,))[0] for power in range(4))
    effect = effect_of("structural", [source("bills", [y], sds=error)])
    assert effect.mean == pytest.approx(first / total, abs=2e-5)
    assert effect.sd == pytest.approx(math.sqrt(second / total - (first / total) ** 2), abs=1e-4)
    assert effect.scatter == pytest.approx(math.sqrt(squares / total), abs=1e-4)


def test_several_cells_are_a_joint_gaussian_of_mean_sources_and_cells():
    """By another road: unknowns are m, each source's effect and each cell's; the density of the data is scipy's."""
    both = ("structural", "structural")
    sources = [source("a", [0.05, 0.01], both, shared=0.4), source("b", [-0.02, 0.07], both, 0.05, 0.7)]
    sources.append(source("c", [0.04], sds=0.01))
    y = np.array([0.05, 0.01, -0.02, 0.07, 0.04])
    errors = np.zeros((5, 5))
    errors[:2, :2], errors[2:4, 2:4], errors[4:, 4:] = (one.covariance for one in sources)
    of_source = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]], float)
    design = np.hstack([np.ones((5, 1)), of_source, np.eye(5)])
    logs, means, variances = [], [], []
    for tau in TAUS:
        scatters = [MEAN_SD, *[tau * math.sqrt(SHARED)] * 3, *[tau * math.sqrt(1 - SHARED)] * 5]
        inverse = np.linalg.inv(errors)
        spread = np.linalg.inv(np.diag(np.array(scatters) ** -2.0) + design.T @ inverse @ design)
        means.append((spread @ design.T @ inverse @ y)[0])
        variances.append(spread[0, 0])
        whole = design @ np.diag(np.array(scatters) ** 2.0) @ design.T + errors
        logs.append(stats.multivariate_normal.logpdf(y, np.zeros(5), whole) + stats.halfnorm.logpdf(tau, 0, TAU_SCALE))
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = weights @ means
    sd = math.sqrt(weights @ (variances + (np.array(means) - mean) ** 2))
    effect = effect_of("structural", sources)
    assert (effect.mean, effect.sd) == pytest.approx((mean, sd), abs=1e-9)
    assert effect.scatter == pytest.approx(math.sqrt(weights @ TAUS**2), abs=1e-9)
    assert (effect.low, effect.high) == pytest.approx(stats.norm.interval(0.95, mean, sd), abs=1e-9)
    assert effect.sources == 3


gains = st.floats(-0.5, 0.5)


@given(st.lists(st.tuples(gains, gains), min_size=1, max_size=5), gains, st.randoms())
def test_kinds_and_the_order_of_sources_change_nothing_of_a_kind(rows, gain, random):
    both = [source(f"s{n}", row, ("structural", "BM25"), shared=0.5) for n, row in enumerate(rows)]
    shuffled = random.sample(both, len(both))
    found = effect_of("structural", both)
    assert effect_of("structural", shuffled) == pytest.approx(found, abs=1e-12)
    moved = [replace(one, gains=np.array([one.gains[0], gain])) for one in both]
    assert effect_of("structural", moved) == found
    assert effect_of("static", both) is None


def test_cells_of_one_source_say_less_than_as_many_of_several():
    one = [source("a", [0.05] * 4, ("window",) * 4, sds=0.02)]
    several = [source(str(n), [0.05], ("window",), sds=0.02) for n in range(4)]
    assert effect_of("window", one).sd > 1.5 * effect_of("window", several).sd


def test_a_cell_that_equals_its_baseline_and_two_that_are_alike_can_be_pooled():
    kinds = ("quantised", "quantised")
    sources = [source(str(n), [0.0, 0.0], kinds, sds=0.0) for n in range(3)]
    assert effect_of("quantised", sources).mean == pytest.approx(0.0, abs=1e-12)
    assert prior_of(sources)["quantised"].sd > 0


@pytest.mark.parametrize("n_sources", [0, 1, 3, 4, 6])
def test_a_prior_is_the_mixture_of_what_sources_say_and_the_catalogs_for_those_that_are_missing(n_sources):
    sources = [source(str(n), [0.1], sds=0.01) for n in range(n_sources)]
    found, default = prior_of(sources), PRIOR["structural"]
    assert {kind: found[kind] for kind in PRIOR if kind != "structural"} == {
        kind: PRIOR[kind] for kind in PRIOR if kind != "structural"
    }
    draws = np.random.default_rng(np.random.PCG64(1))
    missing = draws.random(400_000) >= n_sources / ENOUGH
    values = draws.normal(default.mean, default.sd, 400_000)
    if effect := effect_of("structural", sources):
        own = draws.normal(effect.mean, math.hypot(effect.sd, effect.scatter), 400_000)
        values = np.where(missing, values, own)
    assert (found["structural"].mean, found["structural"].sd) == pytest.approx((values.mean(), values.std()), abs=4e-4)


def test_each_cell_is_weighed_by_the_prior_of_the_other_sources_alone():
    sources = [source(f"s{n}", [gain, -0.1], ("structural", "BM25")) for n, gain in enumerate((0.1, 0.02, 0.03, 0.2))]
    found = pool(sources)
    for cell in found.cells:
        others = prior_of([one for one in sources if one.source != cell.source])
        assert (cell.expected, cell.sd) == updated(others[cell.kind], cell.gain, cell.standard_error)
    assert [cell.source for cell in found.cells[::2]] == ["s0", "s1", "s2", "s3"]
    assert (found.effects.keys(), found.prior) == ({"structural", "BM25"}, prior_of(sources))


def test_the_source_that_differs_is_the_odd_one_and_is_held_against_the_others_alone():
    sources = [source(f"s{n}", [gain], sds=0.01) for n, gain in enumerate((0.03, 0.031, 0.029, 0.03, 0.03, -0.3))]
    odd = pool(sources).odd
    assert odd[0].source == "s5"
    before = prior_of(sources[:5])["structural"]
    assert odd[0].p == pytest.approx(2 * stats.norm.sf(0.3 + before.mean, scale=math.hypot(before.sd, 0.01)))
    assert odd[0].p < 0.01
    assert odd[0].predicted == before.mean
    assert min(one.p for one in odd[1:]) > 0.05
    assert pool(sources[:1]).odd == ()


def test_nothing_to_pool_is_an_error():
    for sources in ([], [replace(source("s", [0.1]), cells=())]):
        with pytest.raises(ValueError, match="one source or more"):
            pool(sources)
