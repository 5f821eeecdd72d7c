"""A server on a port of its own for the time of a test: scripted answers, broken ones included."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeVar

DRIPS, PAUSE = 300, 0.02


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    data: bytes

    @cached_property
    def body(self) -> Any:
        return json.loads(self.data)

    @property
    def texts(self) -> list[str]:
        """What is to be embedded, by either API."""
        return self.body.get("inputs") or self.body["input"]


@dataclass(frozen=True)
class Wire:
    """One answer. `cut` sends so many bytes of the body, then resets the connection or, without `resets`, ends it.

    `framed=False` declares no length. `slow` sends DRIPS lines of the "head", or as many spaces before the "body",
    PAUSE seconds apart. Nothing is sent before `hold` is set and `after` was called.
    """

    body: bytes = b""
    status: int = 200
    type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    resets: bool = True
    framed: bool = True
    slow: str = ""
    hold: threading.Event | None = None
    after: Callable[[], None] | None = None


NOTHING_HERE = Wire(b"<!DOCTYPE html><html><body>Not here</body></html>", 404, "text/html")


def as_json(value: object, status: int = 200, **more: object) -> Wire:
    return Wire(json.dumps(value).encode(), status, **more)


class Loopback:
    """What answers; the address is known while it is served."""

    port = 0

    requests: list[Request]
    """All that arrived, in order."""

    def __new__(cls, *_: object, **__: object) -> Self:
        made = super().__new__(cls)
        made.requests = []
        return made

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, request: Request) -> Wire:
        raise NotImplementedError


_Server = TypeVar("_Server", bound=Loopback)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass  # clients that hang up are part of the play


@contextmanager
def served(server: _Server) -> Iterator[_Server]:
    """The server on a port of its own while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each reply waits 40 ms for an acknowledgement

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            data = self.rfile.read(int(headers.get("content-length", 0)))
            request = Request(self.command, self.path, headers, data)
            server.requests.append(request)
            try:
                _send(self, server.answer(request))
            except OSError:
                self.close_connection = True

        do_HEAD = do_POST = do_GET  # noqa: N815  # the base class's names

        def log_message(self, *_: object) -> None:
            pass

    http = _Quiet(("127.0.0.1", 0), Handler)
    server.port = http.server_address[1]
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def _drip(handler: BaseHTTPRequestHandler, piece: bytes) -> None:
    for _ in range(DRIPS):
        handler.wfile.write(piece)
        handler.wfile.flush()
        time.sleep(PAUSE)


def _send(handler: BaseHTTPRequestHandler, wire: Wire) -> None:
    if wire.hold:
        wire.hold.wait(30)
    if wire.after:
        wire.after()
    handler.send_response(wire.status)
    if wire.slow == "head":
        handler.flush_headers()
        _drip(handler, b"X-Wait: 1\r\n")
    for name, value in wire.headers:
        handler.send_header(name, value)
    if wire.status != 304:
        if wire.type:
            handler.send_header("Content-Type", wire.type)
        if wire.framed:
            handler.send_header("Content-Length", str(len(wire.body) + DRIPS * (wire.slow == "body")))
    breaks = wire.cut is not None and wire.resets
    if not breaks and (not wire.framed or wire.cut is not None):
        handler.send_header("Connection", "close")
        handler.close_connection = True
    handler.end_headers()
    if wire.slow == "body":
        _drip(handler, b" ")
    if handler.command != "HEAD":
        handler.wfile.write(wire.body[: wire.cut])
        handler.wfile.flush()
    if breaks:
        # An abortive close: the client meets a reset, not an end.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        handler.close_connection = True
    elif handler.close_connection:
        handler.connection.shutdown(socket.SHUT_WR)
