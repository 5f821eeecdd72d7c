"""Fewer distractors: the expectation is exact. More: the law is calibrated, and says how far it errs."""

import csv
import json
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.base.canonical import json_bytes
from runner.base.records import RUN_DEPTH, SCORE_UNIT, Chunk, Hit, Run, Span
from runner.decide.scale.backtest import SUBSAMPLES
from runner.decide.scale.law import Counts, Law, _binomials, _level
from runner.decide.scale.places import placed
from runner.decide.scale.scale import FACTORS, NOW, _tau_b, scale_result
from runner.decide.scale.sentences import sentences
from runner.decide.scale.thinning import thinned
from runner.eval_set.shapes.scale import ScaleBackTest, ScaleCell, ScaleFactor, ScalePoint
from runner.retrieve.bm25 import bm25_run
from runner.score.bootstrap import mean_intervals
from runner.score.score import DISCOUNTS, score

SPAN = Span(0, 1)
LISTED = 20


def run(cell, ranked):
    return Run(cell, {q: tuple(Hit(name, 1.0, SPAN) for name in names[:RUN_DEPTH]) for q, names in ranked.items()})


def scale(runs, qrels, n_documents, **changed):
    given = {"baseline": next(iter(runs)), "seed": 3, "resamples": 200, "confidence": 0.95} | changed
    return scale_result(runs, list(qrels), qrels, n_documents, **given)


def means(result, cell=None):
    chosen = next(one for one in result.cells if cell in (None, one.cell))
    return [point.mean for point in chosen.points]


def drawn_runs(generator, *, centre, width, n_queries=300, n_documents=5000, cells=("a",), law=stats.logistic):
    """Runs whose one relevant document a query has the number above that a known law gives; with the law's draws."""
    qrels = {f"q{i}": {f"r{i}": 1} for i in range(n_queries)}
    runs, probabilities = {}, {}
    for cell in cells:
        p = stats.norm.cdf(law.rvs(centre, width, n_queries, random_state=generator))
        above = generator.binomial(n_documents - 1, p)
        fillers = [f"d{i}" for i in range(LISTED)]
        runs[cell] = run(
            cell, {q: [*fillers[:k], f"r{q[1:]}", *fillers[k:]][:LISTED] for q, k in zip(qrels, above, strict=True)}
        )
        probabilities[cell] = p, above
    return runs, qrels, probabilities


def truth(p, above, n_documents, factor):
    """The mean expected discount once the other distractors are there, from each document's true probability."""
    i = np.arange(10)
    fresh = stats.binom.pmf(i, round((factor - 1) * (n_documents - 1)), p[:, None])
    worth = np.append(DISCOUNTS, 0.0)[np.minimum(above[:, None] + i, 10)]
    return float((fresh * worth).sum(axis=1).mean())


collections = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def random_collection(generator, n_cells=2, n_documents=14):
    names = [f"d{i}" for i in range(n_documents)]
    qrels = {
        f"q{i}": {names[j]: int(g) for j, g in enumerate(generator.integers(-1, 4, n_documents)) if g > -1 and j % 2}
        for i in range(int(generator.integers(1, 5)))
    }
    runs = {}
    for c in range(n_cells):
        ranked = {q: generator.permutation(names).tolist()[: int(generator.integers(n_documents + 1))] for q in qrels}
        runs[f"cell{c}"] = run(f"cell{c}", ranked)
    return runs, qrels, names


@pytest.mark.parametrize("share", [0.0, 0.34, 0.5, 1.0])
def test_the_expectation_is_the_mean_over_all_subsamples(share):
    gains = {"r1": 3, "r2": 1, "r3": 2}
    order = ["x1", "r1", "x2", "x3", "r2", "x4", "x5", "x6", "x7", "x8", "x9", "r3"]
    others = [name for name in order if name not in gains]
    one = {"cell": run("cell", {"q": order})}
    places = placed(one, ["q"], {"q": gains})[0]["cell"]
    expected, missing = thinned(places, np.array([len(others)]), share)
    found = [
        score(run("cell", {"q": [n for n in order if n in gains or n in kept]}), ["q"], {"q": gains}, 1).values[
            "ndcg@10"
        ]
        for kept in combinations(others, round(share * len(others)))
    ]
    assert expected[0] == pytest.approx(np.mean(found) / SCORE_UNIT, abs=1e-9)
    assert missing[0] == 0


