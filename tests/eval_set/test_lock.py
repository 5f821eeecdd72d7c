import bz2
import json
import random
import re
import shutil
from pathlib import Path

import pytest

from runner.base import places
from runner.base.canonical import digest, file_sha256, json_bytes, json_line, read_json, slug
from runner.base.errors import IntegrityError
from runner.base.places import CHECKOUT
from runner.commands import main as cli
from runner.eval_set import door
from runner.eval_set.catalog import SOURCES
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.labels import load_labels
from runner.eval_set.lock import locked_files, verify_lock, verify_version, write_lock
from runner.eval_set.plan import default_cells
from runner.eval_set.preregistration import preregister, verified_preregistration
from runner.eval_set.runs import read_arms, read_lists, read_reading, read_run
from runner.eval_set.version import (
    Version,
    load_cell_file,
    load_corpus,
    load_decision,
    load_queries,
    load_receipt,
    load_results,
)
from runner.evening.remake import verify_record
from runner.tools.matrix import runs_of
from tests.conftest import called
from tests.support.evening_process import run
from tests.support.parsers import readers
from tests.support.small_set import begin, make_version

CELLS = [slug(cell) for cell in default_cells(SOURCES["demo"], rehearsal=False)]
LOCKED = sorted(
    [
        *("corpus.jsonl", "decision.json", "judge-v1.md", "labels.jsonl", "lists.json.bz2", "plan.yaml"),
        *("preregistration.json", "queries.yaml", "receipt.json", "results.html", "results.json"),
        *(f"cells/{cell}.json" for cell in (*CELLS, "aa")),
        *(f"runs/{cell}{ending}.tsv.bz2" for cell in (*CELLS, "aa") for ending in ("", ".chunks")),
    ]
)
"""Every file of a record whose plan is the default one."""


@pytest.fixture(name="record")
def _record(decided_evening, tmp_path):
    """A copy of the locked record that a test may damage."""
    record = make_version(tmp_path).record
    shutil.copytree(make_version(decided_evening).record, record)
    return record


@pytest.fixture(name="command")
def _command(tmp_path, monkeypatch):
    monkeypatch.setenv(places.CACHE_VARIABLE, str(tmp_path / ".cache"))
    where = ["--source=demo", f"--eval-set-path={tmp_path / 'eval-sets' / 'demo'}"]
    return lambda *arguments: cli.main([*arguments, *where])


@pytest.fixture(name="at")
def _at(record, tmp_path, monkeypatch):
    """The version whose record is the copy, seen from a folder without files."""
    monkeypatch.setenv(places.CACHE_VARIABLE, str(tmp_path / ".cache"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return make_version(tmp_path)


def flip(path, position=None):
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if position is None else position] ^= 1
    path.write_bytes(content)


def test_the_whole_record_is_locked_and_nothing_else(record):
    assert locked_files(record) == LOCKED
    lock = verify_lock(record)
    assert sorted(lock.files) == LOCKED
    assert lock.root_sha256 == digest(lock.files)


def test_a_record_as_it_was_locked_is_verified(record, command, capsys):
    assert command("verify") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"demo v1 record: {len(LOCKED)} files as locked, root {verify_lock(record).root_sha256}",
    ]


@pytest.mark.parametrize("name", LOCKED)
def test_a_flipped_byte_or_a_missing_file_makes_every_command_exit_4_and_names_the_file(record, at, capsys, name):
    """Every verb that reads a version takes its turn over the files."""
    commands = [words for words, file in readers(at) if file in ("", name)]
    words = commands[LOCKED.index(name) % len(commands)]
    for damage, kind in ((flip, "changed (locked "), (Path.unlink, "missing")):
        damage(record / name)
        assert cli.main(words) == 4
        said = capsys.readouterr()
        assert f"{record / name}: {kind}" in said.err
        assert said.out == ""


def test_what_git_ignores_is_not_to_be_restored_from_it(record, monkeypatch):
    (record / "results.json").write_bytes(b"{}")
    for ignored, is_anew in (([], False), (["lock.json", "results.json"], True)):
        monkeypatch.setattr(door, "ignored", lambda _, names=ignored: names)
        with pytest.raises(IntegrityError) as raised:
            verify_lock(record)
        assert ("decide again" in str(raised.value)) is is_anew


