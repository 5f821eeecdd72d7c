"""Functions and classes as the client defines them, calls of them, and what containers ask for and deliver."""

from itertools import count
from typing import Any

from google.protobuf.empty_pb2 import Empty
from modal._serialization import deserialize_proto_params
from modal._utils.jwt_utils import DecodedJwt
from modal_proto import api_pb2

from tests.support.modal_server.records import Call, ContainerRecord, FunctionRecord
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.wire import answers

OUTSTANDING = 1000


class Calls:
    """Records of what was asked for, and the handles that lead calls to them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.functions = scheduler, scheduler.functions
        self.calls: dict[str, Call] = {}
        self._variants: dict[bytes, FunctionRecord] = {}
        self._numbers = count(1)

    @answers("FunctionPrecreate")
    def precreate(self, request: api_pb2.FunctionPrecreateRequest, _: str) -> Any:
        function_id = request.existing_function_id or f"fu-{next(self._numbers):04d}"
        handle = _handle(function_id, request.app_id, request)
        return api_pb2.FunctionPrecreateResponse(function_id=function_id, handle_metadata=handle)

    @answers("FunctionCreate")
    def create(self, request: api_pb2.FunctionCreateRequest, _: str) -> Any:
        function_id = request.existing_function_id or f"fu-{next(self._numbers):04d}"
        ranked = [ranked.function for ranked in request.function_data.ranked_functions]
        definition = ranked[0] if ranked else request.function
        handle = _handle(function_id, request.app_id, definition)
        handle.is_method = definition.is_method
        handle.class_parameter_info.CopyFrom(definition.class_parameter_info)
        self.functions[function_id] = FunctionRecord(function_id, request.app_id, definition, handle)
        data = api_pb2.FunctionData()
        data.CopyFrom(request.function_data)
        if not ranked:
            data.ranked_functions.add(rank=0, function=definition)
        return api_pb2.FunctionCreateResponse(
            function_id=function_id, function=definition, handle_metadata=handle, function_data=data
        )

    @answers("ClassCreate")
    def create_class(self, request: api_pb2.ClassCreateRequest, _: str) -> Any:
        class_id = request.existing_class_id or f"cs-{next(self._numbers):04d}"
        return api_pb2.ClassCreateResponse(class_id=class_id, handle_metadata=api_pb2.ClassHandleMetadata())

    @answers("FunctionBindParams")
    def bind(self, request: api_pb2.FunctionBindParamsRequest, _: str) -> Any:
        content = request.SerializeToString(deterministic=True)
        if content not in self._variants:
            self._variants[content] = self._bound(request)
        record = self._variants[content]
        return api_pb2.FunctionBindParamsResponse(bound_function_id=record.function_id, handle_metadata=record.handle)

    def _bound(self, request: api_pb2.FunctionBindParamsRequest) -> FunctionRecord:
        """Return the base with parameters, and with the options of with_options laid over it."""
        base, options = self.functions[request.function_id], request.function_options
        definition, handle = api_pb2.Function(), api_pb2.FunctionHandleMetadata()
        definition.CopyFrom(base.definition)
        definition.resources.MergeFrom(options.resources)
        if options.HasField("concurrency_limit"):
            definition.autoscaler_settings.max_containers = options.concurrency_limit
        handle.CopyFrom(base.handle)
        handle.base_function_id = base.function_id
        function_id, params = f"fu-{next(self._numbers):04d}", request.serialized_params
        record = FunctionRecord(function_id, base.app_id, definition, handle, params, deserialize_proto_params(params))
        self.functions[function_id] = record
        return record

    # Calls

    @answers("FunctionMap")
    def begin(self, request: api_pb2.FunctionMapRequest, _: str) -> Any:
        function = self.functions[request.function_id]
        unary = request.function_call_type == api_pb2.FUNCTION_CALL_TYPE_UNARY
        call = Call(f"fc-{len(self.calls) + 1:04d}", function, unary, request.function_call_invocation_type)
        self.calls[call.call_id] = call
        return api_pb2.FunctionMapResponse(
            function_call_id=call.call_id,
            function_call_jwt=_jwt(call.call_id, 0),
            pipelined_inputs=[self._accepted(call, item) for item in request.pipelined_inputs],
            retry_policy=function.definition.retry_policy,
            sync_client_retries_enabled=False,
            max_inputs_outstanding=OUTSTANDING,
        )

    @answers("FunctionPutInputs")
    def put(self, request: api_pb2.FunctionPutInputsRequest, _: str) -> Any:
        call = self.calls[request.function_call_id]
        return api_pb2.FunctionPutInputsResponse(inputs=[self._accepted(call, item) for item in request.inputs])

    @answers("FunctionGetOutputs")
    async def outputs(self, request: api_pb2.FunctionGetOutputsRequest, _: str) -> Any:
        call = self.calls[request.function_call_id]
        seen = int(request.last_entry_id.split("-")[0] or 0)
        if len(call.outputs) <= seen and request.timeout > 0:
            await call.changed.came(request.timeout)
        fresh, last = call.outputs[seen:], max(seen, len(call.outputs))
        if request.clear_on_success and call.unary:
            call.outputs.clear()  # the next attempt's answer is then the first again
        return api_pb2.FunctionGetOutputsResponse(
            outputs=fresh[:1] if call.unary else fresh,
            last_entry_id=f"{last}-0",
            num_unfinished_inputs=call.n_inputs - len(call.outputs),
        )

    def _accepted(self, call: Call, item: api_pb2.FunctionPutInputsItem) -> api_pb2.FunctionPutInputsResponseItem:
        new = self.scheduler.submit(call, item.idx, item.input)
        jwt = _jwt(call.call_id, item.idx)
        return api_pb2.FunctionPutInputsResponseItem(idx=item.idx, input_id=new.input_id, input_jwt=jwt)

    # What containers ask; who asks is told by a header that the stand-in gave it.

    @answers("FunctionGetInputs")
    async def get_inputs(self, request: api_pb2.FunctionGetInputsRequest, container_id: str) -> Any:
        taken = await self.scheduler.take(self._container(container_id))
        if taken is None:
            return api_pb2.FunctionGetInputsResponse(inputs=[api_pb2.FunctionGetInputsItem(kill_switch=True)])
        handed = api_pb2.FunctionGetInputsItem(
            input_id=taken.input_id,
            input=taken.proto,
            function_call_id=taken.call.call_id,
            function_call_invocation_type=taken.call.invocation_type,
            retry_count=taken.retry_count,
            function_map_idx=taken.idx,
        )
        return api_pb2.FunctionGetInputsResponse(inputs=[handed])

    @answers("FunctionPutOutputs")
    def put_outputs(self, request: api_pb2.FunctionPutOutputsRequest, container_id: str) -> Any:
        for output in request.outputs:
            self.scheduler.put(self._container(container_id), output)
        return Empty()

    @answers("TaskResult")
    def failed(self, request: api_pb2.TaskResultRequest, container_id: str) -> Any:
        self.scheduler.entry_failed(self._container(container_id), request.result)
        return Empty()

    def _container(self, container_id: str) -> ContainerRecord:
        (container,) = (each for each in self.scheduler.containers if each.container_id == container_id)
        return container


def _handle(
    function_id: str, app_id: str, said: api_pb2.FunctionPrecreateRequest | api_pb2.Function
) -> api_pb2.FunctionHandleMetadata:
    """Return the handle by which the client calls the function, or the methods of its class."""
    handle = api_pb2.FunctionHandleMetadata(
        app_id=app_id,
        function_name=said.function_name,
        function_type=said.function_type,
        definition_id=f"de-{function_id}",
        supported_input_formats=said.supported_input_formats,
        supported_output_formats=said.supported_output_formats,
    )
    for name, method in said.method_definitions.items():
        entry = handle.method_handle_metadata[name]
        entry.function_name, entry.function_type = method.function_name, method.function_type
        entry.is_method, entry.use_method_name, entry.app_id = True, name, app_id
        entry.supported_input_formats.extend(method.supported_input_formats)
        entry.supported_output_formats.extend(method.supported_output_formats)
    return handle


def _jwt(call_id: str, idx: int) -> str:
    return DecodedJwt.encode_without_signature({"call": call_id, "idx": idx})