@given(collections)
@settings(max_examples=12)
def test_now_is_the_score_and_its_interval(generator):
    runs, qrels, names = random_collection(generator)
    result = scale(runs, qrels, len(names))
    for cell in result.cells:
        values = np.array(score(runs[cell.cell], list(qrels), qrels, 1).values["ndcg@10"])
        interval = mean_intervals(values[None], seed=3, resamples=200, level=0.95)[0]
        now = cell.points[NOW]
        assert placed(runs, list(qrels), qrels)[0][cell.cell].ndcg().tolist() == values.tolist()
        assert now.mean == int(values.sum()) / (len(values) * SCORE_UNIT)
        assert (now.low, now.high, now.at_most) == (interval.low, interval.high, now.mean)


@given(collections)
@settings(max_examples=12)
def test_more_distractors_never_raise_a_mean(generator):
    runs, qrels, names = random_collection(generator, n_cells=3)
    for cell in scale(runs, qrels, len(names)).cells:
        found = [point.mean for point in cell.points]
        assert all(more <= fewer + 1e-9 for fewer, more in pairwise(found))
        assert all(point.mean <= point.at_most for point in cell.points)


@given(collections)
@settings(max_examples=12)
def test_names_of_documents_and_queries_do_not_matter(generator):
    runs, qrels, names = random_collection(generator)
    new = dict(zip(names, [f"n{i}" for i in generator.permutation(len(names))], strict=True))
    renamed_qrels = {f"other{q}": {new[d]: g for d, g in grades.items()} for q, grades in qrels.items()}
    renamed_runs = {
        cell: run(cell, {f"other{q}": [new[hit.doc_id] for hit in hits] for q, hits in one.hits.items()})
        for cell, one in runs.items()
    }
    assert scale(renamed_runs, renamed_qrels, len(names)) == scale(runs, qrels, len(names))


def test_the_same_runs_give_the_same_bytes():
    runs, qrels, _ = drawn_runs(np.random.default_rng(1), centre=-3.5, width=0.5, n_queries=60, cells=("a", "b"))
    first, second = (json_bytes(scale(runs, qrels, 5000).model_dump()) for _ in range(2))
    assert first == second


def test_missing_documents_bound_the_mean_of_a_smaller_collection():
    fillers = [f"d{i}" for i in range(RUN_DEPTH)]
    cut = scale({"a": run("a", {"q": fillers, "p": fillers[:3]})}, {"q": {"r": 1}, "p": {"s": 1}}, 1000)
    tenth, third, now = cut.cells[0].points[:3]
    assert (tenth.mean, third.mean, now.mean, now.at_most) == (0, 0, 0, 0)
    # Of 999 distractors 100 are kept, of the 100 known to stand above r hence about ten; s was not retrieved at all.
    right_below = stats.hypergeom.pmf(np.arange(10), 999, 100, 100) @ DISCOUNTS
    assert tenth.at_most == pytest.approx(right_below / 2, abs=1e-8)
    assert third.at_most < 1e-4


def test_binomials_are_those_of_scipy():
    p = stats.norm.cdf(np.linspace(-8.0, 4.0, 241))
    for n in (0, 1, 9, 10, 5000, 500_000_000):
        assert _binomials(n) == pytest.approx(stats.binom.pmf(np.arange(10), n, p[:, None]), rel=1e-6, abs=1e-12)


@given(st.integers(0, 10**9))
def test_levels_are_close_and_exact_where_there_are_few(distractors):
    level = int(_level(np.array([distractors]))[0])
    assert abs(level - distractors) <= 0.025 * distractors
    assert level == distractors or distractors >= 200


