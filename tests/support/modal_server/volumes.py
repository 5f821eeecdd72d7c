"""Volumes as folders: what is committed, and the working copy of containers that may write."""

import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.support.modal_server.objects import KNOWN, content_id
from tests.support.modal_server.wire import Caller, answers


class Volumes:
    """Answers about Volumes, whose files lie below `folder` for as long as it does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.writers: set[tuple[str, str]] = set()
        """(name of the Volume, container that mounts it writable)."""

    @answers("VolumeGetOrCreate")
    async def get(self, request: api_pb2.VolumeGetOrCreateRequest, caller: Caller) -> Any:
        volume_id = content_id("vo", request.deployment_name.encode())
        KNOWN.volumes[volume_id] = request.deployment_name
        metadata = api_pb2.VolumeMetadata(name=request.deployment_name)
        return api_pb2.VolumeGetOrCreateResponse(volume_id=volume_id, metadata=metadata)

    @answers("VolumeCommit")
    async def commit(self, request: api_pb2.VolumeCommitRequest, caller: Caller) -> Any:
        name = KNOWN.volumes[request.volume_id]
        if (name, caller.container_id) in self.writers:  # on exit a container commits what it mounts read-only too
            before = self.committed(name)
            after = before.with_suffix(f".{int(before.suffix[1:]) + 1}")
            _copy(self.working_copy(name), after)
            link = self._folder / f"{name}.new"
            link.symlink_to(after.name)
            link.replace(self._folder / name)
        return api_pb2.VolumeCommitResponse(skip_reload=True)

    @answers("VolumeListFiles")
    async def files(self, request: api_pb2.VolumeListFilesRequest, caller: Caller) -> AsyncIterator[Any]:
        yield api_pb2.VolumeListFilesResponse(entries=self._entries(request.volume_id, request.path, request.recursive))

    def committed(self, name: str) -> Path:
        """The folder of what is committed now: no later commit changes it, as none changes what a container mounted."""
        link = self._folder / name
        if not link.is_dir():
            _made(self._folder / f"{name}.0")
            link.symlink_to(f"{name}.0")
        return link.resolve()

    def working_copy(self, name: str) -> Path:
        """What containers see that may write, before they commit."""
        folder = self._folder / f"{name}.work"
        if not folder.is_dir():
            _copy(self.committed(name), folder)
        return folder

    def _entries(self, volume_id: str, path: str, recursive: bool) -> list[api_pb2.FileEntry]:
        root = self.committed(KNOWN.volumes[volume_id])
        start = root / path.strip("/")
        if not start.exists():
            raise GRPCError(Status.NOT_FOUND, f"no such file or directory: {path}")
        found = [start] if start.is_file() else sorted(start.rglob("*") if recursive else start.iterdir())
        return [_entry(root, file) for file in found]


def _entry(root: Path, file: Path) -> api_pb2.FileEntry:
    kind = api_pb2.FileEntry.DIRECTORY if file.is_dir() else api_pb2.FileEntry.FILE
    stat = file.stat()
    path = file.relative_to(root).as_posix()
    return api_pb2.FileEntry(path=path, type=kind, size=stat.st_size, mtime=int(stat.st_mtime))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _copy(source: Path, target: Path) -> None:
    """The files of a folder once more, as links."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=_link, symlinks=True)


def _link(source: str, target: str) -> None:
    with suppress(FileNotFoundError):  # another container has renamed it meanwhile
        Path(target).hardlink_to(source)
