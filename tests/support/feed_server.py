"""A loopback server that answers as publishers do: scripted replies, broken ones included, and a log of requests."""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.support.loopback import NOTHING_HERE, Loopback, Request, Wire, as_json


def as_xml(body: bytes, **more: object) -> Wire:
    return Wire(body, type="text/xml", **more)


def as_htm(words: str, **more: object) -> Wire:
    body = f"<html><title>-</title><body><pre>\n{words}\n</pre></body></html>\n".encode()
    return Wire(body, type="text/html", **more)


def as_zip(members: dict[str, bytes], **more: object) -> Wire:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return Wire(buffer.getvalue(), type="application/zip", **more)


def bulk_listing(*, folders: tuple[str, ...] = (), files: tuple[str, ...] = (), size: int = 1000) -> Wire:
    """Return a folder of govinfo's bulk data, as /bulkdata/json/ shows it."""
    row = {"formattedLastModifiedTime": "02-Jan-2026 19:32", "mimeType": "application/xml", "fileExtension": "xml"}
    rows = [
        {"name": n, "justFileName": n, "displayLabel": n, "folder": True, "link": f"https://x/{n}"} for n in folders
    ]
    rows += [row | {"name": n, "justFileName": n, "displayLabel": n, "folder": False, "size": size} for n in files]
    return as_json({"files": rows})


def lead(origins: Mapping[str, str], put: Callable[..., None] = setattr) -> None:
    """Make requests to official hosts lead to servers of this machine, and those to any other host nowhere."""
    send = httpx.HTTPTransport.handle_request

    def handle(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        if request.url.host not in origins:
            raise httpx.ConnectError(f"nothing leads to {request.url.host}")
        there = httpx.URL(origins[request.url.host])
        request.url = request.url.copy_with(scheme=there.scheme, host=there.host, port=there.port)
        return send(self, request)

    put(httpx.HTTPTransport, "handle_request", handle)


Answerer = Callable[[dict[str, list[str]]], Wire]


@dataclass
class Site(Loopback):
    """One service: replies by path, in turn and the last one for good; a function gets the query."""

    routes: dict[str, list[Wire] | Answerer] = field(default_factory=dict)

    def at(self, path: str, *replies: Wire) -> None:
        self.routes[path] = list(replies)

    def calls(self, path: str, answer: Answerer) -> None:
        self.routes[path] = answer

    @property
    def paths(self) -> list[str]:
        """Paths asked for, in order, without queries."""
        return [urlsplit(request.path).path for request in self.requests]

    def answer(self, request: Request) -> Wire:
        parts = urlsplit(request.path)
        replies = self.routes.get(parts.path, [NOTHING_HERE])
        if callable(replies):
            return replies(parse_qs(parts.query))
        return replies.pop(0) if len(replies) > 1 else replies[0]


class FakeClock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._now = 0.0

    @property
    def waits(self) -> list[float]:
        """Sleeps without the thousandth of a second that keeps requests apart in most tests."""
        return [seconds for seconds in self.slept if seconds > 0.001]

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += seconds

    def utc(self) -> datetime:
        return datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC) + timedelta(seconds=self._now)