def test_the_fit_is_the_greatest_penalised_likelihood():
    generator = np.random.default_rng(5)
    above = generator.binomial(2000, stats.norm.cdf(stats.logistic.rvs(-3.2, 0.6, 200, random_state=generator)))
    law = Law(Counts(np.minimum(above, 60), np.full(200, 2000), above < 60))

    def objective(centre, log_scale):
        nodes = np.linspace(-8, 4, 961)
        prior = stats.logistic.pdf(nodes, centre, np.exp(log_scale))
        prior /= prior.sum()
        given = stats.binom.pmf(np.arange(10), 2000, stats.norm.cdf(nodes)[:, None])
        chances = prior @ given
        logs = np.log(np.append(chances, 1 - chances.sum()))[np.minimum(above, 10)]
        return logs.sum() - ((centre + 3) / 3) ** 2 / 2 - (log_scale - np.log(0.5)) ** 2 / 2

    best = objective(*law.parameters)
    for step in ([0.02, 0], [-0.02, 0], [0, 0.02], [0, -0.02]):
        assert objective(*(law.parameters + step)) < best


@pytest.mark.parametrize(("centre", "width"), [(-3.6, 0.55), (-3.0, 0.75), (-4.5, 0.4)])
def test_a_known_law_is_predicted_at_ten_times(centre, width):
    errors, covered = [], 0
    for seed in range(5):
        runs, qrels, known = drawn_runs(np.random.default_rng(seed), centre=centre, width=width)
        point = scale(runs, qrels, 5000).cells[0].points[FACTORS.index(10.0)]
        expected = truth(*known["a"], 5000, 10)
        errors.append(point.mean - expected)
        covered += point.low <= expected <= point.high
    assert abs(np.mean(errors)) < 0.015
    assert np.sqrt(np.mean(np.square(errors))) < 0.03
    assert covered >= 4


@pytest.mark.parametrize("law", [stats.norm, stats.cauchy])
def test_a_law_of_another_shape_is_missed_by_little_at_ten_times(law):
    errors = []
    for seed in range(5):
        runs, qrels, known = drawn_runs(np.random.default_rng(seed), centre=-3.6, width=0.6, law=law)
        errors.append(means(scale(runs, qrels, 5000))[FACTORS.index(10.0)] - truth(*known["a"], 5000, 10))
    assert abs(np.mean(errors)) < 0.04


def test_the_interval_is_that_of_a_law_fitted_to_every_resample():
    generator = np.random.default_rng(2)
    runs, qrels, _ = drawn_runs(generator, centre=-3.6, width=0.55, n_queries=120)
    point = scale(runs, qrels, 5000, resamples=2000).cells[0].points[FACTORS.index(10.0)]
    places = placed(runs, list(qrels), qrels)[0]["a"]
    refitted = []
    for _ in range(100):
        rows = generator.integers(120, size=120)
        sizes = np.full(120, 4999)
        law = Law(Counts(places.above[rows], sizes, places.listed[rows]))
        values, _ = law.expected(places.above[rows], places.before[rows], sizes, 10.0)
        refitted.append((values * places.listed[rows]).mean())
    assert (point.high - point.low) / (2 * 1.96) == pytest.approx(np.std(refitted), rel=0.25)


def test_the_back_test_finds_a_true_law_unbiased():
    biases = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        ranked_by_query = {}
        for i, z in enumerate(stats.logistic.rvs(-3.3, 0.5, 100, random_state=generator)):
            k = int(generator.binomial(2999, stats.norm.cdf(z)))
            others = [f"d{j}" for j in generator.choice(3000, RUN_DEPTH + 1, replace=False) if j != i]
            ranked_by_query[f"q{i}"] = [*others[:k], f"d{i}", *others[k:]]
        qrels = {f"q{i}": {f"d{i}": 1} for i in range(100)}
        test = scale({"a": run("a", ranked_by_query)}, qrels, 3000).cells[0].back_test
        assert len(test.errors) == SUBSAMPLES
        assert test.bias == pytest.approx(np.mean(test.errors))
        assert test.error == pytest.approx(np.sqrt(np.mean(np.square(test.errors))))
        biases.append(test.bias)
    assert abs(np.mean(biases)) < 0.02


def test_a_small_collection_has_no_back_test_and_says_so():
    runs, qrels, names = random_collection(np.random.default_rng(1))
    result = scale(runs, qrels, len(names))
    assert all(cell.back_test is None for cell in result.cells)
    assert "too small for a back-test" in result.sentences[-1]


