"""Every benchmark runs to its end at its smallest size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.base.places import CHECKOUT
from tests.support.small_collection import write_collection

FOLDER = CHECKOUT / "benchmarks"
SHARED_PARTS = {"corpus.py", "measuring.py", "no_op_encoder.py", "run.py", "sizes.py", "worlds.py"}
BENCHMARKS = sorted(path.name for path in FOLDER.glob("*.py") if path.name not in SHARED_PARTS)
EMBEDS = {"embed_local.py"}
SLOW = EMBEDS | {"agreement.py", "external.py", "judge_noise.py", "modal_overhead.py", "post_bulk.py", "report.py"}
SLOW |= {"significance.py", "simulate_judges.py", "simulate_planning.py", "simulate_pooled.py"}
SLOW |= {"graded_gate.py", "linearity.py", "retrieve.py", "sampling.py"}
READS_PROC = {"read_sources.py", "retrieve.py", "vectors_on_disk.py"}


def run(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A benchmark at its smallest size, beside a small collection in SciFact's place and an empty cache."""
    small = {"PSE_BENCH_SMALL": "1", "PYTHONPATH": str(CHECKOUT)}
    folders = {"PSE_SHARED": str(tmp_path / "shared"), "PER_SOURCE_EVAL_CACHE": str(tmp_path / "cache")}
    write_collection(tmp_path / "shared" / "bench" / "scifact")
    return subprocess.run(
        [sys.executable, str(FOLDER / command[0]), *command[1:]],
        cwd=tmp_path,
        env=os.environ | small | folders,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def parameters() -> list[object]:
    """The command of each benchmark; the simulation of agreement.py is a second one of that file."""
    commands = [(name,) for name in BENCHMARKS] + [("agreement.py", "--simulate", "1")]
    linux = pytest.mark.skipif(sys.platform != "linux", reason="it reads peak memory from /proc")
    marks = [(pytest.mark.model, EMBEDS), (pytest.mark.slow, SLOW), (linux, READS_PROC)]
    return [
        pytest.param(command, id=" ".join(command), marks=[mark for mark, names in marks if command[0] in names])
        for command in commands
    ]


@pytest.mark.parametrize("command", parameters())
def test_a_benchmark_runs_to_its_end(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_benchmark_without_its_collection_ends_well_and_says_so(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "external.py")]
    environment = os.environ | {"PSE_BENCH_SMALL": "1", "PSE_SHARED": str(tmp_path), "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "NOT MEASURED" in done.stdout


def test_make_bench_names_only_files_that_are_there() -> None:
    sys.path.insert(0, str(FOLDER))
    try:
        from run import NOT_BENCHMARKS
    finally:
        sys.path.remove(str(FOLDER))
    assert {name for name in NOT_BENCHMARKS if not (FOLDER / name).is_file()} == set()
