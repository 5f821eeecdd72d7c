"""A new encoder beside a decided cell: from the version that tries it to its decision, and over all sources at once."""

import math
import shutil
from typing import NamedTuple

import numpy as np
import pytest
import yaml
from scipy import stats

from runner.base.errors import InputError, InputNeeded
from runner.commands import main as cli
from runner.decide.cell_results import cell_results
from runner.decide.decide import Choice
from runner.decide.judging import under_judge
from runner.decide.policy import adopt_baseline
from runner.decide.tiers import recommendation
from runner.decide.turning import _chosen as mix_choice
from runner.embed.backends import LocalBackend
from runner.eval_set.catalog import PACKAGED_BASELINE, own_source
from runner.eval_set.kinds import kind_of
from runner.eval_set.labels import load_labels
from runner.eval_set.plan import encoder_cells
from runner.eval_set.preregistration import preregister, preregistration
from runner.eval_set.version import load_decision, load_results, newest_version
from runner.evening.bump import Work, plan_with, work_of
from runner.evening.costs import Asked
from runner.evening.evening import Evening
from runner.evening.next_version import open_next
from runner.evening.remake import verify_record
from runner.evening.status import describe
from runner.gate.gate import Gate
from runner.judge.models.api import JudgeOptions
from runner.report.summary import run_summary
from runner.score.comparison import load_comparison
from runner.score.gain_test import holm_bars
from tests.support.evening_process import few_draws_in_plans, judged, run
from tests.support.small_set import BILLS, edit_plan, fake_encoders, make_version, query_rows, write_plans

TODAY = "2026-03-01"
NEW, BASELINE, STRUCTURAL, WORDS = (
    "minilm-static-384",
    "minilm-l6-v2 x fixed_token_512_50",
    "minilm-l6-v2 x section_aware_bills_v1",
    "bm25 x whole_doc",
)
CELLS = encoder_cells(NEW, BASELINE, "section_aware_bills_v1")


def decide_first(folder, chosen):
    """A v1 of one encoder's cells and BM25's that chose this one, with a pool that is not every pair."""
    version = make_version(folder)
    write_plans(version)
    others = (f"minilm-l6-v2 x {name}" for name in ("fixed_token_256_25", "fixed_token_1024_100", "recursive_v1"))
    cells = [BASELINE, STRUCTURAL, *others, "minilm-l6-v2 x fixed_path_256_25", WORDS]
    edit_plan(version, cells=cells, first=[STRUCTURAL], pool_depth=10)
    run(folder, Choice(chosen, "it gained", "A. Person"))
    assert load_decision(version).chosen.cell == chosen
    return folder


@pytest.fixture(name="decided", scope="module")
def _decided(tmp_path_factory):
    """A folder whose v1 chose structural chunks, which words and meaning together can beat."""
    return decide_first(tmp_path_factory.mktemp("decided"), STRUCTURAL)


@pytest.fixture(name="v2")
def _v2(v1, tmp_path):
    """The open version that tries the new encoder."""
    said = open_next(v1, today=TODAY, encoders=[NEW])
    assert f"held against {STRUCTURAL}, which demo v1 chose" in said
    return make_version(tmp_path)


def rows_of(version):
    return {row.cell: row for row in load_results(version).cells}


def test_it_begins_with_the_new_cells_the_chosen_one_as_incumbent_and_the_queries_and_runs_of_before(v1, v2):
    before, plan = v1.plan(), v2.plan()
    assert (plan.incumbent, plan.baseline, plan.cells) == (STRUCTURAL, BASELINE, [*before.cells, *CELLS])
    assert plan.first == [cell for cell in CELLS if "section_aware" in cell]
    alike = {"version": 2, "cells": plan.cells, "first": plan.first, "incumbent": STRUCTURAL}
    assert before.model_copy(update=alike).model_dump() == plan.model_dump()
    for name in ("queries.yaml", "corpus.jsonl", "runs/bm25-x-whole_doc.tsv.bz2"):
        assert (v2.folder / name).read_bytes() == (v1.folder / name).read_bytes()


