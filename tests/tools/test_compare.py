"""Comparing per-query scores: parity with ruflo's script, labels, pairing, and every input that must be refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import json_bytes
from runner.base.errors import InputError
from runner.commands import main as cli
from runner.eval_set.shapes.paired import MeasureResult
from runner.score.bootstrap import mean_intervals
from runner.score.mulberry32 import SEEDS, bootstrap, uniforms
from runner.tools.compare import Paired, QueryScores, RufloPaired, compare, comparison_lines, read_scores
from tests.support.full_results import big_results

# Digits of the published generator at seed 42, as its JavaScript prints them.
SEED_42 = [0.6011037519201636, 0.44829055899754167, 0.8524657934904099, 0.6697340414393693, 0.17481389874592423]
TWENTY = [((37 * i) % 101) / 100 for i in range(20)]
OTHER_TWENTY = [((53 * i) % 97) / 100 for i in range(20)]
RUFLO = "mulberry32"


def scores(values: list[float], name: str = "run", **more: Any) -> QueryScores:
    return QueryScores(name, "ndcg@10", {f"q{i:02d}": value for i, value in enumerate(values)}, **more)


def run_file(path: Path, values: dict[str, Any], **more: Any) -> Path:
    rows = [{"qid": query, "ndcg10": value} for query, value in values.items()]
    path.write_text(json.dumps({"perQuery": rows, **more}), encoding="utf-8")
    return path


def results_file(path: Path, cells: dict[str, list[int]], *, text: str = "text", provisional: bool = False) -> Path:
    count = len(next(iter(cells.values())))
    made = big_results(count, 3)
    queries = [
        query.model_copy(update={"id": f"q{number:02d}", "text": f"{text} {number}"})
        for number, query in enumerate(made.queries)
    ]
    rows = [
        row.model_copy(
            update={"cell": cell, "scores": {"ndcg@10": MeasureResult(mean=0.5, low=0, high=1, per_query=values)}}
        )
        for row, (cell, values) in zip(made.cells, cells.items(), strict=False)
    ]
    labels = made.labels.model_copy(update={"unjudged_pairs": int(provisional)})
    changed = made.model_copy(update={"queries": queries, "cells": rows, "labels": labels})
    path.write_bytes(json_bytes(changed.model_dump()))
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: Any) -> tuple[int, str, str]:
        try:
            code = cli.main(["compare", *map(str, arguments)])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_mulberry32_gives_the_published_numbers():
    assert uniforms(42, 5).tolist() == SEED_42
    assert uniforms(0, 5).tolist() != SEED_42, "a seed of 0 is a seed"


@pytest.mark.parametrize(
    ("values", "resamples", "seed"), [([], 10, 1), ([0.5], 0, 1), ([0.5], 10, -1), ([0.5], 1, SEEDS)]
)
def test_the_bootstrap_refuses_what_it_cannot_draw(values, resamples, seed):
    with pytest.raises(ValueError, match=r"resampled|seed"):
        bootstrap(values, resamples=resamples, seed=seed)


@pytest.mark.shared
def test_every_vector_of_ruflos_script_is_met_to_the_last_digit(shared):
    vectors = json.loads((shared / "vectors" / "parity.json").read_text())["ruflo_bootstrap"]
    for seed in (42, 43):
        assert uniforms(seed, 5).tolist() == vectors[f"mulberry32_seed{seed}_first5"]
    for case in vectors["one_sample"]:
        found = bootstrap(case["x"], resamples=case["B"], seed=case["seed"])
        assert (found.mean, found.interval.low, found.interval.high) == (case["point"], case["lower"], case["upper"])
        assert found.share_at_most_zero == case["p_le0"]
    for case in vectors["paired"]:
        differences = [a - b for a, b in zip(case["a"], case["b"], strict=True)]
        found = bootstrap(differences, resamples=case["B"], seed=case["seed"])
        assert (found.mean, found.interval.low, found.interval.high) == (case["point"], case["lower"], case["upper"])
        assert found.share_at_most_zero == case["p_le0"]


def test_ruflos_figures_for_one_run_and_for_two():
    found = compare(scores(TWENTY), scores(OTHER_TWENTY, "other"), RUFLO)
    assert found.mean == pytest.approx(0.485, abs=1e-12)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.3535, 0.6180), abs=1e-12)
    paired = found.paired
    assert isinstance(paired, RufloPaired)
    assert (paired.difference, paired.p_one_sided) == pytest.approx((0.0575, 0.244), abs=1e-12)
    assert (paired.interval.low, paired.interval.high) == pytest.approx((-0.1035, 0.2170), abs=1e-12)
    assert paired.verdict == "not told apart"


def test_labels_by_ruflos_interval_and_their_lines():
    published = {"far below": 0.1, "inside": 0.4849, "far above": 0.7045}
    found = compare(scores(TWENTY, baselines=published), rng=RUFLO)
    assert [line for line in comparison_lines(found) if "Δ=" in line] == [
        "  0.100  far below                     Δ=+0.3850  [above]",
        "  0.485  inside                        Δ=+0.0001  [not told apart]",
        "  0.705  far above                     Δ=−0.2195  [below]",
    ]


# Our own figures.


def test_our_interval_is_the_one_of_every_other_page():
    units = np.array([[round(value * 1e9) for value in TWENTY]])
    assert compare(scores(TWENTY)).interval == mean_intervals(units, seed=2026)[0]


@pytest.mark.parametrize(("published", "label"), [(0.4, "above"), (0.5, "not told apart"), (0.6, "below")])
def test_an_interval_that_ends_at_a_baseline_does_not_tell_it_apart(published, label):
    assert compare(scores([0.5] * 10, baselines={"BM25": published})).baselines[0].label == label


def test_labels_hold_for_all_published_means_at_once():
    alone = compare(scores(TWENTY, baselines={"BM25": 0.3}))
    published = {f"system {i}": alone.interval.low - 0.001 for i in range(50)}
    found = compare(scores(TWENTY, baselines=published))
    assert alone.interval == alone.interval_of_labels == found.interval
    assert found.interval_of_labels.low < found.interval.low
    assert {row.label for row in found.baselines} == {"not told apart"}
    assert compare(scores(TWENTY, baselines=published), rng=RUFLO).baselines[0].label == "above"


def paired(values: list[float], others: list[float]) -> Paired:
    found = compare(scores(values), scores(others, "other")).paired
    assert isinstance(found, Paired)
    return found


def test_the_paired_test_tells_a_steady_gain_and_not_its_absence():
    base = [0.2 + value / 2 for value in TWENTY]
    gain, none = paired([value + 0.01 for value in base], base), paired(base, base)
    assert gain.verdict == "above"
    assert 0 < gain.p < 0.001
    assert gain.difference == pytest.approx(0.01)
    assert (none.verdict, none.p) == ("not told apart", 1.0)


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=12))
def test_exchanging_the_two_runs_turns_the_comparison_round(pairs):
    here, there = [a / 10 for a, _ in pairs], [b / 10 for _, b in pairs]
    one, two = paired(here, there), paired(there, here)
    assert (one.difference, one.p) == (-two.difference, two.p)
    assert (one.interval.low, one.interval.high) == (-two.interval.high, -two.interval.low)
    assert {one.verdict, two.verdict} in ({"above", "below"}, {"not told apart"})


def test_five_queries_are_said_to_be_too_few():
    better, worse = [0.9] * 5, [0.1] * 5
    found = paired(better, worse)
    assert (found.verdict, found.p > 0.05) == ("not told apart", True)
    assert paired([*better, 0.9], [*worse, 0.1]).verdict == "above"


# What is paired with what.


def test_unmatched_queries_are_an_error_that_names_one():
    with pytest.raises(InputError, match=r"1 of 3 queries of run are not in other, the first 'q02'"):
        compare(scores([0.1, 0.2, 0.3]), scores([0.1, 0.2], "other"))
    with pytest.raises(InputError, match=r"1 of 3 queries of other are not in run, the first 'q02'"):
        compare(scores([0.1, 0.2]), scores([0.1, 0.2, 0.3], "other"))


def test_queries_are_paired_by_id_and_not_by_place():
    here = QueryScores("run", "ndcg@10", {"a": 0.1, "b": 0.9})
    there = QueryScores("other", "ndcg@10", {"b": 0.9, "a": 0.1})
    for rng in ("default", "mulberry32"):
        paired = compare(here, there, rng).paired
        assert paired is not None
        assert paired.difference == 0


def test_runs_over_two_datasets_are_not_compared():
    with pytest.raises(InputError, match='over "scifact"'):
        compare(scores([0.1], dataset="nfcorpus"), scores([0.1], "other", dataset="scifact"))


# Files.

BAD_RUNS = {
    "not an object": ("[1]", "no fields"),
    "neither form": ('{"a": 1}', "perQuery: missing"),
    "no list": ('{"perQuery": {"q1": 0.5}}', "perQuery: not a list"),
    "no id": ('{"perQuery": [{"ndcg10": 0.5}]}', "perQuery.0: qid: missing"),
    "no query": ('{"perQuery": []}', "perQuery: fewer than 1 items"),
    "other measure": ('{"perQuery": [{"qid": "q1", "mrr10": 0.5}]}', "perQuery.0: ndcg10: missing"),
    "too large": ('{"perQuery": [{"qid": "q1", "ndcg10": 1.01}]}', r"perQuery.0: ndcg10: above 1.* \(found 1.01"),
    "infinite": ('{"perQuery": [{"qid": "q1", "ndcg10": 1e999}]}', "perQuery.0: ndcg10"),
    "boolean": ('{"perQuery": [{"qid": "q1", "ndcg10": true}]}', "perQuery.0: ndcg10: not a number"),
    "twice": ('{"perQuery": [{"qid": "q1", "ndcg10": 1}, {"qid": "q1", "ndcg10": 0}]}', "query 'q1' occurs twice"),
    "1 and '1'": ('{"perQuery": [{"qid": 1, "ndcg10": 1}, {"qid": "1", "ndcg10": 0}]}', "query '1' occurs twice"),
    "list for an id": ('{"perQuery": [{"qid": ["q1"], "ndcg10": 1}]}', "perQuery.0: qid: not text"),
    "bad baselines": ('{"perQuery": [{"qid": "q", "ndcg10": 1}], "baselines": [1]}', "baselines: no fields"),
    "bad baseline": ('{"perQuery": [{"qid": "q", "ndcg10": 1}], "baselines": {"BM25": 32.5}}', "baselines.BM25: above"),
    "too many": (json.dumps({"baselines": {f"s{i}": 0.3 for i in range(251)}}), "more than 250 items"),
}


@pytest.mark.parametrize(("content", "match"), BAD_RUNS.values(), ids=BAD_RUNS.keys())
def test_a_bad_run_is_one_clear_error_that_names_file_and_query(tmp_path, content, match):
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=match) as caught:
        read_scores(path)
    assert str(path) in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_cell_with_too_few_scores_is_refused(tmp_path):
    path = results_file(tmp_path / "results.json", {"other x whole_doc": [0, 0], "bm25 x whole_doc": [500_000_000]})
    with pytest.raises(InputError, match="has 1 scores for 2 queries"):
        read_scores(path, "bm25 x whole_doc")


def test_a_results_file_is_read_by_cell(tmp_path):
    path = results_file(tmp_path / "results.json", {"a x b": [0, 123_456_789], "bm25 x b": [10**9, 1]})
    assert read_scores(path, "bm25 x b").values == {"q00": 1.0, "q01": 1e-9}
    for cell, what in ((None, ""), ("a x c", "'a x c'.*")):
        with pytest.raises(InputError, match=f"{what}: a x b; bm25 x b"):
            read_scores(path, cell)
    with pytest.raises(InputError, match="no cell"):
        read_scores(run_file(tmp_path / "run.json", {"q1": 0.5}), "bm25 x whole_doc")


# The command.


def test_the_command_is_no_gate(tmp_path, run):
    good, bad = (run_file(tmp_path / f"{v}.json", {f"q{i}": v for i in range(10)}) for v in (0.9, 0.1))
    code, out, err = run(bad, "--paired", good)
    assert (code, err) == (0, "")
    assert "this run is below" in out


def test_the_command_prints_one_json_object(tmp_path, run):
    path = run_file(tmp_path / "run.json", {f"q{i}": value for i, value in enumerate(TWENTY)}, baselines={"BÄ": 0.3})
    code, out, _ = run(path, "--json", "--paired", path, "--rng", "mulberry32")
    found = json.loads(out)
    assert (code, found["rng"], found["paired"]["p_one_sided"]) == (0, "mulberry32", 1.0)
    assert found["interval"] == {"low": 0.3535, "high": 0.618}
    assert found["baselines"][0]["name"] == "BÄ"


def test_two_cells_of_a_results_file_are_compared(tmp_path, run):
    units = [[round(value * 1e9) for value in values] for values in (TWENTY, OTHER_TWENTY)]
    path = results_file(tmp_path / "results.json", {"a x b": units[0], "bm25 x b": units[1]}, provisional=True)
    code, out, _ = run(path, "--cell", "a x b", "--paired", path, "--other-cell", "bm25 x b", "--json")
    found = json.loads(out)
    assert (code, found["paired"]["difference"]) == (0, 0.0575)
    assert "not adjusted for their having been picked" in found["notes"][0]
    assert found["notes"][1:] == [
        f"{path}: {cell} is provisional: documents that nobody judged count as not relevant."
        for cell in ("a x b", "bm25 x b")
    ]


def test_another_text_under_the_same_id_is_not_the_same_query(tmp_path, run):
    first = results_file(tmp_path / "v1.json", {"a x b": [1, 2]})
    second = results_file(tmp_path / "v2.json", {"a x b": [1, 2]}, text="changed")
    code, out, err = run(first, "--cell", "a x b", "--paired", second, "--other-cell", "a x b")
    assert (code, out) == (2, "")
    assert "'q00' is another text" in err


def test_given_baselines_stand_for_the_files_own(tmp_path, run):
    path = run_file(tmp_path / "run.json", {"q1": 0.5, "q2": 0.6}, baselines={"old": 0.1})
    given_means = tmp_path / "means.json"
    given_means.write_text('{"new": 0.2}', encoding="utf-8")
    _, out, _ = run(path, "--baselines", given_means, "--json")
    assert [row["name"] for row in json.loads(out)["baselines"]] == ["new"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["missing.json"], "does not exist"),
        (["run.json", "--other-cell", "a x b"], "belongs to --paired"),
        (["run.json", "--rng", "xorshift"], "invalid choice"),
        (["run.json", "--baselines", "run.json"], "baselines.perQuery"),
    ],
)
def test_wrong_usage_is_exit_2_with_one_message(tmp_path, monkeypatch, run, arguments, match):
    monkeypatch.chdir(tmp_path)
    run_file(tmp_path / "run.json", {"q1": 0.5})
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert match in err
    assert "Traceback" not in err


@pytest.mark.parametrize("n_queries", [1, 2, 5])
def test_so_few_queries_are_told_apart_from_no_published_mean(n_queries):
    found = compare(scores([0.9] * n_queries, baselines={"far below": 0.1, "far above": 0.99}))
    assert {row.label for row in found.baselines} == {"not told apart"}
    assert any("far too narrow" in note for note in found.notes)
