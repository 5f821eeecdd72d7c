"""What the stand-in remembers of apps, functions, containers, calls and inputs; tests read it, no test writes it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from modal._serialization import deserialize_data_format
from modal_proto import api_pb2

_LET_GO = api_pb2.FunctionGetOutputsItem()


@dataclass
class AppRecord:
    """An app as it was announced."""

    app_id: str
    name: str
    tags: dict[str, str]
    stopped: bool = False
    class_ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Retries:
    count: int
    initial_delay_ms: int
    backoff: float


@dataclass
class FunctionRecord:
    """A function as it was asked for: a base, or a variant of it with `parameters` and the options of with_options."""

    function_id: str
    app_id: str
    name: str
    """`Class.*` for a class, else the function's name."""
    definition: api_pb2.Function
    gpus: tuple[str, ...]
    volumes: dict[str, tuple[str, bool]]
    """Mount path -> (name of the Volume, read_only)."""
    secret_keys: tuple[str, ...]
    mounted: tuple[str, ...]
    """Container paths of every uploaded file."""
    dockerfile: tuple[str, ...]
    """Lines of all layers, base first."""
    parameters: dict[str, Any] = field(default_factory=dict)
    serialized_params: bytes = b""

    @property
    def gpu(self) -> str:
        return self.gpus[0] if self.gpus else ""

    @property
    def cpu(self) -> float:
        return self.definition.resources.milli_cpu / 1000

    @property
    def block_network(self) -> bool:
        return self.definition.block_network

    @property
    def timeout(self) -> int:
        return self.definition.timeout_secs

    @property
    def startup_timeout(self) -> int:
        return self.definition.startup_timeout_secs

    @property
    def max_containers(self) -> int:
        """0 where none was asked for."""
        return self.definition.autoscaler_settings.max_containers or self.definition.concurrency_limit

    @property
    def scaledown_window(self) -> int:
        return self.definition.autoscaler_settings.scaledown_window or self.definition.task_idle_timeout_secs

    @property
    def retries(self) -> Retries:
        policy = self.definition.retry_policy
        return Retries(policy.retries, policy.initial_delay_ms, policy.backoff_coefficient)


@dataclass
class ContainerRecord:
    """A container. `stop` ends it at once; it is the executor's."""

    container_id: str
    function: FunctionRecord
    stop: Callable[[], None]
    log: Path | None = None
    alive: bool = True
    ready: bool = False
    """It has asked for an input, so its entry is behind it."""
    draining: bool = False
    """It gets no further input, and ends when it asks for one."""
    held: dict[str, "Input"] = field(default_factory=dict)
    mounts: dict[str, Path] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        return self.function.parameters


@dataclass(eq=False)
class Input:
    """One input of a call; predicates and assertions see it decoded."""

    input_id: str
    call: "Call"
    idx: int
    proto: api_pb2.FunctionInput
    payload: Callable[[], bytes]
    retry_count: int = 0
    sent: int = 1
    """How often the client sent it, retries included."""
    executions: list[str] = field(default_factory=list)
    """Containers that got it, in order."""
    losses: int = 0

    @cached_property
    def _decoded(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = deserialize_data_format(self.payload(), self.proto.data_format, None)
        return tuple(args), kwargs

    @property
    def args(self) -> tuple[Any, ...]:
        return self._decoded[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._decoded[1]

    @property
    def function(self) -> str:
        name = self.call.function.name
        return name.removesuffix("*") + self.proto.method_name if name.endswith(".*") else name

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.call.function.parameters


@dataclass(eq=False)
class Call:
    """A map or a single call, with what it has answered so far. `changed` wakes who waits for outputs."""

    call_id: str
    function: FunctionRecord
    unary: bool
    invocation_type: int
    inputs: dict[int, Input] = field(default_factory=dict)
    outputs: list[api_pb2.FunctionGetOutputsItem] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _let_go: int = 0

    def answer(self, item: api_pb2.FunctionGetOutputsItem) -> None:
        self.outputs.append(item)
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, seen: int) -> list[api_pb2.FunctionGetOutputsItem]:
        """Outputs but for the first `seen`, which the client has, so that their payloads are let go."""
        for index in range(self._let_go, seen):
            self.outputs[index] = _LET_GO
        self._let_go = max(self._let_go, seen)
        return self.outputs[seen:]


@dataclass(eq=False)
class Pool:
    """The inputs that wait for a container of one function, and its containers."""

    function: FunctionRecord
    waiting: deque[Input] = field(default_factory=deque)
    containers: list[ContainerRecord] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failed_entries: int = 0
    closed: bool = False
    """Its app has ended: nothing starts for it any more."""

    @property
    def alive(self) -> list[ContainerRecord]:
        return [container for container in self.containers if container.alive and not container.draining]

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
