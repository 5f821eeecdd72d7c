"""Containers as threads that call plain objects: the client, the protocol and the payloads are real, the app is not."""

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from modal._serialization import serialize_data_format
from modal_proto import api_pb2

from tests.support.modal_server.records import ContainerRecord, Input
from tests.support.modal_server.scheduler import Scheduler, failure


class Threads:
    """Starts containers as threads. `plain` maps names of classes and functions to factories and callables."""

    def __init__(self, scheduler: Scheduler, plain: Mapping[str, Callable[..., Any]]) -> None:
        self.scheduler, self.plain = scheduler, plain
        self._threads: list[threading.Thread] = []

    def start(self, container: ContainerRecord) -> None:
        """Have a container started once the present event is dealt with."""
        loop = asyncio.get_running_loop()
        arguments = container, loop
        thread = threading.Thread(target=self._run, args=arguments, name=container.container_id, daemon=True)
        loop.call_soon(thread.start)
        self._threads.append(thread)

    async def ended(self, seconds: float) -> None:
        """Wait for threads that know that they are to end."""
        deadline = time.monotonic() + seconds
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            await asyncio.sleep(0.001)

    def _run(self, container: ContainerRecord, loop: asyncio.AbstractEventLoop) -> None:
        """Live until the scheduler has nothing more for it, or takes it for dead, or the server has ended."""

        def on_loop(work: Callable[..., Any], *arguments: Any) -> Any:
            async def done() -> Any:
                result = work(container, *arguments)
                return await result if asyncio.iscoroutine(result) else result

            coroutine = done()
            try:
                return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
            except RuntimeError:
                coroutine.close()
                raise

        try:
            try:
                method = self._entered(container)
            except Exception as error:  # noqa: BLE001  # whatever entry raises fails the call
                on_loop(self.scheduler.entry_failed, failure(error))
                return
            while (taken := on_loop(self.scheduler.take)) is not None:
                on_loop(self.scheduler.put, self._executed(taken, method))
            on_loop(self.scheduler.gone)
        except RuntimeError:
            if not loop.is_closed():
                raise

    def _entered(self, container: ContainerRecord) -> Callable[[str], Callable[..., Any]]:
        """Return what gives the callable of a method's name."""
        if error := self.scheduler.faults.strike("fail_entry"):
            raise error
        name = container.function.name
        if not name.endswith(".*"):
            return lambda _: self.plain[name]
        made = self.plain[name.removesuffix(".*")](**container.function.parameters)
        return lambda method: getattr(made, method)

    def _executed(self, taken: Input, method: Callable[[str], Callable[..., Any]]) -> api_pb2.FunctionPutOutputsItem:
        """Return the output of one input, as a container would send it."""
        result = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)
        arguments, by_name = taken.decoded
        try:
            value = method(taken.proto.method_name)(*arguments, **by_name)
            self.scheduler.put_data(result, serialize_data_format(value, taken.proto.data_format))
        except Exception as error:  # noqa: BLE001  # the client gets it
            result.status = api_pb2.GenericResult.GENERIC_STATUS_FAILURE
            result.exception, result.traceback = repr(error), traceback.format_exc()
        return api_pb2.FunctionPutOutputsItem(
            input_id=taken.input_id, result=result, data_format=taken.proto.data_format
        )
