"""Every benchmark and simulation runs to its end at its smallest size."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runner.base.places import CHECKOUT

FOLDER = CHECKOUT / "benchmarks"
SHARED_PARTS = {"measuring.py", "run.py", "worlds.py", "findings.py"}
BENCHMARKS = sorted(path.name for path in FOLDER.glob("*.py") if path.name not in SHARED_PARTS)
EMBEDS = {"embed_local.py"}
FAST = {"null_gate.py", "simulate.py"}
READS_PROC = {"read_sources.py", "retrieve.py"}


def run(tmp_path: Path, name: str) -> subprocess.CompletedProcess[str]:
    """A benchmark at its smallest size, with an empty cache."""
    small = {"PSE_BENCH_SMALL": "1", "PYTHONPATH": str(CHECKOUT)}
    folders = {"PSE_SHARED": str(tmp_path / "shared"), "PER_SOURCE_EVAL_CACHE": str(tmp_path / "cache")}
    return subprocess.run(
        [sys.executable, str(FOLDER / name)],
        cwd=tmp_path,
        env=os.environ | small | folders,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def parameters() -> list[object]:
    linux = pytest.mark.skipif(sys.platform != "linux", reason="it reads peak memory from /proc")
    slow = set(BENCHMARKS) - FAST
    marks = [(pytest.mark.model, EMBEDS), (pytest.mark.slow, slow), (linux, READS_PROC)]
    return [pytest.param(name, id=name, marks=[mark for mark, names in marks if name in names]) for name in BENCHMARKS]


@pytest.mark.parametrize("name", parameters())
def test_a_benchmark_runs_to_its_end_and_prints_a_table(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, name)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert rows, done.stdout
    if not name.startswith("simulate"):
        assert {row.count("|") for row in rows} == {6}


def test_make_bench_runs_every_benchmark_and_no_simulation() -> None:
    sys.path.insert(0, str(FOLDER))
    try:
        from run import NO_BENCHMARKS, benchmarks
    finally:
        sys.path.remove(str(FOLDER))
    assert set(NO_BENCHMARKS) == SHARED_PARTS
    assert {path.name for path in benchmarks()} == {name for name in BENCHMARKS if not name.startswith("simulate")}


def test_the_contrasts_in_the_findings_are_those_that_their_command_prints_and_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "findings.svg"
    command = [sys.executable, str(FOLDER / "findings.py"), "--figure", str(drawn)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert drawn.read_bytes() == (CHECKOUT / "docs" / "findings.svg").read_bytes()
    printed = {
        name: cells for name, *cells in map(cells_of, done.stdout.splitlines()) if len(cells) == 5 and ", to " in name
    }
    page = (CHECKOUT / "docs" / "findings.md").read_text(encoding="utf-8")
    told = {name: cells for name, *cells in map(cells_of, page.splitlines()) if name in printed}
    assert len(told) >= 5
    for name, cells in told.items():
        everything, citation, _, plain, paraphrased = printed[name]
        assert cells == [everything, citation, plain, paraphrased]


def cells_of(row: str) -> list[str]:
    """The cells of a table's row as prose has them: without over how many sources, and without a 0 before the point."""
    cells = [re.sub(r" of \d$", "", cell.strip()) for cell in row.split("|")[1:-1]]
    return [re.sub(r"0(?=\.)", "", re.sub(r"\b0\.000\b", "0", cell.replace("−", "-"))) for cell in cells] or [""]
