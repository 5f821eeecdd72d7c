"""How apps end: the client leaves, or somebody stops them; and the log they leave behind."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.empty_pb2 import Empty
from modal_proto import api_pb2

from tests.support.modal_server.objects import Objects
from tests.support.modal_server.records import AppRecord
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.wire import Caller, answers


class Lifecycle:
    """Answers for the end of apps."""

    def __init__(self, objects: Objects, scheduler: Scheduler) -> None:
        self.objects, self.scheduler = objects, scheduler
        self._ended: dict[str, asyncio.Event] = {}

    @answers("AppClientDisconnect")
    async def leave(self, request: api_pb2.AppClientDisconnectRequest, caller: Caller) -> Any:
        reason = api_pb2.AppDisconnectReason.Name(request.reason).removeprefix("APP_DISCONNECT_REASON_")
        self.stop(self.objects.app(request.app_id), reason, request.exception)
        return Empty()

    @answers("AppStop")
    async def stop_app(self, request: api_pb2.AppStopRequest, caller: Caller) -> Any:
        self.stop(self.objects.app(request.app_id), "STOPPED")
        return Empty()

    @answers("AppGetLogs")
    async def logs(self, request: api_pb2.AppGetLogsRequest, caller: Caller) -> AsyncIterator[Any]:
        app = self.objects.app(request.app_id)
        if not app.stopped:
            await self._end(app).wait()
        for container in self.scheduler.containers:
            if container.function.app_id == app.app_id and container.log and container.log.is_file():
                text = container.log.read_text(encoding="utf-8", errors="replace")
                item = api_pb2.TaskLogs(data=text, file_descriptor=api_pb2.FILE_DESCRIPTOR_STDOUT)
                yield api_pb2.TaskLogsBatch(task_id=container.container_id, items=[item])
        yield api_pb2.TaskLogsBatch(app_done=True)

    def stop(self, app: AppRecord, reason: str, exception: str = "") -> None:
        """Ends an app's containers; what it had waiting is forgotten."""
        if not app.stopped:
            app.stopped, app.state, app.reason, app.exception = True, "stopped", reason, exception
            self.scheduler.stop_app(app.app_id)
            self._end(app).set()

    def _end(self, app: AppRecord) -> asyncio.Event:
        return self._ended.setdefault(app.app_id, asyncio.Event())
