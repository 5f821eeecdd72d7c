"""Loopback stand-ins of three paid embedding APIs: OpenAI's, Cohere's and Voyage's, by their documented shapes."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chunkers.tokens import count_tokens
from runner.base.http_client import Patience
from runner.base.sent_keys import agree
from runner.embed.cost.ledger import Budget
from runner.embed.over_http.service import ServiceEncoder
from runner.eval_set.catalog import EncoderSpec
from tests.support.fake_encoder import direction
from tests.support.loopback import NOTHING_HERE, Loopback, Request, Wire, as_json
from tests.support.small_set import SmallEncoder

KEY = "vk-0123456789abcdef/SECRET"
VARIABLE = "OWN_ENCODER_KEY"
MODEL = "words-1"
PATHS = {"openai": "/v1/embeddings", "cohere": "/v2/embed", "voyage": "/v1/embeddings"}
FIELDS = {
    "openai": {"model", "input", "encoding_format"},
    "cohere": {"model", "texts", "input_type", "embedding_types", "truncate"},
    "voyage": {"model", "input", "input_type", "truncation"},
}
SIDES = {"search_query": "query", "query": "query", "search_document": "document", "document": "document"}


@dataclass
class ServiceServer(Loopback):
    """`cuts_silently` takes texts over `limit` tokens, as a service would that was not told to refuse them.

    `tamper` changes a right answer, or gives another in its place.
    """

    api: str
    limit: int = 400
    most: int = 96
    """Texts of a request."""
    cuts_silently: bool = False
    hears_sides: bool = True
    tamper: Callable[[Any], Any] = lambda told: told
    asked: list[tuple[str, list[str]]] = field(default_factory=list)
    """Side, "" if it is not told, and texts of each request."""
    tokens: int = 0
    """Tokens of all answers: what is charged."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Wire:
        if (request.method, request.path) != ("POST", PATHS[self.api]):
            return NOTHING_HERE
        body = request.body
        if set(body) != FIELDS[self.api] or body["model"] != MODEL:
            return as_json({"error": f"unexpected {sorted(body)}"}, 422)
        if (sent := request.headers.get("authorization", "")) != f"Bearer {KEY}":
            return as_json({"error": {"message": f"Incorrect API key provided: {sent.removeprefix('Bearer ')}"}}, 401)
        texts = body["texts" if self.api == "cohere" else "input"]
        side = SIDES.get(body.get("input_type", ""), "")
        with self.lock:
            self.asked.append((side, texts))
        if len(texts) > self.most:
            return as_json({"error": {"message": f"at most {self.most} texts"}}, 400)
        counts = [count_tokens(text) for text in texts]
        refuses = {"cohere": body.get("truncate") == "NONE", "voyage": body.get("truncation") is False}
        if max(counts) > self.limit:
            if not self.cuts_silently and refuses.get(self.api, True):
                return as_json({"error": {"message": f"maximum context length is {self.limit} tokens"}}, 400)
            texts = [text[: self.limit * 4] for text in texts]
        with self.lock:
            self.tokens += sum(counts)
        told = self.tamper(self.told(rows_of(texts, side if self.hears_sides else ""), texts, sum(counts)))
        return told if isinstance(told, Wire) else as_json(told)

    def told(self, rows: Any, texts: Sequence[str], tokens: int) -> dict[str, Any]:
        """A right answer, its vectors out of order where the API gives them an index."""
        if self.api == "cohere":
            billed = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": float(tokens)}}
            return {"id": "x", "embeddings": {"float": rows.tolist()}, "texts": list(texts), "meta": billed}
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows.tolist())]
        usage = {"total_tokens": tokens} | ({"prompt_tokens": tokens} if self.api == "openai" else {})
        return {"object": "list", "data": data[::-1], "model": MODEL, "usage": usage}


def rows_of(texts: Sequence[str], side: str = "") -> Any:
    """Rows (texts, 48) of no particular length: hashed words, moved a little for queries if the side is told."""
    words = SmallEncoder("minilm-static-384")
    rows = np.array([words._row(text) for text in texts])
    if side == "query":
        rows += 0.04 * np.linalg.norm(rows, axis=1, keepdims=True) * direction("?", 48)
    return 3 * rows


def spec(server: ServiceServer, **more: Any) -> EncoderSpec:
    """The stand-in as a plan's own encoder has it, and its key agreed to."""
    agree([f"{VARIABLE}=127.0.0.1"])
    given = {"dim": 48, "max_tokens": 400, "usd_per_million_tokens": more.pop("price", 10.0)} | more
    return EncoderSpec(name="own", model=MODEL, api=server.api, url=server.url, key_env=VARIABLE, **given)


def encoder(server: ServiceServer, folder: Any, *, max_usd: float = 5.0, **more: Any) -> ServiceEncoder:
    """Its encoder, charged to a ledger in `folder`; waits take no time."""
    asked = spec(server, **more)
    return ServiceEncoder(asked, Budget(folder, max_usd), Patience(lambda _: None))


def block(server: ServiceServer, price: float = 10.0) -> str:
    """The block of plan.yaml that names it `own`, and its key agreed to."""
    agree([f"{VARIABLE}=127.0.0.1"])
    lines = [f"api: {server.api}", f"url: {server.url}", f"model: {MODEL}", "dim: 48", "max_tokens: 400"]
    lines += [f"usd_per_million_tokens: {price:g}", f"key_env: {VARIABLE}"]
    return "encoders:\n  own:\n" + "".join(f"    {line}\n" for line in lines)
