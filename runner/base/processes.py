"""Jobs that take a processor, several at once in processes of their own."""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from typing import IO, Generic, TypeVar

from runner.base.errors import BackendError

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")

AHEAD = 16
"""Results of a process that wait to be taken; it pauses then."""

_SERVE = "from runner.base.processes import serve; serve()"


def n_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(
    jobs: Sequence[_Job], work: Callable[[_Job], _Result], n_processes: int, name_of: Callable[[_Job], str]
) -> Generator[_Result, None, None]:
    """The result of each job, in the order of the jobs.

    Jobs, results and `work` are pickled, so `work` is a function of a module or a partial of one. What it raises is
    raised here. BackendError, with the name of the job, if a process is killed. The processes begin with the modules
    they need and nothing else: neither a script that calls this nor the threads of its libraries stand in the way.
    """
    size = min(n_processes, len(jobs))
    if size < 2:
        yield from map(work, jobs)
        return
    with ExitStack() as stack:
        workers = [_Worker(work, jobs[first::size]) for first in range(size)]
        for worker in workers:
            stack.callback(worker.close)
        for number, job in enumerate(jobs):
            found = workers[number % size].take(name_of(job))
            yield found[0] if found else work(job)


class _Worker(Generic[_Job, _Result]):
    """A process with its share of the jobs, and the thread that takes its results."""

    def __init__(self, work: Callable[[_Job], _Result], jobs: Sequence[_Job]) -> None:
        self._results: queue.Queue[bytes | None] = queue.Queue(AHEAD)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._request = pickle.dumps((work, list(jobs)))
        self._thread = threading.Thread(target=self._exchange, daemon=True)
        self._thread.start()

    def take(self, name: str) -> tuple[_Result] | None:
        """The next result; None if the work raised."""
        frame = self._results.get()
        if frame is None:
            self._results.put(None)  # for `close`
            raise BackendError(
                f"The process that read {name} was ended (code {self._process.wait()}), as happens where memory runs "
                "out. Close other programs and run the command again."
            )
        found: tuple[_Result] | None = pickle.loads(frame)  # noqa: S301  # written by our own process
        return found

    def close(self) -> None:
        """End the process, whatever it is at."""
        self._process.kill()
        while self._results.get() is not None:
            pass
        self._thread.join()
        self._process.wait()

    def _exchange(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        with self._process.stdin as requests, self._process.stdout as results:
            try:
                _send(requests, self._request)
                while frame := _received(results):
                    self._results.put(frame)
            except OSError:
                pass  # the process has ended, which None says
            self._results.put(None)


def serve() -> None:
    """Do the jobs that stand in the standard input; results go to the standard output in their order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends this process
    work, jobs = pickle.loads(_received(sys.stdin.buffer))  # noqa: S301  # written by the process that began this one
    for job in jobs:
        try:
            found = (work(job),)
        except Exception:  # noqa: BLE001  # the parent does the job again, and raises it with its traceback
            found = None
        _send(sys.stdout.buffer, pickle.dumps(found))


def _send(stream: IO[bytes], frame: bytes) -> None:
    stream.write(len(frame).to_bytes(8, "big") + frame)
    stream.flush()


def _received(stream: IO[bytes]) -> bytes:
    """The next frame; b"" at the end, in the middle of one too."""
    n = int.from_bytes(stream.read(8), "big")
    frame = stream.read(n)
    return frame if len(frame) == n else b""
