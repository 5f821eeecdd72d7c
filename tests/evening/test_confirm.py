"""A version that confirms what the one before it chose: two judged lists, new queries, all of the error on one cell."""

import shutil

import pytest
import yaml

from runner.base.canonical import file_sha256, json_bytes, read_json
from runner.base.errors import InputError, InputNeeded
from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.labels import load_labels
from runner.eval_set.lock import verify_lock
from runner.eval_set.plan import plan_problems, read_plan
from runner.eval_set.preregistration import asked_again, preregistration
from runner.eval_set.runs import read_run
from runner.eval_set.version import load_decision, load_queries, load_results, numbered
from runner.evening.evening import Evening
from runner.evening.next_version import open_next
from runner.evening.remake import verify_record
from runner.queries.additions import add_queries
from runner.queries.checks import check, stood_before
from runner.retrieve.pool import pool
from tests.support.evening_process import run
from tests.support.small_set import begin, edit_plan, fake_encoders, make_version, query_rows, write_plans

BASELINE, CHOSEN, OTHER = (
    "minilm-l6-v2 x fixed_token_512_50",
    "bm25 x whole_doc",
    "minilm-static-384 x fixed_token_512_50",
)
TODAY = "2026-03-01"


@pytest.fixture(name="decided", scope="module")
def _decided(tmp_path_factory):
    """A folder whose v1 chose a cell over the baseline."""
    folder = tmp_path_factory.mktemp("decided")
    version = make_version(folder)
    write_plans(version)
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("pool_depth: 30", "pool_depth: 10"))
    run(folder, Choice(CHOSEN, "it gained", "A. Person"))
    assert load_decision(version).chosen.cell == CHOSEN
    return folder


@pytest.fixture(name="v2")
def _v2(v1, tmp_path):
    """The version that confirms it, without queries."""
    open_next(v1, today=TODAY, confirm=True)
    return make_version(tmp_path)


def write_new_queries(version):
    rows = [{**row, "text": f"{row['text']} now"} for row in query_rows()]
    version.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}))


def judged_pairs(version):
    return {(row.query_id, row.doc_id) for path in batch_files(version.judging) for row in read_batch(path)}


def test_it_begins_with_two_cells_the_earlier_settings_and_documents_and_neither_queries_nor_labels(v1, v2):
    before, plan = (read_plan(version.plan_path(rehearsal=False)) for version in (v1, v2))
    assert (plan.cells, plan.first, plan.judged_cells) == ([BASELINE, CHOSEN], [], [BASELINE, CHOSEN])
    assert (plan.confirms.version, plan.confirms.cell) == (1, CHOSEN)
    assert plan.confirms.results_sha256 == file_sha256(v1.results_path)
    alike = {"version": 2, "cells": plan.cells, "first": [], "confirms": plan.confirms}
    assert before.model_copy(update=alike).model_dump() == plan.model_dump()
    assert v2.corpus_path.read_bytes() == v1.corpus_path.read_bytes()
    assert not v2.queries_path.exists()
    assert not v2.labels_path.exists()


def test_it_is_decided_over_two_judged_lists_with_other_cells_shown_between_bounds(v2, tmp_path):
    write_new_queries(v2)
    edit_plan(v2, cells=[BASELINE, CHOSEN, OTHER])
    with pytest.raises(InputNeeded):
        Evening(v2, tmp_path / "corpus", backend=LocalBackend(fake_encoders)).run()
    ids = [row["id"] for row in query_rows()]
    runs = {cell: read_run(v2.run_path(cell), cell, ids) for cell in (BASELINE, CHOSEN, OTHER)}
    queries, two = load_queries(v2.queries_path), [runs[BASELINE], runs[CHOSEN]]
    assert judged_pairs(v2) == set(pool(two, 10, queries)) != set(pool(runs.values(), 10, queries))
    assert {(query.id, query.source_document) for query in queries} <= judged_pairs(v2)

    assert "chosen is" in run(tmp_path)
    results = load_results(v2)
    rows = {row.cell: row for row in results.cells}
    assert {cell: row.role for cell, row in rows.items()} == {
        BASELINE: "baseline",
        CHOSEN: "preregistered",
        OTHER: "exploratory",
    }
    assert (results.labels.unjudged_pairs, rows[CHOSEN].unjudged) == (0, 0)
    assert rows[OTHER].unjudged
    assert rows[OTHER].bounds[0] < rows[OTHER].bounds[1]
    assert {label.pair for label in load_labels(v2.labels_path)} == judged_pairs(v2)
    assert verify_lock(v2.folder)
    assert verify_record(v2, deep=True)


