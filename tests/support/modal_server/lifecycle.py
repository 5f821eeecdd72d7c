"""How apps end: the client leaves, or the service ends them."""

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

    @answers("AppClientDisconnect")
    async def leave(self, request: api_pb2.AppClientDisconnectRequest, caller: Caller) -> Any:
        self.stop(self.objects.app(request.app_id))
        return Empty()

    def stop(self, app: AppRecord) -> None:
        """Ends an app's containers; what it had waiting is forgotten."""
        if not app.stopped:
            app.stopped = True
            self.scheduler.stop_app(app.app_id)
