"""Work that waits for a network, several jobs at once, its results taken as they come.

Jobs that wait for machines elsewhere, at the same time.
"""

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Generic, TypeVar

from runner.base.errors import EvalError

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def in_threads(
    jobs: Sequence[_Job], work: Callable[[_Job, threading.Event], _Result], n_threads: int
) -> Generator[_Result, None, None]:
    """The result of each job, in the order in which they finish; nothing begins before the first is asked for.

    The first exception of `work` is raised once the jobs under way have ended and their results were given; no
    further job is begun. The event tells `work` that nobody waits any more. At most 2 * n_threads jobs are under way
    or wait to be taken. Threads are daemons: an interrupted process ends without waiting for an answer.
    """
    crew = _Crew(jobs, work, min(n_threads, len(jobs)))
    try:
        yield from crew.results()
    finally:
        crew.stop()


class _Failure(Exception):
    """What a thread died of, on its way to the thread that takes the results."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class _Crew(Generic[_Job, _Result]):
    """The threads of one call."""

    def __init__(self, jobs: Sequence[_Job], work: Callable[[_Job, threading.Event], _Result], size: int) -> None:
        self._todo, self._work, self._size = iter(jobs), work, size
        self._stopped, self._lock = threading.Event(), threading.Lock()
        self._room = threading.Semaphore(2 * size)
        self._done: queue.SimpleQueue[_Result | _Failure | None] = queue.SimpleQueue()
        """Results, failures, and None for each thread that has ended."""

    def results(self) -> Iterator[_Result]:
        for _ in range(self._size):
            threading.Thread(target=self._run, daemon=True).start()
        running, failure = self._size, None
        while running:
            item = self._done.get()
            self._room.release()
            if item is None:
                running -= 1
            elif isinstance(item, _Failure):
                failure = failure or item
            else:
                yield item
        if failure:
            raise failure.error

    def stop(self) -> None:
        self._stopped.set()
        for _ in range(self._size):
            self._room.release()

    def _run(self) -> None:
        try:
            for job in self._jobs():
                self._done.put(self._work(job, self._stopped))
        except BaseException as error:  # noqa: BLE001  # raised where the results are taken
            self._stopped.set()
            self._done.put(_Failure(error))
        self._done.put(None)

    def _jobs(self) -> Iterator[_Job]:
        """The jobs that fall to this thread."""
        while True:
            self._room.acquire()
            with self._lock:
                if self._stopped.is_set():
                    return
                try:
                    job = next(self._todo)
                except StopIteration:
                    return
            yield job


def side_by_side(jobs: Sequence[Callable[[], None]]) -> None:
    """Run every job in a thread of its own and wait for all of them, also where one fails.

    The first failure by the order of `jobs` is raised, other messages than its own with it; a defect before any.
    An interrupt is raised at once: the threads are daemons, and whoever closes what they wait for ends them.
    """
    failures: dict[int, BaseException] = {}

    def run(number: int, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001  # raised again by the thread that waits
            failures[number] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sorted((failures[number] for number in sorted(failures)), key=lambda error: isinstance(error, EvalError))
    if not found:
        return
    first, *others = found
    if isinstance(first, EvalError) and others:
        raise type(first)("\n".join(dict.fromkeys(map(str, found)))) from first
    raise first
