"""What containers ask: for inputs, to deliver outputs, and to say that they failed before the first."""

from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.support.modal_server.records import ContainerRecord, Input
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.wire import Caller, answers


class ContainerPlane:
    """Answers for containers; who asks is told by a header that the stand-in gave it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    @answers("ContainerHello")
    async def hello(self, request: Empty, caller: Caller) -> Any:
        return Empty()

    @answers("ContainerHeartbeat")
    async def heartbeat(self, request: api_pb2.ContainerHeartbeatRequest, caller: Caller) -> Any:
        return api_pb2.ContainerHeartbeatResponse()

    @answers("FunctionGetInputs")
    async def get_inputs(self, request: api_pb2.FunctionGetInputsRequest, caller: Caller) -> Any:
        taken = await self.scheduler.take(self._container(caller))
        if taken is None:
            return api_pb2.FunctionGetInputsResponse(inputs=[api_pb2.FunctionGetInputsItem(kill_switch=True)])
        return api_pb2.FunctionGetInputsResponse(inputs=[handed(taken)])

    @answers("FunctionPutOutputs")
    async def put_outputs(self, request: api_pb2.FunctionPutOutputsRequest, caller: Caller) -> Any:
        self.scheduler.put(self._container(caller), request.outputs)
        return Empty()

    @answers("TaskResult")
    async def failed(self, request: api_pb2.TaskResultRequest, caller: Caller) -> Any:
        self.scheduler.entry_failed(self._container(caller), request.result)
        return Empty()

    def _container(self, caller: Caller) -> ContainerRecord:
        for container in self.scheduler.containers:
            if container.container_id == caller.container_id:
                return container
        raise GRPCError(Status.PERMISSION_DENIED, "only a container of this server may ask that")


def handed(taken: Input) -> api_pb2.FunctionGetInputsItem:
    """An input as a container gets it."""
    return api_pb2.FunctionGetInputsItem(
        input_id=taken.input_id,
        input=taken.proto,
        function_call_id=taken.call.call_id,
        function_call_invocation_type=taken.call.invocation_type,
        retry_count=taken.retry_count,
        function_map_idx=taken.idx,
    )
