"""Judging by models in states where it must not, need not or cannot go on."""

import json
import shutil
from dataclasses import replace

import pytest
import yaml

from runner.base.canonical import jsonl_bytes, write_atomic
from runner.base.errors import BackendError, InputError, InputNeeded
from runner.embed.backends import LocalBackend
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels, version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.version import load_results
from runner.evening.evening import Evening
from runner.judge.answers import Importer
from runner.judge.models.api import JudgeOptions
from runner.judge.models.estimate import judging_left
from runner.judge.second_reading import export_doubles
from runner.tools.labels import import_files
from tests.evening.test_judged_evening import CHOICE, FIRST, SECOND, give, hired, second_opinion, spoken
from tests.evening.test_judged_evening import _corpus as _corpus
from tests.evening.test_judged_evening import _opened as _opened
from tests.support import anthropic_server as api
from tests.support.small_judging import MODEL, answer, everything, export
from tests.support.small_set import fake_encoders, make_version


def by_file(version, corpus, choice=None):
    return Evening(version, corpus, choice, backend=LocalBackend(fake_encoders))


@pytest.fixture(name="judged", scope="module")
def _judged(waiting_evening, tmp_path_factory):
    """Gives a version what one has of whose pool every pair was graded by file."""
    made = {}

    def judged(version, judge=FIRST, model=FIRST):
        if judge not in made:
            folder = tmp_path_factory.mktemp("judged")
            shutil.copytree(waiting_evening, folder, dirs_exist_ok=True)
            made[judge] = make_version(folder)
            grade(made[judge], judge, model)
        for part in ("folder", "work"):
            shutil.copytree(getattr(made[judge], part), getattr(version, part), dirs_exist_ok=True)

    return judged


def grade(version, judge, model):
    for path in batch_files(version.judging):
        give(version, path, spoken, judge, model)


def read_twice(version):
    for path in export_doubles(version, version_labels(version), 0.1).paths:
        give(version, path, second_opinion, SECOND, SECOND)


def rehearsal_of(version):
    return replace(version, rehearsal=True)


@pytest.mark.slow
def test_a_rehearsal_beside_a_locked_record_adds_no_label(opened, corpus, judged):
    version, server = opened
    judged(version, "a person", "")
    by_file(version, corpus, CHOICE).run()
    before = version.labels_path.read_bytes()
    hired(rehearsal_of(version), corpus, server).run()
    assert version.labels_path.read_bytes() == before
    assert not server.requests
    verify_version(version)


@pytest.mark.slow
def test_a_rehearsal_decided_but_not_locked_keeps_the_record_from_judging(opened, corpus):
    version, server = opened
    rehearsal = rehearsal_of(version)
    with pytest.raises(InputNeeded, match="to judge"):
        by_file(rehearsal, corpus).run()
    grade(rehearsal, "a person", "")
    by_file(rehearsal, corpus, CHOICE).run()
    (rehearsal.record / "lock.json").unlink()
    before = version.labels_path.read_bytes()
    with pytest.raises(InputError, match=r"decided but not locked\. Run it with --rehearse first"):
        hired(version, corpus, server).run()
    assert version.labels_path.read_bytes() == before
    assert by_file(rehearsal, corpus, CHOICE).run()


def test_a_checkout_of_labels_without_batches_is_decided_with_judges_at_hand(opened, corpus, judged):
    version, server = opened
    judged(version)
    read_twice(version)
    shutil.rmtree(version.judging)
    assert "chosen is" in hired(version, corpus, server).run()
    assert not server.asked


@pytest.mark.slow
def test_a_pair_that_somebody_else_read_again_is_not_asked_about_for_ever(opened, corpus, judged):
    version, server = opened
    judged(version)
    (path,) = export_doubles(version, version_labels(version), 0.1).paths
    server.always = {read_batch(path)[0].title.split(": ")[-1]: api.refusal}
    with pytest.raises(BackendError, match="labels import"):
        hired(version, corpus, server).run()
    done = {(label.query_id, label.doc_id) for label in load_labels(version.labels_path) if label.judge == SECOND}
    left = [row for row in read_batch(path) if (row.query_id, row.doc_id) not in done]
    answers = version.judging / "double-0001.answers.jsonl"
    answers.write_text("".join(json.dumps(second_opinion(row)) + "\n" for row in left))
    Importer(version).take_file(answers, judge="a person", model="", judged_on="2026-01-31")
    asked = len(server.asked)
    assert "chosen is" in hired(version, corpus, server).run()
    assert len(server.asked) == asked


def test_one_reading_by_a_model_beside_peoples_grades_asks_for_no_more_than_was_exported(opened, corpus, judged):
    version, _ = opened
    judged(version, "a person", "")
    (path,) = export_doubles(version, version_labels(version), 0.1).paths
    row = read_batch(path)[0]
    answers = version.judging / "one.jsonl"
    answers.write_text(json.dumps({**second_opinion(row), "batch": row.batch}) + "\n")
    Importer(version).take_file(answers, judge=SECOND, model=SECOND, judged_on="2026-01-31")
    with pytest.raises(InputNeeded, match="to be read by a second judge"):
        by_file(version, corpus, CHOICE).run()
    path.unlink()
    assert by_file(version, corpus, CHOICE).run()


def test_grades_of_a_model_wait_for_the_second_reading_that_the_plan_names(opened, corpus, judged):
    version, _ = opened
    judged(version)
    with pytest.raises(InputNeeded, match="48 pairs to be read by a second judge"):
        by_file(version, corpus, CHOICE).run()
    read_twice(version)
    assert by_file(version, corpus, CHOICE).run()


