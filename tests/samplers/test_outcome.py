import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.base import processes
from runner.base.places import CHECKOUT
from samplers.corpus import outcome
from samplers.corpus.inputs import corpus_files
from samplers.corpus.outcome import Outcome
from tests.samplers.test_inputs import in_database, in_zip
from tests.support.reader_goldens import fixtures
from tests.support.reading_processes import dies, dies_at_the_third, elsewhere, hangs
from tests.support.small_bills import in_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Bills twice, so that the second half holds duplicates, and a damaged one."""
    files = {f"{n}-{path.name}": path.read_bytes() for n in range(2) for path in fixtures("bills")}
    return in_folder(tmp_path / "bills", files | {"damaged.xml": b"<bill>"})


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Makes any corpus large and each file a batch."""
    monkeypatch.setattr(outcome, "SMALL", 0)
    monkeypatch.setattr(outcome, "BATCH", 1)
    monkeypatch.setattr(outcome.os, "cpu_count", lambda: 2)
    return monkeypatch


def found(folder: Path) -> list[Outcome]:
    with corpus_files(folder, "bills_documents") as files:
        return list(outcome.outcomes("bills", frozenset(), files))


def as_it_is(place: Path, _: object) -> Path:
    return place / "bills"


@pytest.mark.parametrize(
    ("read", "laid_down"),
    [*((elsewhere, lay) for lay in (as_it_is, in_zip, in_database)), (dies, as_it_is), (dies_at_the_third, in_zip)],
)
def test_two_processes_find_what_one_finds_even_if_they_die(folder, tmp_path, beside, laid_down, read):
    corpus = laid_down(tmp_path, {path.name: path.read_bytes() for path in folder.iterdir()})
    with beside.context() as small:
        small.setattr(outcome, "SMALL", 10**9)
        small.setattr(processes, "ProcessPoolExecutor", None)
        alone = found(corpus)
    if read is elsewhere:
        beside.setattr(outcome, "outcome", None)
    beside.setattr(outcome, "_all", read)
    assert found(corpus) == alone


def test_who_stops_does_not_wait_for_the_file_that_a_process_is_at_and_ends_it(folder, beside):
    pools, begin = [], processes.ProcessPoolExecutor
    beside.setattr(processes, "ProcessPoolExecutor", lambda *a, **b: pools.append(begin(*a, **b)) or pools[-1])
    beside.setattr(outcome, "_all", hangs)
    with corpus_files(folder, "bills_documents") as files:
        outcomes = outcome.outcomes("bills", frozenset(), files)
        next(outcomes)
        started, began = list(pools[0]._processes), time.monotonic()
        outcomes.close()
    assert started
    assert time.monotonic() - began < 30
    for number in started:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


SCRIPT = """
from pathlib import Path
from samplers.corpus import outcome
from samplers.corpus.parse import read_corpus

outcome.SMALL = 0
print(len(read_corpus(Path({folder!r}), "bills", whole=False).documents))
"""


def test_a_script_without_a_guard_is_not_run_again_by_the_processes(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(folder)))
    paths = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=paths, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith("reading ")] == []
