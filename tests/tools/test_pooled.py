import json
import math
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from runner.base.canonical import file_sha256, json_bytes, read_json
from runner.base.errors import InputError, InputNeeded, IntegrityError
from runner.base.records import SCORE_UNIT
from runner.decide import roster as siblings
from runner.eval_set.catalog import SOURCES
from runner.eval_set.lock import write_lock
from runner.eval_set.shapes.plan import Prior
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import open_version
from runner.tools.pooled.model import EFFECT_SD, MIN_GAIN, TAU_SCALE, TAUS, SourceGains, pool, pooled_apart, posterior
from runner.tools.pooled.records import effects_of, read_given
from tests.conftest import called
from tests.support.small_set import make_version

BASELINE = SOURCES["demo"].baseline


def source(name, gains, effects=(("structural",),), sds=0.04, shared=0.0, n_queries=25):
    """A source whose cells have these gains and errors; `shared` is the correlation of the errors."""
    gains = np.array(gains, float)
    sds = np.broadcast_to(np.array(sds, float), gains.shape)
    correlation = np.full((len(gains), len(gains)), shared) + (1 - shared) * np.eye(len(gains))
    cells = tuple(f"cell {n}" for n in range(len(gains)))
    return SourceGains(name, cells, tuple(effects), gains, correlation * np.outer(sds, sds), n_queries)


TWO = (("e5", "structural"), ("e5",))


def test_cells_with_the_baselines_vectors_in_fewer_bits_do_not_set_the_scatter_of_the_others():
    kinds = (("structural",), ("e5@bit",))
    both = [
        source(str(n), [gain, 0.0001 * n], kinds, (0.02, 0.0002)) for n, gain in enumerate((0.15, -0.05, 0.12, -0.04))
    ]
    alone = [source(str(n), [one.gains[0]], sds=0.02) for n, one in enumerate(both)]
    apart, expected = pooled_apart(both, "e5"), pool(alone)
    assert apart.effects["structural"] == expected.effects["structural"]
    assert apart.effects["e5@bit"].sd < 0.002
    assert (apart.tau, apart.odd, apart.cells[:4]) == (expected.tau, expected.odd, expected.cells)
    assert {cell.cell for cell in apart.cells[4:]} == {"cell 1"}
    assert pool(both).tau < expected.tau, "what pooling them together would have done"


def test_one_source_and_cell_is_the_integral_over_effect_and_scatter():
    y, error = 0.05, 0.02

    def density(tau, power):
        spread = EFFECT_SD**2 + tau**2
        whole = spread + error**2
        mean, variance = spread / whole * y, spread * error**2 / whole
        moment = 1.0 if power == 0 else mean if power == 1 else variance + mean**2
        return stats.halfnorm.pdf(tau, scale=TAU_SCALE) * stats.norm.pdf(y, 0, math.sqrt(whole)) * moment

    total, first, second = (integrate.quad(density, 0, 0.6, args=(power,))[0] for power in (0, 1, 2))
    (cell,) = pool([source("bills", [y], sds=error)]).cells
    assert cell.pooled.mean == pytest.approx(first / total, abs=1e-5)
    assert cell.pooled.sd == pytest.approx(math.sqrt(second / total - (first / total) ** 2), abs=1e-5)
    assert (cell.gain, cell.standard_error) == (y, error)


