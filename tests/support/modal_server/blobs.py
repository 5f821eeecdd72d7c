"""The store for payloads too large for a message: PUT and GET over HTTP."""

import hashlib
import itertools

from aiohttp import web

_LARGEST = 1 << 30


class Blobs:
    """Blobs in memory, by id. `port` is known once the server listens."""

    def __init__(self) -> None:
        self.port = 0
        self._numbers = itertools.count(1)
        self._contents: dict[str, bytes] = {}

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_put("/blobs/{blob_id}", self._put)
        app.router.add_get("/blobs/{blob_id}", self._get)
        return app

    def new(self) -> tuple[str, str]:
        """A fresh id and the address to PUT to."""
        blob_id = f"bl-{next(self._numbers)}"
        return blob_id, self.url(blob_id)

    def url(self, blob_id: str) -> str:
        return f"http://127.0.0.1:{self.port}/blobs/{blob_id}"

    def get(self, blob_id: str) -> bytes:
        return self._contents[blob_id]

    def store(self, data: bytes) -> str:
        """The id under which these bytes now are."""
        blob_id, _ = self.new()
        self._contents[blob_id] = data
        return blob_id

    async def _put(self, request: web.Request) -> web.Response:
        data = await request.read()
        self._contents[request.match_info["blob_id"]] = data
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return web.Response(headers={"ETag": f'"{digest}"'})

    async def _get(self, request: web.Request) -> web.Response:
        return web.Response(body=self._contents[request.match_info["blob_id"]])
