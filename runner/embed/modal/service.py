"""Modal's app as this process runs it: started by the first batch that needs it, stopped once and for all.

All waiting for Modal happens in threads, so that Ctrl-C and an exhausted budget end it at once. Modal's errors are told
in this tool's words: what is wrong, and what to do next.
"""

import asyncio
import builtins
import contextlib
import importlib.util
import logging
import os
import pickle
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar, cast

from runner.base.errors import BackendError, EvalError, PackageMissing

if TYPE_CHECKING:
    from datetime import datetime
    from types import ModuleType

STOP_SECONDS = 20.0
"""How long a stop waits for Modal's answer; an app that nobody keeps alive is ended by Modal itself."""

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class _Ended:
    """The last thing that arrives."""

    error: Exception | None = None


Arrivals = SimpleQueue[_Result | _Ended]


class _Pump(Generic[_Result]):
    """A thread that queues what `work` gives and can be cancelled, which the client itself cannot."""

    def __init__(self, work: Callable[[], AsyncIterator[_Result]], arrived: "Arrivals[_Result]") -> None:
        self._work, self._arrived = work, arrived
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="modal-results", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """End the thread, if it is running."""
        if self._thread.ident is None:
            return
        if self._begun.wait(STOP_SECONDS):
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._consume())
        except asyncio.CancelledError:
            pass  # nobody reads any longer
        except Exception as error:  # noqa: BLE001  # raised again where the results are read
            self._arrived.put(_Ended(error))
        else:
            self._arrived.put(_Ended())

    async def _consume(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), cast("asyncio.Task[None]", asyncio.current_task())
        self._begun.set()
        async for result in self._work():
            self._arrived.put(result)


class ModalService:
    """One run of the app, tagged with `run_id` for the billing report."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ready, self._over = threading.Event(), threading.Event()
        self._error: BackendError | None = None
        self._reason = ""
        self._waiting: set[Arrivals[Any]] = set()

    def started(self) -> "ModuleType":
        """`runner.embed.modal.app` with its app running; a BackendError if it cannot start or was stopped."""
        with self._lock:
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(target=self._run, name="modal-app", daemon=True)
                self._thread.start()
        self._ready.wait()
        self._check()
        return _modal_app()

    def results(self, work: Callable[[], AsyncIterator[_Result]]) -> Generator[_Result, None, None]:
        """What `work` gives, as it comes; a BackendError if it fails or the app stops. Closing it gives the work up."""
        arrived: Arrivals[_Result] = SimpleQueue()
        pump = _Pump(work, arrived)
        with self._lock:
            self._waiting.add(arrived)
        try:
            self._check()
            pump.start()
            while True:
                arrival = arrived.get()
                if isinstance(arrival, _Ended):  # after everything that had arrived, which is worth its money
                    self._check()
                    if arrival.error is not None:
                        raise explained(arrival.error) from arrival.error
                    return
                yield arrival
        finally:
            pump.cancel()
            with self._lock:
                self._waiting.discard(arrived)

    def result(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """What `work` returns; errors as in `results`."""

        async def alone() -> AsyncIterator[_Result]:
            yield await work()

        (found,) = self.results(alone)
        return found

    def workspace(self) -> str:
        """The token's workspace; a BackendError if Modal does not take the token, or does not answer."""
        name: str = self.result(lambda: _modal_app().greet())
        return name

    def stored(self) -> set[str]:
        """What lies at the root of the Volume of weights; nothing is started."""
        names: set[str] = self.result(lambda: _modal_app().stored())
        return names

    def billed(self, run_id: str, start: "datetime", end: "datetime") -> float | None:
        """Dollars that Modal's report has for a run between two full hours; None if it does not answer."""
        try:
            dollars: float | None = _modal_app().billed(run_id, start, end)
        except Exception:  # noqa: BLE001  # a plan without reports, no connection: nothing is known, and nothing fails
            return None
        return dollars

    def stop(self, reason: str) -> None:
        """End the app at once, and tell `reason` to everything that waits for it."""
        with self._lock:
            self._reason = self._reason or reason
            self._over.set()
            self._ready.set()
            for queue in self._waiting:
                queue.put(_Ended())

    def close(self) -> None:
        """Stop, and wait until Modal knows; a warning says where to look if it does not answer."""
        self.stop("the backend is closed")
        if self._thread is None:
            return
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            _log.warning("Modal did not answer when the app was stopped; see modal.com/apps whether it still runs")

    def _check(self) -> None:
        if self._error is not None:
            raise BackendError(str(self._error)) from self._error
        if self._over.is_set():
            raise BackendError(f"The app on Modal was stopped: {self._reason}.")

    def _run(self) -> None:
        try:
            app = _modal_app().app
            if self._over.is_set():
                return
            with app.run():
                app.set_tags({"run": self.run_id})
                self._ready.set()
                self._over.wait()
        except Exception as error:  # noqa: BLE001  # raised again in every thread that needs the app
            if self._reason:
                _log.warning("the app on Modal was not stopped as it should (%s)", explained(error))
            else:
                self._error = explained(error)
        finally:
            self._over.set()
            self._ready.set()