def test_no_relevant_document_leaves_nothing_to_lose():
    runs = {cell: run(cell, {"q": ["d1", "d2"], "p": []}) for cell in ("a", "b")}
    result = scale(runs, {"q": {"d1": 0}, "p": {}}, 300)
    assert {mean for cell in result.cells for mean in [p.mean for p in cell.points]} == {0}
    assert [row.tau for row in result.factors] == [None] * len(FACTORS)
    assert [row.best_stays for row in result.factors] == [1.0] * len(FACTORS)


def test_without_distractors_nothing_changes_and_a_list_longer_than_the_corpus_counts_what_it_holds():
    result = scale({"a": run("a", {"q": ["r2", "r1"]})}, {"q": {"r1": 2, "r2": 1}}, 2)
    assert len(set(means(result))) == 1
    assert result.distractors == [0, 0]
    assert result.sentences == []
    assert scale({"a": run("a", {"q": ["d1", "d2", "d3", "r"]})}, {"q": {"r": 1}}, 1).distractors == [3, 3]


def test_a_cell_that_finds_nothing_stays_at_nothing():
    fillers = [f"d{i}" for i in range(RUN_DEPTH)]
    result = scale({"a": run("a", dict.fromkeys(("q", "p"), fillers))}, {"q": {"r": 1}, "p": {"s": 1}}, 5000)
    assert means(result)[NOW:] == [0, 0, 0]
    assert result.cells[0].back_test.error < 0.01


def test_a_cell_that_finds_everything_at_once_is_not_thought_invincible():
    qrels = {f"q{i}": {f"r{i}": 1} for i in range(25)}
    result = scale({"a": run("a", {q: [f"r{q[1:]}", "d1"] for q in qrels})}, qrels, 5000)
    assert means(result)[: NOW + 1] == [1, 1, 1]
    assert 0.5 < means(result)[-1] < means(result)[-2] < 1


def test_equal_cells_share_a_rank_and_a_side():
    runs, qrels, _ = drawn_runs(np.random.default_rng(1), centre=-3.5, width=0.5, n_queries=40)
    twins = {"b": run("b", {q: [h.doc_id for h in hits] for q, hits in runs["a"].hits.items()}), **runs}
    result = scale(twins, qrels, 5000, baseline="a")
    assert [cell.cell for cell in result.cells] == ["a", "b"]
    assert {point.rank for cell in result.cells for point in cell.points} == {1}
    assert {point.side_stays for point in result.cells[1].points} == {1.0}
    assert {point.side_stays for point in result.cells[0].points} == {None}


def test_what_cannot_be_compared_is_refused():
    one = run("a", {"q": []})
    with pytest.raises(ValueError, match="0 queries"):
        scale_result({"a": one}, [], {}, 5, baseline="a", seed=1, resamples=10, confidence=0.95)
    with pytest.raises(ValueError, match="baseline 'b'"):
        scale({"a": one}, {"q": {}}, 5, baseline="b")
    with pytest.raises(KeyError, match="p"):
        scale({"a": one}, {"p": {}}, 5)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_tau_b_is_that_of_scipy(pairs):
    left, right = np.array(pairs, np.int64).T
    reference = stats.kendalltau(left, right).statistic
    found = _tau_b(left, right)
    assert (found is None) == bool(np.isnan(reference))
    assert found is None or found == pytest.approx(reference)


def cell(name, now, ten, hundred, errors=(0.01, -0.01)):
    points = [
        ScalePoint(factor=f, mean=m, low=m, high=m, at_most=m, rank=1, side_stays=None)
        for f, m in ((1.0, now), (10.0, ten), (100.0, hundred))
    ]
    test = ScaleBackTest(errors=list(errors), bias=float(np.mean(errors)), error=0.0) if errors else None
    return ScaleCell(cell=name, centre=-3.0, scale=0.5, points=points, back_test=test)


def said(*cells, baseline="a"):
    """The sentences of cells, given by present mean, with the ranks that their means give; the best stays in 3 of 4."""
    factors = [
        ScaleFactor(factor=point.factor, tau=None, best="", best_stays=0.75)
        for point in cells[0].points  # all cells have the same factors
    ]
    found = []
    for one in cells:
        points = [
            point.model_copy(update={"rank": 1 + sum(other.points[j].mean > point.mean for other in cells)})
            for j, point in enumerate(one.points)
        ]
        found.append(one.model_copy(update={"points": points}))
    return sentences(factors, found, baseline)


