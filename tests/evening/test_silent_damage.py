"""Damage that is planted here is stopped, or said, before it counts for a decision."""

import json
import os
import shlex
import shutil
from argparse import Namespace
from dataclasses import replace

import pytest
import yaml

from runner.base import places
from runner.base.canonical import json_bytes, read_json
from runner.base.errors import InputError, InputNeeded
from runner.base.places import DRIVER
from runner.commands import main as cli
from runner.commands.flags import version_of
from runner.embed.backends import LocalBackend
from runner.eval_set.labels import load_labels, version_labels
from runner.eval_set.preregistration import preregister
from runner.eval_set.version import load_corpus, load_queries
from runner.evening.evening import Evening
from runner.evening.status import FREEZES, doubts, next_step
from runner.evening.trial import tried
from runner.judge.answers import Importer
from runner.score.score import qrels
from tests.conftest import called
from tests.support.evening_process import few_draws_in_plans, judged
from tests.support.small_set import answers, begin, fake_encoders, make_version, query_rows, write_corpus

DAY = "2026-01-31"


def contents(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write_rows(path, rows):
    path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}, sort_keys=False))


def run(version, **given):
    with few_draws_in_plans():
        return Evening(version, backend=LocalBackend(fake_encoders), **given).run()


@pytest.mark.slow
def test_a_trial_leaves_no_trace_in_the_version(version, tmp_path):
    """Made-up grades, a changed plan: all of it stays in the trial's folder."""
    before = contents(version.folder)
    trial = tried(version)
    assert trial.rehearsal
    assert trial.folder.parent == version.work.parent / "try"
    with pytest.raises(InputNeeded) as stopped:
        run(trial)
    assert "a trial: nothing of it counts" in stopped.value.notes[-1]
    ways = "\n".join(stopped.value.ways)
    assert f"{trial.flags} --judge " in ways
    assert f"plan {trial.flags} --judge" in ways
    judged(trial)
    assert version_labels(trial)
    with pytest.raises(InputNeeded, match="choose a cell"):
        run(trial)
    assert contents(version.folder) == before
    assert not version.labels_path.exists()
    assert not version.preregistration_path.exists()


def test_a_trial_takes_queries_that_come_later_and_stays_once_it_is_frozen(version):
    queries = version.queries_path.read_bytes()
    version.queries_path.unlink()
    trial = tried(version)
    assert not trial.queries_path.exists()
    version.queries_path.write_bytes(queries)
    assert tried(version).queries_path.read_bytes() == queries
    preregister(trial)
    trial.plan_path(rehearsal=False).unlink()
    assert not tried(version).plan_path(rehearsal=False).exists()


def test_the_stop_and_the_import_of_a_rehearsal_say_that_grades_count(waiting, command, tmp_path):
    code, out, _ = command("next")
    assert (code, "count for the decision of demo v1" in out, "--try" in out) == (0, True, True)
    path = answers(waiting)[0]
    code, _, err = command("labels", "import", str(path), "--judge=ann", "--person", "--rehearse")
    assert (code, "they count for the decision of demo v1" in err) == (0, True)