def test_a_query_of_the_version_that_chose_is_refused(v2):
    rows = query_rows()
    written = [{**row, "text": f"{row['text']} now"} for row in rows[:-1]] + [rows[-1]]
    v2.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": written}))
    with pytest.raises(InputError, match=rows[-1]["id"]):
        preregistration(v2)


def test_a_query_of_the_version_that_chose_is_named_by_the_check_and_never_added(v1, v2):
    rows = load_queries(v1.queries_path)
    found = check(v2, corpus_documents(v2, None), rows).findings
    assert [one.queries for one in found if one.rule == "asked before"] == [[row.id for row in rows]]
    assert not stood_before(v1, rows)
    with pytest.raises(InputError, match=rows[0].id):
        add_queries(v2, v1.queries_path)
    assert not v2.queries_path.exists()


def test_a_query_of_any_version_that_tested_the_cell_is_refused(v1, v2):
    write_new_queries(v2)
    v3 = numbered(v2, 3)
    shutil.copytree(v2.folder, v3.folder)
    opened = read_json(v2.folder / "opened.json") | {"version": 3, "previous": 2}
    (v3.folder / "opened.json").write_bytes(json_bytes(opened))
    rows = load_queries(v1.queries_path)
    assert asked_again(v3, rows) == [row.id for row in rows]
    edit_plan(v3, confirms={**read_plan(v3.plan_path(rehearsal=False)).confirms.model_dump(), "cell": "bm25 x other"})
    assert asked_again(v3, rows) == [], "v1 did not test it"


@pytest.mark.parametrize(
    "claim", [{"cell": OTHER}, {"results_sha256": "0" * 64}, {"version": 3}], ids=["cell", "digest", "version"]
)
def test_a_plan_that_cites_what_was_not_decided_is_refused(v2, claim):
    write_new_queries(v2)
    confirms = read_plan(v2.plan_path(rehearsal=False)).confirms.model_dump() | claim
    edit_plan(v2, confirms=confirms, cells=[BASELINE, CHOSEN, OTHER])
    with pytest.raises(InputError, match="confirms"):
        preregistration(v2)


def test_a_first_version_cannot_say_that_it_confirms(tmp_path):
    version = begin(tmp_path)
    edit_plan(version, confirms={"version": 1, "cell": CHOSEN, "results_sha256": "0" * 64})
    with pytest.raises(InputError, match="confirms"):
        preregistration(version)


def test_the_cell_must_stand_in_the_plan_and_without_confirms_all_criteria_hold(v2):
    plan, path = read_plan(v2.plan_path(rehearsal=False)), v2.plan_path(rehearsal=False)
    assert not plan_problems(plan, path, v2.source, 2, rehearsal=False)
    for cells in ([BASELINE], [BASELINE, OTHER]):
        lacking = plan.model_copy(update={"cells": cells})
        assert len(plan_problems(lacking, path, v2.source, 2, rehearsal=False)) == 1
    broad = plan.model_copy(update={"confirms": None})
    assert any(
        problem.startswith("criterion 1") for problem in plan_problems(broad, path, v2.source, 2, rehearsal=False)
    )


def test_where_the_baseline_was_kept_there_is_nothing_to_confirm(tmp_path):
    run(tmp_path, Choice(BASELINE, "it is good enough", "A. Person"))
    version = make_version(tmp_path)
    with pytest.raises(InputError, match="--confirm"):
        open_next(version, today=TODAY, confirm=True)
    assert not (version.folder.parent / "v2").exists()


def test_the_command_line_opens_it(v1, command, tmp_path):
    assert command("version", "--confirm", "--abandon")[0] == 2
    code, out, _ = command("version", "--confirm")
    assert (code, out.startswith("demo v2 is open")) == (0, True)
    assert read_plan(make_version(tmp_path).plan_path(rehearsal=False)).confirms is not None
