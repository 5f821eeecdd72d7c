"""A run that dies at any moment is finished by the next one, with the same bytes."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.eval_set.lock import verify_lock
from tests.support.evening_process import record_of, run
from tests.support.forked import processes
from tests.support.small_set import make_version

KILLS = 10
KILLED = -signal.SIGKILL


def start(target, *arguments):
    process = processes.Process(target=target, args=arguments)
    process.start()
    return process


def exit_codes(started):
    for process in started:
        process.join(timeout=120)
    return [process.exitcode for process in started]


def record(folder):
    """The version's files but for those that a clock has a part in; nothing of a killed run is beside them."""
    assert not list(folder.rglob(".tmp-*"))
    return record_of(make_version(folder).folder)


@pytest.mark.slow
def test_a_run_killed_ten_times_in_a_row_is_finished_with_the_same_bytes(tmp_path, decided_evening):
    assert exit_codes([start(time.sleep, 0)]) == [0]
    began, generator = time.perf_counter(), random.Random(20)
    assert exit_codes([start(run, tmp_path / "undisturbed")]) == [0]
    seconds = time.perf_counter() - began
    for _ in range(KILLS):
        process = start(run, tmp_path / "killed")
        # Ten of the longest waits are less than half of a run, so that even a machine grown faster is not done.
        process.join(timeout=generator.uniform(seconds / 60, seconds / 25))
        process.kill()
        assert exit_codes([process]) == [KILLED]
    finished_as(decided_evening, tmp_path / "killed")


def finished_as(whole, folder):
    """The run in `folder`, which died, is finished with the bytes of one that did not."""
    assert not verify_lock(make_version(folder).record)
    run(folder)
    assert record(folder) == record(whole)
    assert verify_lock(make_version(folder).record)


USUAL = ("corpus.jsonl", "labels.jsonl", "lock.json")
SELDOM = (
    "plan.yaml",
    "preregistration.json",
    "aa.tsv.bz2",
    "results.json",
    "corpus.tar.zst",
    "manifest.json",
    "bm25-x-whole_doc.tsv.bz2",
    "bm25-x-whole_doc.json",
)
SELDOM += ("batch-0001.jsonl", "receipt.json", "results.html", "decision.json")
FILES = USUAL + SELDOM


@pytest.fixture(name="moments", scope="module")
def _moments(tmp_path_factory):
    """A folder by file name: what lies on the disk just before the first file of that name is put in its place."""
    folder, kept = tmp_path_factory.mktemp("alive"), tmp_path_factory.mktemp("moments")

    def keep(name: str) -> None:
        if name in FILES and not (kept / name).exists():
            shutil.copytree(folder, kept / name)

    with pytest.MonkeyPatch.context() as patch:
        _before_any_file_appears(patch, keep)
        run(folder)
    return kept


def _before_any_file_appears(monkeypatch: pytest.MonkeyPatch, call: Callable[[str], None]) -> None:
    """`call` with the name of each file just before it is renamed or linked to its place."""
    replace, link = Path.replace, os.link

    def told_replace(self: Path, target: Path) -> Path:
        call(Path(target).name)
        return replace(self, target)

    def told_link(source: str, target: str, **more: bool) -> None:
        call(Path(target).name)
        link(source, target, **more)

    monkeypatch.setattr(Path, "replace", told_replace)
    monkeypatch.setattr("os.link", told_link)


@pytest.mark.parametrize("name", [*USUAL, *(pytest.param(name, marks=pytest.mark.slow) for name in SELDOM)])
def test_dying_just_before_any_file_appears_costs_nothing(tmp_path, decided_evening, moments, name):
    shutil.copytree(moments / name, tmp_path, dirs_exist_ok=True)
    finished_as(decided_evening, tmp_path)


@pytest.mark.slow
def test_two_runs_at_once_do_not_hurt_each_other(tmp_path, decided_evening):
    assert exit_codes([start(run, tmp_path) for _ in range(2)]) == [0, 0]
    assert record(tmp_path) == record(decided_evening)
