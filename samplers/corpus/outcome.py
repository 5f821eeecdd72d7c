"""Documents of each file of a corpus, or why it has none; files are read by several processes."""

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
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, ParamSpec, TypeVar

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from runner.base.records import Section, Span
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.recognise import named_elsewhere
from samplers.registry import source_format
from samplers.source_format import FileContent

BYTES_OF_PROCESS = 10_000_000
"""The least that a process is started for: it starts in .2 s, in which it would read 5 MB."""

BYTES_OF_BATCH = 1_000_000
"""Files that are handed to a process at once."""

BYTES_OF_FILE = 5_000
"""What a file counts beside its size."""

BATCHES_AHEAD = 3
"""Batches of each process that wait for it or for us: what is read is not kept in memory for long."""

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Outcome(NamedTuple):
    """Documents of a file and the digest of its bytes, or the reason why it cannot be read and ""."""

    content: FileContent | str
    digest: str


def outcome(source: str, options: frozenset[str], file: CorpusFile) -> Outcome:
    """Read a file as one of the source."""
    row = source_format(source)
    try:
        data = bytes_of(file, row.max_bytes)
    except DocumentError as error:
        return Outcome(error.reason, "")
    try:
        return Outcome(within_limits(file.place, row.read, data, file.place, options), sha256(data))
    except DocumentError as error:
        return Outcome(named_elsewhere(data, file.place, source) or error.reason, "")


def outcomes(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> Iterator[Outcome]:
    """Return what each file holds, in the order of the files.

    What a process leaves unread, because it was killed, is read here: the outcomes are those of one process.
    """
    read = partial(outcome, source, options)
    n_processes = min(_n_processors(), sum(file.size for file in files) // BYTES_OF_PROCESS)
    n_read = 0
    if n_processes > 1:
        context = multiprocessing.get_context("spawn")  # a fork would take the locks of our threads along
        pool = ProcessPoolExecutor(n_processes, context, initializer=_begin)
        try:
            batches, begun = _batches(files), deque[Future[list[Outcome]]]()
            while True:
                with _without_main():
                    for batch in islice(batches, BATCHES_AHEAD * n_processes - len(begun)):
                        begun.append(pool.submit(_all, read, batch))
                if not begun:
                    break
                for held in begun.popleft().result():
                    yield held
                    n_read += 1
        except BrokenProcessPool:
            pass  # most of all for want of memory
        finally:
            # Who stops, or is stopped, does not wait for the file that a process is at; nor for the rest of its answer.
            for process in pool._processes.values():  # kill_workers, in Python 3.14
                process.kill()
            pool._result_queue._writer.close()  # type: ignore[attr-defined]  # unknown to the stubs
            pool.shutdown(cancel_futures=True)
    yield from map(read, files[n_read:])


def _batches(files: Sequence[CorpusFile]) -> Iterator[list[CorpusFile]]:
    batch, size = [], 0
    for file in files:
        batch.append(file)
        size += file.size + BYTES_OF_FILE
        if size >= BYTES_OF_BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _all(read: Callable[[CorpusFile], Outcome], batch: Sequence[CorpusFile]) -> list[Outcome]:
    return [read(file) for file in batch]


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program from processes that start now: they would import it, and a script without a guard runs again."""
    main = sys.modules["__main__"]
    spec, path = main.__spec__, main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if path is not None:
            main.__file__ = path


def _n_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin() -> None:
    """Make a process of the pool end with ours, leave interrupts to ours, and hand sections over as plain values."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    copyreg.pickle(Section, _flat)  # which takes a tenth of the time


def _end_with(parent: "multiprocessing.process.BaseProcess") -> None:
    parent.join()
    os._exit(1)


def _flat(section: Section) -> tuple[Any, ...]:
    return _section, (section.span.start, section.span.end, section.level, section.kind, section.label)


def _section(start: int, end: int, level: int, kind: str, label: str) -> Section:
    return Section(Span(start, end), level, kind, label)


def bytes_of(file: CorpusFile, max_bytes: int) -> bytes:
    """Return the file's bytes; one that declares or has more than the source allows is refused, the former unread."""
    size = file.size
    if size <= max_bytes:
        data = file.load()
        if (size := len(data)) <= max_bytes:
            return data
    raise DocumentError(file.place, f"{size / 1e6:.0f} MB, more than the limit of {max_bytes / 1e6:.0f} MB")


def within_limits(place: str, work: Callable[_Given, _Result], *given: _Given.args, **named: _Given.kwargs) -> _Result:
    """Return what the work returns; raise a DocumentError if it needs more memory or stack than there is."""
    try:
        return work(*given, **named)
    except MemoryError as error:
        raise DocumentError(place, "needs more memory than there is") from error
    except RecursionError as error:
        raise DocumentError(place, "nested too deep") from error
