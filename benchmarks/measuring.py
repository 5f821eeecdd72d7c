"""What benchmarks share: their sizes and inputs, seconds of a call, memory of a process, and a row of `make bench`."""

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

SMALL = os.environ.get("PSE_BENCH_SMALL") == "1"
"""Whether the least is asked for that runs every line: figures of such a run mean nothing."""

CHECKOUT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared"))
"""Real documents, where there are any."""

HEAD = "| what | ours | peer | ratio, or difference | wanted |\n|---|---|---|---|---|"

Size = TypeVar("Size")
Found = TypeVar("Found")


def sized(full: Size, small: Size) -> Size:
    """Return `small` where the environment asks for it."""
    return small if SMALL else full


def runs_asked(full: int, small: int) -> int:
    """Return how many runs the command line asks of a simulation, or else its own number."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else sized(full, small)


def row(what: str, ours: str, peer: str = "", ratio: str = "", wanted: str = "") -> None:
    """Print a row of the table of `make bench`."""
    print(f"| {what} | {ours} | {peer} | {ratio} | {wanted} |", flush=True)


def bills_folder() -> Path:
    """Return the shared corpus of bills, or the demo's."""
    shared = SHARED / "corpora" / "bills"
    return shared if shared.is_dir() and not SMALL else CHECKOUT / "eval-sets" / "demo" / "corpus"


def fastest(
    call: Callable[[], Found], rounds: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Found]:
    """Return the least seconds of some calls, and what the last one returned."""
    taken = []
    for _ in range(rounds):
        started = clock()
        found = call()
        taken.append(clock() - started)
    return min(taken), found


def grown_mb(call: Callable[[], object]) -> float:
    """Return by how much the call's peak of resident memory exceeds what was resident before it; Linux alone."""
    gc.collect()  # what earlier calls left must not be counted as resident
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _resident_mb("VmRSS")
    call()
    return _resident_mb("VmHWM") - before


def _resident_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
