"""The stand-in itself: its thread, its ports, and what tests say to it and read from it."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import grpclib.server
from aiohttp import web
from grpclib.config import Configuration

from tests.support.modal_server.blobs import Blobs
from tests.support.modal_server.calls import Calls
from tests.support.modal_server.faults import Faults
from tests.support.modal_server.objects import Objects
from tests.support.modal_server.processes import Processes
from tests.support.modal_server.records import AppRecord, FunctionRecord
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.threads import Threads
from tests.support.modal_server.volumes import Volumes
from tests.support.modal_server.wire import Wire

TOKEN = ("ak-planted0token0id", "as-planted0token0secret")
_WINDOW = 64 * 1024 * 1024
_HOST = "127.0.0.1"
_END_SECONDS = 5.0


class ModalServer:
    """Modal's service on this machine, for the pinned client. A context: it serves from enter to exit.

    `environment` is that of containers of the executor "container". Failed inputs are tried again by the policy, but at
    once.
    """

    def __init__(
        self,
        folder: Path,
        *,
        executor: Literal["container", "inprocess"] = "container",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.faults = Faults()
        self._executor: str = executor
        self._plain: dict[str, Callable[..., Any]] = {}
        self._more = environment or {}
        self._blobs = Blobs()
        self._scheduler = Scheduler(self._blobs, self.faults)
        self._objects = Objects(self._blobs, self._scheduler)
        self._volumes = Volumes(folder / "volumes")
        self._wire = Wire([self._objects, self._volumes, Calls(self._scheduler)], self.faults, TOKEN)
        self.calls, self.unanswered = self._wire.calls, self._wire.unanswered
        self.inputs, self.containers = self._scheduler.inputs, self._scheduler.containers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="modal stand-in", daemon=True)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        self._on_loop(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._on_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._runner = web.AppRunner(self._blobs.application(), access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, _HOST, 0).start()
        self._blobs.port = self._runner.addresses[0][1]
        config = Configuration(http2_connection_window_size=_WINDOW, http2_stream_window_size=_WINDOW)
        self._server = grpclib.server.Server([self._wire], config=config)
        await self._server.start(_HOST, 0)
        self.url = f"http://{_HOST}:{self._server._server.sockets[0].getsockname()[1]}"
        if self._executor == "inprocess":
            self._scheduler.executor = Threads(self._scheduler, self._plain)
        else:
            folder = self.folder / "containers"
            self._scheduler.executor = Processes(folder, self._objects, self._volumes, self.url, self._more)

    async def _stop(self) -> None:
        for app in self.apps:
            self._objects.stop(app)
        for container in self.containers:
            container.stop()
        await self._scheduler.executor.ended(_END_SECONDS)
        self._server.close()
        await self._server.wait_closed()
        await self._runner.cleanup()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def environment(self) -> dict[str, str]:
        """Return what leads a client here, and to nobody's account."""
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": TOKEN[0],
            "MODAL_TOKEN_SECRET": TOKEN[1],
            "MODAL_CONFIG_PATH": "/nonexistent",
            "MODAL_DISABLE_API_PROXY": "1",
        }

    @contextmanager
    def client_environment(self) -> Iterator[None]:
        """Have this process's client talk to this server; all is put back in the end."""
        values = self.environment()
        before = {name: os.environ.get(name) for name in values}
        forget_client()
        os.environ.update(values)
        try:
            yield
        finally:
            forget_client()
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def replace(self, name: str, plain: Callable[..., Any]) -> None:
        """From the next container on have this object stand for a class or function; executor "inprocess" alone."""
        self._plain[name] = plain

    @property
    def functions(self) -> list[FunctionRecord]:
        """Functions and classes as they were defined."""
        return [record for record in self._scheduler.functions.values() if not record.parameters]

    @property
    def bound(self) -> list[FunctionRecord]:
        """Variants of classes, with their parameters."""
        return [record for record in self._scheduler.functions.values() if record.parameters]

    def function(self, name: str) -> FunctionRecord:
        """Return the last function, or class, of this name."""
        return [record for record in self.functions if record.name.removesuffix(".*") == name][-1]

    @property
    def apps(self) -> list[AppRecord]:
        """All apps, ended ones too."""
        return list(self._objects.apps.values())

    @property
    def apps_stopped(self) -> list[str]:
        """Ids of apps that have ended."""
        return [app.app_id for app in self.apps if app.stopped]

    def stop_apps(self) -> None:
        """End every app that still runs, as the service does some time after its client was killed."""

        async def stop() -> None:
            for app in self.apps:
                self._objects.stop(app)

        self._on_loop(stop())

    def volume(self, name: str) -> Path:
        """Return the folder of what is committed to a Volume."""
        return self._volumes.committed(name)


def forget_client() -> None:
    """Close the one client that modal keeps for this process, and what it remembers of the workspace."""
    from modal import Client, _environments
    from modal.client import _Client

    if _Client._client_from_env is not None:
        Client.from_env().close()
    _Client._client_from_env = None
    _environments.ENVIRONMENT_CACHE.clear()