def test_an_answer_that_names_its_model_is_no_persons(waiting, command):
    path = answers(waiting)[0]
    rows = [json.loads(line) | {"model": "m-1"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = command("labels", "import", str(path), "--judge=ann", "--person")
    assert (code, f"{path}:1" in err, "'m-1'" in err) == (2, True, True)
    assert not waiting.labels_path.exists()


def test_a_withdrawn_judge_counts_no_more_and_every_line_stays(waiting, command):
    path, other = answers(waiting)[:2]
    command("labels", "import", str(path), "--judge=ann", "--person")
    command("labels", "import", str(other), "--judge=bob", "--person")
    before, given = waiting.labels_path.read_bytes(), load_labels(waiting.labels_path)
    n_ann = sum(label.judge == "ann" for label in version_labels(waiting))
    code, out, _ = command("labels", "withdraw", "--judge=ann", "--reason=made up")
    assert (code, f"{n_ann} labels of ann are void" in out) == (0, True)
    after = waiting.labels_path.read_bytes()
    assert after.startswith(before)
    added = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert len(added) == n_ann
    assert {(row["judge"], row["void"], row["reason"]) for row in added} == {("ann", True, "made up")}
    assert {label.judge for label in version_labels(waiting)} == {"bob"}
    assert command("labels", "withdraw", "--judge=ann")[0] == 2
    with pytest.raises(InputNeeded, match="pairs to judge"):
        run(waiting)
    assert command("labels", "import", str(path), "--judge=ann", "--person")[0] == 0
    assert sum(label.judge == "ann" for label in version_labels(waiting)) == n_ann
    assert load_labels(waiting.labels_path, before.count(b"\n")) == given


def test_a_mended_grade_of_the_first_judge_counts_though_a_second_read_the_pair_meanwhile(waiting, command):
    path, *others = answers(waiting)
    command("labels", "import", *map(str, (path, *others)), "--judge=ann", "--person")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    second = waiting.work / "second.jsonl"
    second.write_text("".join(json.dumps({**row, "grade": 1, "batch": "batch-0001"}) + "\n" for row in rows))
    assert command("labels", "import", str(second), "--judge=bob", "--person")[0] == 0
    rows[0]["grade"] = 3 - rows[0]["grade"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = qrels(version_labels(waiting))
    code, _, err = command("labels", "import", str(path), "--judge=ann", "--person")
    assert (code, "labels withdraw" in err) == (2, True)
    assert command("labels", "withdraw", "--judge=ann")[0] == 0
    assert command("labels", "import", *map(str, (path, *others)), "--judge=ann", "--person")[0] == 0
    before[rows[0]["query_id"]][rows[0]["doc_id"]] = rows[0]["grade"]
    assert qrels(version_labels(waiting)) == before


def test_a_withdrawn_judge_who_returns_is_second_to_the_one_who_graded_meanwhile(waiting, command):
    path = answers(waiting)[0]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    other = waiting.work / "other.jsonl"
    other.write_text("".join(json.dumps(row | {"grade": 3 - row["grade"]}) + "\n" for row in rows))
    command("labels", "import", str(path), "--judge=ann", "--person")
    command("labels", "withdraw", "--judge=ann")
    assert command("labels", "import", str(other), "--judge=bob", "--person")[0] == 0
    bobs = qrels(version_labels(waiting))
    assert command("labels", "import", str(path), "--judge=ann", "--person")[0] == 0
    assert qrels(version_labels(waiting)) == bobs


def test_a_row_that_takes_back_nothing_is_an_error(waiting):
    judged(waiting)
    line = json.loads(waiting.labels_path.read_text().splitlines()[0])
    waiting.labels_path.write_text(json.dumps(line | {"void": True}) + "\n")
    with pytest.raises(InputError, match="takes back a label that is not there"):
        load_labels(waiting.labels_path)


def test_grades_of_a_decided_version_are_not_withdrawn(decided, command):
    before = decided.labels_path.read_bytes()
    code, _, err = command("labels", "withdraw", "--judge=words")
    assert (code, "final" in err) == (2, True)
    assert decided.labels_path.read_bytes() == before


def test_few_documents_and_queries_without_their_document_are_said(waiting):
    rows = query_rows()
    for row in rows[:7]:
        row["source_document"] = "BILLS-118hr9999ih"
    write_rows(waiting.queries_path, rows)
    (note,) = doubts(waiting)
    assert "are not in the sample: q01 (BILLS-118hr9999ih), " in note
    assert ("q07 " in note, "q08 " in note) == (True, False)
    own = replace(waiting, source=replace(waiting.source, corpus=""))  # the embedded corpus is what it is
    first, _ = doubts(own)
    assert first.startswith(f"16 documents, where the plan asks for {own.plan().sample.size}")


def test_few_queries_of_a_persons_own_are_said_until_queries_are_frozen(tmp_path):
    version, rows = begin(tmp_path), query_rows()
    for row in rows:
        row["origin"] = "claude"
    write_rows(version.queries_path, rows)
    assert doubts(version)[-1].startswith("0 queries are a person's own, and 8 are wanted")
    preregister(version)
    assert not [note for note in doubts(version) if "person's own" in note]


def test_a_query_whose_source_document_is_not_in_the_sample_stops_the_run_before_anything_is_made(tmp_path):
    version, rows = begin(tmp_path), query_rows()
    rows[2]["source_document"] = "BILLS-118hr9999ih"
    rows[3]["source_document"] = "BILLS-117hr101eh"
    write_rows(version.queries_path, rows)
    with pytest.raises(InputError, match=r"q03 \(BILLS-118hr9999ih\), q04 \(.*; is it BILLS-117hr101ih\?\)"):
        run(version)
    assert not list(version.record.glob("runs/*"))
    assert not version.preregistration_path.exists()


def test_queries_added_to_the_version_reach_a_trial_that_waits_for_them(version, command):
    rows = query_rows()
    write_rows(version.queries_path, rows[:5])
    trial = tried(version)
    with pytest.raises(InputNeeded, match="20 more to be written") as stopped:
        run(trial)
    assert f"queries add {version.flags} FILE" in "\n".join(stopped.value.ways)
    assert "/try" not in "\n".join(stopped.value.ways)
    code, out, _ = command("next", "--try")
    assert (code, "20 more to be written" in out, "--try" in out) == (0, True, True)
    write_rows(version.queries_path, rows)
    assert tried(version).queries_path.read_bytes() == version.queries_path.read_bytes()


@pytest.mark.slow
def test_a_missing_second_reading_is_said_where_labels_become_final(waiting):
    judged(waiting)
    with pytest.raises(InputNeeded, match="choose a cell") as stopped:
        run(waiting)
    assert any("labels double demo" in note for note in stopped.value.notes)
    assert "labels double demo" in str(next_step(waiting))
    grades = {(label.query_id, label.doc_id): label for label in version_labels(waiting)}
    pair = next(iter(grades.values()))
    other = waiting.judging / "mine.jsonl"
    row = {"query_id": pair.query_id, "doc_id": pair.doc_id, "grade": pair.grade, "reason": "mine"}
    other.write_text(json.dumps(row) + "\n")
    Importer(waiting).take_file(other, judge="other", model="", judged_on=DAY)
    with pytest.raises(InputNeeded) as stopped:
        run(waiting)
    assert not any("labels double" in note for note in stopped.value.notes)


def test_a_folder_of_another_source_is_named_once(tmp_path, capsys):
    where = f"--eval-set-path={tmp_path / 'sets'}"
    code = cli.main(["run", "us_code", where, "--corpus-path", str(places.CHECKOUT / "eval-sets" / "demo" / "corpus")])
    said = capsys.readouterr().err
    assert (code, said.count("bills")) == (2, 2)
    assert "Did you mean the source bills?" in said
    assert not list((tmp_path / "sets").glob("v*"))


def test_documents_that_are_not_the_versions_are_not_passed_over_in_silence(version, command, tmp_path):
    before = contents(version.folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "BILLS-118hr9999ih.xml").write_bytes(next(iter((tmp_path / "corpus").glob("*.xml"))).read_bytes())
    code, _, err = command("init", "--corpus-path", str(other))
    assert (code, "--eval-set-path" in err, str(other) in err) == (2, True, True)
    assert contents(version.folder) == before
    assert command("init", "--corpus-path", str(tmp_path / "corpus"))[0] == 0


@pytest.mark.parametrize(("rehearsal", "freezes"), [("--rehearse", True), ("--try", False)])
def test_a_rehearsal_says_beforehand_that_it_freezes_the_production_plan_too(version, command, rehearsal, freezes):
    _, out, _ = command("next", rehearsal)
    assert (FREEZES.format("demo v1") in " ".join(out.split())) is freezes


@pytest.mark.parametrize(("frozen", "changed"), [("tau: 0.05", "tau: 0.04"), ("pool_depth: 30", "pool_depth: 5")])
def test_next_names_a_frozen_plan_that_was_changed(waiting, command, frozen, changed):
    path = waiting.plan_path(rehearsal=False)
    assert frozen in path.read_text()
    path.write_text(path.read_text().replace(frozen, changed))
    assert command("next")[0] == 4


def test_language_models_are_offered_where_the_frozen_plan_names_some(waiting, command):
    asks = f"run {waiting.viewed} --judge "
    assert asks in "".join(json.loads(command("next", "--json")[1])["ways"])
    path = waiting.plan_path(rehearsal=False)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"judges": None}))
    waiting.preregistration_path.unlink()
    exported = waiting.judging.rename(waiting.judging.with_name("exported"))
    preregister(waiting)
    exported.rename(waiting.judging)
    assert command("run", "--judge")[0] == 2
    assert asks not in "".join(json.loads(command("next", "--json")[1])["ways"])