class Second(NamedTuple):
    """A folder whose v2 is decided, what its first run said, its dry run before, and the work left before and after."""

    folder: object
    said: str
    priced: str
    expected: Work
    left: Work


@pytest.fixture(name="second", scope="module")
def _second(decided, tmp_path_factory):
    folder = tmp_path_factory.mktemp("second")
    shutil.copytree(decided, folder, dirs_exist_ok=True)
    open_next(make_version(folder), today=TODAY, encoders=[NEW])
    version = make_version(folder)
    expected = work_of(version, version.plan())
    priced = "\n".join(describe(version, asked=Asked(judge=JudgeOptions()))[0])
    with pytest.raises(InputNeeded) as stop:
        Evening(version, folder / "corpus", backend=LocalBackend(fake_encoders)).run()
    left = work_of(version, version.plan())
    run(folder)
    return Second(folder, str(stop.value), priced, expected, left)


def test_new_pairs_alone_are_judged_and_their_number_is_said(v1, second):
    v2, labels = make_version(second.folder), load_labels(v1.labels_path)
    known = {label.pair for label in labels}
    made = load_labels(v2.labels_path)
    assert made[: len(labels)] == labels
    fresh = {label.pair for label in made[len(labels) :]}
    assert second.left.pairs == len(fresh) > 0
    assert not fresh & known
    assert f"{len(fresh)} of {len(fresh) + len(known)} pairs to judge" in second.said
    assert f", {second.expected.pairs} pairs (about, before 3 cells are run" in second.priced
    # Before the new cells are run: what is judged already is not counted again, and old cells need no vectors.
    assert second.left.pairs <= second.expected.pairs <= 25 * 16 - len(known)
    assert second.expected.seconds == second.left.seconds == 0, "a static encoder takes no time"


def test_a_better_cell_takes_the_incumbents_place_and_is_the_next_ones_incumbent(second, tmp_path):
    shutil.copytree(second.folder, tmp_path, dirs_exist_ok=True)
    v2 = make_version(tmp_path)
    rows, best = rows_of(v2), CELLS[-1]
    assert [rows[cell].role for cell in (BASELINE, STRUCTURAL, best)] == ["baseline", "incumbent", "preregistered"]
    assert load_results(v2).outcome.recommended == load_decision(v2).chosen.cell == best
    assert rows[best].over_incumbent.expected.mean > 0.02
    assert f"against the incumbent {STRUCTURAL} +" in " ".join(run_summary(load_results(v2)).split())
    assert verify_record(v2, deep=True)
    open_next(v2, today=TODAY)
    assert make_version(tmp_path).plan().incumbent == best


def test_what_is_said_against_the_incumbent_is_the_test_against_the_baseline_with_the_incumbent_in_its_place(
    second,
):
    version = make_version(second.folder)
    results, rows = load_results(version), rows_of(version)
    units = {cell: np.array(row.scores["ndcg@10"].per_query) for cell, row in rows.items()}
    tested = [cell for cell, row in rows.items() if row.over_incumbent]
    assert {*tested} == {*rows} - {BASELINE, STRUCTURAL}
    order = [cell for cell in results.plan.cells if cell in tested]
    moved = {cell: units[cell] - units[STRUCTURAL] for cell in order}
    # p, by an independent t of the queries and the phantom; then the bars by the plan's order.
    alone = [phantom_p(moved[cell] / 1e9) for cell in order]
    n_first = len(results.plan.first)
    ranked = [*results.plan.first, *(cell for cell in order if cell not in results.plan.first)]
    bars = dict(zip(ranked, holm_bars([alone[order.index(cell)] for cell in ranked], n_first, 0.05), strict=True))
    for cell, p in zip(order, alone, strict=True):
        over = rows[cell].over_incumbent
        assert over.test.p_gain == pytest.approx(p, abs=1e-8)
        assert over.test.bar == pytest.approx(bars[cell], abs=1e-8)
        assert over.differences["ndcg@10"].mean == pytest.approx(moved[cell].mean() / 1e9, abs=1e-9)
        low, high = over.test.simultaneous
        assert low <= over.test.interval[0] <= over.differences["ndcg@10"].mean <= over.test.interval[1] <= high
        # The prior of a difference of two independent normals, then Bayes' rule on a fine grid.
        own, other = (results.plan.prior.kinds[kind_of(each, BASELINE)] for each in (cell, STRUCTURAL))
        error = moved[cell].std(ddof=1) / 1e9 / math.sqrt(len(moved[cell]))
        grid = np.linspace(-1, 1, 200_001)
        log = -((grid - own.mean + other.mean) ** 2) / 2 / (own.sd**2 + other.sd**2)
        log -= (grid - moved[cell].mean() / 1e9) ** 2 / 2 / error**2
        weights = np.exp(log - log.max())
        assert over.expected.mean == pytest.approx(float((grid * weights).sum() / weights.sum()), abs=1e-6)