def test_a_flipped_bit_anywhere_in_the_lock_is_found(record):
    size = (record / LOCK_NAME).stat().st_size
    whole = (record / LOCK_NAME).read_bytes()
    for position in [0, 1, 2, size - 2, size - 1, *random.Random(1).sample(range(size), 80)]:
        flip(record / LOCK_NAME, position)
        with pytest.raises(IntegrityError, match=r"lock\.json|missing|changed"):
            verify_lock(record)
        (record / LOCK_NAME).write_bytes(whole)
    assert verify_lock(record) is not None


EDITS = {
    "drop a file": lambda lock: lock["files"].pop("labels.jsonl"),
    "take another digest": lambda lock: lock["files"].update({"labels.jsonl": "0" * 64}),
    "add a file": lambda lock: lock["files"].update({"more.txt": "0" * 64}),
    "add a field": lambda lock: lock.update(note="edited"),
    "drop the root": lambda lock: lock.pop("root_sha256"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_lock_makes_every_command_exit_4(record, at, capsys, edit):
    commands, lock = readers(at), read_json(record / LOCK_NAME)
    edit(lock)
    (record / LOCK_NAME).write_bytes(json_bytes(lock))
    for words, _ in commands:
        assert cli.main(words) == 4, words
        assert str(record / LOCK_NAME) in capsys.readouterr().err


def test_files_outside_the_lock_may_come_change_and_go(record, command):
    for name in ("rehearsal/results.json", "post-bulk/note.txt", ".DS_Store", "runs/.tmp-0123", "new.txt"):
        (record / name).parent.mkdir(exist_ok=True)
        (record / name).write_text("one")
        assert verify_lock(record) is not None
        (record / name).write_text("two")
        assert verify_lock(record) is not None
    (record / "new.txt").unlink()
    flip(record / "rehearsal" / "plan.yaml")
    assert locked_files(record) == LOCKED
    assert command("verify") == 0
    assert command("--dry-run") == 0


def test_verify_names_the_files_of_a_version_that_no_lock_holds(record, command, capsys):
    for name in (
        "results.htm",
        "runs/new.tsv.bz2",
        "notes/one.txt",
        "rehearsal/plan.yaml",
        ".hidden/one",
        "post-bulk/x",
    ):
        (record / name).parent.mkdir(exist_ok=True, parents=True)
        (record / name).write_text("new")
    assert command("verify") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "demo v1 record: 4 files that no lock holds: notes/one.txt, post-bulk/x, results.htm, runs/new.tsv.bz2"
    ]


def test_a_page_that_the_lock_does_not_hold_is_not_shown(record, command, capsys):
    lock = read_json(record / LOCK_NAME)
    del lock["files"]["results.html"]
    (record / LOCK_NAME).write_bytes(json_bytes(lock | {"root_sha256": digest(lock["files"])}))
    assert command("view") == 4
    said = capsys.readouterr()
    assert (said.out, str(record / "results.html") in said.err) == ("", True)


def test_a_record_is_locked_once(version):
    folder = version.record
    write_lock(folder)
    before = (folder / LOCK_NAME).read_bytes()
    names = sorted(path.name for path in folder.iterdir())
    with pytest.raises(IntegrityError, match="exists already; a record is locked once"):
        write_lock(folder)
    assert (folder / LOCK_NAME).read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == names


def test_a_lock_takes_in_no_stranger_and_no_run_of_a_cell_that_left_the_plan(version):
    (version.record / "notes.txt").write_text("mine")
    for name in ("runs/bm25-x-whole_doc.tsv.bz2", "runs/bm25-x-recursive_v1.tsv.bz2"):
        (version.record / name).parent.mkdir(exist_ok=True)
        (version.record / name).write_text("a run")
    files = write_lock(version.record).files
    assert "runs/bm25-x-whole_doc.tsv.bz2" in files
    assert not {"notes.txt", "runs/bm25-x-recursive_v1.tsv.bz2"} & set(files)


def _rehearse(record):
    """A locked rehearsal with the record's runs and results."""
    for name in ("runs", "cells"):
        shutil.copytree(record / name, record / "rehearsal" / name)
    for name in ("results.json", "lists.json.bz2"):
        shutil.copy(record / name, record / "rehearsal")
    write_lock(record / "rehearsal")


def test_a_rehearsal_has_a_lock_of_its_own(record, tmp_path):
    _rehearse(record)
    assert all(verify_version(make_version(tmp_path)))
    flip(record / "rehearsal" / "plan.yaml")
    with pytest.raises(IntegrityError, match=r"rehearsal/plan\.yaml: changed"):
        verify_version(make_version(tmp_path))
    assert verify_lock(record) is not None


def test_a_locked_rehearsal_holds_the_labels_that_it_was_scored_with_and_lets_more_follow(record, tmp_path):
    _rehearse(record)
    (record / LOCK_NAME).unlink()
    labels = record / "labels.jsonl"
    before = labels.read_bytes()
    labels.write_bytes(before + before.splitlines(keepends=True)[0])
    assert verify_version(make_version(tmp_path))[1] is not None
    lines = before.count(b"\n")
    for content in (before[:-1], before.replace(b'"grade": 3', b'"grade": 2', 1), b""):
        labels.write_bytes(content)
        with pytest.raises(IntegrityError, match=rf"labels\.jsonl: the first {lines} lines changed"):
            verify_version(make_version(tmp_path))


def test_what_restores_a_rehearsal_is_the_versions_folder_whose_files_its_lock_holds(record):
    _rehearse(record)
    (record / LOCK_NAME).unlink()
    (record / "queries.yaml").write_bytes(b"other: queries\n")
    with pytest.raises(IntegrityError, match=rf"git checkout -- {re.escape(str(record))},"):
        verify_lock(record / "rehearsal")


def test_a_version_that_is_frozen_and_not_locked_is_held_to_what_was_frozen(tmp_path, command, capsys):
    version = begin(tmp_path)
    preregister(version)
    assert command("verify") == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "demo v1: plans, queries and judge's instructions as they were frozen"
    )
    assert command("verify", "--deep") == 0
    assert "nothing was made anew" in capsys.readouterr().out
    version.judge_path.write_text("other words")
    assert command("verify") == 4
    assert "judge-v1.md changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "results.json",
        "labels.jsonl",
        pytest.param("decision.json", marks=pytest.mark.slow),
    ],
)
def test_a_decision_without_lock_is_not_locked_over_other_files(record, command, capsys, name):
    (record / LOCK_NAME).unlink()
    path = record / name
    path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    if name == "labels.jsonl":
        path.write_bytes(path.read_bytes().replace(b'"grade": 3', b'"grade": 2', 1))
    assert command() == 4
    said = capsys.readouterr().err
    assert f"{record / 'decision.json'} is not locked yet, and " in said
    assert "decide again" in said
    assert not (record / LOCK_NAME).exists()


