"""Which container gets which input, what becomes of inputs whose container died, and of what containers answer."""

import asyncio
import itertools
import pickle
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from modal._serialization import deserialize_data_format, serialize_data_format
from modal_proto import api_pb2

from tests.support.modal_server.blobs import Blobs
from tests.support.modal_server.faults import Faults
from tests.support.modal_server.records import Call, ContainerRecord, FunctionRecord, Input, Pool

Result = api_pb2.GenericResult
_MOST_CONTAINERS = 8
"""Of a function that asks for no limit."""
_LOSSES = 5
"""An input that loses so many containers fails."""
_POLL_SECONDS = 50.0
_INLINE = 2 * 1024 * 1024


class Executor(Protocol):
    """Starts a container of a function; it then asks the scheduler for inputs until it is told to end."""

    def start(self, container_id: str, function: FunctionRecord) -> ContainerRecord: ...

    async def ended(self, seconds: float) -> None: ...


FAILED_ENTRIES = 3
"""So many in a row, with no success between, fail the inputs that wait."""


class Scheduler:
    """Pools of waiting inputs, one a function. Everything runs on the server's event loop."""

    def __init__(self, blobs: Blobs, faults: Faults) -> None:
        self.blobs, self.faults = blobs, faults
        self.executor: Executor
        self.inputs: list[Input] = []
        self.containers: list[ContainerRecord] = []
        self.pools: dict[str, Pool] = {}
        self._numbers = itertools.count(1)

    def submit(self, call: Call, idx: int, proto: api_pb2.FunctionInput) -> Input:
        """A new input, waiting."""
        input_id = f"in-{len(self.inputs) + 1:06d}"
        new = Input(input_id, call, idx, proto, lambda: self._payload(proto))
        self.inputs.append(new)
        call.inputs[idx] = new
        self._queue(new)
        return new

    async def take(self, container: ContainerRecord) -> Input | None:
        """The next input for this container, or None when it is to end."""
        pool, idle_since = self._pool(container.function), time.monotonic()
        container.ready = True
        while container.alive and not container.draining:
            while pool.waiting and container.alive:
                chosen = pool.waiting.popleft()
                if self._handed_out(chosen, container):
                    return chosen
            idle = max(container.function.scaledown_window, 2) - (time.monotonic() - idle_since)
            if idle <= 0:
                container.draining = True
                break
            await happened(pool.changed, min(idle, _POLL_SECONDS))
        return None

    def put(self, container: ContainerRecord, outputs: Iterable[api_pb2.FunctionPutOutputsItem]) -> None:
        """What a container answered. Answers of a dead one, or to what it does not hold, are nobody's."""
        for output in outputs:
            done = container.held.pop(output.input_id, None)
            if done is None or not container.alive:
                continue
            self._pool(container.function).failed_entries = 0
            item = api_pb2.FunctionGetOutputsItem(
                result=output.result,
                idx=done.idx,
                input_id=done.input_id,
                data_format=output.data_format,
                task_id=container.container_id,
                retry_count=output.retry_count,
            )
            self._deliver(done, item)

    def entry_failed(self, container: ContainerRecord, result: Result) -> None:
        """A container ended in place of becoming ready."""
        pool = self._pool(container.function)
        pool.failed_entries += 1
        if pool.failed_entries >= FAILED_ENTRIES:
            pool.failed_entries = 0
            waiting = list(pool.waiting)
            pool.waiting.clear()
            for failed in waiting:
                self._answer(failed, self._item(failed, result))
        self.gone(container)

    def gone(self, container: ContainerRecord) -> None:
        """A container is dead: what it held waits again, before everything else."""
        if not container.alive:
            return
        container.alive = False
        pool = self._pool(container.function)
        for held in reversed(list(container.held.values())):
            self._rescued(held, pool)
        container.held.clear()
        pool.wake()
        self._scale(pool)

    def stop_app(self, app_id: str) -> None:
        """Ends its containers and forgets what waits."""
        for pool in self.pools.values():
            if pool.function.app_id == app_id:
                pool.closed = True
                pool.waiting.clear()
                for container in list(pool.containers):
                    container.draining = True
                    if container.alive and (container.held or not container.ready):
                        container.stop()
                pool.wake()

    def failure(self, text: str | Exception) -> Result:
        """A result as an exception outside any input leaves it: pickled, its format unsaid."""
        error = text if isinstance(text, Exception) else RuntimeError(text)
        status = Result.GENERIC_STATUS_FAILURE
        return Result(status=status, exception=repr(error), traceback=str(text), data=pickle.dumps(error))

    def _queue(self, waiting: Input) -> None:
        pool = self._pool(waiting.call.function)
        pool.waiting.append(waiting)
        pool.wake()
        self._scale(pool)

    def _pool(self, function: FunctionRecord) -> Pool:
        return self.pools.setdefault(function.function_id, Pool(function))

    def _scale(self, pool: Pool) -> None:
        """As many containers as there is work for, up to the function's limit."""
        held = sum(len(container.held) for container in pool.alive)
        wanted = min(pool.function.max_containers or _MOST_CONTAINERS, len(pool.waiting) + held)
        while len(pool.alive) < wanted and not pool.closed:
            container = self.executor.start(f"ta-{next(self._numbers):04d}", pool.function)
            pool.containers.append(container)
            self.containers.append(container)

    def _handed_out(self, chosen: Input, container: ContainerRecord) -> bool:
        """Whether the container now holds it; else a fault has dealt with it."""
        chosen.executions.append(container.container_id)
        if text := self.faults.strike("fail_input", chosen):
            result = Result(status=Result.GENERIC_STATUS_FAILURE, exception=text, traceback=text)
            self._deliver(chosen, self._item(chosen, result))
            return False
        container.held[chosen.input_id] = chosen
        if self.faults.strike("kill_container", chosen):
            container.stop()
            self.gone(container)
            return False
        return True

    def _rescued(self, held: Input, pool: Pool) -> None:
        held.losses += 1
        if held.losses < _LOSSES:
            pool.waiting.appendleft(held)
        else:
            text = f"the input lost {held.losses} containers"
            result = Result(status=Result.GENERIC_STATUS_FAILURE, exception=text)
            self._answer(held, self._item(held, result))

    def _deliver(self, done: Input, item: api_pb2.FunctionGetOutputsItem) -> None:
        """An output on its way to the client, and what may befall it there."""
        succeeded = item.result.status == Result.GENERIC_STATUS_SUCCESS
        if succeeded and (change := self.faults.strike("change_output", done)):
            self._change(item, change)
        retries = done.call.function.retries.count
        if not succeeded and done.retry_count < retries:
            done.retry_count += 1
            self._queue(done)
            return
        self._answer(done, item)

    def _change(self, item: api_pb2.FunctionGetOutputsItem, change: Callable[[Any], Any]) -> None:
        result = item.result
        data = self.blobs.get(result.data_blob_id) if result.data_blob_id else result.data
        value = change(deserialize_data_format(data, item.data_format, None))
        self.put_data(result, serialize_data_format(value, item.data_format))

    def put_data(self, result: Result, data: bytes) -> None:
        """Puts a payload into a result, or its blob's id where it is too large."""
        if len(data) > _INLINE:
            result.data_blob_id = self.blobs.store(data)
        else:
            result.data = data

    def _item(self, done: Input, result: Result) -> api_pb2.FunctionGetOutputsItem:
        """An output that no container made, in the format of its input."""
        with_format = done.proto.data_format if not result.data else api_pb2.DATA_FORMAT_UNSPECIFIED
        return api_pb2.FunctionGetOutputsItem(
            result=result, idx=done.idx, input_id=done.input_id, data_format=with_format, retry_count=done.retry_count
        )

    def _answer(self, done: Input, item: api_pb2.FunctionGetOutputsItem) -> None:
        item.retry_count = 0  # the client counts its own retries and ignores answers to others
        done.call.answer(item)

    def _payload(self, proto: api_pb2.FunctionInput) -> bytes:
        return self.blobs.get(proto.args_blob_id) if proto.args_blob_id else proto.args


async def happened(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event came within the time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
