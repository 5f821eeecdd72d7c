"""A loopback server that answers as publishers do: scripted replies, broken ones included, and a log of requests."""

import io
import json
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

DRIPS, PAUSE = 300, 0.02


@dataclass(frozen=True)
class Reply:
    """One answer. `cut` sends so many bytes of the declared length and closes; `framed=False` declares no length.

    `slow` sends DRIPS lines of the "head", or as many spaces before the "body", PAUSE seconds apart.
    """

    body: bytes = b""
    status: int = 200
    type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    framed: bool = True
    after: Callable[[], None] | None = None
    slow: str = ""


def as_json(value: object, **more: object) -> Reply:
    return Reply(json.dumps(value).encode(), **more)


def as_xml(body: bytes, **more: object) -> Reply:
    return Reply(body, type="text/xml", **more)


def as_htm(words: str, **more: object) -> Reply:
    body = f"<html><title>-</title><body><pre>\n{words}\n</pre></body></html>\n".encode()
    return Reply(body, type="text/html", **more)


def as_zip(members: dict[str, bytes], **more: object) -> Reply:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return Reply(buffer.getvalue(), type="application/zip", **more)


def bulk_listing(*, folders: tuple[str, ...] = (), files: tuple[str, ...] = (), size: int = 1000) -> Reply:
    """A folder of govinfo's bulk data, as /bulkdata/json/ shows it."""
    row = {"formattedLastModifiedTime": "02-Jan-2026 19:32", "mimeType": "application/xml", "fileExtension": "xml"}
    rows = [
        {"name": n, "justFileName": n, "displayLabel": n, "folder": True, "link": f"https://x/{n}"} for n in folders
    ]
    rows += [row | {"name": n, "justFileName": n, "displayLabel": n, "folder": False, "size": size} for n in files]
    return as_json({"files": rows})


Answerer = Callable[[dict[str, list[str]]], Reply]


@dataclass
class Site:
    """One service: replies by path, in turn and the last one for good; a function gets the query.

    The log has every request's path and headers, names in lower case.
    """

    port: int = 0
    routes: dict[str, list[Reply] | Answerer] = field(default_factory=dict)
    log: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def at(self, path: str, *replies: Reply) -> None:
        self.routes[path] = list(replies)

    def calls(self, path: str, answer: Answerer) -> None:
        self.routes[path] = answer

    @property
    def paths(self) -> list[str]:
        """The paths asked for, in order, without queries."""
        return [urlsplit(path).path for path, _ in self.log]

    def reply(self, target: str) -> Reply:
        parts = urlsplit(target)
        found = self.routes.get(parts.path)
        if found is None:
            return Reply(b"<!DOCTYPE html><html><body>Not here</body></html>", 404, "text/html")
        if callable(found):
            return found(parse_qs(parts.query))
        return found.pop(0) if len(found) > 1 else found[0]


@contextmanager
def served(site: Site) -> Iterator[Site]:
    """The site on a port of its own while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each reply waits 40 ms for an acknowledgement

        def do_GET(self) -> None:
            site.log.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            reply = site.reply(self.path)
            tag = dict(reply.headers).get("ETag")
            if tag and self.headers.get("If-None-Match") == tag:
                reply = Reply(b"", 304, headers=reply.headers)
            if reply.after:
                reply.after()
            try:
                _send(self, reply)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # clients that hang up are part of the play

    server = Server(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


def _drip(handler: BaseHTTPRequestHandler, piece: bytes) -> None:
    for _ in range(DRIPS):
        handler.wfile.write(piece)
        handler.wfile.flush()
        time.sleep(PAUSE)


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    handler.send_response(reply.status)
    if reply.slow == "head":
        handler.flush_headers()
        _drip(handler, b"X-Wait: 1\r\n")
    for name, value in reply.headers:
        handler.send_header(name, value)
    if reply.status != 304:
        if reply.type:
            handler.send_header("Content-Type", reply.type)
        if reply.framed:
            handler.send_header("Content-Length", str(len(reply.body) + DRIPS * (reply.slow == "body")))
    if not reply.framed or reply.cut is not None:
        handler.send_header("Connection", "close")
        handler.close_connection = True
    handler.end_headers()
    if reply.slow == "body":
        _drip(handler, b" ")
    handler.wfile.write(reply.body if reply.cut is None else reply.body[: reply.cut])
    handler.wfile.flush()
    if handler.close_connection:
        handler.connection.shutdown(socket.SHUT_WR)


class FakeClock:
    """Time that passes only by sleeping, and by `step` at each look."""

    def __init__(self, step: float = 0.0) -> None:
        self.slept: list[float] = []
        self._now = 0.0
        self._step = step

    @property
    def waits(self) -> list[float]:
        """Sleeps without the thousandth of a second that keeps requests apart in most tests."""
        return [seconds for seconds in self.slept if seconds > 0.001]

    def now(self) -> float:
        self._now += self._step
        return self._now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += seconds

    def utc(self) -> datetime:
        return datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC) + timedelta(seconds=self._now)