@pytest.mark.parametrize("content", [pytest.param(b"{", marks=pytest.mark.slow), None])
@pytest.mark.parametrize("name", ["results.json", "receipt.json"])
def test_a_decision_without_lock_whose_results_are_gone_or_cut_is_one_message(record, command, capsys, name, content):
    (record / LOCK_NAME).unlink()
    (record / name).unlink() if content is None else (record / name).write_bytes(content)
    assert command() in (2, 4)
    said = capsys.readouterr().err
    assert str(record / name) in said
    assert said.count("per-source-eval: ") == 1
    assert not (record / LOCK_NAME).exists()


@pytest.mark.parametrize("content", [b"a page without the decision", None])
def test_a_run_killed_between_decision_and_page_writes_the_page_with_the_decision_and_locks_it(
    record, command, content
):
    (record / LOCK_NAME).unlink()
    page = record / "results.html"
    before = page.read_bytes()
    assert b"decided" in before
    page.unlink() if content is None else page.write_bytes(content)
    assert command() == 0
    assert page.read_bytes() == before
    verify_lock(record)


@pytest.mark.parametrize("with_lock", [True, False])
def test_labels_of_a_decided_version_are_final(record, command, capsys, tmp_path, with_lock):
    if not with_lock:
        (record / LOCK_NAME).unlink()
    before = (record / "labels.jsonl").read_bytes()
    more = tmp_path / "more.jsonl"
    more.write_text('{"query_id": "q01", "doc_id": "BILLS-117hr101ih", "grade": 3}\n')
    assert command("labels", "import", str(more), "--judge=another", "--person") == 2
    assert "its labels are final" in capsys.readouterr().err
    assert (record / "labels.jsonl").read_bytes() == before


