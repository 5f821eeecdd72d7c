"""What benchmarks measure with: seconds of a call, the least of several, and memory of a process."""

import gc
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


def timed(call: Callable[[], Found], clock: Callable[[], float] = time.perf_counter) -> tuple[float, Found]:
    """Seconds by `clock`, and what the call returned."""
    started = clock()
    found = call()
    return clock() - started, found


def fastest(
    call: Callable[[], Found], rounds: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Found]:
    """The least seconds of some calls, and what the last one returned."""
    taken = [timed(call, clock) for _ in range(rounds)]
    return min(seconds for seconds, _ in taken), taken[-1][1]


def peak_mb() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def grown_mb(call: Callable[[], object]) -> float:
    """By how much the call's peak of resident memory exceeds what was resident before it; Linux alone."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _resident_mb("VmRSS")
    call()
    return _resident_mb("VmHWM") - before


def _resident_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def each_alone(work: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call `work` in a process of its own each time, or the peak memory of one would hide that of the next."""
    for given in arguments:
        process = multiprocessing.get_context("spawn").Process(target=work, args=given)
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)
