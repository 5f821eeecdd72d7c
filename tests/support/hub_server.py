"""A loopback model hub: folders under (hub id, revision), for huggingface_hub by way of HF_ENDPOINT.

By itself, `python -m tests.support.hub_server HUB_ID REVISION FOLDER ...` prints its address and serves.
"""

import hashlib
import json
import shutil
import sys
import threading
from collections.abc import Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

Models = Mapping[tuple[str, str], Path]

_CREATED = "2024-01-01T00:00:00.000Z"


def packaged_minilm() -> dict[tuple[str, str], Path]:
    """The packaged MiniLM's files at the revision that the catalogue pins."""
    from runner.embed.weights import verified_folder
    from runner.eval_set.catalog import ENCODERS

    spec = ENCODERS["minilm-l6-v2"]
    return {(spec.hub_id, spec.revision): verified_folder(spec)}


class HubServer:
    """Serves the files of each model at its one revision; anything else is not found. A context."""

    def __init__(self, models: Models, port: int = 0) -> None:
        self.models = dict(models)
        self.requests: list[tuple[str, str]] = []
        """(method, path) in order of arrival."""
        self.authorizations: list[str] = []
        """What clients sent as Authorization, in order; clients without one leave nothing."""
        self.refused = False
        """Answers 401 to everything, as a gated model does to a wrong token."""
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def found(self, path: str) -> tuple[str, Any] | None:
        """What a path leads to: ("json", value), or ("file", (path, revision)); None for nothing."""
        for (hub_id, revision), folder in self.models.items():
            info, tree = f"/api/models/{hub_id}/revision/{revision}", f"/api/models/{hub_id}/tree/{revision}"
            if path in (info, f"/api/models/{hub_id}"):
                return "json", _info(hub_id, revision, folder)
            if path == tree or path.startswith(f"{tree}/"):
                return "json", [_entry(folder, name) for name in _names(folder)]
            files = f"/{hub_id}/resolve/{revision}/"
            if path.startswith(files) and path.removeprefix(files) in _names(folder):
                return "file", (folder / path.removeprefix(files), revision)
        return None


def _handler(hub: HubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:  # the base class's name
            self._answer(with_body=False)

        def do_GET(self) -> None:  # the base class's name
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append((self.command, path))
            if "Authorization" in self.headers:
                hub.authorizations.append(self.headers["Authorization"])
            found = hub.found(path)
            if hub.refused:
                self._json(401, {"error": "Invalid credentials"}, "GatedRepo", with_body=with_body)
            elif found is None:
                self._json(404, {"error": "not found"}, _missing(hub, path), with_body=with_body)
            elif found[0] == "json":
                self._json(200, found[1], "", with_body=with_body)
            else:
                self._file(*found[1], with_body=with_body)

        def _json(self, status: int, value: object, error: str, *, with_body: bool) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if error:
                self.send_header("X-Error-Code", error)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def _file(self, file: Path, revision: str, *, with_body: bool) -> None:
            size, start = file.stat().st_size, 0
            if asked := self.headers.get("Range", ""):
                start = int(asked.removeprefix("bytes=").partition("-")[0])
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.send_header("Content-Length", str(size - start))
            self.send_header("ETag", f'"{_git_id(file)}"')
            self.send_header("X-Repo-Commit", revision)
            self.send_header("Accept-Ranges", "bytes")
            self.end_headers()
            if with_body:
                with file.open("rb") as stream:
                    stream.seek(start)
                    shutil.copyfileobj(stream, self.wfile)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Tests read `requests`."""

    return Handler


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


def main() -> None:
    """Serves what the command line names; without arguments the packaged MiniLM."""
    said = sys.argv[1:]
    models = {(said[i], said[i + 1]): Path(said[i + 2]) for i in range(0, len(said), 3)} or packaged_minilm()
    with HubServer(models) as hub:
        print(hub.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
