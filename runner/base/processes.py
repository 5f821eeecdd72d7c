"""Work that two processes beside this one do, in order."""

import copyreg
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import TypeVar

from runner.base.records import Section, Span

N_PROCESSES = 2

PARTS_AHEAD = 3
"""Parts of each process that wait for it or for us, so that what is done is not kept in memory for long."""

_Part = TypeVar("_Part")
_Done = TypeVar("_Done")


def in_processes(
    work: Callable[[_Part], _Done], parts: Iterable[_Part], here: Callable[[_Part], _Done] | None = None
) -> Iterator[_Done]:
    """Yield what `work` makes of each part, none of which is None, in their order.

    What a process that died left undone is done in this one, by `here` if it is given.
    """
    context = multiprocessing.get_context("spawn")  # a fork would take the locks of our threads along
    pool = ProcessPoolExecutor(N_PROCESSES, context, initializer=_begin)
    left, waiting, begun = iter(parts), deque[_Part](), deque[Future[_Done]]()
    try:
        while True:
            while len(begun) < PARTS_AHEAD * N_PROCESSES and (part := next(left, None)) is not None:
                waiting.append(part)
                begun.append(_submitted(pool, partial(work, part)))
            if not begun:
                break
            done = begun.popleft().result()
            waiting.popleft()
            yield done
    except BrokenProcessPool:
        pass  # most of all for want of memory
    finally:
        # Who stops, or is stopped, does not wait for the part that a process is at, nor for the rest of its answer.
        for process in pool._processes.values():  # kill_workers, in Python 3.14
            process.kill()
        pool._result_queue._writer.close()  # type: ignore[attr-defined]  # unknown to the stubs
        pool.shutdown(cancel_futures=True)
    yield from map(here or work, chain(waiting, left))


def _submitted(pool: ProcessPoolExecutor, work: Callable[[], _Done]) -> Future[_Done]:
    """Hand work to a process, which may start now: a script without a guard would run again if it were not hidden."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        return pool.submit(work)
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """Make a process of the pool end with ours, leave interrupts to ours, and hand sections over as plain values."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    copyreg.pickle(Section, _flat)  # which takes a tenth of the time


def _flat(section: Section) -> tuple[Callable[..., Section], tuple[object, ...]]:
    return _section, (section.span.start, section.span.end, section.level, section.kind, section.label)


def _section(start: int, end: int, level: int, kind: str, label: str) -> Section:
    return Section(Span(start, end), level, kind, label)


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
