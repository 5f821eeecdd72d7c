"""Modal's app as this process runs it: started by the first batch that needs it, stopped once and for all.

One thread talks to Modal; whoever wants something waits at a queue, so that Ctrl-C and an exhausted budget end the wait
at once. Modal's errors are told in this tool's words: what is wrong, and what to do next.
"""

import asyncio
import builtins
import importlib.util
import logging
import os
import pickle
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from runner.base.errors import BackendError, EvalError, PackageMissing

if TYPE_CHECKING:
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


class ModalService:
    """One run of the app, tagged with `run_id` for the billing report."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._begun = threading.Event()
        self._reason = ""
        self._waiting: set[Arrivals[Any]] = set()
        self._app: asyncio.Task[None] | None = None

    def started(self) -> "ModuleType":
        """Return `runner.embed.modal.app` with its app running; BackendError if it cannot start or was stopped."""
        self.result(self._start)
        return _modal_app()

    def results(self, work: Callable[[], AsyncIterator[_Result]]) -> Generator[_Result, None, None]:
        """Yield what `work` gives, as it comes; BackendError if it fails or the app stops. Closing it gives it up."""
        arrived: Arrivals[_Result] = SimpleQueue()
        with self._lock:
            self._refuse_stopped()
            if self._thread is None:
                thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="modal", daemon=True)
                thread.start()
                self._thread = thread  # known once it runs: an interrupt may come at any of these lines
            # All under the lock, so that a stop comes before it or finds the queue.
            self._begun.wait()
            self._waiting.add(arrived)
            consumer = asyncio.run_coroutine_threadsafe(_consume(work, arrived), self._loop)
        try:
            while not isinstance(arrival := arrived.get(), _Ended):
                yield arrival
            # After everything that had arrived, which is worth its money.
            self._refuse_stopped()
            if arrival.error is not None:
                raise explained(arrival.error) from arrival.error
        finally:
            consumer.cancel()
            with self._lock:
                self._waiting.discard(arrived)

    def result(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return what `work` returns; errors as in `results`."""

        async def alone() -> AsyncIterator[_Result]:
            yield await work()

        (returned,) = self.results(alone)
        return returned

    def workspace(self) -> str:
        """Return the token's workspace; BackendError if Modal does not take the token, or does not answer."""

        async def greeted() -> str:
            modal = _modal_app().modal
            client = await modal.Client.from_env.aio()
            await client.hello.aio()
            workspace = modal.Workspace.from_context(client=client)
            await workspace.hydrate.aio(client)
            return workspace.name or "without a name"

        return self.result(greeted)

    def stored(self) -> set[str]:
        """Return what lies at the root of the Volume of weights, seen from outside a container; nothing is started."""

        async def listed() -> set[str]:
            app = _modal_app()
            volume = app.modal.Volume.from_name(app.WEIGHTS_VOLUME, create_if_missing=True)
            return {entry.path.strip("/") for entry in await volume.listdir.aio("/")}

        return self.result(listed)

    def stop(self, reason: str) -> None:
        """End the app at once, and tell `reason` to everything that waits for it."""
        with self._lock:
            self._reason = self._reason or reason
            for queue in self._waiting:
                queue.put(_Ended())
        if self._thread is not None:
            self._begun.wait()
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._over.set)

    def close(self) -> None:
        """Stop, and wait until Modal knows; a warning says where to look if it does not answer."""
        self.stop("the backend is closed")
        if self._thread is None:
            return
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            _log.warning("Modal did not answer when the app was stopped; see modal.com/apps whether it still runs")

    def _refuse_stopped(self) -> None:
        if self._reason:
            raise BackendError(f"The app on Modal was stopped: {self._reason}.")

    async def _serve(self) -> None:
        """Carry out what is submitted until the stop; then end the app, and give up what is still under way."""
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._running: asyncio.Future[None] = self._loop.create_future()
        self._begun.set()
        await self._over.wait()
        if self._app is not None:
            await self._app

    async def _start(self) -> None:
        """Start the app unless it runs, and wait until it does."""
        if self._app is None:
            self._app = asyncio.create_task(self._keep_app())
        await asyncio.shield(self._running)

    async def _keep_app(self) -> None:
        try:
            app = _modal_app().app
            if self._reason:  # stopped while the app was imported
                return
            async with app.run():
                await app.set_tags.aio({"run": self.run_id})
                self._running.set_result(None)
                await self._over.wait()
        except Exception as error:  # noqa: BLE001  # raised where somebody waits for the app
            if self._running.done():
                _log.warning("the app on Modal was not stopped as it should (%s)", explained(error))
            else:
                self._running.set_exception(error)


async def _consume(work: Callable[[], AsyncIterator[_Result]], arrived: "Arrivals[_Result]") -> None:
    """Queue what `work` gives, and how it ended."""
    ended = _Ended()
    try:
        async for result in work():
            arrived.put(result)
    except Exception as error:  # noqa: BLE001  # raised again where the results are read
        ended = _Ended(error)
    arrived.put(ended)


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
        """Return an exception of Python's own."""
        kind = getattr(builtins, name, None) if module == "builtins" else None
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind
        raise pickle.UnpicklingError(f"{module}.{name} is not made from what Modal sends")


_SECRETS = ("MODAL_TOKEN_SECRET", "MODAL_TOKEN_ID", "HF_TOKEN")
_AGAIN = "run the command again"
_SIGN_IN = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
_LIMITS = f"look at the workspace's limits and spending on modal.com, and {_AGAIN}"
_ADVICE = {
    "AuthError": _SIGN_IN,
    "PermissionDeniedError": _SIGN_IN,
    "ResourceExhaustedError": _LIMITS,
    "ImageBuildError": "its log is on modal.com under the app; the versions are the pins of pyproject.toml",
    "InvalidError": "check --gpu and Modal's config file, and that modal is the pinned one (`make setup`)",
    **dict.fromkeys(
        ("ServiceError", "ConnectionError", "InternalError", "TimeoutError", "ClientClosed", "OSError"),
        f"Modal cannot be reached; see status.modal.com, and {_AGAIN}",
    ),
}
"""What to do about an error, by its class or one that it is derived from."""


def explained(error: BaseException) -> BackendError:
    """Return the error as a BackendError with what to do next; one of this tool's own as it is."""
    if isinstance(error, EvalError):
        return BackendError(str(error))
    advice = next((_ADVICE[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _ADVICE), _AGAIN)
    return BackendError(f"Modal failed ({described(error)}). Next: {advice}.")


def of_the_method(error: BaseException) -> bool:
    """Return whether an input failed in the method, or on the way to it, not while its container was made ready.

    The method's own errors arrive as Modal's RemoteError, since payloads are no pickles; a container's, before its
    first input, as they were raised, or as an ExecutionError if their kind is not known here.
    """
    return type(error).__module__.startswith("modal.") and type(error).__name__ != "ExecutionError"


def described(error: BaseException) -> str:
    """Return the error's kind and text on one line, without the secrets of this environment."""
    return without_secrets(f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000])


def without_secrets(text: str) -> str:
    """Return the text with the values of tokens in this environment blotted out."""
    for name in _SECRETS:
        if value := os.environ.get(name):
            text = text.replace(value, f"[{name}]")
    return text
