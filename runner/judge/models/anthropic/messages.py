"""A Claude model asked through Anthropic's Messages API, a few requests at a time."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from runner.base.canonical import JSON
from runner.base.http_client import Fate, Patience, Unusable
from runner.eval_set.plan import is_same_model
from runner.judge.models.anthropic.client import AnthropicClient, tell_of_end
from runner.judge.models.anthropic.wire import beyond_sdk, headers, params, reply_of, usage_of, with_room
from runner.judge.models.meter import JudgeMeter
from runner.judge.models.requests import Ask, Astray, Reply, replies_in_flight

if TYPE_CHECKING:
    import httpx2

PARALLEL = 4
TIMEOUT = 180.0
"""Seconds that one answer may take."""


class AnthropicMessages(ExitStack):
    """The model; what each try may cost is set aside in `meter` before it is sent. Raises as LanguageModel says."""

    def __init__(
        self,
        model: str,
        meter: JudgeMeter,
        *,
        base_url: str | None = None,
        parallel: int = PARALLEL,
        timeout: float = TIMEOUT,
        patience: Patience | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.meter = meter
        self.callback(meter.close)
        self._parallel = parallel
        self._client = AnthropicClient(base_url, timeout, patience or Patience())
        self.callback(self._client.close)
        tell_of_end(model)

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """One reply per ask, as they arrive; a BudgetError before a request that the ceiling forbids."""
        return replies_in_flight(asks, self._reply, self._parallel, self._client.url)

    def _reply(self, ask: Ask, stopped: threading.Event) -> Reply:
        sent = with_room(self.model, ask)
        message = self._client.patiently(lambda: self._once(sent), stopped)
        reply = reply_of(ask.key, self.model, message)
        if reply.model and not is_same_model(self.model, reply.model):
            raise Astray(reply)
        return reply

    def _once(self, ask: Ask) -> JSON:
        """One try; what it may have cost stays counted if nobody says what it did."""
        hold = self.meter.reserve([ask])
        try:
            message = self._client.json(lambda: self._send(ask))
        except Unusable as error:
            self.meter.settle(hold, [None] if error.fate is Fate.LOST else [])
            raise
        except Exception:
            self.meter.release(hold)
            raise
        self.meter.settle(hold, [usage_of(message)])
        return message

    def _send(self, ask: Ask) -> "httpx2.Response":
        return self._client.sdk.messages.with_raw_response.create(
            **params(self.model, ask), extra_headers=headers(self.model), extra_body=beyond_sdk(self.model)
        ).http_response
