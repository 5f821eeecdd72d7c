"""Containers as processes: modal's own entry point, on nothing but the image's packages and the uploaded files."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from modal_proto import api_pb2

from tests.support.modal_server.image import environment_of, install
from tests.support.modal_server.objects import Objects
from tests.support.modal_server.records import KNOWN, ContainerRecord, FunctionRecord, content_id
from tests.support.modal_server.scheduler import failure
from tests.support.modal_server.volumes import Volumes
from tests.support.modal_server.wire import CONTAINER_HEADER

_LAUNCH = Path(__file__).with_name("launch.py")
_TAIL = 2000


class Processes:
    """Starts containers as processes below `folder`, with `more` in their environment."""

    def __init__(self, folder: Path, objects: Objects, volumes: Volumes, url: str, more: Mapping[str, str]) -> None:
        self._folder, self._objects, self._volumes, self._url, self._more = folder, objects, volumes, url, more
        self._scheduler = objects.scheduler
        self._watching: set[asyncio.Task[None]] = set()

    def start(self, container: ContainerRecord) -> None:
        """Have a container started; its end is watched."""
        task = asyncio.ensure_future(self._run(container))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def ended(self, seconds: float) -> None:
        """Wait for processes that were told to end."""
        if self._watching:
            await asyncio.wait(self._watching, timeout=seconds)

    async def _run(self, container: ContainerRecord) -> None:
        """Lead a container from the image to the exit code."""
        home = self._folder / container.container_id
        home.mkdir(parents=True)
        container.log = home / "log"
        try:
            packages, files = self._image(container.function), self._files(container.function)
            environment = self._environment(container, home, f"{files / 'root'}{os.pathsep}{packages}")
            with container.log.open("wb") as output:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-S", "-P", str(_LAUNCH)),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=files / "root",
                    env=environment,
                )
        except Exception as error:  # noqa: BLE001  # an image that cannot be built fails the call
            self._scheduler.entry_failed(container, failure(RuntimeError(f"image: {error}")))
            return

        def kill() -> None:
            if process.returncode is None:
                process.kill()

        container.stop = kill
        if not container.alive or container.draining:
            kill()
        await process.wait()
        if container.alive and not container.ready and not container.draining:
            text = f"the container ended before it was ready:\n{container.log.read_text(errors='replace')[-_TAIL:]}"
            self._scheduler.entry_failed(container, failure(RuntimeError(text)))
        self._scheduler.gone(container)

    def _image(self, function: FunctionRecord) -> Path:
        """Return the folder of the image's packages; built once."""
        folder = self._folder / content_id("image", *function.dockerfile)
        if not folder.is_dir():
            install(function.dockerfile, folder)
        return folder

    def _files(self, function: FunctionRecord) -> Path:
        """Return the root under which the function's uploaded files lie; written once."""
        folder = self._folder / content_id("files", *map(str, sorted(function.mounted.items())))
        if not folder.is_dir():
            for path, digest in function.mounted.items():
                target = folder / path.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(KNOWN.files[digest])
        return folder

    def _environment(self, container: ContainerRecord, home: Path, path: str) -> dict[str, str]:
        """Return the image's, the function's secrets', and what modal's own workers set."""
        function = container.function
        mounts = {"/tmp": home}  # a container's temporary folder is its own
        read_only = []
        for at, (volume, is_read_only) in function.volumes.items():
            if is_read_only:
                mounts[at] = self._volumes.committed(volume)
                read_only.append(str(mounts[at]))
            else:
                mounts[at] = self._volumes.working_copy(volume)
                self._volumes.writers.add((volume, container.container_id))
        values = environment_of(function.dockerfile) | function.secrets
        arguments = home / "arguments.pb"
        arguments.write_bytes(self._arguments(container).SerializeToString())
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONUNBUFFERED": "1",
            **self._more,
            **{name: _mounted(value, mounts) for name, value in values.items()},
            "PYTHONPATH": path,
            "MODAL_SERVER_URL": self._url,
            "MODAL_IS_REMOTE": "1",
            "MODAL_TASK_ID": container.container_id,
            "MODAL_IMAGE_ID": function.definition.image_id,
            "MODAL_CONTAINER_ARGUMENTS_PATH": str(arguments),
            "MODAL_OVERRIDE_HEADERS": f"{CONTAINER_HEADER}:{container.container_id}",
            "MODAL_DISABLE_API_PROXY": "1",
            "MODAL_CONFIG_PATH": "/nonexistent",
            "STAND_IN_PORTS": f"{urlsplit(self._url).port},{self._objects.blobs.port}",
            "STAND_IN_BLOCK_NETWORK": "1" if function.definition.block_network else "",
            "STAND_IN_READ_ONLY": os.pathsep.join(read_only),
        }

    def _arguments(self, container: ContainerRecord) -> api_pb2.ContainerArguments:
        """Return what the entry point is told: the app's functions and classes, and everything that this one needs."""
        function, layout = container.function, api_pb2.AppLayout()
        for function_id, record in self._scheduler.functions.items():
            if record.app_id == function.app_id and not record.serialized_params:
                layout.function_ids[record.name] = function_id
                layout.objects.add(object_id=function_id, function_handle_metadata=record.handle)
        for tag, class_id in self._objects.apps[function.app_id].class_ids.items():
            layout.class_ids[tag] = class_id
            layout.objects.add(object_id=class_id, class_handle_metadata=api_pb2.ClassHandleMetadata())
        for dependency in function.definition.object_dependencies:
            entry = layout.objects.add(object_id=dependency.object_id)
            if entry.object_id.startswith("mo-"):
                entry.mount_handle_metadata.content_checksum_sha256_hex = entry.object_id[3:]
            elif entry.object_id.startswith("vo-"):
                entry.volume_metadata.name = KNOWN.volumes[entry.object_id]
        return api_pb2.ContainerArguments(
            task_id=container.container_id,
            function_id=function.function_id,
            app_id=function.app_id,
            function_def=function.definition,
            serialized_params=function.serialized_params,
            environment_name="main",
            app_layout=layout,
        )


def _mounted(value: str, mounts: Mapping[str, Path]) -> str:
    """Return a variable's value, where it leads to a mount path with the folder in its place."""
    for path, folder in mounts.items():
        if value == path or value.startswith(f"{path}/"):
            return f"{folder}{value.removeprefix(path)}"
    return value
