"""What the stand-in remembers of apps, functions, containers, calls and inputs; tests read it, no test writes it."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from modal._serialization import deserialize_data_format
from modal_proto import api_pb2


@dataclass
class Known:
    """Objects by content: they mean the same on every server.

    A client keeps the ids of images, mounts, Volumes and secrets for as long as its process lives, whichever server
    gave them.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    mounts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Mount id -> {path in the container: sha256 of the file}."""
    images: dict[str, api_pb2.Image] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    """Volume id -> name."""

    def dockerfile(self, image_id: str) -> tuple[str, ...]:
        """Return the lines of all layers, base first; none without an image."""
        if not image_id:
            return ()
        image = self.images[image_id]
        below = [line for base in image.base_images for line in self.dockerfile(base.image_id)]
        return (*below, *image.dockerfile_commands)


KNOWN = Known()


def content_id(prefix: str, *parts: str | bytes) -> str:
    """Return the same id for the same content."""
    joined = b"|".join(part.encode() if isinstance(part, str) else part for part in parts)
    return f"{prefix}-{hashlib.sha256(joined).hexdigest()[:22]}"


class Signal:
    """Wakes everybody who waits for a change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake who waits now; who waits later waits for the next change."""
        self._event.set()
        self._event = asyncio.Event()

    async def came(self, seconds: float) -> bool:
        """Return whether a change came within the time."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True


@dataclass
class AppRecord:
    """An app as it was announced."""

    app_id: str
    stopped: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    class_ids: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class FunctionRecord:
    """A function as it was asked for, or a variant of it bound to `parameters` and the options of with_options.

    With it are the inputs that wait for a container of it, and its containers.
    """

    function_id: str
    app_id: str
    definition: api_pb2.Function
    handle: api_pb2.FunctionHandleMetadata
    serialized_params: bytes = b""
    parameters: dict[str, Any] = field(default_factory=dict)
    waiting: deque["Input"] = field(default_factory=deque)
    containers: list["ContainerRecord"] = field(default_factory=list)
    changed: Signal = field(default_factory=Signal)
    failed_entries: int = 0
    closed: bool = False
    """Its app has ended: nothing starts for it any more."""

    @property
    def name(self) -> str:
        """`Class.*` for a class, else the function's name."""
        return self.definition.function_name

    @property
    def gpu(self) -> str:
        """As it was asked for, "" for none."""
        return self.definition.resources.gpu_config.gpu_type

    @property
    def volumes(self) -> dict[str, tuple[str, bool]]:
        """Mount path -> (name of the Volume, read_only)."""
        return {m.mount_path: (KNOWN.volumes[m.volume_id], m.read_only) for m in self.definition.volume_mounts}

    @property
    def secrets(self) -> dict[str, str]:
        """Variables that its secrets set."""
        return {name: value for each in self.definition.secret_ids for name, value in KNOWN.secrets[each].items()}

    @property
    def mounted(self) -> dict[str, str]:
        """Container path of every uploaded file -> its digest."""
        known = (KNOWN.mounts.get(mount_id, {}) for mount_id in self.definition.mount_ids)
        return {path: digest for files in known for path, digest in files.items()}

    @property
    def dockerfile(self) -> tuple[str, ...]:
        """Lines of all layers of its image, base first."""
        return KNOWN.dockerfile(self.definition.image_id)

    @property
    def max_containers(self) -> int:
        """0 where no limit was asked for."""
        return self.definition.autoscaler_settings.max_containers

    @property
    def alive(self) -> list["ContainerRecord"]:
        """Its containers that may get inputs."""
        return [container for container in self.containers if container.alive and not container.draining]


@dataclass(eq=False)
class ContainerRecord:
    """A container. `stop` ends it at once; it is the executor's."""

    container_id: str
    function: FunctionRecord
    stop: Callable[[], None] = lambda: None
    log: Path | None = None
    alive: bool = True
    ready: bool = False
    """It has asked for an input, so its entry is behind it."""
    draining: bool = False
    """It gets no further input, and ends when it asks for one."""
    held: dict[str, "Input"] = field(default_factory=dict)


@dataclass(eq=False)
class Input:
    """One input of a call; predicates and assertions see it decoded. `executions` are the containers that got it."""

    input_id: str
    call: "Call"
    idx: int
    proto: api_pb2.FunctionInput
    payload: Callable[[], bytes]
    retry_count: int = 0
    executions: list[str] = field(default_factory=list)

    @cached_property
    def decoded(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments, and those by name."""
        return deserialize_data_format(self.payload(), self.proto.data_format, None)

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments."""
        return self.decoded[0]

    @property
    def function(self) -> str:
        """The function's name, or Class.method."""
        name = self.call.function.name
        return name.removesuffix("*") + self.proto.method_name if name.endswith(".*") else name


@dataclass(eq=False)
class Call:
    """A map or a single call, with what it has answered so far."""

    call_id: str
    function: FunctionRecord
    unary: bool
    invocation_type: int
    n_inputs: int = 0
    outputs: list[api_pb2.FunctionGetOutputsItem] = field(default_factory=list)
    changed: Signal = field(default_factory=Signal)