def test_an_order_that_holds_is_said_to_hold_with_what_is_too_close():
    ten, hundred, trust = said(cell("a", 0.7, 0.5, 0.3), cell("b", 0.6, 0.4, 0.29, (-0.01, 0.02)), baseline="b")
    assert ten == (
        "With 10 times the distractors the order of the 2 cells holds, for 1 of 1 pairs by more than twice the "
        "method's error; a stays best in 75 % of resamples."
    )
    assert "holds, for 0 of 1 pairs" in hundred
    assert "answers 0.0000 too high to 0.0050 too high" in trust


def test_a_new_best_cell_is_named_with_how_sure_that_is():
    cells = cell("a", 0.7, 0.45, 0.2), cell("b", 0.6, 0.46, 0.4, (-0.01, 0.01)), cell("c", 0.5, 0.2, 0.1)
    ten, hundred, _ = said(*cells)
    assert (
        "1 of 3 pairs of cells change places: b overtakes a (by 0.0100, not shown: the method's error there is 0.0200)"
        in ten
    )
    assert "b overtakes a (by 0.2000; the method's error there is 0.0400)" in hundred


def test_a_cell_that_crosses_the_baseline_is_named():
    cells = cell("a", 0.7, 0.6, 0.5), cell("b", 0.6, 0.3, 0.2), cell("base", 0.5, 0.4, 0.1)
    ten, hundred, _ = said(*cells, baseline="base")
    assert "b falls below the baseline (by 0.1000; the" in ten
    assert "the order of the 3 cells holds" in hundred


def test_a_change_of_places_elsewhere_is_named_and_equal_cells_or_a_cell_alone_change_none():
    assert "c overtakes b" in said(cell("a", 0.7, 0.6, 0.5), cell("b", 0.6, 0.3, 0.2), cell("c", 0.5, 0.4, 0.1))[0]
    assert "the order of the 2 cells holds" in said(cell("a", 0.7, 0.5, 0.2), cell("b", 0.7, 0.6, 0.1))[0]
    assert said(cell("a", 0.7, 0.6, 0.5)) == []


def read_scifact(folder: Path, n_queries):
    texts = {}
    for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts[row["_id"]] = f"{row['title']} {row['text']}"
    asked = {}
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        asked[row["_id"]] = row["text"]
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            if len(qrels) < n_queries or row["query-id"] in qrels:
                qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return texts, {q: asked[q] for q in qrels}, qrels


def bm25(names, texts, queries):
    chunks = [Chunk(name, 0, SPAN, "", 1) for name in names]
    return bm25_run("bm25", "bm25", queries, chunks, [texts[name] for name in names]).run


@pytest.mark.slow
@pytest.mark.shared
def test_real_subsamples_of_scifact_bear_out_the_expectation_and_the_extrapolation(shared):
    texts, queries, qrels = read_scifact(shared / "bench" / "scifact", n_queries=100)
    whole = bm25(list(texts), texts, queries)
    observed = means(scale({"bm25": whole}, qrels, len(texts)))
    generator = np.random.default_rng(1)
    real, predicted = [], []
    for _ in range(2):
        kept = set(generator.choice(list(texts), len(texts) // 10, replace=False).tolist())
        hits = {}
        for start in range(0, len(qrels), 50):
            batch = list(qrels)[start : start + 50]
            wanted = kept.union(*(qrels[q] for q in batch))
            found = bm25([name for name in texts if name in wanted], texts, {q: queries[q] for q in batch})
            for q in batch:
                hits[q] = tuple(hit for hit in found.hits[q] if hit.doc_id in kept or hit.doc_id in qrels[q])
        small = means(scale({"bm25": Run("bm25", hits)}, qrels, len(kept)))
        real.append(small[NOW])
        predicted.append(small[FACTORS.index(10.0)])
    assert np.mean(real) == pytest.approx(observed[FACTORS.index(0.1)], abs=0.03)
    assert np.mean(predicted) == pytest.approx(observed[NOW], abs=0.06)