def test_given_the_scatter_it_is_conditioning_a_joint_gaussian():
    sources = [source("bills", [0.05, 0.01], TWO, shared=0.4), source("rules", [0.02, -0.03], TWO, 0.05, 0.7)]
    design = np.array([[1, 1], [1, 0], [1, 1], [1, 0]], float)
    y = np.array([0.05, 0.01, 0.02, -0.03])
    errors = np.zeros((4, 4))
    errors[:2, :2], errors[2:, 2:] = (one.covariance for one in sources)
    targets = np.vstack([np.eye(2), design]), np.vstack([np.zeros((2, 4)), np.eye(4)])
    found = posterior(sources, ["e5", "structural"], *targets)
    for tau, means, sds in list(zip(TAUS, found.means, found.sds, strict=True))[::20]:
        # By precisions: of effects and of each cell's own u, in one joint vector.
        joint = np.hstack([design, np.eye(4)])
        prior = np.diag([EFFECT_SD**-2] * 2 + [tau**-2] * 4)
        variance = np.linalg.inv(prior + joint.T @ np.linalg.inv(errors) @ joint)
        mean = variance @ joint.T @ np.linalg.inv(errors) @ y
        assert means == pytest.approx(np.hstack(targets) @ mean, abs=1e-9)
        assert sds**2 == pytest.approx(np.diag(np.hstack(targets) @ variance @ np.hstack(targets).T), abs=1e-9)
    assert found.weights.sum() == pytest.approx(1)


def test_intervals_and_probabilities_are_those_of_the_mixture():
    sources = [source(f"s{n}", [0.01 * n]) for n in range(5)]
    weights, *known = posterior(sources, ["structural"], np.eye(1), np.zeros((1, 5)))
    rng = np.random.default_rng(np.random.PCG64(1))
    which = rng.choice(len(weights), size=200_000, p=weights)
    means, sds = (column[which, 0] for column in known)
    draws = rng.normal(means, sds)
    found = pool(sources).effects["structural"]
    assert (found.mean, found.sd) == pytest.approx((draws.mean(), draws.std()), abs=3e-4)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, (0.025, 0.975))), abs=1e-3)
    assert found.p_above_0 == pytest.approx((draws > 0).mean(), abs=5e-3)
    assert found.p_above_bar == pytest.approx((draws > MIN_GAIN).mean(), abs=5e-3)


gains = st.floats(-0.5, 0.5)


@pytest.mark.slow
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


@pytest.fixture(name="locked")
def _locked(decided_evening, tmp_path):
    """Makes a locked version of a source out of the small set's results, whose scores `change` may alter."""

    def make(name, change=lambda results: None):
        old = make_version(decided_evening)
        text = old.results_path.read_text().replace(old.source.structural_chunker, SOURCES[name].structural_chunker)
        results = json.loads(text)
        results["plan"]["source"] = name
        change(results)
        folder = tmp_path / name / "v1"
        folder.mkdir(parents=True)
        (folder / "results.json").write_bytes(json_bytes(results))
        write_lock(folder)
        return folder

    return make


def called_pooled(capsys, *arguments):
    code, message = called("pooled", *arguments)
    said = capsys.readouterr()
    return code, said.out, said.err + message


def test_gains_and_their_covariance_are_those_of_the_queries(locked):
    given = read_given(locked("bills"))
    results = Results.model_validate_json((given.path).read_bytes())
    scores = {row.cell: np.array(row.scores["ndcg@10"].per_query) / SCORE_UNIT for row in results.cells}
    n_queries = len(results.queries)
    for place, cell in enumerate(given.gains.cells):
        differences = scores[cell] - scores[results.plan.baseline]
        assert given.gains.gains[place] == pytest.approx(differences.mean())
        assert given.gains.covariance[place, place] == pytest.approx(differences.var(ddof=1) / n_queries)
    assert set(given.gains.cells) == set(results.plan.cells) - {results.plan.baseline}
    assert given.results_sha256 == file_sha256(given.path)