@pytest.mark.parametrize("name", ["bm25 x whole_doc", "aa"])
def test_next_and_doctor_say_of_a_run_that_is_gone_what_run_says(waiting, command, name):
    waiting.run_path(name).unlink()
    asked, ran = command("next"), command("run")
    assert asked == ran
    assert ran[0] == 4
    code, out, _ = command("doctor", "--json")
    (check,) = json.loads(out)["checks"]
    assert (code, check["name"], check["state"]) == (1, "plan", "blocked")


def test_the_newest_page_is_opened_and_one_that_was_outrun_says_so(decided, command):
    record, provisional = decided.record / "results.html", decided.work / "provisional" / "results.html"
    provisional.parent.mkdir()
    for path in (decided.results_path, record):
        shutil.copy2(path, provisional.parent)
    os.utime(provisional, (record.stat().st_mtime + 60,) * 2)
    assert command("view")[:2] == (0, f"{record.as_uri()}\n")
    for name in ("lock.json", "decision.json"):
        (decided.record / name).unlink()
    assert command("view") == (0, f"{provisional.as_uri()}\n", "")
    os.utime(provisional, (record.stat().st_mtime - 60,) * 2)
    assert command("view") == (0, f"{record.as_uri()}\n", "")
    plan = decided.plan_path(rehearsal=False)
    whole = plan.read_text()
    plan.write_text(whole.replace("cells:\n", 'cells:\n  - "bm25-plain x whole_doc"\n'))
    assert command("view")[2]
    plan.write_text(whole)
    labels = decided.labels_path.read_text()
    decided.labels_path.write_text(labels.replace('"grade": 0', '"grade": 1', 1))
    assert command("view")[2]
    decided.labels_path.write_text(labels)
    assert not command("view")[2]
    for damaged in ("[]", "{}", "no JSON"):
        decided.results_path.write_text(damaged)
        code, _, told = command("view")
        assert (code, bool(told)) == (0, True)
    decided.results_path.unlink()
    assert command("view")[2]


