"""Functions and classes as the client defines them, and variants bound to parameters and options."""

from itertools import count
from typing import Any

from grpclib import GRPCError, Status
from modal._serialization import deserialize_proto_params
from modal_proto import api_pb2

from tests.support.modal_server.objects import KNOWN, Objects
from tests.support.modal_server.records import FunctionRecord
from tests.support.modal_server.wire import Caller, answers

_OPTIONS = (
    *("retry_policy", "concurrency_limit", "timeout_secs", "task_idle_timeout_secs", "max_concurrent_inputs"),
    *("target_concurrent_inputs", "batch_max_size", "batch_linger_ms"),
)


class Functions:
    """Records of what was asked for, and the handles that lead calls to them."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.records: dict[str, FunctionRecord] = {}
        self.bound: dict[str, FunctionRecord] = {}
        self.handles: dict[str, api_pb2.FunctionHandleMetadata] = {}
        self._variants: dict[bytes, str] = {}
        self._numbers = count(1)

    def record(self, function_id: str) -> FunctionRecord:
        found = self.records.get(function_id) or self.bound.get(function_id)
        if found is None:
            raise GRPCError(Status.NOT_FOUND, f"no function {function_id}")
        return found

    @answers("FunctionPrecreate")
    async def precreate(self, request: api_pb2.FunctionPrecreateRequest, caller: Caller) -> Any:
        function_id = request.existing_function_id or f"fu-{next(self._numbers):04d}"
        handle = self._handle(function_id, request.app_id, request)
        return api_pb2.FunctionPrecreateResponse(function_id=function_id, handle_metadata=handle)

    @answers("FunctionCreate")
    async def create(self, request: api_pb2.FunctionCreateRequest, caller: Caller) -> Any:
        function_id = request.existing_function_id or f"fu-{next(self._numbers):04d}"
        ranked = [ranked.function for ranked in request.function_data.ranked_functions]
        definition = ranked[0] if ranked else request.function
        handle = self._handle(function_id, request.app_id, definition)
        handle.is_method = definition.is_method
        handle.class_parameter_info.CopyFrom(definition.class_parameter_info)
        gpus = [function.resources.gpu_config.gpu_type for function in ranked or [definition]]
        self.records[function_id] = self._recorded(function_id, request.app_id, definition, gpus)
        data = api_pb2.FunctionData()
        data.CopyFrom(request.function_data)
        if not ranked:
            data.ranked_functions.add(rank=0, function=definition)
        return api_pb2.FunctionCreateResponse(
            function_id=function_id, function=definition, handle_metadata=handle, function_data=data
        )

    @answers("ClassCreate")
    async def create_class(self, request: api_pb2.ClassCreateRequest, caller: Caller) -> Any:
        class_id = request.existing_class_id or f"cs-{next(self._numbers):04d}"
        return api_pb2.ClassCreateResponse(class_id=class_id, handle_metadata=api_pb2.ClassHandleMetadata())

    @answers("FunctionBindParams")
    async def bind(self, request: api_pb2.FunctionBindParamsRequest, caller: Caller) -> Any:
        base = self.record(request.function_id)
        content = request.SerializeToString(deterministic=True)
        if content in self._variants:
            return self._bound_response(self._variants[content])
        definition = api_pb2.Function()
        definition.CopyFrom(base.definition)
        _apply(definition, request.function_options)
        function_id = f"fu-{next(self._numbers):04d}"
        gpus = [definition.resources.gpu_config.gpu_type]
        record = self._recorded(function_id, base.app_id, definition, gpus)
        record.serialized_params = request.serialized_params
        if base.definition.class_parameter_info.schema:
            record.parameters = deserialize_proto_params(request.serialized_params)
        self.bound[function_id] = record
        self._variants[content] = function_id
        handle = api_pb2.FunctionHandleMetadata()
        handle.CopyFrom(self.handles[base.function_id])
        handle.base_function_id = base.function_id
        self.handles[function_id] = handle
        return self._bound_response(function_id)

    def _bound_response(self, function_id: str) -> Any:
        return api_pb2.FunctionBindParamsResponse(
            bound_function_id=function_id, handle_metadata=self.handles[function_id]
        )

    def _handle(
        self, function_id: str, app_id: str, said: api_pb2.FunctionPrecreateRequest | api_pb2.Function
    ) -> api_pb2.FunctionHandleMetadata:
        """The handle by which the client calls the function, or the methods of its class."""
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
        self.handles[function_id] = handle
        return handle

    def _recorded(self, function_id: str, app_id: str, definition: api_pb2.Function, gpus: list[str]) -> FunctionRecord:
        mounts = [mount_id for mount_id in definition.mount_ids if mount_id in KNOWN.mounts]
        volumes = {m.mount_path: (KNOWN.volumes[m.volume_id], m.read_only) for m in definition.volume_mounts}
        return FunctionRecord(
            function_id,
            app_id,
            definition.function_name,
            definition,
            tuple(gpu for gpu in gpus if gpu),
            volumes,
            tuple(sorted(key for secret_id in definition.secret_ids for key in KNOWN.secrets[secret_id])),
            tuple(sorted(path for mount_id in mounts for path in KNOWN.mounts[mount_id])),
            KNOWN.dockerfile(definition.image_id) if definition.image_id else (),
        )


def _apply(definition: api_pb2.Function, options: api_pb2.FunctionOptions) -> None:
    """The base with the options of with_options laid over it."""
    for name in _OPTIONS:
        if options.HasField(name):
            _set(definition, name, getattr(options, name))
    if options.HasField("concurrency_limit"):
        definition.autoscaler_settings.max_containers = options.concurrency_limit
    if options.HasField("task_idle_timeout_secs"):
        definition.autoscaler_settings.scaledown_window = options.task_idle_timeout_secs
    if options.HasField("resources"):
        definition.resources.MergeFrom(options.resources)
    if options.replace_secret_ids:
        definition.ClearField("secret_ids")
        definition.secret_ids.extend(options.secret_ids)
    if options.replace_volume_mounts:
        definition.ClearField("volume_mounts")
        definition.volume_mounts.extend(options.volume_mounts)


def _set(message: Any, name: str, value: Any) -> None:
    if hasattr(value, "CopyFrom"):
        getattr(message, name).CopyFrom(value)
    else:
        setattr(message, name, value)
