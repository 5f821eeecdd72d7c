"""Jobs that wait for a network or other machines, several at once."""

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import TypeVar

from runner.base.errors import EvalError

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class _Failure(Exception):
    """What a thread died of, on its way to the thread that takes the results."""


def in_threads(
    jobs: Sequence[_Job], work: Callable[[_Job, threading.Event], _Result], n_threads: int
) -> Generator[_Result, None, None]:
    """Yield the result of each job, in the order in which they finish; nothing begins before the first is asked for.

    The first exception of `work` is raised once the jobs under way have ended and their results were given; no
    further job is begun. The event tells `work` that nobody waits any more. At most 2 * n_threads jobs are under way
    or wait to be taken. Threads are daemons: an interrupted process ends without waiting for an answer.
    """
    size = min(n_threads, len(jobs))
    todo, lock, room, stopped = iter(jobs), threading.Lock(), threading.Semaphore(2 * size), threading.Event()
    done: queue.SimpleQueue[_Result | _Failure | None] = queue.SimpleQueue()
    """Results, failures, and None for each thread that has ended."""

    def run() -> None:
        try:
            while room.acquire():  # so that results nobody takes yet do not pile up
                with lock:
                    next_job = [] if stopped.is_set() else list(islice(todo, 1))
                if not next_job:
                    break
                done.put(work(next_job[0], stopped))
        except BaseException as error:  # noqa: BLE001  # raised where the results are taken
            stopped.set()
            done.put(_Failure(error))
        done.put(None)

    for _ in range(size):
        threading.Thread(target=run, daemon=True).start()
    running, failures = size, []
    try:
        while running:
            item = done.get()
            room.release()
            if item is None:
                running -= 1
            elif isinstance(item, _Failure):
                failures.append(item)
            else:
                yield item
    finally:
        stopped.set()
        room.release(max(size, 1))
    if failures:
        raise failures[0].args[0]


def side_by_side(jobs: Sequence[Callable[[], None]]) -> None:
    """Run every job in a thread of its own and wait for all of them, even if one fails.

    The first failure by the order of `jobs` is raised, other messages than its own with it; a defect before any.
    An interrupt is raised at once: the threads are daemons, and whoever closes what they wait for ends them.
    """
    failures: dict[int, BaseException] = {}

    def run(number: int, _: threading.Event) -> int:
        try:
            jobs[number]()
        except BaseException as error:  # noqa: BLE001  # raised again by the thread that waits
            failures[number] = error
        return number

    list(in_threads(range(len(jobs)), run, len(jobs)))
    errors = sorted((failures[number] for number in sorted(failures)), key=lambda error: isinstance(error, EvalError))
    if not errors:
        return
    # A backend's failures are told together; a defect alone.
    first, *others = errors
    if isinstance(first, EvalError) and others:
        raise type(first)("\n".join(dict.fromkeys(map(str, errors)))) from first
    raise first