@pytest.mark.parametrize(
    ("cell", "effects"),
    [
        ("minilm-l6-v2@bit x fixed_token_512_50", ("minilm-l6-v2@bit",)),
        ("minilm-l6-v2 x fixed_token_256_25", ("fixed tokens, 256",)),
        ("minilm-l6-v2 x section_aware_bills_256_v1", ("structural chunker cut at 256",)),
        ("minilm-l6-v2 x section_aware_bills_v1", ("structural chunker",)),
        ("minilm-l6-v2 x section_aware_bills_v2", ("structural chunker",)),
        ("e5-0.5b x section_aware_bills_v1-bare", ("e5-0.5b", "structural chunker, without context")),
        ("bm25 x whole_doc", ("bm25", "whole documents")),
        ("rrf(bm25,minilm-l6-v2) x recursive_v1", ("rrf(bm25,minilm-l6-v2)", "recursive chunker")),
        ("minilm-l6-v2 x speaker_turn_v1", ("speaker_turn_v1",)),
    ],
)
def test_a_cell_has_the_effects_that_its_baseline_has_not(cell, effects):
    assert effects_of(cell, "minilm-l6-v2 x fixed_token_512_50", "bills") == effects


def test_the_command_says_one_thing_whatever_the_order(locked, capsys):
    folders = [locked(name) for name in ("us_code", "bills", "public_laws")]
    said = [called_pooled(capsys, *order, "--json") for order in (folders, folders[::-1])]
    assert said[0] == said[1]
    report = json.loads(said[0][1])
    assert [one["source"] for one in report["inputs"]] == ["bills", "us_code", "public_laws"]
    assert report["inputs"][0]["results_sha256"] == file_sha256(folders[1] / "results.json")
    assert "structural chunker" in report["effects"]
    assert len(report["odd"]) == 3
    lines = called_pooled(capsys, *folders)[1]
    assert lines.startswith("Structural chunker: ")


def test_what_must_not_be_pooled_is_refused(locked, tmp_path, capsys):
    bills = locked("bills")
    rehearsed = locked("us_code", lambda results: results.update(kind="rehearsal"))
    cell = next(row["cell"] for row in read_json(bills / "results.json")["cells"] if row["role"] != "baseline")
    other = locked("public_laws", lambda results: results["plan"].update(baseline=cell))
    again = shutil.copytree(bills, tmp_path / "again")
    for folders in ([bills, rehearsed], [bills, other], [bills, again], [rehearsed]):
        assert called_pooled(capsys, *folders)[0] == InputError.exit_code
    assert called_pooled(capsys, rehearsed, "--rehearse")[0] == 0
    (again / "results.json").write_bytes((again / "results.json").read_bytes() + b"\n")
    assert called_pooled(capsys, again)[0] == IntegrityError.exit_code
    (again / "lock.json").unlink()
    assert called_pooled(capsys, again)[0] == InputError.exit_code


def test_before_anything_is_locked_something_is_outstanding(tmp_path, capsys, monkeypatch):
    nowhere = partial(opened_nowhere, tmp_path)
    monkeypatch.setattr(siblings, "newest_locked", partial(siblings.newest_locked, versions=nowhere))
    assert called_pooled(capsys)[0] == InputNeeded.exit_code


def opened_nowhere(folder, name):
    workspace = (folder / name, folder / ".work", folder / ".cache")
    return open_version(*workspace, SOURCES[name], rehearsal=False)


def test_the_prior_that_is_printed_can_be_pasted_into_a_plan(locked, capsys):
    folders = [locked(name) for name in ("us_code", "bills")]
    printed = called_pooled(capsys, *folders)[1].splitlines()[-1]
    prior = Prior.model_validate(yaml.safe_load(printed)["prior"])
    found = json.loads(called_pooled(capsys, *folders, "--json")[1])
    assert prior.from_results == [one["results_sha256"] for one in found["inputs"]]
    means = np.array([cell["pooled"]["mean"] for cell in found["cells"]])
    sds = np.array([cell["pooled"]["sd"] for cell in found["cells"]])
    assert prior.mean == pytest.approx(means.mean(), abs=1e-4)
    draws = np.random.default_rng(np.random.PCG64(1)).normal(means, sds, (100_000, len(means)))
    assert prior.sd == pytest.approx(draws.std(), abs=1e-3)
