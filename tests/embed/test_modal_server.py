"""The stand-in for Modal's service, tried with the real client: every fault that other tests rely on does strike."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import modal
import pytest
from grpclib import Status
from packaging.requirements import Requirement

from runner.eval_set.version import CHECKOUT
from tests.support.hub_server import HubServer
from tests.support.modal_server import ModalServer, this_container, toy
from tests.support.modal_server.image import BuildError, environment_of, install, pinned
from tests.support.modal_server.server import forget_client
from tests.support.modal_server.toy import CONTAINER_HOME

PLANES = ("control", "input")
NUMBERS = list(range(20))
LARGE = 3 * 1024 * 1024
_HOUR = datetime(2026, 1, 1, 10, tzinfo=UTC)


class Plain:
    """The toy's Worker without its app."""

    def __init__(self, of: str, times: int) -> None:
        self.of, self.times = of, times

    def enter(self) -> None:
        if self.of == "nothing":
            raise RuntimeError("there is nothing to multiply")

    def run(self, number: int, payload: bytes = b"") -> dict[str, object]:
        if number < 0:
            raise ValueError(f"negative: {number}")
        container = this_container().container_id
        return {"number": number, "product": number * self.times, "payload": payload, "container": container}


@contextmanager
def serving(folder, *, run=True, **options) -> Iterator[ModalServer]:
    """A server whose client is this process's, with the toy app running."""
    options = {"executor": "inprocess", "retries": "server"} | options
    plain = {"Worker": Plain, "fetch": lambda name, text: f"{name}: {text}"}
    with (
        ModalServer(folder, objects=plain, **options) as server,
        server.client_environment(MODAL_PAYLOAD_FORMAT="cbor"),
    ):
        if not run:
            yield server
            return
        with toy.app.run():
            yield server


def mapped(numbers=NUMBERS, payload=b"", **parameters):
    worker = toy.Worker(**{"of": "numbers"} | parameters)
    pairs = [(number, payload) for number in numbers]
    return list(worker.run.starmap(pairs, order_outputs=False, return_exceptions=True))


def number_of(one):
    return one.args[0] if one.function == "Worker.run" else None


def assert_complete(got, numbers=NUMBERS):
    assert sorted(answer["number"] for answer in got) == list(numbers)
    assert all(answer["product"] == 2 * answer["number"] for answer in got)


@pytest.mark.parametrize("protocol", PLANES)
def test_a_map_is_answered_in_full_by_several_containers_and_nothing_is_unanswered(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol) as server:
        got = mapped(range(200))
        assert toy.fetch.remote("a", "b") == "a: b"
    assert_complete(got, range(200))
    assert 1 < len({answer["container"] for answer in got}) <= 4
    assert set(server.sent(number_of).values()) == set(server.executed(number_of).values()) == {1}
    assert not server.unanswered
    assert server.calls["MapStartOrContinue" if protocol == "input" else "FunctionPutInputs"]
    assert not server.calls["FunctionMap" if protocol == "input" else "MapStartOrContinue"]


@pytest.mark.parametrize(
    ("protocol", "rpc"),
    [
        ("control", "AppPublish"),
        ("control", "FunctionMap"),
        ("control", "FunctionPutInputs"),
        ("control", "FunctionGetOutputs"),
        ("input", "MapStartOrContinue"),
        ("input", "MapAwait"),
    ],
)
def test_a_call_that_is_unavailable_is_made_again(tmp_path, protocol, rpc):
    with serving(tmp_path, protocol=protocol, run=False) as server:
        server.faults.unavailable(rpc, times=2)
        with toy.app.run():
            assert_complete(mapped())
    assert server.calls[rpc] >= 3
    assert set(server.executed(number_of).values()) == {1}


@pytest.mark.parametrize(
    ("protocol", "rpc"),
    [("control", "FunctionMap"), ("control", "FunctionPutInputs"), ("input", "MapStartOrContinue")],
)
def test_a_lost_reply_submits_nothing_twice(tmp_path, protocol, rpc):
    with serving(tmp_path, protocol=protocol) as server:
        server.faults.lose_reply(rpc)
        assert_complete(mapped())
    assert set(server.sent(number_of).values()) == {1}
    assert set(server.executed(number_of).values()) == {1}


