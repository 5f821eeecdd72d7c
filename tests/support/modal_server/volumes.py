"""Volumes as folders: what is committed, and the working copy of containers that may write."""

import subprocess
from pathlib import Path
from typing import Any

from modal_proto import api_pb2

from tests.support.modal_server.records import KNOWN, content_id
from tests.support.modal_server.wire import answers


class Volumes:
    """Answers about Volumes, whose files lie below `folder` for as long as it does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.writers: set[tuple[str, str]] = set()
        """(name of the Volume, container that mounts it writable)."""

    @answers("VolumeGetOrCreate")
    def get(self, request: api_pb2.VolumeGetOrCreateRequest, _: str) -> Any:
        volume_id = content_id("vo", request.deployment_name)
        KNOWN.volumes[volume_id] = request.deployment_name
        metadata = api_pb2.VolumeMetadata(name=request.deployment_name)
        return api_pb2.VolumeGetOrCreateResponse(volume_id=volume_id, metadata=metadata)

    @answers("VolumeCommit")
    def commit(self, request: api_pb2.VolumeCommitRequest, container_id: str) -> Any:
        name = KNOWN.volumes[request.volume_id]
        if (name, container_id) in self.writers:  # on exit a container commits what it mounts read-only too
            _copy(self.working_copy(name), self.committed(name))
        return api_pb2.VolumeCommitResponse(skip_reload=True)

    @answers("VolumeListFiles")
    def files(self, request: api_pb2.VolumeListFilesRequest, _: str) -> list[Any]:
        root = self.committed(KNOWN.volumes[request.volume_id])
        kinds = api_pb2.FileEntry.FILE, api_pb2.FileEntry.DIRECTORY
        entries = [
            api_pb2.FileEntry(path=path.name, type=kinds[path.is_dir()], size=path.stat().st_size)
            for path in root.joinpath(request.path.strip("/")).iterdir()
        ]
        return [api_pb2.VolumeListFilesResponse(entries=entries)]

    def committed(self, name: str) -> Path:
        """Return the folder of what is committed."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def working_copy(self, name: str) -> Path:
        """Return what containers see that may write, before they commit."""
        folder = self._folder / f"{name}.work"
        if not folder.is_dir():
            folder.mkdir(parents=True)
            _copy(self.committed(name), folder)
        return folder


def _copy(source: Path, target: Path) -> None:
    # Links of the hub's cache and all, over what is there.
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)
