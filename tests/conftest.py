"""What tests share: no network but loopback, the way to the shared corpora, a small version, a command line."""

import gc
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from runner.base.errors import EvalError
from runner.base.places import CACHE_VARIABLE, CHECKOUT
from runner.commands import main as cli
from runner.eval_set.version import Version
from tests.support.evening_process import run, run_to_judges
from tests.support.small_collection import CELLS, evaluate, external_version, write_collection
from tests.support.small_set import begin, make_version

_LOOPBACK = ("127.", "localhost", "::1")
_Result = TypeVar("_Result")

# Examples are drawn anew on every local run; in CI they are the same, so that a change is judged by itself alone.
# `make test-all` takes the profile "all"; a test that states a number of its own keeps it in both.
for _name, _examples in (("all", 100), ("suite", 25)):
    settings.register_profile(_name, max_examples=_examples, deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("suite")

# In memory where there is some: on a disk each of the flushes that the tests do costs milliseconds of waiting. With
# pyproject's `tmp_path_retention_policy` it holds little at a time. Containers have but 64 MB there.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4_000_000_000:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# A shell's background job and nohup ignore these, and a child inherits that; of a handler it inherits the default.
for _ending in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_ending) is signal.SIG_IGN:
        signal.signal(_ending, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark every test that drives a browser as a slow one."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect no garbage while tests are collected: nearly all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep the million objects that collection made out of garbage collections, and have fewer: a fifth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True, scope="session")
def _own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a person agreed to, and sources of a person's own, lie in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runner.eval_set.version.OWN_SETS", tmp_path_factory.mktemp("own-sets"))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
        yield


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to anything but this machine, or a look-up of its name, fails the test that tried it.

    Processes that a test starts are told to leave the model hub alone.
    """
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guarded_connection(getattr(socket.socket, name)))
    monkeypatch.setattr(socket, "getaddrinfo", _guarded_lookup(socket.getaddrinfo))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def called(*arguments: object) -> tuple[Any, str]:
    """The exit code of a command line, and the message of its error."""
    try:
        return cli.called([str(argument) for argument in arguments]), ""
    except EvalError as error:
        return error.exit_code, str(error)
    except SystemExit as stopped:
        return stopped.code, ""


def _guarded_connection(connect: Callable[[socket.socket, Any], _Result]) -> Callable[[socket.socket, Any], _Result]:
    def guarded(self: socket.socket, address: Any) -> _Result:
        if self.family != socket.AF_UNIX:
            _check(address[0] if isinstance(address, tuple) else address)
        return connect(self, address)

    return guarded


def _guarded_lookup(look_up: Callable[..., _Result]) -> Callable[..., _Result]:
    def guarded(host: str | bytes | None, *more: Any, **named: Any) -> _Result:
        if host is not None:
            _check(host.decode() if isinstance(host, bytes) else host)
        return look_up(host, *more, **named)

    return guarded


def _check(host: object) -> None:
    if not str(host).startswith(_LOOPBACK):
        raise AssertionError(f"a test tried to reach {host!r}; tests may use loopback only")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared corpora and vectors: PSE_SHARED, by default ../shared."""
    folder = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared"))
    if not (folder / "corpora").is_dir():
        message = f"SHARED CORPORA NOT FOUND at {folder}: set PSE_SHARED; tests over real documents did not run"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small set's plans, prompt, corpus and queries; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("ready")
    begin(folder)
    return folder


@pytest.fixture(scope="session")
def decided_evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpus, version and cache of an evening that ended in a locked decision; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("decided-evening")
    run(folder)
    return folder


@pytest.fixture(scope="session")
def waiting_evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpus, version and cache of an evening that waits for its judges; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("waiting-evening")
    run_to_judges(folder)
    return folder


@pytest.fixture(scope="session")
def evaluated_collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small public collection in `collection`, evaluated with BM25 alone; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("evaluated-collection")
    evaluate(external_version(folder, cells=CELLS[:1]), write_collection(folder / "collection"))
    return folder


@pytest.fixture
def version(ready: Path, tmp_path: Path) -> Version:
    """The small set's version with plans, prompt, corpus and queries; nothing preregistered."""
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


@pytest.fixture
def decided(decided_evening: Path, tmp_path: Path) -> Version:
    """A version of its own with a locked decision."""
    shutil.copytree(decided_evening, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


@pytest.fixture
def waiting(waiting_evening: Path, tmp_path: Path) -> Version:
    """A version of its own whose pool waits to be judged."""
    shutil.copytree(waiting_evening, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


@pytest.fixture
def where(tmp_path: Path) -> str:
    """The flag that leads a command to the small set below `tmp_path`."""
    return f"--eval-set-path={tmp_path / 'eval-sets' / 'demo'}"


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `where` the source's own place, which may hold no version yet."""
    monkeypatch.setattr("runner.eval_set.version.WORKPLACE", tmp_path)
    monkeypatch.setattr("runner.eval_set.version.EVAL_SETS", tmp_path / "eval-sets")


@pytest.fixture
def command(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Exit code, stdout and stderr of a command line of the source `demo`."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / ".cache"))

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main([*arguments, "--source=demo", where])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call
