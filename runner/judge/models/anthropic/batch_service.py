"""Anthropic's Message Batches: handed in, looked at, listed and fetched, and the replies in their results."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.base.http_client import Busy, Unusable
from runner.judge.models.anthropic.client import AnthropicClient, NotThere
from runner.judge.models.anthropic.wire import reply_of, usage_of
from runner.judge.models.client import received
from runner.judge.models.requests import Reply, Usage

if TYPE_CHECKING:
    import httpx2

PAGE = 100
MOST_PAGES = 20

_Result = TypeVar("_Result")


class Unknown(Exception):
    """A batch was handed in, and nobody says whether it arrived."""


class Gone(Exception):
    """The service has no such batch, or no longer its results."""


class BatchService:
    """The service; a BackendError if it cannot be reached, or refuses."""

    def __init__(self, client: AnthropicClient) -> None:
        self._client = client
        self._never = threading.Event()
        self._sdk = client.sdk.messages.batches.with_raw_response
        self.url = client.url

    def create(self, requests: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> str:
        """The new batch's id; Unknown if it may have been made all the same."""

        def once() -> JSON:
            try:
                return self._client.json(
                    lambda: self._sdk.create(requests=requests, extra_headers=headers).http_response  # type: ignore[arg-type]  # the fields that the SDK does not know
                )
            except Unusable as error:
                if error.is_charged:
                    raise Unknown(str(error)) from None
                raise

        made = self._patiently(once, "a message batch cannot be handed in")
        if not isinstance(made, dict) or not isinstance(made.get("id"), str) or not made["id"]:
            raise Unknown("the answer has no id")
        return str(made["id"])

    def retrieve(self, batch_id: str) -> dict[str, Any]:
        """The batch; Gone if the service does not know it."""
        try:
            found = self._get(lambda: self._sdk.retrieve(batch_id).http_response, batch_id)
        except NotThere as error:
            raise Gone(str(error)) from None
        return found if isinstance(found, dict) else {}

    def results(self, batch_id: str) -> str:
        """The file of its results, one JSON object per line, whatever address the batch names; Gone if not kept."""
        import httpx2

        path = f"/v1/messages/batches/{batch_id}/results"
        try:
            return self._patiently(
                lambda: self._client.body(lambda: self._client.sdk.get(path, cast_to=httpx2.Response)),
                f"the results of message batch {batch_id} cannot be fetched",
            )
        except NotThere as error:
            raise Gone(str(error)) from None

    def since(self, earliest: datetime) -> Iterator[dict[str, Any]]:
        """The batches created since then, newest first."""
        last = ""
        for _ in range(MOST_PAGES):
            page = self._get(partial(self._list, last), "the list of message batches")
            rows = page.get("data") if isinstance(page, dict) else None
            for row in rows if isinstance(rows, list) else []:
                if isinstance(row, dict) and created(row) >= earliest:
                    yield row
                else:
                    return
            last = str(page.get("last_id") or "") if isinstance(page, dict) else ""
            if not last or not page.get("has_more"):
                return

    def _list(self, after: str) -> "httpx2.Response":
        pages = self._sdk.list(limit=PAGE, after_id=after) if after else self._sdk.list(limit=PAGE)
        return pages.http_response

    def _get(self, call: Callable[[], "httpx2.Response"], what: str) -> JSON:
        def once() -> JSON:
            try:
                return self._client.json(call)
            except Unusable as error:
                if isinstance(error, Busy) or not error.is_charged:
                    raise
                raise Busy(str(error)) from None

        return self._patiently(once, f"{what} cannot be looked at")

    def _patiently(self, once: Callable[[], _Result], trouble: str) -> _Result:
        try:
            return self._client.patiently(once, self._never)
        except Unusable as error:
            raise BackendError(
                f"{self.url}: {trouble}: {error}. Batches that were handed in go on; run the command again later, and "
                "it takes their results."
            ) from None


def created(batch: Mapping[str, Any]) -> datetime:
    """When a batch was made, by the service's clock; the beginning of time if it does not say."""
    try:
        when = datetime.fromisoformat(str(batch.get("created_at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


_ENDS = {
    "expired": "the batch expired before the request was reached",
    "canceled": "the batch was cancelled before the request was reached",
}


@dataclass
class Results:
    """Results by custom id; `refused` counts lines that are no result of this batch, or contradict another."""

    by_id: dict[str, JSON] = field(default_factory=dict)
    contradicted: set[str] = field(default_factory=set)
    refused: int = 0

    def reply(self, name: str, key: str, model: str) -> Reply:
        """The reply to one request; its problem if there is none to use. Its key is `key`."""
        if name in self.contradicted:
            return Reply(key, "", "", problem="the batch has two different results for it")
        result = self.by_id.get(name)
        if result is None:
            return Reply(key, "", "", problem="the batch has no result for it")
        kind = result.get("type")
        if kind == "succeeded":
            return reply_of(key, model, result.get("message"))
        if kind == "errored":
            return _errored(key, result)
        return Reply(key, "", "", raw=result, problem=_ENDS.get(str(kind), "the batch has a result of no known kind"))

    def usages(self, names: list[str]) -> list[Usage | None]:
        """What was charged: a usage for each request that was answered, None if its cost is not known."""
        charged: list[Usage | None] = []
        for name in names:
            result = self.by_id.get(name)
            if result is None or name in self.contradicted:
                charged.append(None)
            elif result.get("type") == "succeeded":
                charged.append(usage_of(result.get("message")))
        return charged


def read_results(lines: str, known: Mapping[str, object]) -> Results:
    """The results in a batch's file, in any order; the same line twice counts once."""
    results = Results()
    for row in _rows(lines):
        name = row.get("custom_id") if isinstance(row, dict) else None
        result = row.get("result") if isinstance(row, dict) else None
        if not isinstance(name, str) or name not in known or not isinstance(result, dict):
            results.refused += 1
        elif results.by_id.setdefault(name, result) != result:
            results.refused += 1
            results.contradicted.add(name)
    return results


def custom_ids(lines: str) -> set[str]:
    """The ids that a batch's file names."""
    return {str(row.get("custom_id")) for row in _rows(lines) if isinstance(row, dict)}


def _rows(lines: str) -> Iterator[JSON]:
    for line in lines.split("\n"):
        if line.strip():
            try:
                yield received(line)
            except Unusable:
                yield None


def _errored(key: str, result: dict[str, JSON]) -> Reply:
    error = result.get("error")
    inner = error.get("error") if isinstance(error, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else "unknown"
    words = str(inner.get("message", ""))[:300] if isinstance(inner, dict) else ""
    return Reply(
        key, "", "", raw=result, problem=f"the request failed: {kind}: {words}", final=kind == "invalid_request_error"
    )
