"""The store for payloads too large for a message: PUT and GET over HTTP."""

import hashlib
import itertools

from aiohttp import web

_LARGEST = 1 << 30


class Blobs:
    """Blobs in memory, by id. `port` is known once the server listens."""

    def __init__(self) -> None:
        self.port = 0
        self.contents: dict[str, bytes] = {}
        self._numbers = itertools.count(1)

    def application(self) -> web.Application:
        """Return what serves them."""
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_put("/blobs/{blob_id}", self._put)
        app.router.add_get("/blobs/{blob_id}", self._get)
        return app

    def new(self) -> str:
        """Return a fresh id."""
        return f"bl-{next(self._numbers)}"

    def url(self, blob_id: str) -> str:
        """Return the address to PUT to and to GET from."""
        return f"http://127.0.0.1:{self.port}/blobs/{blob_id}"

    async def _put(self, request: web.Request) -> web.Response:
        data = self.contents[request.match_info["blob_id"]] = await request.read()
        return web.Response(headers={"ETag": f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'})

    async def _get(self, request: web.Request) -> web.Response:
        return web.Response(body=self.contents[request.match_info["blob_id"]])