@pytest.mark.parametrize("protocol", PLANES)
def test_a_lost_output_is_noticed_by_the_client_which_sends_the_input_again(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol, retries="client") as server:
        server.faults.lose_output(when=lambda one: one.args[0] == 7)
        assert_complete(mapped())
    assert [number for number, times in server.sent(number_of).items() if times == 2] == [7]
    assert server.executed(number_of)[7] == 2


@pytest.mark.parametrize("protocol", PLANES)
def test_an_output_that_comes_twice_counts_once(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol) as server:
        server.faults.duplicate_output(times=5)
        assert_complete(mapped())


@pytest.mark.parametrize("protocol", PLANES)
def test_the_client_retries_an_input_that_fails_once(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol, retries="client") as server:
        server.faults.fail_input(lambda one: one.args[0] == 3)
        assert_complete(mapped())
    assert server.sent(number_of)[3] == 2


def test_an_input_that_always_fails_is_one_exception_after_all_retries_and_the_rest_is_answered(tmp_path):
    with serving(tmp_path) as server:
        got = mapped([-1, *NUMBERS])
    (failed,) = [answer for answer in got if isinstance(answer, Exception)]
    assert isinstance(failed, modal.exception.RemoteError)
    assert "negative: -1" in str(failed)
    assert_complete([answer for answer in got if answer is not failed])
    assert server.executed(number_of)[-1] == 4


def test_an_input_that_runs_out_of_time_is_a_timeout(tmp_path):
    with serving(tmp_path) as server:
        server.faults.time_out_input(lambda one: one.args[0] == 3, times=None)
        got = mapped()
    assert [type(answer) for answer in got if isinstance(answer, Exception)] == [modal.exception.FunctionTimeoutError]


def test_a_container_that_answers_something_else_is_passed_on(tmp_path):
    with serving(tmp_path) as server:
        server.faults.change_output(lambda answer: {**answer, "product": -1}, when=lambda one: one.args[0] == 3)
        got = mapped()
    assert [answer["number"] for answer in got if answer["product"] == -1] == [3]


@pytest.mark.parametrize("protocol", PLANES)
def test_an_input_survives_the_container_that_dies_with_it(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol) as server:
        server.faults.kill_container(when=lambda one: one.args[0] == 11)
        assert_complete(mapped())
    first, second = next(one for one in server.inputs if number_of(one) == 11).executions
    assert first != second
    assert server.sent(number_of)[11] == 1


def test_an_entry_that_fails_once_costs_nothing_but_a_container(tmp_path):
    with serving(tmp_path) as server:
        server.faults.fail_entry()
        assert_complete(mapped())
    assert any(not container.ready for container in server.containers)


@pytest.mark.parametrize("protocol", PLANES)
def test_an_entry_that_always_fails_fails_the_inputs_with_its_own_words(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol) as server:
        server.faults.fail_entry(times=None, text="no weights here")
        got = mapped([1, 2])
    assert [str(answer) for answer in got] == ["RuntimeError: no weights here"] * 2


def test_an_object_that_cannot_be_made_fails_the_call_and_does_not_hang_it(tmp_path):
    with serving(tmp_path), pytest.raises(RuntimeError, match="there is nothing to multiply"):
        toy.Worker(of="nothing").run.remote(1)


def test_an_exhausted_limit_ends_the_map_at_once(tmp_path):
    with serving(tmp_path) as server:
        server.faults.resource_exhausted("FunctionMap")
        with pytest.raises(modal.exception.ResourceExhaustedError, match="limit"):
            mapped()
    assert server.calls["FunctionMap"] == 1


def test_a_service_that_stays_away_is_a_service_error(tmp_path):
    with serving(tmp_path) as server:
        server.faults.unavailable("FunctionMap", times=None)
        with pytest.raises(modal.exception.ServiceError):
            mapped()
    assert server.calls["FunctionMap"] == 4


