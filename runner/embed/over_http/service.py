"""An encoder behind a paid API that tokenizes and prices by itself: OpenAI's, Cohere's or Voyage's."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chunkers.tokens import count_tokens
from runner.base.canonical import JSON
from runner.base.http_client import Client, Patience, Response, Service, Unusable, parsed, plain_address
from runner.base.records import PromptSide
from runner.base.sent_keys import refuse_unagreed
from runner.embed.cost.ledger import Budget, Hold
from runner.embed.over_http.dialects import address_at, tokens_billed
from runner.embed.over_http.encoder import CONNECTIONS, TIMEOUT, Clip, Clipped, HttpEncoder
from runner.eval_set.catalog import EncoderSpec

TOKENIZER = "cl100k_base, in place of the service's own tokenizer"


class ServiceEncoder(HttpEncoder):
    """A plan's own encoder of a service. Its owner closes it. Each try is metered.

    Texts are sent whole: one that is too long is the service's to refuse, and the probe sees that it does. Token counts
    are of cl100k_base, for batches and estimates alone.
    """

    def __init__(self, spec: EncoderSpec, budget: Budget, patience: Patience | None = None) -> None:
        url = f"encoders.{spec.name}.url"
        place = plain_address(spec.url, url, spec.key_env)
        refuse_unagreed(spec.key_env, place.host, url)
        words = Service(
            url,
            spec.key_env,
            f"Either the service has no model {spec.model}, or the path is wrong. Check {url} and "
            f"encoders.{spec.name}.model in plan.yaml.",
        )
        where = address_at(place, spec.api)
        super().__init__(spec, where, Client(TIMEOUT, patience or Patience(), words, place), CONNECTIONS, Clip(spec))
        self.budget, self._usd_per_token = budget, spec.usd_per_million_tokens / 1e6

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def check(self) -> str:
        """Return what HttpEncoder does; the word is charged as the most that it can cost."""
        with self._held(64):
            return super().check()

    def identity(self) -> dict[str, JSON]:
        """Return the plan's block, address and grouping; nothing is sent."""
        of_server = super().identity()
        method = "a model behind an API, which says nothing of its weights"
        return {**of_server, "method": method, "backend": {**of_server["backend"], "tokens": TOKENIZER}}

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """Return tokens of cl100k_base, the service's limit at most: it takes no longer text."""
        # Its own tokenizer is not to be had; the limit keeps the engine from counting tokens as lost that are read.
        counts = [count_tokens(text) for text in self._prompted(texts, side)]
        return np.clip(np.array(counts, dtype=np.int64), 1, self.spec.max_tokens)

    def _cut(self, prompted: Sequence[str]) -> list[Clipped]:
        return [Clipped(text, 0) for text in prompted]

    def _send(self, body: bytes, longest: int, stopped: threading.Event) -> Response:
        url = self._where.endpoint

        # Each try is held at its worst before it is sent, and counted by what the answer says was charged.
        def once() -> Response:
            with self._held(len(body)) as hold:
                answer = self._client.once("POST", url, body, longest)
                if (tokens := _charged(answer)) is not None:
                    hold.cost = tokens * self._usd_per_token
            return answer

        return self._client.patiently(once, stopped, url)

    def _held(self, n_bytes: int) -> Hold:
        """Return what a request costs at most, set aside: every byte of its body is a token."""
        return self.budget.hold(n_bytes * self._usd_per_token, "embed", self.spec.name)


def _charged(answer: Response) -> int | None:
    """Return the tokens that an answer says were charged, None if it does not say."""
    try:
        return tokens_billed(parsed(answer.body))
    except Unusable:
        return None
