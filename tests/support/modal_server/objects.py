"""What is not called: apps, environments, images, uploaded files, secrets."""

from typing import Any

from google.protobuf.empty_pb2 import Empty
from modal_proto import api_pb2

from tests.support.modal_server.blobs import Blobs
from tests.support.modal_server.records import KNOWN, AppRecord, content_id
from tests.support.modal_server.scheduler import Scheduler
from tests.support.modal_server.wire import answers

BUILDER_VERSION = "2025.06"
BUILT = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)


class Objects:
    """Answers for one server."""

    def __init__(self, blobs: Blobs, scheduler: Scheduler) -> None:
        self.blobs, self.scheduler = blobs, scheduler
        self.apps: dict[str, AppRecord] = {}

    @answers("EnvironmentGetOrCreate")
    def environment(self, request: api_pb2.EnvironmentGetOrCreateRequest, _: str) -> Any:
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER_VERSION)
        metadata = api_pb2.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    @answers("AppCreate")
    def app_create(self, request: api_pb2.AppCreateRequest, _: str) -> Any:
        app = AppRecord(f"ap-{len(self.apps) + 1:04d}")
        self.apps[app.app_id] = app
        return api_pb2.AppCreateResponse(app_id=app.app_id)

    @answers("AppPublish")
    def app_publish(self, request: api_pb2.AppPublishRequest, _: str) -> Any:
        self.apps[request.app_id].class_ids.update(request.class_ids)
        return api_pb2.AppPublishResponse()

    @answers("AppSetTags")
    def app_set_tags(self, request: api_pb2.AppSetTagsRequest, _: str) -> Any:
        self.apps[request.app_id].tags = dict(request.tags)
        return Empty()

    @answers("AppClientDisconnect")
    def app_left(self, request: api_pb2.AppClientDisconnectRequest, _: str) -> Any:
        self.stop(self.apps[request.app_id])
        return Empty()

    def stop(self, app: AppRecord) -> None:
        """End an app's containers; what it had waiting is forgotten."""
        app.stopped = True
        self.scheduler.stop_app(app.app_id)

    @answers("ImageGetOrCreate")
    def image(self, request: api_pb2.ImageGetOrCreateRequest, _: str) -> Any:
        image_id = content_id("im", request.image.SerializeToString(deterministic=True))
        KNOWN.images[image_id] = request.image
        metadata = api_pb2.ImageMetadata(image_builder_version=BUILDER_VERSION)
        return api_pb2.ImageGetOrCreateResponse(image_id=image_id, result=BUILT, metadata=metadata)

    @answers("MountBatchedCheckExistence")
    def files_missing(self, request: api_pb2.MountBatchedCheckExistenceRequest, _: str) -> Any:
        missing = [digest for digest in request.sha256_hex_hashes if digest not in KNOWN.files]
        return api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    @answers("MountPutFile")
    def file_put(self, request: api_pb2.MountPutFileRequest, _: str) -> Any:
        if request.WhichOneof("data_oneof"):
            data = self.blobs.contents[request.data_blob_id] if request.data_blob_id else request.data
            KNOWN.files[request.sha256_hex] = data
        return api_pb2.MountPutFileResponse(exists=request.sha256_hex in KNOWN.files)

    @answers("MountGetOrCreate")
    def mount(self, request: api_pb2.MountGetOrCreateRequest, _: str) -> Any:
        lines = sorted(f"{file.filename} {file.sha256_hex}" for file in request.files)
        mount_id = content_id("mo", request.deployment_name, *lines)
        KNOWN.mounts[mount_id] = {file.filename: file.sha256_hex for file in request.files}
        metadata = api_pb2.MountHandleMetadata(content_checksum_sha256_hex=mount_id[3:])
        return api_pb2.MountGetOrCreateResponse(mount_id=mount_id, handle_metadata=metadata)

    @answers("SecretGetOrCreate")
    def secret(self, request: api_pb2.SecretGetOrCreateRequest, _: str) -> Any:
        values = dict(request.env_dict)
        secret_id = content_id("st", *(f"{name}={value}" for name, value in sorted(values.items())))
        KNOWN.secrets[secret_id] = values
        metadata = api_pb2.SecretMetadata(name=request.deployment_name, keys=sorted(values))
        return api_pb2.SecretGetOrCreateResponse(secret_id=secret_id, metadata=metadata)

    @answers("BlobCreate")
    def blob_create(self, request: api_pb2.BlobCreateRequest, _: str) -> Any:
        blob_id = self.blobs.new()
        url = self.blobs.url(blob_id)
        urls = api_pb2.UploadUrlList(items=[url])
        return api_pb2.BlobCreateResponse(blob_id=blob_id, blob_ids=[blob_id], upload_url=url, upload_urls=urls)

    @answers("BlobGet")
    def blob_get(self, request: api_pb2.BlobGetRequest, _: str) -> Any:
        return api_pb2.BlobGetResponse(download_url=self.blobs.url(request.blob_id))
