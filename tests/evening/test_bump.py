"""A new encoder beside a decided cell: from the version that tries it to its decision, and over all sources at once."""

import shutil

import pytest
import yaml

from runner.base.errors import InputNeeded
from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.eval_set.labels import load_labels
from runner.eval_set.plan import encoder_cells
from runner.eval_set.version import load_decision, load_results
from runner.evening.bump import work_of
from runner.evening.evening import Evening
from runner.evening.next_version import open_next
from runner.evening.remake import verify_record
from runner.evening.status import describe
from tests.support.evening_process import run
from tests.support.small_set import fake_encoders, make_version, write_plans

TODAY = "2026-03-01"
NEW, BASELINE, STRUCTURAL, WORDS = (
    "minilm-static-384",
    "minilm-l6-v2 x fixed_token_512_50",
    "minilm-l6-v2 x section_aware_bills_v1",
    "bm25 x whole_doc",
)
CELLS = encoder_cells(NEW, BASELINE, "section_aware_bills_v1")


def edit_plan(version, **changes):
    path = version.plan_path(rehearsal=False)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}))


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


@pytest.fixture(name="v1")
def _v1(decided, tmp_path):
    shutil.copytree(decided, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


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
    for name in ("queries.yaml", "corpus.jsonl", "runs/bm25-x-whole_doc.tsv"):
        assert (v2.folder / name).read_bytes() == (v1.folder / name).read_bytes()


def test_new_pairs_alone_are_judged_and_a_better_cell_takes_the_incumbents_place(v1, v2, tmp_path):
    labels = load_labels(v1.labels_path)
    said = next(line for line in describe(v2)[0] if line.startswith("time:"))
    assert "nothing is left" not in said
    with pytest.raises(InputNeeded, match=r"cells embedded|pairs to judge") as stop:
        Evening(v2, tmp_path / "corpus", backend=LocalBackend(fake_encoders)).run()
    assert load_labels(v2.labels_path) == labels
    left = work_of(v2, v2.plan())
    assert f"{left.pairs} of {left.pairs + len({label.pair for label in labels})} pairs" in str(stop.value)
    assert left.seconds == 0

    run(tmp_path)
    results, rows = load_results(v2), rows_of(v2)
    assert load_labels(v2.labels_path)[: len(labels)] == labels
    assert len(load_labels(v2.labels_path)) == len(labels) + left.pairs
    best = rows[CELLS[-1]]
    assert (rows[BASELINE].role, rows[STRUCTURAL].role, best.role) == ("baseline", "incumbent", "preregistered")
    assert results.outcome.recommended == load_decision(v2).chosen.cell == best.cell
    assert {row.cell for row in rows.values() if row.over_incumbent is None} == {BASELINE, STRUCTURAL}
    assert best.over_incumbent.expected.mean > 0.02
    assert verify_record(v2, deep=True)
    open_next(v2, today=TODAY)
    assert make_version(tmp_path).plan().incumbent == best.cell, "the next one is held against what v2 chose"
