"""A loopback model hub: folders under (hub id, revision), for huggingface_hub by way of HF_ENDPOINT."""

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runner.base.canonical import file_sha256
from runner.eval_set.catalog import EncoderSpec
from tests.support.loopback import Loopback, Request, Wire, as_json, served

Models = Mapping[tuple[str, str], Path]

_CREATED = "2024-01-01T00:00:00.000Z"


def packaged_minilm() -> dict[tuple[str, str], Path]:
    """The packaged MiniLM's files at the revision that the catalogue pins."""
    from runner.embed.weights import verified_folder
    from runner.eval_set.catalog import ENCODERS

    spec = ENCODERS["minilm-l6-v2"]
    return {(spec.model, spec.revision): verified_folder(spec)}


def put_in_cache(cache: Path, spec: EncoderSpec, folder: Path) -> Path:
    """What the hub's client leaves of a model: its files under their digests, and the revision's folder of links."""
    home = cache / f"models--{spec.model.replace('/', '--')}"
    revision = home / "snapshots" / spec.revision
    (home / "blobs").mkdir(parents=True)
    for name in _names(folder):
        blob = home / "blobs" / file_sha256(folder / name)
        shutil.copyfile(folder / name, blob)
        (revision / name).parent.mkdir(parents=True, exist_ok=True)
        (revision / name).symlink_to(blob)
    return revision


class HubServer(Loopback, ExitStack):
    """Serves the files of each model at its one revision; anything else is not found. A context."""

    def __init__(self, models: Models) -> None:
        super().__init__()
        self.models = dict(models)
        self.enter_context(served(self))

    def answer(self, request: Request) -> Wire:
        path = unquote(urlsplit(request.path).path)
        for (hub_id, revision), folder in self.models.items():
            info, tree = f"/api/models/{hub_id}/revision/{revision}", f"/api/models/{hub_id}/tree/{revision}"
            if path in (info, f"/api/models/{hub_id}"):
                return as_json(_info(hub_id, revision, folder))
            if path == tree or path.startswith(f"{tree}/"):
                return as_json([_entry(folder, name) for name in _names(folder)])
            files = f"/{hub_id}/resolve/{revision}/"
            if path.startswith(files) and path.removeprefix(files) in _names(folder):
                return _file(folder / path.removeprefix(files), revision, request.headers.get("range", ""))
        return as_json({"error": "not found"}, 404, headers=(("X-Error-Code", _missing(self, path)),))


def _file(file: Path, revision: str, asked: str) -> Wire:
    """A file, or what is left of it from the byte that is asked for."""
    data, headers = file.read_bytes(), [("ETag", f'"{_git_id(file)}"'), ("X-Repo-Commit", revision)]
    start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
    if asked:
        headers.append(("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}"))
    return Wire(data[start:], 206 if asked else 200, "", (*headers, ("Accept-Ranges", "bytes")))


def _missing(hub: HubServer, path: str) -> str:
    """The hub's own word for what is missing."""
    known = [hub_id for hub_id, _ in hub.models if f"/{hub_id}/" in f"{path}/"]
    if not known:
        return "RepoNotFound"
    return "EntryNotFound" if any(f"/{revision}/" in f"{path}/" for _, revision in hub.models) else "RevisionNotFound"


def _names(folder: Path) -> list[str]:
    """Paths of all files below the folder, relative to it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _info(hub_id: str, revision: str, folder: Path) -> dict[str, object]:
    siblings = [{"rfilename": name} for name in _names(folder)]
    common = {"private": False, "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0}
    dates = {"lastModified": _CREATED, "createdAt": _CREATED}
    return {"_id": "0", "id": hub_id, "modelId": hub_id, "sha": revision, "siblings": siblings, **common, **dates}


def _entry(folder: Path, name: str) -> dict[str, object]:
    file = folder / name
    return {"type": "file", "path": name, "size": file.stat().st_size, "oid": _git_id(file)}


def _git_id(file: Path) -> str:
    """The file's id as git has it, which is the ETag of small files on the hub."""
    return _hashed(file, file.stat().st_size, file.stat().st_mtime_ns)


@cache
def _hashed(file: Path, size: int, changed: int) -> str:
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
