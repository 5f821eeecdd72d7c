import os
import signal

import pytest

from runner.base.errors import BackendError
from runner.base.processes import in_processes


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def fails_at_three(number: int) -> int:
    if number == 3:
        raise KeyError("three")
    return number


def dies_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_come_in_the_order_of_the_jobs_from_processes_of_their_own():
    found = list(in_processes(range(50), square, 2, str))
    assert [result for result, _ in found] == [n * n for n in range(50)]
    assert len({process for _, process in found} - {os.getpid()}) == 2


def test_one_process_is_this_one():
    assert {process for _, process in in_processes(range(3), square, 1, str)} == {os.getpid()}
    assert list(in_processes([], square, 4, str)) == []


def test_what_a_job_raises_is_raised_where_its_result_would_be_taken():
    results = in_processes(range(6), fails_at_three, 2, str)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        next(results)


def test_a_killed_process_is_one_error_that_names_its_job():
    results = in_processes(range(6), dies_at_three, 2, lambda number: f"file {number}")
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(BackendError, match=r"file 3 .*-9"):
        next(results)


def test_who_stops_taking_results_ends_the_processes():
    results = in_processes(range(1_000), square, 2, str)
    processes = {next(results)[1] for _ in range(2)}
    results.close()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