def check_installed() -> None:
    """Raise BackendError unless Modal's client is installed."""
    if importlib.util.find_spec("modal") is None:
        raise PackageMissing(
            "--modal needs the package modal. Run `make setup`, or pip install 'per-source-eval[modal]'."
        )


def _modal_app() -> "ModuleType":
    check_installed()
    # Plain data in place of pickles, so that no version of Python or numpy must match.
    os.environ["MODAL_PAYLOAD_FORMAT"] = "cbor"
    from modal import _serialization

    from runner.embed.modal import app as modal_app

    # What comes as a pickle all the same, as the error of a container that cannot start, must not run here either.
    _serialization.Unpickler = InertUnpickler  # type: ignore[assignment, misc]  # it is a class, and has no interface
    return modal_app


class InertUnpickler(pickle.Unpickler):
    """Makes plain data and Python's own exceptions, and runs nothing else: an UnpicklingError for any other."""

    def __init__(self, client: object, stream: BinaryIO) -> None:
        super().__init__(stream)

    def find_class(self, module: str, name: str) -> type[Exception]:
        """An exception of Python's own."""
        found = getattr(builtins, name, None) if module == "builtins" else None
        if isinstance(found, type) and issubclass(found, Exception):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is not made from what Modal sends")


_SECRETS = ("MODAL_TOKEN_SECRET", "MODAL_TOKEN_ID", "HF_TOKEN")
_AGAIN = "run the command again"
_ADVICE: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("AuthError", "PermissionDeniedError"),
        "Modal does not accept the token",
        "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
    ),
    (
        ("ResourceExhaustedError",),
        "Modal gives no more resources",
        "look at the workspace's limits and spending on modal.com, and run the command again",
    ),
    (
        ("ImageBuildError",),
        "Modal could not build the image",
        "its log is on modal.com under the app; the versions are the pins of pyproject.toml",
    ),
    (
        ("InvalidError", "ConflictError", "NotFoundError", "VersionError", "UnimplementedError"),
        "Modal does not accept what was asked for",
        "check --gpu and Modal's config file, and that modal is the pinned one (`make setup`)",
    ),
    (
        ("ServiceError", "ConnectionError", "InternalError", "TimeoutError", "ClientClosed", "OSError"),
        "Modal cannot be reached",
        f"see status.modal.com; {_AGAIN}",
    ),
)


def explained(error: BaseException) -> BackendError:
    """The error as a BackendError; one of this tool's own passes as it is."""
    if isinstance(error, EvalError):
        return BackendError(str(error))
    names = {kind.__name__ for kind in type(error).__mro__}
    for kinds, what, advice in _ADVICE:
        if names & set(kinds):
            return BackendError(f"{what} ({described(error)}). Next: {advice}.")
    return BackendError(f"Modal failed ({described(error)}). Next: {_AGAIN}.")


def of_the_method(error: BaseException) -> bool:
    """Whether an input failed in the method, or on the way to it, rather than while its container was made ready.

    The method's own errors arrive as Modal's RemoteError, since payloads are no pickles; a container's, before its
    first input, as they were raised, or as an ExecutionError if their kind is not known here.
    """
    return type(error).__module__.startswith("modal.") and type(error).__name__ != "ExecutionError"


def described(error: BaseException) -> str:
    """The error's kind and text on one line, without the secrets of this environment."""
    return without_secrets(f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000])


def without_secrets(text: str) -> str:
    """The text with the values of tokens in this environment blotted out."""
    for name in _SECRETS:
        if value := os.environ.get(name):
            text = text.replace(value, f"[{name}]")
    return text
