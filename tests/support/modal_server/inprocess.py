"""Containers as threads that call plain objects: the client, the protocol and the payloads are real, the app is not."""

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from modal._serialization import serialize_data_format
from modal_proto import api_pb2

from tests.support.modal_server.records import ContainerRecord, FunctionRecord, Input
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.volumes import Volumes

_here = threading.local()


def this_container() -> ContainerRecord:
    """The container whose thread this is."""
    container: ContainerRecord = _here.container
    return container


class InProcess:
    """Starts containers as threads. `objects` maps names of classes and functions to factories and callables."""

    def __init__(self, volumes: Volumes, scheduler: Scheduler, plain: Mapping[str, Callable[..., Any]]) -> None:
        self.volumes, self.scheduler, self.plain = volumes, scheduler, plain
        self._threads: list[threading.Thread] = []

    def start(self, container_id: str, function: FunctionRecord) -> ContainerRecord:
        """A container that is being started."""
        container = ContainerRecord(container_id, function, stop=lambda: None)
        container.mounts = {path: self.volumes.committed(name) for path, (name, _) in function.volumes.items()}
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._run, args=(container, loop), name=container_id, daemon=True)
        loop.call_soon(thread.start)
        self._threads.append(thread)
        return container

    async def ended(self, seconds: float) -> None:
        """Waits for threads that know that they are to end."""
        deadline = time.monotonic() + seconds
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            await asyncio.sleep(0.001)

    def _run(self, container: ContainerRecord, loop: asyncio.AbstractEventLoop) -> None:
        """A thread's life; it ends when the scheduler has nothing more for it, or takes it for dead."""
        _here.container = container

        def on_loop(work: Callable[[], Any]) -> Any:
            coroutine = _awaited(work)
            try:
                return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
            except RuntimeError:
                coroutine.close()  # the loop is closed: the server has ended, and so does this thread
                raise

        try:
            self._serve(container, on_loop)
        except RuntimeError:
            if not loop.is_closed():
                raise

    def _serve(self, container: ContainerRecord, on_loop: Callable[[Callable[[], Any]], Any]) -> None:
        try:
            method = self._entered(container)
        except Exception as error:  # noqa: BLE001  # whatever entry raises fails the call
            text = f"{type(error).__name__}: {error}"
            said = error.args[0] if error.args and isinstance(error.args[0], Exception) else text
            on_loop(lambda: self.scheduler.entry_failed(container, self.scheduler.failure(said)))
            return
        while (taken := on_loop(lambda: self.scheduler.take(container))) is not None:
            output = self._executed(taken, method)
            on_loop(lambda answered=output: self.scheduler.put(container, [answered]))
        on_loop(lambda: self.scheduler.gone(container))

    def _entered(self, container: ContainerRecord) -> Callable[[str], Callable[..., Any]]:
        """What gives the callable of a method's name."""
        if text := self.scheduler.faults.strike("fail_entry"):
            raise RuntimeError(text)
        name = container.function.name
        if not name.endswith(".*"):
            return lambda _: self.plain[name]
        made = self.plain[name.removesuffix(".*")](**container.parameters)
        if hasattr(made, "enter"):
            made.enter()
        return lambda method: getattr(made, method)

    def _executed(self, taken: Input, method: Callable[[str], Callable[..., Any]]) -> api_pb2.FunctionPutOutputsItem:
        """The output of one input, as a container would send it."""
        result = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)
        try:
            value = method(taken.proto.method_name)(*taken.args, **taken.kwargs)
            self.scheduler.put_data(result, serialize_data_format(value, taken.proto.data_format))
        except Exception as error:  # noqa: BLE001  # the client gets it
            result.status = api_pb2.GenericResult.GENERIC_STATUS_FAILURE
            result.exception, result.traceback = repr(error), traceback.format_exc()
        return api_pb2.FunctionPutOutputsItem(
            input_id=taken.input_id, result=result, data_format=taken.proto.data_format, retry_count=taken.retry_count
        )


async def _awaited(work: Callable[[], Any]) -> Any:
    found = work()
    return await found if asyncio.iscoroutine(found) else found
