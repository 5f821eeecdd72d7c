"""The stand-in itself: its thread, its ports, and what tests say to it and read from it."""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import grpclib.server
from aiohttp import web
from grpclib.config import Configuration

from tests.support.modal_server.blobs import Blobs
from tests.support.modal_server.container_plane import ContainerPlane
from tests.support.modal_server.control_plane import ControlPlane
from tests.support.modal_server.faults import Faults
from tests.support.modal_server.functions import Functions
from tests.support.modal_server.inprocess import InProcess
from tests.support.modal_server.lifecycle import Lifecycle
from tests.support.modal_server.objects import Objects
from tests.support.modal_server.processes import Processes
from tests.support.modal_server.records import AppRecord, ContainerRecord, FunctionRecord, Input
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.volumes import Volumes
from tests.support.modal_server.wire import Wire

TOKEN = ("ak-planted0token0id", "as-planted0token0secret")
_WINDOW = 64 * 1024 * 1024
_HOST = "127.0.0.1"
_END_SECONDS = 5.0

Key = Callable[[Input], Hashable]


class ModalServer:
    """Modal's service on this machine, for the pinned client. A context: it serves from enter to exit.

    `environment` is that of containers of the executor "container".
    Failed inputs are tried again by the policy, but at once.
    """

    def __init__(
        self,
        folder: Path,
        *,
        executor: Literal["container", "inprocess"] = "container",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.port = folder, 0
        self.faults = Faults()
        self._executor: str = executor
        self._plain: dict[str, Callable[..., Any]] = {}
        self._more = environment or {}
        self._blobs = Blobs()
        self._objects = Objects(self._blobs)
        self._volumes = Volumes(folder / "volumes")
        self._scheduler = Scheduler(self._blobs, self.faults)
        self._lifecycle = Lifecycle(self._objects, self._scheduler)
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
        site = web.TCPSite(self._runner, _HOST, 0)
        await site.start()
        self._blobs.port = self._runner.addresses[0][1]
        self._functions = Functions(self._objects)
        services = [self._objects, self._volumes, self._functions, self._lifecycle, ContainerPlane(self._scheduler)]
        services.append(ControlPlane(self._functions, self._scheduler))
        self._wire = Wire(services, self.faults, TOKEN)
        config = Configuration(http2_connection_window_size=_WINDOW, http2_stream_window_size=_WINDOW)
        self._server = grpclib.server.Server([self._wire], config=config)
        await self._server.start(_HOST, self.port)
        self.port = self._server._server.sockets[0].getsockname()[1]
        if self._executor == "inprocess":
            self._scheduler.executor = InProcess(self._volumes, self._scheduler, self._plain)
        else:
            planes = self._objects, self._functions, self._volumes
            containers = self.folder / "containers"
            self._scheduler.executor = Processes(containers, planes, self._scheduler, self.url, self._more)

    async def _stop(self) -> None:
        for app in self._objects.apps.values():
            self._lifecycle.stop(app)
        for container in self._scheduler.containers:
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

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.port}"

    def environment(self) -> dict[str, str]:
        """What leads a client here, and to nobody's account."""
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": TOKEN[0],
            "MODAL_TOKEN_SECRET": TOKEN[1],
            "MODAL_CONFIG_PATH": "/nonexistent",
            "MODAL_DISABLE_API_PROXY": "1",
        }

    @contextmanager
    def client_environment(self, **changed: str) -> Iterator[None]:
        """This process's client talks to this server; `changed` variables are set too. All is put back in the end."""
        values = {**self.environment(), **changed}
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
        """From the next container on this object stands for a class or function; executor "inprocess" alone."""
        self._plain[name] = plain

    @property
    def functions(self) -> list[FunctionRecord]:
        return list(self._functions.records.values())

    def function(self, name: str) -> FunctionRecord:
        """The last function, or class, of this name."""
        return [record for record in self.functions if record.name.removesuffix(".*") == name][-1]

    @property
    def bound(self) -> list[FunctionRecord]:
        return list(self._functions.bound.values())

    @property
    def inputs(self) -> list[Input]:
        return list(self._scheduler.inputs)

    def sent(self, key: Key) -> Counter[Hashable]:
        """How often the client sent what has this key; None is not counted."""
        return self._counted(key, lambda one: one.sent)

    def executed(self, key: Key) -> Counter[Hashable]:
        """How often a container was handed what has this key."""
        return self._counted(key, lambda one: len(one.executions))

    def _counted(self, key: Key, number: Callable[[Input], int]) -> Counter[Hashable]:
        found: Counter[Hashable] = Counter()
        for one in self.inputs:
            if (name := key(one)) is not None:
                found[name] += number(one)
        return found

    @property
    def calls(self) -> Counter[str]:
        return self._wire.calls

    @property
    def unanswered(self) -> list[str]:
        return self._wire.unanswered

    @property
    def apps(self) -> list[AppRecord]:
        return list(self._objects.apps.values())

    @property
    def apps_stopped(self) -> list[str]:
        return [app.app_id for app in self.apps if app.stopped]

    def stop_apps(self) -> None:
        """Ends every app that still runs, as the service does some time after its client was killed."""

        async def stop() -> None:
            for app in self.apps:
                self._lifecycle.stop(app)

        self._on_loop(stop())

    @property
    def containers(self) -> list[ContainerRecord]:
        return list(self._scheduler.containers)

    def volume(self, name: str) -> Path:
        """The folder of what is committed to a Volume."""
        return self._volumes.committed(name)

    @property
    def billing(self) -> list[dict[str, Any]] | None:
        return self._objects.billing

    @billing.setter
    def billing(self, rows: list[dict[str, Any]] | None) -> None:
        self._objects.billing = rows


def forget_client() -> None:
    """Closes the one client that modal keeps for this process, and what it remembers of the workspace."""
    from modal import Client, _environments
    from modal.client import _Client

    if _Client._client_from_env is not None:
        Client.from_env().close()
    _Client._client_from_env = None
    _environments.ENVIRONMENT_CACHE.clear()
