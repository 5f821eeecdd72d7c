"""Evenings that are killed, at every write and at random moments, and then finished: always the same bytes."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from runner.eval_set.lock import verify_lock
from tests.soak import Trial
from tests.support.evening_process import record_of, run, run_counting, run_until
from tests.support.forked import processes
from tests.support.small_set import make_version


def trials(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """Evenings over the small set: the first ones killed once, each at another write, the rest up to three times."""
    whole = work / "small"
    if not (whole / "steps").exists():
        shutil.rmtree(whole, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        joined(started(run_counting, whole, work / "steps"))
        (work / "steps").replace(whole / "steps")
    steps, expected = int((whole / "steps").read_text()), record_of(make_version(whole).folder)
    for number in numbers:
        began, rng = time.perf_counter(), random.Random(f"kills {seed} {number}")
        with tempfile.TemporaryDirectory(dir=work) as name:
            folder = Path(name)
            if number < steps:
                what = f"write {number + 1} of {steps}"
                codes = [joined(started(run_until, folder, number + 1))]
            else:
                waits = [rng.uniform(0, 2.0) for _ in range(rng.randint(1, 3))]
                what, codes = "after " + ", ".join(f"{wait:.2f} s" for wait in waits), []
                for wait in waits:
                    process = started(run, folder)
                    process.join(timeout=wait)
                    process.kill()
                    codes.append(joined(process))
            last, version = joined(started(run, folder)), make_version(folder).folder
            found = f"the run after it ended with {last}" if last else "no lock" if not verify_lock(version) else ""
            if not found and (made := record_of(version)) != expected:
                names = (name for name in {*made, *expected} if made.get(name) != expected.get(name))
                found = f"other bytes: {', '.join(sorted(names))}"
        yield Trial("kills", number, codes.count(-9), what, time.perf_counter() - began, found)


def started(target: object, *arguments: object, **named: object) -> BaseProcess:
    process = processes.Process(target=target, args=arguments, kwargs=named)  # type: ignore[arg-type]
    process.start()
    return process


def joined(process: BaseProcess) -> int | None:
    process.join(timeout=300)
    return process.exitcode
