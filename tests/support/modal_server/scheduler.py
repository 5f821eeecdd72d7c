"""Which container gets which input, what becomes of inputs whose container died, and of what containers answer."""

import pickle
from collections.abc import Callable
from typing import Any, Protocol

from modal._serialization import deserialize_data_format, serialize_data_format
from modal_proto import api_pb2

from tests.support.modal_server.blobs import Blobs
from tests.support.modal_server.faults import Faults
from tests.support.modal_server.records import Call, ContainerRecord, FunctionRecord, Input

Result = api_pb2.GenericResult
_MOST_CONTAINERS = 8
"""Of a function that asks for no limit."""
_INLINE = 2 * 1024 * 1024
FAILED_ENTRIES = 3
"""So many in a row, with no success between, fail the inputs that wait."""


class Executor(Protocol):
    """Starts containers; each asks the scheduler for inputs until it is told to end."""

    def start(self, container: ContainerRecord) -> None: ...

    async def ended(self, seconds: float) -> None: ...


class Scheduler:
    """Inputs on their way to containers and back. Everything runs on the server's event loop."""

    def __init__(self, blobs: Blobs, faults: Faults) -> None:
        self.blobs, self.faults = blobs, faults
        self.executor: Executor
        self.functions: dict[str, FunctionRecord] = {}
        self.inputs: list[Input] = []
        self.containers: list[ContainerRecord] = []

    def submit(self, call: Call, idx: int, proto: api_pb2.FunctionInput) -> Input:
        """Return a new input, waiting."""

        def payload() -> bytes:
            return self.blobs.contents[proto.args_blob_id] if proto.args_blob_id else proto.args

        new = Input(f"in-{len(self.inputs) + 1:06d}", call, idx, proto, payload)
        self.inputs.append(new)
        call.n_inputs += 1
        self._queue(new)
        return new

    async def take(self, container: ContainerRecord) -> Input | None:
        """Return the next input for this container, None when it is to end."""
        function = container.function
        container.ready = True
        while container.alive and not container.draining:
            if function.waiting:
                chosen = function.waiting.popleft()
                if self._handed_out(chosen, container):
                    return chosen
            elif not await function.changed.came(function.definition.autoscaler_settings.scaledown_window or 60):
                container.draining = True
        return None

    def put(self, container: ContainerRecord, output: api_pb2.FunctionPutOutputsItem) -> None:
        """Take a container's answer. One of a dead container, or to what it does not hold, is nobody's."""
        done = container.held.pop(output.input_id, None)
        if done is not None and container.alive:
            container.function.failed_entries = 0
            self._deliver(done, output.result, output.data_format)

    def entry_failed(self, container: ContainerRecord, result: Result) -> None:
        """Note that a container ended in place of becoming ready."""
        function = container.function
        function.failed_entries += 1
        if function.failed_entries >= FAILED_ENTRIES:
            function.failed_entries = 0
            while function.waiting:
                self._answer(function.waiting.popleft(), result, api_pb2.DATA_FORMAT_UNSPECIFIED)
        self.gone(container)

    def gone(self, container: ContainerRecord) -> None:
        """Note that a container is dead: what it held waits again, before everything else."""
        if container.alive:
            container.alive = False
            function = container.function
            function.waiting.extendleft(reversed(container.held.values()))
            container.held.clear()
            function.changed.wake()
            self._scale(function)

    def stop_app(self, app_id: str) -> None:
        """End its containers and forget what waits."""
        for function in self.functions.values():
            if function.app_id == app_id:
                function.closed = True
                function.waiting.clear()
                for container in list(function.containers):
                    container.draining = True
                    if container.alive and (container.held or not container.ready):
                        container.stop()
                function.changed.wake()

    def _queue(self, waiting: Input) -> None:
        function = waiting.call.function
        function.waiting.append(waiting)
        function.changed.wake()
        self._scale(function)

    def _scale(self, function: FunctionRecord) -> None:
        """Start as many containers as there is work for, up to the function's limit."""
        held = sum(len(container.held) for container in function.alive)
        wanted = min(function.max_containers or _MOST_CONTAINERS, len(function.waiting) + held)
        while len(function.alive) < wanted and not function.closed:
            container = ContainerRecord(f"ta-{len(self.containers) + 1:04d}", function)
            function.containers.append(container)
            self.containers.append(container)
            self.executor.start(container)

    def _handed_out(self, chosen: Input, container: ContainerRecord) -> bool:
        """Return whether the container now holds it; else a fault has dealt with it."""
        chosen.executions.append(container.container_id)
        if text := self.faults.strike("fail_input", chosen):
            result = Result(status=Result.GENERIC_STATUS_FAILURE, exception=text, traceback=text)
            self._deliver(chosen, result, chosen.proto.data_format)
            return False
        container.held[chosen.input_id] = chosen
        if self.faults.strike("kill_container", chosen):
            container.stop()
            self.gone(container)
            return False
        return True

    def _deliver(self, done: Input, result: Result, data_format: int) -> None:
        """Send an output on its way to the client, with what may befall it there."""
        succeeded = result.status == Result.GENERIC_STATUS_SUCCESS
        if succeeded and (change := self.faults.strike("change_output", done)):
            self._change(result, data_format, change)
        if not succeeded and done.retry_count < done.call.function.definition.retry_policy.retries:
            done.retry_count += 1
            self._queue(done)
        else:
            self._answer(done, result, data_format)

    def _change(self, result: Result, data_format: int, change: Callable[[Any], Any]) -> None:
        data = self.blobs.contents[result.data_blob_id] if result.data_blob_id else result.data
        value = change(deserialize_data_format(data, data_format, None))
        self.put_data(result, serialize_data_format(value, data_format))

    def put_data(self, result: Result, data: bytes) -> None:
        """Put a payload into a result, or its blob's id where it is too large."""
        if len(data) > _INLINE:
            result.data_blob_id = self.blobs.new()
            self.blobs.contents[result.data_blob_id] = data
        else:
            result.data = data

    def _answer(self, done: Input, result: Result, data_format: int) -> None:
        # Without a count of retries: the client counts its own, and ignores answers to others.
        done.call.outputs.append(
            api_pb2.FunctionGetOutputsItem(result=result, idx=done.idx, input_id=done.input_id, data_format=data_format)
        )
        done.call.changed.wake()


def failure(error: Exception) -> Result:
    """Return a result as an exception outside any input leaves it: pickled, its format unsaid."""
    status = Result.GENERIC_STATUS_FAILURE
    return Result(status=status, exception=repr(error), traceback=str(error), data=pickle.dumps(error))
