import os
from pathlib import Path

import pytest

from samplers.corpus import parse, shares
from samplers.corpus.inputs import corpus_files
from samplers.corpus.outcome import Outcome
from samplers.corpus.parse import read_corpus
from tests.support.reader_goldens import fixtures

DIES_AT_THE_THIRD = """
import os, sys
from samplers.corpus import shares
from samplers.corpus.outcome import outcome

def dies(source, options, file, seen=[]):
    seen.append(file)
    if len(seen) < 3:
        return outcome(source, options, file)
    sys.stdout.buffer.write(b"\\x80\\x05half of a frame")
    sys.stdout.buffer.flush()
    os._exit(1)

shares.outcome = dies
shares.read_share()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Bills twice, so that the second half holds duplicates, and a damaged one."""
    for number in range(2):
        for path in fixtures("bills"):
            (tmp_path / f"{number}-{path.name}").write_bytes(path.read_bytes())
    (tmp_path / "damaged.xml").write_bytes(b"<bill>")
    return tmp_path


def processors(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(shares, "_n_processors", lambda: n)
    monkeypatch.setattr(shares, "BYTES_OF_SHARE", 1)


def found(folder: Path) -> list[Outcome]:
    with corpus_files(folder, "bills") as files:
        return list(shares.outcomes("bills", frozenset(), files))


@pytest.fixture
def read_here(monkeypatch):
    """Places of the files that this process read."""
    places, read = [], shares.outcome
    monkeypatch.setattr(shares, "outcome", lambda *given: places.append(given[-1].place) or read(*given))
    return places


@pytest.mark.parametrize("n", [2, 3, pytest.param(100, marks=pytest.mark.slow)])
def test_several_processes_find_what_one_finds(folder, monkeypatch, n):
    alone = found(folder)
    processors(monkeypatch, n)
    assert found(folder) == alone


def test_a_corpus_read_by_two_processes_is_the_same_reading(folder, monkeypatch):
    monkeypatch.setattr(parse, "QUARANTINE_LIMIT", 1)
    alone = read_corpus(folder, "bills")
    processors(monkeypatch, 2)
    assert read_corpus(folder, "bills") == alone
    assert alone.quarantined
    assert alone.n_duplicates


def test_about_half_of_the_bytes_are_read_by_another_process(folder, monkeypatch, read_here):
    processors(monkeypatch, 2)
    n = len(found(folder))
    here = sum((folder / place).stat().st_size for place in read_here)
    whole = sum(path.stat().st_size for path in folder.iterdir())
    assert 0 < len(read_here) < n
    assert 0.3 * whole < here < 0.7 * whole


def test_a_small_folder_and_an_empty_one_start_no_process(folder, monkeypatch, read_here):
    monkeypatch.setattr(shares, "_n_processors", lambda: 8)
    assert len(found(folder)) == len(read_here)
    assert list(shares.outcomes("bills", frozenset(), [])) == []


@pytest.mark.parametrize("program", ["import os; os._exit(9)", DIES_AT_THE_THIRD])
def test_what_a_killed_process_left_is_read_here(folder, monkeypatch, read_here, program):
    alone = found(folder)
    processors(monkeypatch, 2)
    monkeypatch.setattr(shares, "_READ", program)
    read_here.clear()
    assert found(folder) == alone
    assert len(read_here) == len(alone) - (2 if program == DIES_AT_THE_THIRD else 0)


def test_who_stops_taking_outcomes_ends_the_processes(folder, monkeypatch):
    started, begin = [], shares.subprocess.Popen

    def noted(*given, **named):
        started.append(begin(*given, **named))
        return started[-1]

    processors(monkeypatch, 3)
    monkeypatch.setattr(shares.subprocess, "Popen", noted)
    with corpus_files(folder, "bills") as files:
        outcomes = shares.outcomes("bills", frozenset(), files)
        next(outcomes)
        outcomes.close()
    assert len(started) == 2
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
