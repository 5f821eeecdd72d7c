"""Containers as processes: modal's own entry point, on nothing but the image's packages and the uploaded files."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from modal_proto import api_pb2

from tests.support.modal_server.functions import Functions
from tests.support.modal_server.image import BuildError, environment_of, install
from tests.support.modal_server.objects import KNOWN, Objects, content_id, materialise
from tests.support.modal_server.records import ContainerRecord, FunctionRecord
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.volumes import Volumes
from tests.support.modal_server.wire import CONTAINER_HEADER

_LAUNCH = Path(__file__).with_name("launch.py")
_TAIL = 2000

Env = Mapping[str, str]


class Processes:
    """Starts containers as processes below the server's folder."""

    def __init__(
        self, folder: Path, planes: tuple[Objects, Functions, Volumes], scheduler: Scheduler, url: str, more: Env
    ) -> None:
        self._folder, self.scheduler, self.url, self.more = folder, scheduler, url, more
        self.objects, self.functions, self.volumes = planes
        self._watching: set[asyncio.Task[None]] = set()

    def start(self, container_id: str, function: FunctionRecord) -> ContainerRecord:
        """A container that is being started; its end is watched."""
        log = self._folder / f"{container_id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        container = ContainerRecord(container_id, function, stop=lambda: None, log=log)
        for path, (volume, read_only) in function.volumes.items():
            container.mounts[path] = self._mount(container_id, volume, read_only)
        task = asyncio.ensure_future(self._run(container, log))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return container

    async def ended(self, seconds: float) -> None:
        """Waits for processes that were told to end."""
        if self._watching:
            await asyncio.wait(self._watching, timeout=seconds)

    async def _run(self, container: ContainerRecord, log: Path) -> None:
        """From the image to the exit code."""
        if text := self.scheduler.faults.strike("fail_entry"):
            await asyncio.sleep(0)  # the scheduler has not listed the container yet
            self.scheduler.entry_failed(container, self.scheduler.failure(text))
            return
        try:
            packages, root = self._image(container.function), self._files(container.function)
        except BuildError as error:
            await asyncio.sleep(0)
            self.scheduler.entry_failed(container, self.scheduler.failure(f"image: {error}"))
            return
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", "-P", str(_LAUNCH)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=root / "root",
                env=self._environment(container, packages, root),
            )

        def kill() -> None:
            if process.returncode is None:
                process.kill()

        container.stop = kill
        if not container.alive or container.draining:
            kill()
        await process.wait()
        if container.alive and not container.ready and not container.draining:
            text = f"the container ended before it was ready:\n{log.read_text(errors='replace')[-_TAIL:]}"
            self.scheduler.entry_failed(container, self.scheduler.failure(text))
        self.scheduler.gone(container)

    def _mount(self, container_id: str, volume: str, read_only: bool) -> Path:
        if read_only:
            return self.volumes.committed(volume)
        self.volumes.writers.add((volume, container_id))
        return self.volumes.working_copy(volume)

    def _image(self, function: FunctionRecord) -> Path:
        """The folder of the image's packages; built once."""
        folder = self._folder / content_id("image", *(line.encode() for line in function.dockerfile))
        if not folder.is_dir():
            building = folder.with_suffix(".building")
            shutil.rmtree(building, ignore_errors=True)
            install(function.dockerfile, building)
            building.rename(folder)
        return folder

    def _files(self, function: FunctionRecord) -> Path:
        """The root under which the function's uploaded files lie; written once."""
        mounts = sorted(mount_id for mount_id in function.definition.mount_ids if mount_id in KNOWN.mounts)
        folder = self._folder / content_id("files", *(mount_id.encode() for mount_id in mounts))
        if not folder.is_dir():
            materialise(mounts, folder)
            (folder / "root").mkdir(parents=True, exist_ok=True)
        return folder

    def _environment(self, container: ContainerRecord, packages: Path, root: Path) -> dict[str, str]:
        """The image's, the function's secrets', and what modal's own workers set."""
        function = container.function
        values = environment_of(function.dockerfile)
        for secret_id in function.definition.secret_ids:
            values.update(KNOWN.secrets[secret_id])
        home = self._folder / f"{container.container_id}.home"
        home.mkdir(exist_ok=True)
        own = {**container.mounts, "/tmp": home}  # a container's temporary folder is its own
        values = {name: _mounted(value, own) for name, value in values.items()}
        arguments = home / "arguments.pb"
        arguments.write_bytes(self._arguments(container).SerializeToString())
        read_only = [str(container.mounts[path]) for path, (_, only) in function.volumes.items() if only]
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONUNBUFFERED": "1",
            **self.more,
            **values,
            "PYTHONPATH": os.pathsep.join([str(root / "root"), str(packages)]),
            "MODAL_SERVER_URL": self.url,
            "MODAL_IS_REMOTE": "1",
            "MODAL_TASK_ID": container.container_id,
            "MODAL_IMAGE_ID": function.definition.image_id,
            "MODAL_CONTAINER_ARGUMENTS_PATH": str(arguments),
            "MODAL_OVERRIDE_HEADERS": f"{CONTAINER_HEADER}:{container.container_id}",
            "MODAL_DISABLE_API_PROXY": "1",
            "MODAL_CONFIG_PATH": "/nonexistent",
            "STAND_IN_PORTS": f"{urlsplit(self.url).port},{self.objects.blobs.port}",
            "STAND_IN_BLOCK_NETWORK": "1" if function.block_network else "",
            "STAND_IN_READ_ONLY": os.pathsep.join(read_only),
        }

    def _arguments(self, container: ContainerRecord) -> api_pb2.ContainerArguments:
        function = container.function
        return api_pb2.ContainerArguments(
            task_id=container.container_id,
            function_id=function.function_id,
            app_id=function.app_id,
            function_def=function.definition,
            serialized_params=function.serialized_params,
            environment_name="main",
            app_layout=self._layout(function),
        )

    def _layout(self, function: FunctionRecord) -> api_pb2.AppLayout:
        """The app's functions and classes, and everything the function depends on, with their handles."""
        layout = api_pb2.AppLayout()
        for function_id, record in self.functions.records.items():
            if record.app_id == function.app_id:
                layout.function_ids[record.name] = function_id
                layout.objects.add(object_id=function_id, function_handle_metadata=self.functions.handles[function_id])
        for tag, class_id in self.objects.app(function.app_id).class_ids.items():
            layout.class_ids[tag] = class_id
            layout.objects.add(object_id=class_id, class_handle_metadata=api_pb2.ClassHandleMetadata())
        for dependency in function.definition.object_dependencies:
            object_id = dependency.object_id
            entry = layout.objects.add(object_id=object_id)
            if object_id.startswith("mo-"):
                entry.mount_handle_metadata.content_checksum_sha256_hex = object_id[3:]
            elif object_id.startswith("vo-"):
                entry.volume_metadata.name = KNOWN.volumes[object_id]
        return layout


def _mounted(value: str, mounts: Mapping[str, Path]) -> str:
    """A variable's value, where it leads to a Volume with the folder in place of the mount path."""
    for path, folder in mounts.items():
        if value == path or value.startswith(f"{path}/"):
            return f"{folder}{value.removeprefix(path)}"
    return value