@pytest.mark.parametrize("incumbent", [STRUCTURAL, WORDS])
def test_judges_and_mixes_choose_by_the_rule_of_the_results(second, incumbent):
    """The same grades and the same mix leave the same choice, whichever cell is in place."""
    version = make_version(second.folder)
    plan = version.plan().model_copy(update={"incumbent": incumbent})
    comparison = load_comparison(version, plan, frozenset(plan.cells) - {plan.baseline})
    rows = cell_results(comparison, Gate.over(comparison))
    chosen = recommendation(rows, plan)[0]
    assert chosen == {STRUCTURAL: CELLS[-1], WORDS: WORDS}[incumbent]
    assert under_judge(comparison, [])[1] == chosen
    assert mix_choice(comparison, [row.cell for row in rows if row.registered], comparison.mix) == chosen


def phantom_p(differences):
    """The one-sided p of a gain by Student's t over the differences and one that loses their root mean square."""
    values = [*differences, -math.sqrt(float((differences**2).mean()))]
    return float(stats.ttest_1samp(values, 0, alternative="greater").pvalue) if np.any(differences) else 1.0


@pytest.mark.slow
def test_a_cell_that_is_no_better_leaves_the_incumbent_in_place(tmp_path):
    """Words alone beat every cell of the new encoder here."""
    decide_first(tmp_path, WORDS)
    open_next(make_version(tmp_path), today=TODAY, encoders=[NEW])
    assert "over the incumbent is no more than the 0.02 that a switch costs" in run(tmp_path)
    v2 = make_version(tmp_path)
    decision, results = load_decision(v2), load_results(v2)
    assert decision.chosen.cell == results.outcome.recommended == WORDS
    assert {CELLS[-1], WORDS} <= {*results.candidates}
    assert "the tool recommends the incumbent" in " ".join(run_summary(results).split())
    page = (v2.folder / "results.html").read_text()
    assert "Against the incumbent" in page


def test_where_the_baseline_was_kept_it_is_the_incumbent_and_there_is_no_second_test(v1):
    (v1.folder / "lock.json").unlink()
    path = v1.folder / "decision.json"
    path.write_text(path.read_text().replace(f'"cell": "{STRUCTURAL}"', f'"cell": "{BASELINE}"'))
    assert plan_with(v1, [NEW]).incumbent == ""


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["minilm-statik-384"], "did you mean 'minilm-static-384'"),
        (["minilm-l6-v2"], "demo v1 has compared it already"),
        (["arctic-m-v2.0"], "is excluded"),
    ],
)
def test_an_encoder_that_is_unknown_or_in_the_plan_opens_nothing(v1, names, said):
    with pytest.raises(InputError, match=said):
        open_next(v1, today=TODAY, encoders=names)
    assert not v1.folder.with_name("v2").exists()