def test_verify_says_that_a_decision_lost_its_lock(record, capsys):
    (record / "lock.json").unlink()
    assert cli.main(["verify", "--source=demo", f"--eval-set-path={record.parent}"]) == 4
    assert "has a decision.json and no lock.json" in capsys.readouterr().err


def relock(record):
    (record / LOCK_NAME).unlink()
    write_lock(record)


def edit(path, old, new):
    content, packed = path.read_bytes(), path.suffix == ".bz2"
    content = bz2.decompress(content) if packed else content
    assert old in content
    content = content.replace(old, new, 1)
    path.write_bytes(bz2.compress(content) if packed else content)


SUMMED = slug("sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1")
FORGED = {
    "results.json": ("results.json", b'"mean": 0.', b'"mean": 0.9'),
    "lists.json.bz2": ("lists.json.bz2", b'"depth": 10', b'"depth": 11'),
    "runs/bm25-x-whole_doc.tsv.bz2": ("runs/bm25-x-whole_doc.tsv.bz2", b"\t0\t", b"\t1\t"),
    "runs/aa.tsv.bz2": ("runs/aa.tsv.bz2", b"\t0\t", b"\t1\t"),
    "runs/aa.chunks.tsv.bz2": ("runs/aa.chunks.tsv.bz2", b"\t0\t", b"\t1\t"),
    f"runs/{SUMMED}.tsv.bz2": (f"runs/{SUMMED}.tsv.bz2", b"\t0\t", b"\t1\t"),
    "labels.jsonl": ("labels.jsonl", b'"grade": 3', b'"grade": 2'),
    "queries.yaml": ("queries.yaml", b"loans", b"gifts"),
    "corpus.jsonl": ("corpus.jsonl", b'"n_read": 1', b'"n_read": 2'),
    "judge-v1.md": ("judge-v1.md", b"e", b"E"),
    "preregistration.json": ("preregistration.json", b'"production"', b' "production"'),
    "plan.yaml": ("plan.yaml", b"min_gain: 0.02", b"min_gain: 0.01"),
}
"""A file by name, and an edit of it that only a digest inside another file contradicts."""


@pytest.mark.parametrize(("name", "old", "new"), FORGED.values(), ids=FORGED)
def test_a_file_forged_with_its_lock_is_contradicted_by_the_digests_in_others(record, command, capsys, name, old, new):
    """The commands take turns over the files."""
    edit(record / name, old, new)
    relock(record)
    gate = ("bulk-gate", "1000")
    for arguments in (("verify",), (("--dry-run",), ("view", "--passages"), gate)[list(FORGED).index(name) % 3]):
        assert command(*arguments) == 4
        assert f"{record / name}: " in capsys.readouterr().err


def test_a_page_over_other_results_is_contradicted(record):
    edit(record / "results.html", read_json(record / "decision.json")["results_sha256"].encode(), b"0" * 64)
    relock(record)
    with pytest.raises(IntegrityError, match=r"results\.html says 0000"):
        verify_lock(record)


def forge(record):
    """Results, decision, page and lock that agree with one another, and not with the runs."""
    edit(record / "results.json", b'"false_alarm": 0.', b'"false_alarm": 0.0')
    decision = read_json(record / "decision.json")
    before, now = decision["results_sha256"], file_sha256(record / "results.json")
    for name in ("decision.json", "results.html"):
        edit(record / name, before.encode(), now.encode())
    relock(record)


@pytest.mark.slow
def test_what_was_forged_throughout_is_found_when_it_is_made_anew(record, command, capsys):
    assert command("verify", "--deep") == 0
    said = "results.json, lists.json.bz2, results.html, decision.json made anew byte for byte"
    assert said in capsys.readouterr().out
    forge(record)
    assert command("verify") == 0
    assert command("verify", "--deep") == 4
    said = capsys.readouterr().err
    assert "results.json, results.html, decision.json" in said
    assert "outcome" in said


