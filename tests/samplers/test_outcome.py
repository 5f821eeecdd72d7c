import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.base.places import CHECKOUT
from samplers.corpus import outcome
from samplers.corpus.inputs import CorpusFile, corpus_files
from samplers.corpus.outcome import Outcome
from tests.samplers.test_inputs import in_database, in_zip
from tests.support.reader_goldens import fixtures
from tests.support.small_bills import in_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Bills twice, so that the second half holds duplicates, and a damaged one."""
    files = {f"{n}-{path.name}": path.read_bytes() for n in range(2) for path in fixtures("bills")}
    return in_folder(tmp_path / "bills", files | {"damaged.xml": b"<bill>"})


def processors(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(outcome, "_n_processors", lambda: n)
    for bytes_of in ("BYTES_OF_PROCESS", "BYTES_OF_BATCH"):
        monkeypatch.setattr(outcome, bytes_of, 1)


def found(folder: Path) -> list[Outcome]:
    with corpus_files(folder, "bills_documents") as files:
        return list(outcome.outcomes("bills", frozenset(), files))


def never(*_: object) -> Outcome:
    raise AssertionError("read here")


def dies(*_: object) -> None:
    os._exit(9)


def dies_at_the_third(source: str, options: frozenset[str], file: object, seen: list[object] = []) -> Outcome:  # noqa: B006
    seen.append(file)
    return outcome.outcome(source, options, file) if len(seen) < 3 else os._exit(9)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("laid_down", [None, in_zip, in_database])
def test_several_processes_find_what_one_finds(folder, tmp_path, monkeypatch, n, laid_down):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    corpus = laid_down(tmp_path, files) if laid_down else folder
    alone = found(corpus)
    processors(monkeypatch, n)
    monkeypatch.setattr(outcome, "partial", lambda read, *given: _Elsewhere(read, given))
    assert found(corpus) == alone


SCRIPT = """
from pathlib import Path
from samplers.corpus import outcome
from samplers.corpus.parse import read_corpus

outcome._n_processors, outcome.BYTES_OF_PROCESS = lambda: 2, 1
print(len(read_corpus(Path({folder!r}), "bills").documents))
"""


def test_a_script_without_a_guard_is_not_run_again_by_the_processes(tmp_path):
    (tmp_path / "bills").mkdir()
    for path in fixtures("bills"):
        if path.name.startswith("BILLS-"):
            (tmp_path / "bills" / path.name).write_bytes(path.read_bytes())
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path / "bills")))
    paths = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=paths, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith("reading ")] == []


def test_a_small_folder_and_an_empty_one_start_no_process(folder, monkeypatch):
    monkeypatch.setattr(outcome, "_n_processors", lambda: 8)
    monkeypatch.setattr(outcome, "ProcessPoolExecutor", never)
    assert len(found(folder)) == len(list(folder.iterdir()))
    assert list(outcome.outcomes("bills", frozenset(), [])) == []


@pytest.mark.parametrize("killed", [dies, dies_at_the_third])
def test_what_a_killed_process_left_is_read_here(folder, monkeypatch, killed):
    alone = found(folder)
    processors(monkeypatch, 2)
    if killed is dies:
        monkeypatch.setattr(outcome, "_begin", dies)
    else:
        # What this process reads after all is read by the true function.
        monkeypatch.setattr(outcome, "partial", lambda read, *given: _Partial(read, given))
    assert found(folder) == alone


class _Elsewhere:
    """Reads in another process alone."""

    def __init__(self, read: object, given: tuple[object, ...]) -> None:
        self.read, self.given, self.home = read, given, os.getpid()

    def __call__(self, file: object) -> Outcome:
        assert os.getpid() != self.home
        return self.read(*self.given, file)


class _Partial:
    """Reads here, and dies at the third file elsewhere."""

    def __init__(self, read: object, given: tuple[object, ...]) -> None:
        self.read, self.given, self.home = read, given, os.getpid()

    def __call__(self, file: object) -> Outcome:
        return (self.read if os.getpid() == self.home else dies_at_the_third)(*self.given, file)


def test_who_stops_taking_outcomes_ends_the_processes(folder, monkeypatch):
    pools, begin = [], outcome.ProcessPoolExecutor
    monkeypatch.setattr(outcome, "ProcessPoolExecutor", lambda *a, **b: pools.append(begin(*a, **b)) or pools[-1])
    processors(monkeypatch, 2)
    with corpus_files(folder, "bills_documents") as files:
        outcomes = outcome.outcomes("bills", frozenset(), files)
        next(outcomes)
        started = list(pools[0]._processes)
        outcomes.close()
    assert started
    for number in started:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_who_is_stopped_does_not_wait_for_the_file_that_a_process_is_at(folder, monkeypatch):
    processors(monkeypatch, 2)
    monkeypatch.setattr(outcome, "partial", lambda read, *given: _Slow(read, given))
    with corpus_files(folder, "bills_documents") as files:
        outcomes = outcome.outcomes("bills", frozenset(), files)
        next(outcomes)
        began = time.monotonic()
        outcomes.close()
    assert time.monotonic() - began < 5


class _Slow(_Partial):
    """Reads the first file, and takes a minute for any other."""

    def __call__(self, file: CorpusFile) -> Outcome:
        if not file.place.startswith("0-"):
            time.sleep(60)
        return self.read(*self.given, file)
