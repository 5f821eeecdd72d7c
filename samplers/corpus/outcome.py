"""Documents of each file of a corpus, or why it has none; a large corpus is read by two processes."""

import copyreg
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import NamedTuple

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from runner.base.records import Section, Span
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.recognise import named_elsewhere
from samplers.registry import source_format
from samplers.source_format import FileContent

SMALL = 20_000_000
"""Bytes of a corpus up to which no process is started: it takes .2 s, in which 5 MB are read."""

N_PROCESSES = 2

BATCH = 32
"""Files that are handed to a process at once."""

BATCHES_AHEAD = 3
"""Batches of each process that wait for it or for us, so that what is read is not kept in memory for long."""


class Outcome(NamedTuple):
    """Documents of a file and the digest of its bytes, or the reason why it cannot be read and ""."""

    content: FileContent | str
    digest: str


def outcomes(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> Iterator[Outcome]:
    """Yield what each file holds, in the order of the files; what a process that died left unread is read here."""
    n_read = 0
    if sum(file.size for file in files) > SMALL and (os.cpu_count() or 1) > 1:
        context = multiprocessing.get_context("spawn")  # a fork would take the locks of our threads along
        pool = ProcessPoolExecutor(N_PROCESSES, context, initializer=_begin)
        begun: deque[Future[list[Outcome]]] = deque()
        starts = iter(range(0, len(files), BATCH))
        try:
            while True:
                while len(begun) < BATCHES_AHEAD * N_PROCESSES and (start := next(starts, None)) is not None:
                    begun.append(_submitted(pool, partial(_all, source, options, files[start : start + BATCH])))
                if not begun:
                    break
                for one in begun.popleft().result():
                    yield one
                    n_read += 1
        except BrokenProcessPool:
            pass  # most of all for want of memory
        finally:
            # Who stops, or is stopped, does not wait for the file that a process is at, nor for the rest of its answer.
            for process in pool._processes.values():  # kill_workers, in Python 3.14
                process.kill()
            pool._result_queue._writer.close()  # type: ignore[attr-defined]  # unknown to the stubs
            pool.shutdown(cancel_futures=True)
    for file in files[n_read:]:
        yield outcome(source, options, file)


def _submitted(pool: ProcessPoolExecutor, work: Callable[[], list[Outcome]]) -> Future[list[Outcome]]:
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


def _all(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> list[Outcome]:
    return [outcome(source, options, file) for file in files]


def outcome(source: str, options: frozenset[str], file: CorpusFile) -> Outcome:
    """Read a file as one of the source."""
    row = source_format(source)
    try:
        data = _bytes_of(file, row.max_bytes)
    except DocumentError as error:
        return Outcome(error.reason, "")
    try:
        return Outcome(row.read(data, file.place, options), sha256(data))
    except DocumentError as error:
        return Outcome(named_elsewhere(data, file.place, source) or error.reason, "")
    except MemoryError:
        return Outcome("needs more memory than there is", "")
    except RecursionError:
        return Outcome("nested too deep", "")


def _bytes_of(file: CorpusFile, max_bytes: int) -> bytes:
    """Return the file's bytes; one that declares or has more than the source allows is refused, the former unread."""
    size = file.size
    if size <= max_bytes:
        data = file.load()
        if (size := len(data)) <= max_bytes:
            return data
    raise DocumentError(file.place, f"{size / 1e6:.0f} MB, more than the limit of {max_bytes / 1e6:.0f} MB")
