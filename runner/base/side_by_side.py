"""Jobs that wait for machines elsewhere, at the same time."""

import threading
from collections.abc import Callable, Sequence

from runner.base.errors import EvalError


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
