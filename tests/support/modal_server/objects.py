"""What is not called: apps, environments, images, uploaded files, secrets, bills.

A client keeps the ids of images, mounts, Volumes and secrets for as long as its process lives, whichever server gave
them. So ids follow from content, and `KNOWN` is shared by all servers of a process.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.support.modal_server.blobs import Blobs
from tests.support.modal_server.records import AppRecord
from tests.support.modal_server.wire import Caller, answers

BUILDER_VERSION = "2025.06"
BUILT = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)


@dataclass
class Known:
    """Objects by content: they mean the same on every server."""

    files: dict[str, bytes] = field(default_factory=dict)
    mounts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Mount id -> {path in the container: sha256 of the file}."""
    images: dict[str, api_pb2.Image] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    """Volume id -> name."""

    def dockerfile(self, image_id: str) -> tuple[str, ...]:
        """Lines of all layers, base first."""
        image = self.images[image_id]
        below = [line for base in image.base_images for line in self.dockerfile(base.image_id)]
        return (*below, *image.dockerfile_commands)


KNOWN = Known()


def content_id(prefix: str, *parts: bytes) -> str:
    return f"{prefix}-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:22]}"


class Objects:
    """Answers for one server."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.apps: dict[str, AppRecord] = {}
        self.billing: list[dict[str, Any]] | None = None

    @answers("EnvironmentGetOrCreate")
    async def environment(self, request: api_pb2.EnvironmentGetOrCreateRequest, caller: Caller) -> Any:
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER_VERSION)
        metadata = api_pb2.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    @answers("ClientHello")
    async def hello(self, request: Empty, caller: Caller) -> Any:
        return api_pb2.ClientHelloResponse()

    @answers("WorkspaceNameLookup")
    async def workspace(self, request: Empty, caller: Caller) -> Any:
        return api_pb2.WorkspaceNameLookupResponse(workspace_name="stand-in", username="stand-in")

    @answers("WorkspaceBillingReport")
    async def bill(self, request: api_pb2.WorkspaceBillingReportRequest, caller: Caller) -> AsyncIterator[Any]:
        if self.billing is None:
            raise GRPCError(Status.UNIMPLEMENTED, "the stand-in has no bill planted for WorkspaceBillingReport")
        for row in self.billing:
            cost = str(Decimal(str(row["cost"])))
            item = api_pb2.WorkspaceBillingReportItem(
                object_id=row.get("object_id", "ap-1"), description=row.get("description", ""), cost=cost
            )
            item.environment_name = "main"
            item.interval.CopyFrom(request.start_timestamp)
            item.tags.update({name: row.get("tags", {})[name] for name in row.get("tags", {})})
            item.cost_by_resource.update(row.get("cost_by_resource", {}))
            yield item

    @answers("AppCreate")
    async def app_create(self, request: api_pb2.AppCreateRequest, caller: Caller) -> Any:
        app = AppRecord(f"ap-{len(self.apps) + 1:04d}", request.description, dict(request.tags))
        self.apps[app.app_id] = app
        return api_pb2.AppCreateResponse(app_id=app.app_id, app_page_url=f"http://127.0.0.1/apps/{app.app_id}")

    @answers("AppHeartbeat")
    async def app_heartbeat(self, request: api_pb2.AppHeartbeatRequest, caller: Caller) -> Any:
        self.app(request.app_id)  # which must be there
        return Empty()

    @answers("AppPublish")
    async def app_publish(self, request: api_pb2.AppPublishRequest, caller: Caller) -> Any:
        app = self.app(request.app_id)
        app.tags.update(request.tags)
        app.class_ids.update(request.class_ids)
        return api_pb2.AppPublishResponse(url=f"http://127.0.0.1/apps/{app.app_id}")

    @answers("AppSetTags")
    async def app_set_tags(self, request: api_pb2.AppSetTagsRequest, caller: Caller) -> Any:
        app = self.app(request.app_id)
        app.tags.clear()
        app.tags.update(request.tags)
        return Empty()

    def app(self, app_id: str) -> AppRecord:
        if app_id not in self.apps:
            raise GRPCError(Status.NOT_FOUND, f"no app {app_id}")
        return self.apps[app_id]

    @answers("ImageGetOrCreate")
    async def image(self, request: api_pb2.ImageGetOrCreateRequest, caller: Caller) -> Any:
        image_id = content_id("im", request.image.SerializeToString(deterministic=True))
        KNOWN.images[image_id] = request.image
        metadata = api_pb2.ImageMetadata(image_builder_version=BUILDER_VERSION)
        return api_pb2.ImageGetOrCreateResponse(image_id=image_id, result=BUILT, metadata=metadata)

    @answers("MountBatchedCheckExistence")
    async def files_missing(self, request: api_pb2.MountBatchedCheckExistenceRequest, caller: Caller) -> Any:
        missing = [digest for digest in request.sha256_hex_hashes if digest not in KNOWN.files]
        return api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    @answers("MountPutFile")
    async def file_put(self, request: api_pb2.MountPutFileRequest, caller: Caller) -> Any:
        if request.WhichOneof("data_oneof"):
            data = self.blobs.get(request.data_blob_id) if request.data_blob_id else request.data
            KNOWN.files[request.sha256_hex] = data
        return api_pb2.MountPutFileResponse(exists=request.sha256_hex in KNOWN.files)

    @answers("MountGetOrCreate")
    async def mount(self, request: api_pb2.MountGetOrCreateRequest, caller: Caller) -> Any:
        lines = [f"{file.filename} {file.sha256_hex}".encode() for file in request.files]
        mount_id = content_id("mo", request.deployment_name.encode(), *sorted(lines))
        KNOWN.mounts[mount_id] = {file.filename: file.sha256_hex for file in request.files}
        metadata = api_pb2.MountHandleMetadata(content_checksum_sha256_hex=mount_id[3:])
        return api_pb2.MountGetOrCreateResponse(mount_id=mount_id, handle_metadata=metadata)

    @answers("SecretGetOrCreate")
    async def secret(self, request: api_pb2.SecretGetOrCreateRequest, caller: Caller) -> Any:
        name, values = request.deployment_name, dict(request.env_dict)
        if name and not values:
            raise GRPCError(Status.NOT_FOUND, f"no secret {name}")
        secret_id = content_id("st", name.encode(), *(f"{k}={v}".encode() for k, v in sorted(values.items())))
        KNOWN.secrets[secret_id] = values
        metadata = api_pb2.SecretMetadata(name=name, keys=sorted(values))
        return api_pb2.SecretGetOrCreateResponse(secret_id=secret_id, metadata=metadata)

    @answers("BlobCreate")
    async def blob_create(self, request: api_pb2.BlobCreateRequest, caller: Caller) -> Any:
        blob_id, url = self.blobs.new()
        urls = api_pb2.UploadUrlList(items=[url])
        return api_pb2.BlobCreateResponse(blob_id=blob_id, blob_ids=[blob_id], upload_url=url, upload_urls=urls)

    @answers("BlobGet")
    async def blob_get(self, request: api_pb2.BlobGetRequest, caller: Caller) -> Any:
        return api_pb2.BlobGetResponse(download_url=self.blobs.url(request.blob_id))


def materialise(mount_ids: Iterable[str], folder: Path) -> None:
    """Writes the uploaded files of the mounts at their container paths below `folder`."""
    for mount_id in mount_ids:
        for path, digest in KNOWN.mounts[mount_id].items():
            target = folder / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(KNOWN.files[digest])