def test_the_number_of_documents_is_said_before_they_are_drawn(tmp_path, command):
    version = make_version(tmp_path)
    corpus = write_corpus(tmp_path / "corpus")
    assert command("init", "--size", "5", "--corpus-path", str(corpus))[0] == 0
    assert [version.plan(rehearsal=which).sample.size for which in (False, True)] == [5, 5]
    assert len(load_corpus(version.corpus_path)[1]) == 5
    assert command("init", "--size", "5")[0] == 0
    code, _, err = command("init", "--size", "6")
    assert (code, str(version.plan_path(rehearsal=False)) in err) == (2, True)


def test_a_cell_that_is_none_is_refused_before_anything_is_embedded(version, command, monkeypatch):
    def run(*_):
        raise AssertionError("embedded before the choice was looked at")

    monkeypatch.setattr(Evening, "make_runs", run)
    for cell, signed, said in (
        ("minilm-l6-v2 x fixed_token_512", True, "'minilm-l6-v2 x fixed_token_512_50'?"),
        ("recomended", False, "'recommended'?"),
        ("nonsense", True, "bm25 x whole_doc"),
    ):
        code, _, err = command("choose", cell, *(["--reason=why", "--by=me"] if signed else []))
        assert (code, said in err) == (2, True), err


def test_a_plan_of_a_trial_that_is_not_begun_is_over_what_it_begins_with(version, command):
    before = contents(version.work.parent)
    code, out, err = command("plan", "--try")
    assert code == 1
    assert version.number_name in err
    assert f"done: {len(load_queries(version.queries_path))} queries" in out
    assert f"done: {load_corpus(version.corpus_path)[0].n_documents} documents sampled" in out
    assert contents(version.work.parent) == before
    trial = tried(version)
    before = contents(version.work.parent)
    code, out, _ = command("plan", "--try")
    assert (code, str(trial.folder.parent) in out or "(trial)" in out.splitlines()[0]) == (1, True)
    assert command("view", "--try")[0] == 3
    assert contents(version.work.parent) == before


