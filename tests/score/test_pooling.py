"""What kinds of cell gain over sources, held to Bayes' rule worked out another way."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from runner.base.canonical import read_json
from runner.base.records import SCORE_UNIT
from runner.decide.roster import newest_locked
from runner.eval_set.catalog import PRIOR
from runner.score.expected_gain import updated
from runner.score.pooling import ENOUGH, MEAN_SD, TAU_SCALE, TAUS, SourceGains, effect_of, pool, prior_of


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

    total, first, second, squares = (integrate.quad(density, 0, 2, args=(power,))[0] for power in range(4))
    effect = effect_of("structural", [source("bills", [y], sds=error)])
    assert effect.mean == pytest.approx(first / total, abs=2e-4)
    assert effect.sd == pytest.approx(math.sqrt(second / total - (first / total) ** 2), rel=0.01)
    assert effect.scatter == pytest.approx(math.sqrt(squares / total), rel=0.01)


BASELINE = "minilm-l6-v2 x fixed_token_256_25"


def eight(cell, kinds=None):
    """Of each committed rehearsal a cell's gains over the baseline, on queries of these kinds or on all."""
    for path in newest_locked(rehearsal=True):
        read = read_json(path)
        scores = {row["cell"]: np.array(row["scores"]["ndcg@10"]["per_query"]) / SCORE_UNIT for row in read["cells"]}
        asked = [kinds is None or query["kind"] in kinds for query in read["queries"]]
        yield (scores[cell] - scores[BASELINE])[asked]


def reference(y, variances):
    """Mean, SD and scatter, and how likely tau is past the grid's end: the whole integral, by another algebra."""
    taus = np.linspace(0, 5 * TAU_SCALE, 4001)
    logs, means, spreads = [], [], []
    for tau in taus:
        whole = np.diag(variances + tau**2) + MEAN_SD**2
        pull = MEAN_SD**2 * np.linalg.solve(whole, np.ones(len(y)))
        logs.append(stats.multivariate_normal.logpdf(y, np.zeros(len(y)), whole))
        means.append(pull @ y)
        spreads.append(MEAN_SD**2 * (1 - pull.sum()))
    weights = np.exp(np.array(logs) - max(logs)) * stats.halfnorm.pdf(taus, scale=TAU_SCALE)
    weights /= weights.sum()
    mean = weights @ means
    sd = math.sqrt(weights @ (spreads + (np.array(means) - mean) ** 2))
    return mean, sd, math.sqrt(weights @ taus**2), weights[taus > TAUS[-1]].sum()


SUM = "sum(bm25,minilm-l6-v2) x fixed_token_256_25"


@pytest.mark.parametrize(
    ("cell", "kinds"),
    [
        (SUM, {"citation"}),
        (SUM, None),
        ("minilm-l6-v2 x fixed_path_256_25", None),
        ("minilm-static-384 x fixed_token_256_25", None),
        ("bm25 x whole_doc", {"citation"}),
    ],
)
def test_the_committed_eight_give_the_whole_integral_which_the_grids_end_does_not_cut(cell, kinds):
    y, errors = np.array([(x.mean(), x.std(ddof=1) / len(x) ** 0.5) for x in eight(cell, kinds)]).T
    assert len(y) == 8
    effect = effect_of("sum", [source(str(n), [gain], ("sum",), errors[n]) for n, gain in enumerate(y)])
    mean, sd, scatter, past = reference(y, errors**2)
    assert (effect.mean, effect.sd) == pytest.approx((mean, sd), abs=2e-4)
    assert effect.scatter == pytest.approx(scatter, abs=5e-4)
    assert past < 0.01


@given(st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=9), st.floats(0.005, 0.1), st.floats(1.1, 5))
def test_the_wider_sources_scatter_the_wider_the_interval(values, error, times):
    y = np.array(values) - np.mean(values)
    narrow, wide = (
        effect_of("sum", [source(str(n), [gain], ("sum",), error) for n, gain in enumerate(0.1 + scale * y)])
        for scale in (1, times)
    )
    assert wide.scatter >= narrow.scatter - 1e-12
    assert wide.high - wide.low >= narrow.high - narrow.low - 1e-12


def test_a_source_speaks_with_the_mean_of_its_cells_whose_differences_say_nothing_of_others():
    both, errors = ("structural", "structural"), (0.04, 0.05)
    sources = [source("a", [0.05, 0.01], both, errors[0], 0.4), source("b", [-0.02, 0.07], both, errors[1], 0.7)]
    sources.append(source("c", [0.04], sds=0.01))
    found = effect_of("structural", sources)
    # The mean of two that err alike by a part has the SD of one times the root of half of 1 and that part.
    sds = [errors[0] * math.sqrt(0.7), errors[1] * math.sqrt(0.85), 0.01]
    alone = [source(str(n), [gain], sds=sds[n]) for n, gain in enumerate((0.03, 0.025, 0.04))]
    assert found == pytest.approx(effect_of("structural", alone), abs=1e-12)
    assert (found.low, found.high) == pytest.approx(stats.norm.interval(0.95, found.mean, found.sd), abs=1e-9)
    assert found.sources == 3


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
        # Few sources do not tell how far they scatter, which the catalog then does.
        spread = default.sd if n_sources < ENOUGH else math.hypot(effect.sd, effect.scatter)
        values = np.where(missing, values, draws.normal(effect.mean, spread, 400_000))
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
