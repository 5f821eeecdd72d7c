import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from runner.tools.pooled import model
from runner.tools.pooled.model import Priors, SourceGains, pool

PRIORS = Priors()


def source(name, gains, effects=(("structural",),), sds=0.04, shared=0.0, n_queries=25):
    """A source whose cells have these gains and errors; `shared` is the correlation of the errors."""
    gains = np.array(gains, float)
    sds = np.broadcast_to(np.array(sds, float), gains.shape)
    correlation = np.full((len(gains), len(gains)), shared) + (1 - shared) * np.eye(len(gains))
    cells = tuple(f"cell {n}" for n in range(len(gains)))
    return SourceGains(name, cells, tuple(effects), gains, correlation * np.outer(sds, sds), n_queries)


TWO = (("e5", "structural"), ("e5",))


def test_one_source_and_cell_is_the_integral_over_effect_and_scatter():
    y, error = 0.05, 0.02

    def density(tau, power):
        spread = PRIORS.effect_sd**2 + tau**2
        whole = spread + error**2
        mean, variance = spread / whole * y, spread * error**2 / whole
        moment = 1.0 if power == 0 else mean if power == 1 else variance + mean**2
        return stats.halfnorm.pdf(tau, scale=PRIORS.tau_scale) * stats.norm.pdf(y, 0, math.sqrt(whole)) * moment

    total, first, second = (integrate.quad(density, 0, 0.6, args=(power,))[0] for power in (0, 1, 2))
    (cell,) = pool([source("bills", [y], sds=error)]).cells
    assert cell.pooled.mean == pytest.approx(first / total, abs=1e-5)
    assert cell.pooled.sd == pytest.approx(math.sqrt(second / total - (first / total) ** 2), abs=1e-5)
    assert (cell.gain, cell.standard_error) == (y, error)


def test_given_the_scatter_it_is_conditioning_a_joint_gaussian():
    sources = [source("bills", [0.05, 0.01], TWO, shared=0.4), source("rules", [0.02, -0.03], TWO, 0.05, 0.7)]
    design = np.array([[1, 1], [1, 0], [1, 1], [1, 0]], float)
    y, errors = np.array([0.05, 0.01, 0.02, -0.03]), model._covariance(sources)
    for part in model._given(sources, ["e5", "structural"], PRIORS)[::20]:
        # By precisions: of effects and of each cell's own u, in one joint vector.
        joint = np.hstack([design, np.eye(4)])
        prior = np.diag([PRIORS.effect_sd**-2] * 2 + [part.tau**-2] * 4)
        variance = np.linalg.inv(prior + joint.T @ np.linalg.inv(errors) @ joint)
        mean = variance @ joint.T @ np.linalg.inv(errors) @ y
        assert part.effects == pytest.approx(mean[:2], abs=1e-9)
        assert part.effect_sds**2 == pytest.approx(np.diag(variance)[:2], abs=1e-9)
        assert part.gains == pytest.approx(joint @ mean, abs=1e-9)
        assert part.gain_sds**2 == pytest.approx(np.diag(joint @ variance @ joint.T), abs=1e-9)
    assert sum(part.weight for part in model._given(sources, ["e5", "structural"], PRIORS)) == pytest.approx(1)


def test_intervals_and_probabilities_are_those_of_the_mixture():
    sources = [source(f"s{n}", [0.01 * n]) for n in range(5)]
    parts = model._given(sources, ["structural"], PRIORS)
    rng = np.random.default_rng(np.random.PCG64(1))
    which = rng.choice(len(parts), size=200_000, p=[part.weight for part in parts])
    draws = rng.normal(*(np.array([getattr(part, name)[0] for part in parts])[which] for name in ("effects", "effect_sds")))
    found = pool(sources).effects["structural"]
    assert (found.mean, found.sd) == pytest.approx((draws.mean(), draws.std()), abs=3e-4)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, (0.025, 0.975))), abs=1e-3)
    assert found.p_above_0 == pytest.approx((draws > 0).mean(), abs=5e-3)
    assert found.p_above_bar == pytest.approx((draws > PRIORS.min_gain).mean(), abs=5e-3)


gains = st.floats(-0.5, 0.5)


@given(st.lists(st.tuples(gains, gains), min_size=2, max_size=5), st.randoms())
def test_the_order_of_sources_changes_nothing(rows, random):
    sources = [source(f"s{n}", row, TWO, shared=0.5) for n, row in enumerate(rows)]
    shuffled = sources[:]
    random.shuffle(shuffled)
    first, again = pool(sources), pool(shuffled)
    for name, effect in first.effects.items():
        assert again.effects[name].mean == pytest.approx(effect.mean, abs=1e-9)
    by_source = {(cell.source, cell.cell): cell for cell in again.cells}
    for cell in first.cells:
        assert by_source[cell.source, cell.cell].pooled.low == pytest.approx(cell.pooled.low, abs=1e-9)


@given(st.lists(gains, min_size=1, max_size=6))
def test_a_gain_shrinks_towards_the_others_and_never_past_them(rows):
    for cell in pool([source(f"s{n}", [gain]) for n, gain in enumerate(rows)]).cells:
        assert min(0, *rows) - 1e-9 <= cell.pooled.mean <= max(0, *rows) + 1e-9
        assert cell.pooled.low < cell.pooled.mean < cell.pooled.high
    assert pool([source("s", [rows[0]])]) == pool([source("s", [rows[0]])])


def test_a_source_that_knows_nothing_moves_nothing_and_one_that_knows_all_keeps_its_gain():
    known = [source(f"s{n}", [0.03]) for n in range(4)]
    before = pool(known).effects["structural"]
    after = pool([*known, source("vague", [0.4], sds=50)])
    assert after.effects["structural"].mean == pytest.approx(before.mean, abs=1e-5)
    assert after.cells[-1].pooled.mean == pytest.approx(before.mean, abs=1e-2)
    sure = pool([*known, source("sure", [0.1], sds=1e-6)]).cells[-1]
    assert sure.pooled.mean == pytest.approx(0.1, abs=1e-6)


def test_the_source_that_differs_is_the_odd_one_and_is_held_against_the_others_alone():
    sources = [source(f"s{n}", [gain], sds=0.01) for n, gain in enumerate((0.03, 0.031, 0.029, 0.03, -0.2))]
    odd = pool(sources).odd
    assert odd[0].source == "s4"
    assert odd[0].p < 0.01
    assert odd[0].predicted == pytest.approx(pool(sources[:4]).effects["structural"].mean, abs=1e-9)
    assert min(one.p for one in odd[1:]) > 0.05
    assert pool(sources[:1]).odd == ()


def test_nothing_to_pool_is_an_error():
    for sources in ([], [replace(source("s", [0.1]), cells=())]):
        with pytest.raises(ValueError, match="one source or more"):
            pool(sources)
