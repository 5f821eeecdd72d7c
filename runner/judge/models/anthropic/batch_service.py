"""What Anthropic's Message Batches can be asked: hand in, look at, list, fetch."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.judge.models.anthropic.client import AnthropicClient, Busy, NotThere, Refused
from runner.judge.models.in_flight import GaveUp
from runner.judge.models.service import Unreadable

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
    """The service; a BackendError where it cannot be reached, or refuses."""

    def __init__(self, client: AnthropicClient) -> None:
        self._client = client
        self._never = threading.Event()
        self._sdk = client.sdk.messages.batches.with_raw_response
        self.url = client.url

    def create(self, requests: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> str:
        """The new batch's id; Unknown where it may have been made all the same."""

        def once() -> JSON:
            try:
                return self._client.json(
                    lambda: self._sdk.create(requests=requests, extra_headers=headers).http_response  # type: ignore[arg-type]  # the fields that the SDK does not know
                )
            except Busy as error:
                if error.acted:
                    raise Unknown(str(error)) from None
                raise
            except Unreadable as error:
                raise Unknown(str(error)) from None

        made = self._patiently(once, "a message batch cannot be handed in")
        if not isinstance(made, dict) or not isinstance(made.get("id"), str) or not made["id"]:
            raise Unknown("the answer has no id")
        return str(made["id"])

    def retrieve(self, batch_id: str) -> dict[str, Any]:
        """The batch; Gone where the service does not know it."""
        try:
            found = self._get(lambda: self._sdk.retrieve(batch_id).http_response, batch_id)
        except NotThere as error:
            raise Gone(str(error)) from None
        return found if isinstance(found, dict) else {}

    def results(self, batch_id: str) -> str:
        """The file of its results, one JSON object a line; Gone where it is kept no longer.

        It is asked for at the address that judges are asked at, whatever address the batch names.
        """
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
            except Unreadable as error:
                raise Busy(str(error)) from None

        return self._patiently(once, f"{what} cannot be looked at")

    def _patiently(self, once: Callable[[], _Result], trouble: str) -> _Result:
        try:
            return self._client.patiently(once, self._never)
        except (GaveUp, Refused, Unreadable) as error:
            raise BackendError(
                f"{self.url}: {trouble}: {error}. Batches that were handed in go on; run the command again later, and "
                "it takes their results."
            ) from None


def created(batch: Mapping[str, Any]) -> datetime:
    """When a batch was made, by the service's clock; the beginning of time where it does not say."""
    try:
        when = datetime.fromisoformat(str(batch.get("created_at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
