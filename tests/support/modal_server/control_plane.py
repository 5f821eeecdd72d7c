"""Calls by the control plane: FunctionMap, FunctionPutInputs, FunctionGetOutputs."""

import itertools
from typing import Any

from grpclib import GRPCError, Status
from modal._utils.jwt_utils import DecodedJwt
from modal_proto import api_pb2

from tests.support.modal_server.functions import Functions
from tests.support.modal_server.records import Call
from tests.support.modal_server.scheduler import Scheduler, happened
from tests.support.modal_server.wire import Caller, answers

OUTSTANDING = 1000


class ControlPlane:
    """Answers for calls."""

    def __init__(self, functions: Functions, scheduler: Scheduler) -> None:
        self.functions, self.scheduler = functions, scheduler
        self.calls: dict[str, Call] = {}
        self._numbers = itertools.count(1)

    @answers("FunctionMap")
    async def begin(self, request: api_pb2.FunctionMapRequest, caller: Caller) -> Any:
        function = self.functions.record(request.function_id)
        unary = request.function_call_type == api_pb2.FUNCTION_CALL_TYPE_UNARY
        call_id = f"fc-{next(self._numbers):04d}"
        call = Call(call_id, function, unary, request.function_call_invocation_type)
        self.calls[call_id] = call
        return api_pb2.FunctionMapResponse(
            function_call_id=call_id,
            function_call_jwt=_jwt(call_id, 0, 0),
            pipelined_inputs=[self._accepted(call, item) for item in request.pipelined_inputs],
            retry_policy=function.definition.retry_policy,
            sync_client_retries_enabled=False,
            max_inputs_outstanding=OUTSTANDING,
        )

    @answers("FunctionPutInputs")
    async def put(self, request: api_pb2.FunctionPutInputsRequest, caller: Caller) -> Any:
        call = self.call(request.function_call_id)
        return api_pb2.FunctionPutInputsResponse(inputs=[self._accepted(call, item) for item in request.inputs])

    @answers("FunctionGetOutputs")
    async def outputs(self, request: api_pb2.FunctionGetOutputsRequest, caller: Caller) -> Any:
        call = self.call(request.function_call_id)
        seen = int(request.last_entry_id.split("-")[0] or 0)
        if len(call.outputs) <= seen and request.timeout > 0:
            await happened(call.changed, request.timeout)
        fresh = call.after(seen)
        last = max(seen, len(call.outputs))
        if request.clear_on_success and call.unary:
            call.outputs.clear()  # the next attempt's answer is then the first again
        return api_pb2.FunctionGetOutputsResponse(
            outputs=fresh[:1] if call.unary else fresh,
            last_entry_id=f"{last}-0",
            num_unfinished_inputs=len(call.inputs) - len(call.outputs),
        )

    def call(self, call_id: str) -> Call:
        if call_id not in self.calls:
            raise GRPCError(Status.NOT_FOUND, f"no call {call_id}")
        return self.calls[call_id]

    def _accepted(self, call: Call, item: api_pb2.FunctionPutInputsItem) -> api_pb2.FunctionPutInputsResponseItem:
        new = self.scheduler.submit(call, item.idx, item.input)
        jwt = _jwt(call.call_id, item.idx, new.sent)
        return api_pb2.FunctionPutInputsResponseItem(idx=item.idx, input_id=new.input_id, input_jwt=jwt)


def _jwt(call_id: str, idx: int, sent: int) -> str:
    return DecodedJwt.encode_without_signature({"call": call_id, "idx": idx, "sent": sent})
