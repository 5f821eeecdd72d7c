"""Indexes whose makers are killed, or meet a full disk, and are started again: the same rows and bytes."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.soak import Trial
from tests.soak.kills import joined, started
from tests.support.small_index import bills, content, fill, in_process

BILLS, WINDOW = 90, 24
NAMES = ("index.db", "index")


@cache
def _undisturbed(name: str) -> tuple[object, float]:
    """What an index holds that nobody disturbed, and the seconds of the process that made it, 3 at most."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / name, bills(BILLS))
        began = time.perf_counter()
        joined(started(in_process, Path(folder) / f"again-{name}", BILLS, WINDOW))
        return content(Path(folder) / name), min(3.0, time.perf_counter() - began)


def kills(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """Runs killed up to three times, at any moment, then finished."""
    yield from _trials("index kills", work, numbers, seed)


def full_disks(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """Runs of which one may write no larger file than some, then finished on a disk that takes everything."""
    yield from _trials("index disks", work, numbers, seed)


def _trials(kind: str, work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    work.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        began, rng, name = time.perf_counter(), random.Random(f"{kind} {seed} {number}"), NAMES[number % 2]
        expected, seconds = _undisturbed(name)
        with tempfile.TemporaryDirectory(dir=work) as folder:
            to = Path(folder) / name
            if kind == "index kills":
                waits = [rng.uniform(0, seconds) for _ in range(rng.randint(1, 3))]
                what, codes = f"{name} after " + ", ".join(f"{wait:.2f} s" for wait in waits), []
                for wait in waits:
                    process = started(in_process, to, BILLS, WINDOW)
                    process.join(timeout=wait)
                    process.kill()
                    codes.append(joined(process))
                struck = codes.count(-9)
            else:
                largest = rng.randint(1 << 10, 1 << 19 if name == "index.db" else 1 << 14)
                what = f"{name} with files of {largest:,} bytes at most"
                code = joined(started(in_process, to, BILLS, WINDOW, largest))
                struck = int(code == 5)
                if code not in (0, 5):
                    what += f", ended with {code}"
            last = joined(started(in_process, to, BILLS, WINDOW))
            found = f"the run after it ended with {last}" if last else ""
            if not found and content(to) != expected:
                found = "other content"
        yield Trial(kind, number, struck, what, time.perf_counter() - began, found)
