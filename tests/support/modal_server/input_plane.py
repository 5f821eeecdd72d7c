"""Calls by the input plane, for functions whose handle names one: maps, and single attempts."""

import itertools
import time
from typing import Any

from modal._utils.jwt_utils import DecodedJwt
from modal_proto import api_pb2

from tests.support.modal_server.control_plane import OUTSTANDING
from tests.support.modal_server.functions import Functions
from tests.support.modal_server.records import Call, Input
from tests.support.modal_server.scheduler import Scheduler, happened
from tests.support.modal_server.wire import Caller, answers

_SYNC = api_pb2.FUNCTION_CALL_INVOCATION_TYPE_SYNC


class InputPlane:
    """Answers of the input plane. An attempt's token says call and index; lost inputs are told when asked for."""

    def __init__(self, functions: Functions, scheduler: Scheduler) -> None:
        self.functions, self.scheduler = functions, scheduler
        self.calls: dict[str, Call] = {}
        self._numbers = itertools.count(1)

    @answers("AuthTokenGet")
    async def token(self, request: api_pb2.AuthTokenGetRequest, caller: Caller) -> Any:
        token = DecodedJwt.encode_without_signature({"exp": int(time.time()) + 3600})
        return api_pb2.AuthTokenGetResponse(token=token)

    @answers("MapStartOrContinue")
    async def start_or_continue(self, request: api_pb2.MapStartOrContinueRequest, caller: Caller) -> Any:
        call = self.calls.get(request.map_token) or self._begun(request.function_id, unary=False)
        tokens = []
        for item in request.items:
            if item.attempt_token:
                again = self._attempted(item.attempt_token)
                self.scheduler.resubmit(again, again.retry_count + 1)
                tokens.append(_token(again))
            else:
                tokens.append(_token(self.scheduler.submit(call, item.input.idx, item.input.input)))
        return api_pb2.MapStartOrContinueResponse(
            map_token=call.call_id,
            function_id=request.function_id,
            function_call_id=call.call_id,
            max_inputs_outstanding=OUTSTANDING,
            attempt_tokens=tokens,
            retry_policy=self._policy(call),
        )

    @answers("MapAwait")
    async def await_map(self, request: api_pb2.MapAwaitRequest, caller: Caller) -> Any:
        call = self.calls[request.map_token]
        seen = int(request.last_entry_id or 0)
        if len(call.outputs) <= seen:
            await happened(call.changed, request.timeout)
        return api_pb2.MapAwaitResponse(outputs=call.after(seen), last_entry_id=str(len(call.outputs)))

    @answers("MapCheckInputs")
    async def check(self, request: api_pb2.MapCheckInputsRequest, caller: Caller) -> Any:
        lost = [self._attempted(token).lost for token in request.attempt_tokens]
        return api_pb2.MapCheckInputsResponse(lost=lost)

    @answers("AttemptStart")
    async def attempt(self, request: api_pb2.AttemptStartRequest, caller: Caller) -> Any:
        call = self._begun(request.function_id, unary=True)
        new = self.scheduler.submit(call, request.input.idx, request.input.input)
        return api_pb2.AttemptStartResponse(attempt_token=_token(new), retry_policy=self._policy(call))

    @answers("AttemptAwait")
    async def await_attempt(self, request: api_pb2.AttemptAwaitRequest, caller: Caller) -> Any:
        attempted = self._attempted(request.attempt_token)
        call, wanted = attempted.call, attempted.sent
        if len(call.outputs) < wanted:
            await happened(call.changed, request.timeout_secs)
        output = call.outputs[wanted - 1] if len(call.outputs) >= wanted else None
        return api_pb2.AttemptAwaitResponse(output=output)

    @answers("AttemptRetry")
    async def retry_attempt(self, request: api_pb2.AttemptRetryRequest, caller: Caller) -> Any:
        again = self._attempted(request.attempt_token)
        self.scheduler.resubmit(again, again.retry_count + 1)
        return api_pb2.AttemptRetryResponse(attempt_token=_token(again))

    def _begun(self, function_id: str, *, unary: bool) -> Call:
        call_id = f"fc-{next(self._numbers):04d}-input"
        self.calls[call_id] = Call(call_id, self.functions.record(function_id), unary, True, _SYNC)
        return self.calls[call_id]

    def _attempted(self, token: str) -> Input:
        said = DecodedJwt.decode_without_verification(token).payload
        return self.calls[said["call"]].inputs[said["idx"]]

    def _policy(self, call: Call) -> api_pb2.FunctionRetryPolicy:
        """The function's, for the client to follow; none where the stand-in retries itself."""
        return api_pb2.FunctionRetryPolicy() if self.scheduler.retries_here else call.function.definition.retry_policy


def _token(attempted: Input) -> str:
    return DecodedJwt.encode_without_signature(
        {"call": attempted.call.call_id, "idx": attempted.idx, "sent": attempted.sent}
    )