def test_a_trial_is_named_in_one_way_and_found_by_flag_and_by_place(version, command, capsys):
    trial = tried(version)
    assert tried(version) == trial
    flags = f"{version.flags} --try"
    by_flag = version_of(Namespace(source="demo", eval_set_path=version.folder.parent, trial=True))
    by_place = version_of(Namespace(source="demo", eval_set_path=trial.folder.parent))
    assert {(one.folder, one.record, one.judging, one.rehearsal) for one in (by_flag, by_place, trial)} == {
        (trial.folder, trial.record, trial.judging, True)
    }
    assert by_flag.tried_from is not None
    assert (trial.flags, trial.viewed, trial.origin) == (flags, flags, replace(version, rehearsal=False))
    assert replace(version, rehearsal=True).viewed == f"{version.flags} --rehearse"
    printed = [line for line in str(next_step(trial)).splitlines() if DRIVER in line]
    assert printed
    assert all(flags in line and "--rehearse" not in line for line in printed), printed
    assert f"next {flags}" in command("next")[1]
    here = f"--eval-set-path={trial.folder.parent}"
    assert cli.main(["next", "demo", here]) == 0
    assert "(rehearsal)" in capsys.readouterr().out.splitlines()[0]
    assert cli.main(["run", "demo", here, "--try"]) == 2
    assert not (trial.folder.parent / ".work" / "demo" / "try").exists()
    for verb in ("run", "choose", "explore", "plan", "next", "view"):
        assert "--try" in command("help", verb)[1]


def test_grades_of_a_trial_are_taken_by_its_flag_alone(version, command):
    trial = tried(version)
    preregister(trial)
    assert "--try means that one" in command("labels", "agreement")[2]
    assert command("labels", "withdraw", "--judge", "nobody", "--try")[0] == 2
    code, _, err = command("labels", "page", "--try")
    assert (code, f"run {version.flags} --try" in err) == (2, True)
    assert not version.preregistration_path.exists()


@pytest.mark.parametrize(
    "place",
    ["v1", "v1/runs", "v1/rehearsal", "v1/labels.jsonl", ".work", ".work/demo", ".work/demo/v1/spend/ledger.jsonl"],
)
def test_a_link_that_leads_out_of_a_set_is_not_written_through(waiting, tmp_path, place):
    """Of a set of a stranger: writing would follow it, and what killed writers left there would be removed."""
    linked, outside = waiting.folder.parent / place, tmp_path / "outside"
    if linked.is_dir():
        linked.rename(outside)
    elif not linked.suffix:
        outside.mkdir()
    (outside / ".tmp-mine").write_text("mine") if outside.is_dir() else outside.write_text("mine")
    linked.parent.mkdir(parents=True, exist_ok=True)
    linked.symlink_to(outside)
    before = contents(tmp_path)
    for words in ("run", "choose recommended", "explore 'bm25 x whole_doc'", "labels withdraw --judge=x", "view"):
        verb, *rest = shlex.split(words)
        verbs = [verb, rest.pop(0)] if verb == "labels" else [verb]
        code, said = called(*verbs, "demo", *rest, f"--eval-set-path={waiting.folder.parent}")
        assert (code, str(linked) in said) == (4, True), (words, said)
    assert contents(tmp_path) == before


def test_a_link_that_stays_in_its_set_is_followed(waiting):
    runs = waiting.folder / "runs"
    runs.rename(waiting.folder.parent / "runs")
    runs.symlink_to(waiting.folder.parent / "runs")
    assert called("next", "demo", f"--eval-set-path={waiting.folder.parent}") == (0, "")


@pytest.mark.parametrize("damaged", [{"max_tokens": 120}, {"encoder": 5}, {"encoder": "x", "revision": 1}, {}])
def test_a_cells_file_whose_encoder_cannot_be_named_is_one_message(waiting, damaged):
    path = waiting.cell_path("minilm-l6-v2 x fixed_token_512_50")
    path.write_bytes(json_bytes(read_json(path) | {"encoder": damaged}))
    code, said = called("run", "demo", f"--eval-set-path={waiting.folder.parent}")
    assert (code, str(path) in said) == (2, True), said
