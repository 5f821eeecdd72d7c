"""A run that dies at any moment is finished by the next one, with the same bytes."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.lock import verify_lock
from tests.evening_process import run
from tests.small_set import make_version

CHECKOUT = Path(__file__).resolve().parents[1]
KILLS = 10


def start(folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.evening_process", str(folder)]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    """The record of a run that nobody killed, but for what a clock has a part in; and how long it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    began = time.perf_counter()
    process = start(folder)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    return record(folder), time.perf_counter() - began


def record(folder: Path) -> dict[str, bytes]:
    version = make_version(folder)
    with_clock = {"receipt.json", "results.html", "lock.json", "decision.json"}
    files = {path.relative_to(version.folder).as_posix(): path for path in version.folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(files.items()) if name not in with_clock}


def test_ten_kills_leave_the_same_bytes(tmp_path, undisturbed):
    expected, seconds = undisturbed
    generator = random.Random(20)
    killed = 0
    for _ in range(KILLS):
        process = start(tmp_path)
        try:
            process.wait(timeout=generator.uniform(0.2, max(seconds, 0.5)))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        process.communicate()
    assert killed, "no run was killed: the moments are too late"
    process = start(tmp_path)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    assert record(tmp_path) == expected
    assert verify_lock(make_version(tmp_path).record)


class Died(BaseException):
    """What a kill is to the process that dies: nothing may catch it."""


def _dies_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The process dies just before it would put a file of this name in its place."""
    replace, link = Path.replace, __import__("os").link

    def dying_replace(self: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise Died
        return replace(self, target)

    def dying_link(source: object, target: object, **more: object) -> None:
        if Path(str(target)).name == name:
            raise Died
        link(source, target, **more)

    monkeypatch.setattr(Path, "replace", dying_replace)
    monkeypatch.setattr("os.link", dying_link)


FILES = (
    "plan.yaml",
    "corpus.tar.zst",
    "corpus.jsonl",
    "preregistration.json",
    "manifest.json",
    "bm25-x-whole_doc.tsv",
    "bm25-x-whole_doc.json",
    "aa.tsv",
    "batch-0001.jsonl",
    "labels.jsonl",
    "results.json",
    "receipt.json",
    "results.html",
    "decision.json",
    "lock.json",
)


@pytest.mark.parametrize("name", FILES)
def test_dying_just_before_any_file_appears_costs_nothing(tmp_path, undisturbed, name):
    expected, _ = undisturbed
    with pytest.MonkeyPatch.context() as patch:
        _dies_at(patch, name)
        with pytest.raises(Died):
            run(tmp_path)
    run(tmp_path)
    assert record(tmp_path) == expected
    assert verify_lock(make_version(tmp_path).record)


def test_two_runs_at_once_do_not_hurt_each_other(tmp_path, undisturbed):
    expected, _ = undisturbed
    run(tmp_path / "warm-up-of-imports")
    processes = [start(tmp_path / "both") for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert record(tmp_path / "both") == expected
