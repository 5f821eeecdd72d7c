"""An encoder of the loopback server, for the tests of everything between a text and its row over HTTP."""

import base64
import json
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pytest

from runner.base.http_client import Patience
from runner.embed.encoder import Batch
from runner.embed.over_http.dialects import KEY_VARIABLE
from runner.embed.over_http.encoder import HttpBackend
from runner.embed.weights import tokenizer as read_tokenizer
from runner.embed.weights import tokenizer_folder
from tests.support.embedding_server import MINILM, Server, tokenizer, toy_rows
from tests.support.fake_encoder import TEXTS
from tests.support.loopback import as_json, served

NOON = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
LONG = " ".join(f"word{n} unaffable" for n in range(400))
APIS = ["openai", "tei"]
_tokenizer_of = cache(read_tokenizer)
"""By folder, of which each is read once."""


@pytest.fixture(name="server", autouse=True)
def planted_server(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setattr("runner.embed.over_http.encoder.tokenizer", _tokenizer_of)
    with served(Server()) as server:
        yield server


@contextmanager
def opened(server, api="openai", *, spec=MINILM, slept=None, timeout=30.0, connections=1, url=None):
    """An encoder whose waits take no time; they are noted in `slept`."""
    patience = Patience((slept if slept is not None else []).append, lambda: NOON)
    own = f"{server.url}/embed" if api == "tei" else server.url
    found = HttpBackend(
        url or own,
        timeout=timeout,
        connections=connections,
        patience=patience,
        find_tokenizer=lambda _: tokenizer_folder(MINILM),
    )
    with found as backend:
        yield backend.encoder_of(spec)


def batches(texts=TEXTS, size=10, side="document"):
    return [
        Batch(side, tuple(texts[at : at + size]), (len(texts[at : at + size]),)) for at in range(0, len(texts), size)
    ]


def one_answer(encoder, texts=TEXTS[:4]):
    (answer,) = encoder.embed(batches(texts, len(texts)))
    return answer


def n_tokens(request):
    """Tokens of all texts of a request."""
    return sum(len(encoding.ids) for encoding in tokenizer().encode_batch(request.texts))


def data_of(change):
    """An answer of OpenAI's API whose list of vectors was changed."""

    def fault(server, request):
        answer = json.loads(server.right(request).body)
        answer["data"] = change(answer["data"])
        return as_json(answer)

    return fault


def as_base64(data):
    return [one | {"embedding": base64.b64encode(np.array(one["embedding"], "<f4").tobytes()).decode()} for one in data]


def rows_of(change):
    """An answer whose rows, numbers in lists, were changed."""

    def fault(server, request):
        rows = toy_rows(request.texts).tolist()
        return server.with_rows(request, change(rows))

    return fault