def test_a_source_that_is_not_decided_over_scores_has_nothing_to_stand_beside(version, tmp_path):
    preregister(version)
    policy = newest_version("gao_reports", tmp_path)
    adopt_baseline(policy, "A. Person", "", today=TODAY)
    for given, said in ((version, "is not decided"), (policy, "by policy")):
        with pytest.raises(InputError, match=f"{said}.*nothing to stand beside"):
            open_next(given, today=TODAY, encoders=[NEW])


@pytest.mark.parametrize("incumbent", [WORDS, BASELINE, "bm25 x recursive_v1"])
def test_a_plan_that_names_another_incumbent_than_was_chosen_is_refused(v2, incumbent):
    edit_plan(v2, incumbent=incumbent)
    with pytest.raises(InputError, match="incumbent"):
        preregistration(v2)


@pytest.fixture(name="sources")
def _sources(tmp_path, monkeypatch):
    """Two sources of one's own, each decided for a cell over its baseline."""
    monkeypatch.setattr("runner.eval_set.version.OWN_SETS", tmp_path / "own-sets")
    monkeypatch.setattr("runner.eval_set.version.WORKPLACE", tmp_path)
    monkeypatch.setattr("runner.eval_set.version.EVAL_SETS", tmp_path / "eval-sets")
    for number, title, purpose, *orders in BILLS:
        path = tmp_path / "texts" / f"{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n\n".join([f"# {title}", purpose, *(f"## {order[:20]}\n\n{order}" for order in orders)]))
    for name in ("rules", "letters"):
        decide_own(name, tmp_path / "texts")
    return tmp_path / "own-sets"


def decide_own(name, texts):
    version = newest_version(name, begun_as=own_source(name, {}))
    with few_draws_in_plans():
        Evening(version, texts).begin()
    chunkers = ("by_heading_v1", "fixed_token_256_25", "fixed_path_256_25", "recursive_v1", "whole_doc")
    cells = [PACKAGED_BASELINE, *(f"minilm-l6-v2 x {chunker}" for chunker in chunkers), WORDS]
    edit_plan(version, cells=cells, first=[cells[1]])
    rows = [{key: value for key, value in row.items() if key != "source_document"} for row in query_rows()]
    version.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}))
    choice = Choice("recommended", "", "test")
    while not (version.folder / "lock.json").exists():
        try:
            Evening(version, texts, choice=choice, backend=LocalBackend(fake_encoders)).run()
        except InputNeeded:
            judged(version)


def test_over_all_decided_sources_a_table_comes_first_and_yes_opens_them(sources, capsys):
    command = ["version", "--all", f"--encoder={NEW}"]
    assert cli.main(command) == 0
    said = capsys.readouterr()
    head, first, second, total = said.out.splitlines()
    assert head.split()[0] == "source"
    assert [line.split()[:2] for line in (first, second)] == [["letters", "v1"], ["rules", "v1"]]
    assert "--yes opens" in said.err
    pairs = [int(line.split()[2]) for line in (first, second, total)]
    assert pairs[2] == pairs[0] + pairs[1] > 0
    assert not list(sources.glob("*/v2"))

    assert cli.main([*command, "--yes"]) == 0
    assert capsys.readouterr().out.count("v2 is open, from") == 2
    assert newest_version("rules").plan().cells[-1] == f"sum(bm25,{NEW}) x by_heading_v1"
    assert cli.main([*command, "--yes"]) == 0
    assert capsys.readouterr().out.count("left out: v2 is open") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all"], "--all goes with --encoder"),
        (["--yes", "demo"], "--all goes with --encoder"),
        (["--all", "demo", f"--encoder={NEW}"], "not with SOURCE"),
        (["demo", "--confirm", f"--encoder={NEW}"], "one at a time"),
        ([f"--encoder={NEW}"], "Which SOURCE"),
        (["--all", f"--encoder={NEW}"], "No source is decided over scores yet"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words, said, own_place, capsys):
    assert cli.main(["version", *words]) == 2
    assert said in capsys.readouterr().err