def plans_by_file(version, model=FIRST):
    """Both plans name one model, twice, as one that answers by file."""
    judges = {"first": {"api": "files", "model": model}, "second": {"api": "files", "model": model, "share": 0.2}}
    for rehearsal in (False, True):
        path = version.plan_path(rehearsal=rehearsal)
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"judges": judges}))


def test_that_no_service_can_be_asked_is_said_before_anything_is_embedded(opened, corpus):
    version, server = opened
    plans_by_file(version)
    with pytest.raises(InputError, match="answer by file"):
        hired(version, corpus, server).run()
    assert not list(version.record.glob("runs/*"))


@pytest.mark.slow
def test_judges_that_answer_by_file_are_waited_for_twice_and_asked_by_nobody(opened, corpus, judged, capsys):
    version, server = opened
    plans_by_file(version)
    with pytest.raises(InputNeeded) as first:
        by_file(version, corpus, CHOICE).run()
    with pytest.raises(InputError, match="answer by file"):
        hired(version, corpus, server).run()
    for path in batch_files(version.judging):
        give(version, path, spoken, "one instance", FIRST)
    with pytest.raises(InputNeeded) as second:
        by_file(version, corpus, CHOICE).run()
    assert "88 pairs to be read by a second judge" in str(second.value)
    assert all(f"--model={FIRST}" in str(stop.value) for stop in (first, second))
    assert not any(f"run {version.viewed} --judge" in str(stop.value) for stop in (first, second)), (
        "nobody can be asked"
    )
    answers = []
    for path in batch_files(version.judging, "double"):
        answers.append(path.with_name(f"{path.stem}.answers.jsonl"))
        answers[-1].write_text("".join(json.dumps(second_opinion(row)) + "\n" for row in read_batch(path)))
    given = {"judge": "another instance", "judged_on": "2026-01-31"}
    assert import_files(version, answers, model=FIRST, **given) == 88
    assert "warning" not in capsys.readouterr().err
    assert "chosen is" in by_file(version, corpus, CHOICE).run()
    panel = load_results(version).judging
    assert (len(panel.graded), panel.graded == panel.read_again) == (1, True)


def test_first_grades_of_a_model_that_the_plan_does_not_name_are_refused(opened, corpus):
    version, _ = opened
    plans_by_file(version)
    with pytest.raises(InputNeeded):
        by_file(version, corpus).run()
    with pytest.raises(InputError, match=r"claude-sonnet-4-6 .*api: files, model: another-model"):
        give(version, batch_files(version.judging)[0], spoken, "ann", "another-model")
    assert not version.labels_path.exists()


def test_the_estimate_counts_second_readings_of_what_is_judged_already(opened, corpus, judged):
    version, server = opened
    judged(version)

    def left():
        return judging_left(version, version.plan(), JudgeOptions(url=server.url), [])

    assert f"{FIRST}, 0 pairs" in left().lines[0]
    # A tenth of 400, and the eight source documents that this judge graded below relevant.
    assert f"{SECOND}, 48 pairs" in left().lines[1]
    assert left().held > 0
    read_twice(version)
    assert f"{SECOND}, 0 pairs" in left().lines[1]
    assert left()[1:] == (0, 0)
    # A first reading in doubt opens its pair again, for a fuller one.
    doubted = [label.model_copy(update={"doubt": n < 3}) for n, label in enumerate(load_labels(version.labels_path))]
    write_atomic(version.labels_path, jsonl_bytes(label.model_dump() for label in doubted))
    assert [line.split(", ")[1].split()[0] for line in left().lines] == ["0", "3", "0"]


def test_an_export_that_was_killed_goes_on_as_if_it_had_not_been(version):
    missing = everything(version)
    whole = {path.name: path.read_bytes() for path in export(version, missing)}
    for path in batch_files(version.judging)[1:]:
        path.unlink()
    assert {p.name: p.read_bytes() for p in export(version, missing)} == whole


def test_answers_imported_before_a_batch_was_deleted_stay_what_they_were(version):
    missing = everything(version)
    first, second, *_ = export(version, missing)
    rows = [answer(row.query_id, row.doc_id, 2) for row in read_batch(second)]
    path = second.with_name(f"{second.stem}.answers.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    added = Importer(version).take_file(path, judge="j", model=MODEL, judged_on="2026-01-31")
    first.unlink()
    again = Importer(version).take_file(path, judge="j", model=MODEL, judged_on="2026-01-31")
    assert (again.added, again.known) == (0, added.added)


@pytest.mark.parametrize("how", [pytest.param("messages", marks=pytest.mark.slow), "batches"])
def test_what_was_paid_for_and_waits_is_not_counted_again(opened, corpus, monkeypatch, how):
    """A run that ends between the replies and their import, or while a message batch is at work."""
    version, server = opened
    if how == "messages":
        monkeypatch.setattr(
            "runner.judge.models.run_judges.Importer.take", lambda *_, **_kw: (_ for _ in ()).throw(OSError())
        )
    else:
        server.retrieved = [api.status(401, "invalid x-api-key", "authentication_error")] * 9
    with pytest.raises((BackendError, OSError)):
        hired(version, corpus, server, how=how, max_usd=5).run()
    lines = [line for path in version.judging.glob("replies/*/*.jsonl") for line in path.read_text().splitlines()]
    kept = {(row["query_id"], row["doc_id"]) for row in map(json.loads, lines)}
    n_paid = len(kept) if how == "messages" else len(server.asked)
    assert n_paid > 50
    left = judging_left(version, version.plan(), JudgeOptions(how=how, url=server.url), [])
    assert f"{FIRST}, {400 - n_paid} pairs" in left.lines[0]
