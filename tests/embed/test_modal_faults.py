import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from grpclib import Status

from runner.base.errors import BackendError
from runner.base.places import CHECKOUT
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from tests.support.modal_words import (  # noqa: F401  # fixtures
    N_BATCHES,
    TEXTS,
    Container,
    Words,
    batch_of,
    holding,
    holds,
    local_rows,
    planted_bench,
    planted_probe,
)


def whole(made):
    """The embedding went through, every batch once or more, and its rows are the local ones bit for bit."""
    vectors = made.embed()
    assert np.array_equal(vectors.rows, local_rows(made.folder))
    assert len(made.sent()) == N_BATCHES
    assert not made.server.unanswered
    return vectors


def test_without_faults_every_batch_is_sent_and_embedded_once(bench):
    made = bench()
    whole(made)
    assert set(made.tried().values()) == {1}


def test_a_text_too_large_for_a_message_is_embedded_all_the_same(bench):
    made, texts = bench(), ["grant " * 600_000]
    assert np.array_equal(made.embed(texts).rows, embed(Store(made.folder / "local"), Words(), texts, "document").rows)


def test_an_input_that_modal_gives_up_is_sent_again_by_the_engine(bench):
    made = bench()
    made.server.faults.fail_input(holds(TEXTS[0]), times=4)  # once, and the three retries
    whole(made)
    assert sorted(made.sent().values()) == [1] * (N_BATCHES - 1) + [2]
    assert sorted(made.tried().values()) == [1] * (N_BATCHES - 1) + [5]


def test_a_container_that_dies_with_an_input_in_hand_loses_nothing(bench):
    made = bench()
    made.server.faults.kill_container(holds(TEXTS[0]))
    whole(made)
    assert sum(not container.alive for container in made.server.containers) >= 1


def test_containers_that_never_start_end_the_run_with_their_reason(bench):
    made = bench(fetched=True)
    made.server.faults.fail_entry(times=None, text="CUDA driver is too old")
    with pytest.raises(BackendError, match=r"words: no container on Modal could be made ready.*CUDA driver is too old"):
        made.embed()
    assert not made.sent()


def test_what_a_container_refuses_ends_the_run_with_its_words(bench):
    class Refusing(Container):
        def embed(self, batch_id, *_):
            return {"batch_id": batch_id, "refusal": "the file holds 3 of the model's 5 parameters"}

    with pytest.raises(BackendError, match=r"made ready.*3 of the model's 5 parameters"):
        bench(Refusing, fetched=True).embed()


class Spy(RuntimeError):
    """An error that, where its pickle is opened, leaves a file."""

    def __reduce__(self):
        return (open, (self.args[0], "w"))


def test_the_error_of_a_container_that_cannot_start_is_read_and_not_executed(bench, tmp_path):
    made = bench(fetched=True)
    made.server.faults.fail_entry(times=None, text=Spy(str(tmp_path / "executed")))
    with pytest.raises(BackendError, match="no container on Modal could be made ready"):
        made.embed()
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_token_that_modal_refuses_is_noticed_before_anything_starts(bench, is_refused):
    made = bench()
    if is_refused:
        made.server.faults.bad_token()
    with pytest.raises(BackendError, match="modal token new") if is_refused else nullcontext():
        made.backend.check([made.encoder.spec.name])
    assert not made.server.functions


def changed(**parts):
    """A fault that gives other parts to the answer about TEXTS[0]; None takes a part away."""

    def change(said):
        return {name: value for name, value in (said | parts).items() if value is not None}

    return lambda faults: faults.change_output(change, when=holds(TEXTS[0]))


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(changed(data=bytes(64)), id="rows changed on their way"),
        pytest.param(changed(batch_id="0" * 64), id="rows of another batch"),
        pytest.param(changed(data=None), id="without data"),
    ],
)
def test_an_answer_that_is_late_changed_or_lacks_a_part_is_asked_for_again(bench, plant):
    made = bench()
    plant(made.server.faults)
    whole(made)
    assert max(made.sent().values()) == 2


def test_another_tokenizer_in_the_container_is_refused(bench):
    made = bench()

    def miscounted(said):
        return {**said, "tokens": np.zeros(said["n"], "<i4").tobytes()}

    made.server.faults.change_output(miscounted, when=batch_of, times=None)
    with pytest.raises(BackendError, match="another model or prompt"):
        made.embed()


def test_two_kinds_of_gpu_never_share_a_cell(bench):
    class Mixed(Container):
        facts_of = staticmethod(lambda number: {"device": "NVIDIA L4" if number == 1 else "NVIDIA A10"})

    made = bench(Mixed)
    made.server.faults.kill_container(holds(TEXTS[0]))
    with pytest.raises(BackendError, match=r"NVIDIA L4.*NVIDIA A10|NVIDIA A10.*NVIDIA L4"):
        made.embed()


@pytest.mark.parametrize(
    ("plant", "advice"),
    [
        (lambda faults: faults.error("FunctionMap", Status.RESOURCE_EXHAUSTED), "limits and spending"),
        (lambda faults: faults.bad_token(), "modal token new"),
    ],
)
def test_a_limit_of_the_workspace_and_a_refused_token_are_said_at_once_with_the_way_on(bench, plant, advice):
    made = bench()
    plant(made.server.faults)
    with pytest.raises(BackendError, match=advice):
        made.embed()
    assert not made.server.inputs


def test_a_service_that_goes_away_ends_the_run_and_keeps_what_is_there(bench):
    made = bench()
    made.server.faults.fail_input(holds(TEXTS[0]), times=None)
    with pytest.raises(BackendError, match="1 of 40 shards"):
        made.embed()
    made.server.faults.error("FunctionMap", Status.UNAVAILABLE)
    with pytest.raises(BackendError, match=r"Modal cannot be reached.*status.modal.com"):
        made.embed()
    assert sum(made.sent().values()) < 2 * N_BATCHES


def test_weights_that_cannot_be_fetched_end_the_run_before_any_gpu_starts(bench):
    made = bench()
    made.server.faults.fail_input(lambda one: one.function == "fetch", times=None, text="GatedRepoError('no access')")
    with pytest.raises(BackendError, match=r"planted/words at revision 0{40} could not be fetched to Modal.*no access"):
        made.embed()
    assert [one.function for one in made.server.inputs] == ["fetch"]


@contextmanager
def at_work(made, held):
    """The driver in a process of its own, when a container holds the batch of TEXTS[0]; some batches are done then."""
    command = [sys.executable, "-m", "tests.support.modal_words", str(made.folder)]
    environment = {**os.environ, **made.server.environment()}
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True) as driver:
        try:
            assert held.wait(120)
            yield driver
        finally:
            driver.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_after_the_driver_is_killed_only_what_was_missing_is_sent(bench, how):
    held, let_go = threading.Event(), threading.Event()
    made = bench(holding(held, let_go, TEXTS[0]))
    with at_work(made, held) as driver:
        driver.send_signal(how)
        _, said = driver.communicate(timeout=120)
    if how != signal.SIGKILL:
        assert len(made.server.apps_stopped) == 1
        assert "KeyboardInterrupt" in said.splitlines()
        assert "Task was destroyed" not in said
    made.server.stop_apps()
    let_go.set()
    before = made.sent()
    vectors = made.embed()
    assert np.array_equal(vectors.rows, local_rows(made.folder))
    again = made.sent() - before
    assert 0 < len(again) < N_BATCHES
    assert set(again.values()) == {1}