def test_a_refused_token_and_a_wrong_one_are_auth_errors(tmp_path):
    with serving(tmp_path / "a", run=False) as server:
        server.faults.bad_token()
        with pytest.raises(modal.exception.AuthError), toy.app.run():
            pass
    with (
        ModalServer(tmp_path / "b", executor="inprocess") as server,
        server.client_environment(MODAL_TOKEN_SECRET="as-somebody-else"),
        pytest.raises(modal.exception.AuthError),
        toy.app.run(),
    ):
        pass


def test_an_rpc_that_is_not_answered_fails_by_its_name(tmp_path):
    with serving(tmp_path, run=False) as server:
        words = modal.Dict.from_name("words", create_if_missing=True)
        with pytest.raises(modal.exception.UnimplementedError, match="DictGetOrCreate"):
            words.hydrate()
        assert server.unanswered == ["DictGetOrCreate"]


def test_any_status_can_be_planted(tmp_path):
    with serving(tmp_path, run=False) as server:
        server.faults.error("AppCreate", Status.FAILED_PRECONDITION, "spend limit")
        with pytest.raises(modal.exception.ConflictError, match="spend limit"), toy.app.run():
            pass


@pytest.mark.parametrize("protocol", PLANES)
def test_large_inputs_and_outputs_go_by_blob(tmp_path, protocol):
    with serving(tmp_path, protocol=protocol) as server:
        got = mapped([1, 2], payload=bytes(range(256)) * (LARGE // 256))
    assert_complete(got, [1, 2])
    assert all(answer["payload"] == bytes(range(256)) * (LARGE // 256) for answer in got)
    assert server.blobs.uploads == 2
    assert server.blobs.downloads == 2


def test_what_was_asked_for_is_on_record(tmp_path):
    with serving(tmp_path) as server:
        variant = toy.Worker.with_options(gpu="A10", max_containers=2)(of="x", times=5)
        assert variant.run.remote(2)["product"] == 10
    worker, fetch, (bound,) = server.function("Worker"), server.function("fetch"), server.bound
    assert (worker.gpu, worker.block_network, worker.max_containers, worker.scaledown_window) == ("L4", True, 4, 60)
    assert (worker.timeout, worker.startup_timeout) == (600, 900)
    assert (worker.retries.count, worker.retries.initial_delay_ms, worker.retries.backoff) == (3, 1000, 2.0)
    assert worker.volumes == {"/data": ("toy-data", True)}
    assert fetch.volumes == {"/data": ("toy-data", False)}
    assert (fetch.gpu, fetch.block_network, fetch.secret_keys) == ("", False, ("TOY_SAYS",))
    assert f"{CONTAINER_HOME}/tests/support/modal_server/toy.py" in worker.mounted
    assert any(f"uv:{toy.UV_VERSION} " in line for line in worker.dockerfile)
    assert any(line.endswith(" ".join(("", *toy.PACKAGES))) for line in worker.dockerfile)
    assert (bound.gpu, bound.max_containers, bound.parameters) == ("A10", 2, {"of": "x", "times": 5})
    assert (bound.block_network, bound.timeout) == (True, 600)


def test_an_app_has_its_tags_its_bill_and_an_end(tmp_path):
    with serving(tmp_path) as server:
        toy.app.set_tags({"run": "r1"})
        report = modal.Workspace.from_context().billing.report
        with pytest.raises(modal.exception.UnimplementedError, match="WorkspaceBillingReport"):
            report(start=_HOUR, tag_names=["run"])
        server.billing = [{"tags": {"run": "r1"}, "cost": "0.12"}]
        (item,) = report(start=_HOUR, tag_names=["run"])
        assert (item.tags, str(item.cost)) == ({"run": "r1"}, "0.12")
        assert not server.apps_stopped
    (app,) = server.apps
    assert (app.name, app.tags, app.stopped, app.reason) == ("toy", {"run": "r1"}, True, "ENTRYPOINT_COMPLETED")


def test_an_interrupted_client_stops_its_app(tmp_path):
    with serving(tmp_path, run=False) as server, toy.app.run():
        raise KeyboardInterrupt
    assert [app.reason for app in server.apps] == ["KEYBOARD_INTERRUPT"]


def test_an_app_whose_client_is_gone_can_be_ended_by_the_service(tmp_path):
    with serving(tmp_path) as server:
        assert_complete(mapped())
        server.stop_apps()
        assert len(server.apps_stopped) == 1


def test_containers_have_their_volumes_files_and_environment_and_nothing_of_the_checkout(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    revision = "0123456789abcdef0123456789abcdef01234567"
    with (
        HubServer({("some/model", revision): model}) as hub,
        serving(tmp_path / "server", executor="container", environment={"HF_ENDPOINT": hub.url}) as server,
    ):
        (server.volume("toy-data") / "planted").write_text("before")
        assert toy.fetch.remote("greeting", "hello") == "from the function"
        assert toy.download.remote("some/model", revision) == ["config.json"]
        worker = toy.Worker.with_options(max_containers=1)(of="x")
        assert worker.look.remote("read") == "hello"
        assert worker.look.remote("imports") == {"numpy": True, "runner": False, "pydantic": False, "pytest": False}
        for what, says in (("write", "Read-only"), ("connect", "Network is unreachable")):
            with pytest.raises(modal.exception.RemoteError, match=says):
                worker.look.remote(what)
        assert (server.volume("toy-data") / "greeting").read_text() == "hello"
        volume = modal.Volume.from_name("toy-data")
        assert {"greeting", "planted", "hub"} <= {entry.path for entry in volume.listdir("/")}
        assert all(entry.path.startswith("hub/") for entry in volume.listdir("/hub", recursive=True))
    assert [path for path in hub.downloads if path.endswith(f"/{revision}/config.json")]
    writers = [container.container_id for container in server.containers if container.function.name != "Worker.*"]
    assert {container for _, container in server.commits} == set(writers)


def test_a_killed_process_is_replaced_and_large_payloads_pass_through_it(tmp_path):
    with serving(tmp_path, executor="container", protocol="input") as server:
        server.faults.kill_container(when=lambda one: one.args[0] == 5)
        worker = toy.Worker.with_options(max_containers=2)(of="x")
        pairs = [(number, b"") for number in range(8)] + [(8, b"7" * LARGE)]
        got = list(worker.run.starmap(pairs, order_outputs=False, return_exceptions=True))
    assert_complete(got, range(9))
    assert next(answer["payload"] for answer in got if answer["number"] == 8) == b"7" * LARGE
    assert len(next(one for one in server.inputs if number_of(one) == 5).executions) == 2
    assert not server.unanswered


def test_an_entry_that_fails_in_a_process_is_told_with_its_own_type(tmp_path):
    nothing = pytest.raises(RuntimeError, match="there is nothing to multiply")
    with serving(tmp_path, executor="container", entries=1), nothing:
        toy.Worker.with_options(max_containers=1)(of="nothing").run.remote(1)


def test_the_server_runs_by_itself_for_clients_elsewhere(tmp_path, monkeypatch):
    command = [sys.executable, "-m", "tests.support.modal_server", "--folder", str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(5):
                name, _, value = process.stdout.readline().strip().removeprefix("export ").partition("=")
                monkeypatch.setenv(name, value)
            forget_client()
            volume = modal.Volume.from_name("made-elsewhere", create_if_missing=True).hydrate()
            assert volume.object_id.startswith("vo-")
        finally:
            forget_client()
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def test_an_image_is_what_its_lines_say_and_a_pin_that_is_not_here_builds_none(tmp_path):
    lines = [
        "FROM base",
        "ENV A='two words'",
        "ENV A=three",
        "RUN /.uv/uv pip install --python $(command -v python) a==1",
    ]
    assert environment_of(lines) == {"A": "three"}
    assert pinned(lines) == [Requirement("a==1")]
    with pytest.raises(BuildError, match=r"numpy==1\.0"):
        install(["RUN pip install numpy==1.0"], tmp_path / "wrong")
    install(["RUN pip install 'numpy'"], tmp_path / "right")
    names = {path.name for path in (tmp_path / "right").iterdir()}
    assert {"numpy", "modal", "grpclib", "google"} <= names
    assert not {"runner", "pydantic", "torch", "pytest"} & names
