import threading

import pytest

from runner.base.errors import BackendError
from runner.base.threads import in_threads, side_by_side


def failing(error):
    def job():
        raise error

    return job


def test_jobs_side_by_side_all_run_and_the_first_failure_brings_the_words_of_the_others():
    together, ran = threading.Barrier(4), []

    def job():
        together.wait(30)  # breaks, and fails the test, unless all jobs run at once
        ran.append(1)

    def late(words):
        together.wait(30)
        raise BackendError(words)

    with pytest.raises(BackendError) as caught:
        side_by_side([job, lambda: late("first"), lambda: late("second"), job])
    assert (str(caught.value), len(ran)) == ("first\nsecond", 2)
    with pytest.raises(ZeroDivisionError):
        side_by_side([failing(BackendError("x")), failing(ZeroDivisionError("a defect"))])
    side_by_side([])


def test_a_failure_is_raised_after_the_results_that_were_under_way_and_begins_nothing_more():
    begun, given = [], []

    def work(job, stopped):
        begun.append(job)
        if job == 3:
            raise BackendError("three")
        return job

    with pytest.raises(BackendError, match="three"):
        given += in_threads(range(50), work, 1)
    assert (begun, given) == ([0, 1, 2, 3], [0, 1, 2])