@pytest.mark.slow
def test_documents_that_are_gone_or_edited_are_named_when_their_passages_are_made_anew(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus"
    monkeypatch.setattr(Version, "embedded_corpus", property(lambda _: corpus))
    run(tmp_path)
    version = make_version(tmp_path)
    assert verify_record(version, deep=True)
    gone, edited = sorted(corpus.iterdir())[:2]
    gone.unlink()
    edit(edited, b"This Act", b"That Act")
    with pytest.raises(IntegrityError, match=f"{gone.stem}.*{edited.stem}"):
        verify_record(version, deep=True)


@pytest.mark.slow
def test_a_rehearsal_is_made_anew_from_the_labels_that_it_was_scored_with(tmp_path, monkeypatch):
    version = make_version(tmp_path, rehearsal=True)
    run(tmp_path, rehearsal=True)
    labels = version.labels_path.read_bytes()
    before = verify_record(version, deep=True)[-1]
    assert before.endswith("decision.json made anew byte for byte")
    first = json.loads(labels.splitlines()[0])
    version.labels_path.write_bytes(labels + json_line(first | {"judge": "another", "round": 2}).encode() + b"\n")
    assert verify_record(version, deep=True)[-1] == before
    # The page of a release with another template cannot be made again; all else is.
    monkeypatch.setattr("runner.evening.remake.TEMPLATE_VERSION", 2)
    told = verify_record(version, deep=True)[-1]
    assert told.partition(":")[2].startswith(" results.json, lists.json.bz2, decision.json made anew byte for byte;")


@pytest.mark.parametrize("name", ["results.json", "runs/bm25-x-whole_doc.tsv.bz2", "lock.json", "cells"])
def test_a_link_in_the_place_of_a_locked_file_is_found(record, tmp_path, name):
    (record / name).rename(tmp_path / "moved")
    (record / name).symlink_to(tmp_path / "moved")
    with pytest.raises(IntegrityError, match="link"):
        verify_lock(record)
    if name == "results.json":
        with pytest.raises(IntegrityError, match="link"):
            load_results(make_version(tmp_path))


READERS = {
    "results.json": lambda version: load_results(version),
    "decision.json": lambda version: load_decision(version),
    "receipt.json": lambda version: load_receipt(version.record / "receipt.json"),
    "queries.yaml": lambda version: load_queries(version.queries_path),
    "corpus.jsonl": lambda version: load_corpus(version.corpus_path),
    "labels.jsonl": lambda version: load_labels(version.labels_path),
    "plan.yaml": lambda version: version.plan(),
    "preregistration.json": verified_preregistration,
    "cells/aa.json": lambda version: load_cell_file(version.cell_path("aa")),
    "lists.json.bz2": lambda version: read_lists(version.lists_path),
    "runs/aa.tsv.bz2": lambda version: read_run(version.run_path("aa"), "aa", []),
    "runs/aa.chunks.tsv.bz2": lambda version: read_reading(version.chunk_run_path("aa"), []),
    f"runs/{SUMMED}.tsv.bz2": lambda version: read_arms(version.record / f"runs/{SUMMED}.tsv.bz2", []),
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_of_a_version_goes_through_the_door(record, tmp_path, name):
    """Whatever calls it: no command has to remember."""
    with (record / name).open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(IntegrityError, match=rf"{name}: changed"):
        READERS[name](make_version(tmp_path))


def test_files_of_a_record_are_parsed_by_its_readers_alone():
    """What is read of a record elsewhere is read after `held` or `verified`, or of a lock that was verified."""
    names = "results|decision|receipt|lock|preregistration|opened"
    plain = re.compile(rf"(read_json|read_jsonl|read_yaml)\((?!held|verified)[^()]*({names})(\.json|_path)")
    files = (CHECKOUT / "runner").rglob("*.py")
    found = {path.relative_to(CHECKOUT).as_posix() for path in files if plain.search(path.read_text())}
    assert found == {"runner/eval_set/lock.py", "runner/evening/remake.py"}


def test_compare_and_other_tools_read_no_results_that_were_edited(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = "bm25 x whole_doc"
    path = (record / "results.json").relative_to(tmp_path)
    edit(record / "results.json", b'"mean": 0.', b'"mean": 0.9')
    (tmp_path / "link.json").symlink_to(record / "results.json")
    for each in (path, tmp_path / "link.json"):
        assert called("compare", each, "--cell", cell)[0] == 4
    with pytest.raises(IntegrityError):
        runs_of(path)
