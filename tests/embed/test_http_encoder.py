import dataclasses
import threading
import time
from collections import Counter

import numpy as np
import pytest

from runner.base.errors import BackendError, InputError
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from runner.embed.encoder import checked_encode
from runner.embed.local_encoder import encoder_for
from runner.embed.over_http.encoder import HttpBackend
from runner.embed.probe import probe, probed
from tests.support.embedding_server import MINILM, tokenizer, toy_rows
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import (
    APIS,
    LONG,
    as_base64,
    batches,
    data_of,
    n_tokens,
    one_answer,
    opened,
    planted_server,  # noqa: F401  # a fixture
    rows_of,
)
from tests.support.loopback import Wire


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_embeds_rightly_passes_the_probe_and_gives_its_rows_in_order(server, api):
    with opened(server, api, connections=4) as encoder:
        figures = probe(encoder)
        answers = {answer.batch_id: answer for answer in encoder.embed(batches())}
    assert figures["truncates_at"] == 256
    for batch in batches():
        rows = answers[batch.batch_id].rows
        assert rows.dtype == np.float32
        assert np.allclose(rows, toy_rows(batch.texts), atol=1e-6)


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("api", APIS)
def test_a_server_with_the_packaged_model_gives_the_local_rows_of_short_and_of_cut_texts(server, api):
    local = encoder_for("minilm-l6-v2")
    server.rows = lambda texts: np.vstack([local.encode([text], "document") for text in texts])
    texts = [*TEXTS[:3], LONG, LONG[7:], "é́ " * 300, "😀" * 300]
    with opened(server, api) as encoder:
        remote = checked_encode(encoder, texts, "document")
    expected = np.vstack([local.encode([text], "document") for text in texts])
    assert np.abs(remote - expected).max() < 1e-6


def test_facts_name_the_host_the_model_and_that_nothing_is_verified(server):
    server.model = "served-under/another-name"
    with opened(server) as encoder:
        facts = one_answer(encoder).facts
    served = {"device": "127.0.0.1", "model": "served-under/another-name"}
    assert facts == served | {"revision": "unverified", "rows": "unit"}


def test_the_identity_is_the_local_one_but_for_its_backend_and_sends_nothing(server):
    with opened(server) as encoder:
        identity = encoder.identity()
    backend = identity.pop("backend")
    local = encoder_for("minilm-l6-v2").identity()
    local.pop("backend")
    assert identity == local
    assert identity.items() >= MINILM.provenance.items()
    assert backend["url"] == f"{server.url}/v1/embeddings"
    assert (backend["name"], backend["api"], backend["revision"]) == ("http", "openai", "unverified")
    assert not server.requests


def test_prompts_are_sent_with_the_texts(server):
    spec = MINILM.model_copy(update={"query_prompt": "query: ", "document_prompt": "passage: "})
    with opened(server, spec=spec) as encoder:
        list(encoder.embed([*batches(["a cat"], 1, "query"), *batches(["a dog"], 1, "document")]))
        counts = [int(encoder.token_counts(["a cat"], side)[0]) for side in ("query", "document")]
    assert server.texts == ["query: a cat", "passage: a dog"]
    assert counts == [len(tokenizer().encode(f"{prompt}: a cat").ids) for prompt in ("query", "passage")]


def test_a_forward_batch_of_many_short_texts_is_sent_thirty_two_texts_at_a_time(server):
    texts = [f"text {number}" for number in range(70)]
    with opened(server) as encoder:
        rows = one_answer(encoder, texts).rows
    assert [len(request.texts) for request in server.log] == [32, 32, 6]
    assert np.allclose(rows, toy_rows(texts), atol=1e-6)


def test_as_many_requests_run_at_once_as_there_are_connections(server):
    together = threading.Barrier(4)

    def meet(server, request):
        together.wait(30)  # breaks, and fails the test, unless four requests are here at once
        return server.right(request)

    server.faults = [meet] * 4
    with opened(server, connections=4) as encoder:
        answers = list(encoder.embed(batches(TEXTS, 15)))
    assert len(answers) == 4
    assert all(answer.rows is not None for answer in answers)


def test_answers_come_as_they_arrive(server):
    hold = threading.Event()

    def late(server, request):
        return dataclasses.replace(server.right(request), hold=hold)

    server.faults = [late, None]
    with opened(server, connections=2) as encoder:
        coming = encoder.embed(batches(TEXTS[:20], 10))
        first = next(coming)
        hold.set()
        second = next(coming)
    assert {first.batch_id, second.batch_id} == {batch.batch_id for batch in batches(TEXTS[:20], 10)}
    assert np.allclose(first.rows, toy_rows(server.log[1].texts), atol=1e-6)


def test_rows_of_a_server_that_does_not_normalise_are_normalised_and_said_to_be(server):
    server.rows = lambda texts: toy_rows(texts) * np.arange(3, 3 + len(texts))[:, None]
    with opened(server) as encoder:
        answer = one_answer(encoder)
    assert answer.facts["rows"] == "normalised here"
    assert np.allclose(answer.rows, toy_rows(TEXTS[:4]), atol=1e-6)


def test_one_row_off_length_after_unit_rows_is_an_error(server):
    with opened(server) as encoder:
        first = one_answer(encoder)
        server.rows = lambda texts: toy_rows(texts) * 1.5
        second = one_answer(encoder)
    assert first.rows is not None
    assert second.rows is None
    assert "not of length 1" in second.error


def test_an_encoder_that_is_no_model_of_a_server_is_refused(server):
    with HttpBackend(server.url) as backend, pytest.raises(InputError, match="no server has it"):
        backend.encoder("minilm-static-384")


def slow(server, request):
    return dataclasses.replace(server.right(request), after=lambda: time.sleep(0.2))


def cut(server, request):
    return dataclasses.replace(server.right(request), cut=9)


OVERLOAD = Wire(b'{"error": "Model is overloaded"}', 429, headers=(("Retry-After", "7"),))
FIRST = 32
"""Texts of the first request."""

WHOLE = {
    # What a request may have and the status that refuses more; what the first requests meet; texts paid twice.
    "1 text": (400, lambda request: len(request.texts) <= 1, [], 0),
    "8 texts": (413, lambda request: len(request.texts) <= 8, [], 0),
    "10 texts": (422, lambda request: len(request.texts) <= 10, [], 0),
    "32 texts": (413, lambda request: len(request.texts) <= 32, [], 0),
    "300 tokens": (400, lambda request: n_tokens(request) <= 300, [], 0),
    "2,000 bytes": (413, lambda request: len(request.data) <= 2_000, [], 0),
    "10 texts, and fails now and then": (400, lambda request: len(request.texts) <= 10, [None, None, OVERLOAD, cut], 8),
    "429 with Retry-After": (0, None, [OVERLOAD] * 3, 0),
    "500 once": (0, None, [Wire(b"<html>", 500)], 0),
    "slow": (0, None, [slow], 0),
    "base64": (0, None, [data_of(as_base64)] * 2, 0),
    "permuted": (0, None, [data_of(lambda data: data[::-1])] * 2, 0),
    "cut": (0, None, [cut], FIRST),
    "one too few": (0, None, [rows_of(lambda rows: rows[:-1])], FIRST),
    "another width": (0, None, [rows_of(lambda rows: [row[:-1] for row in rows])], FIRST),
    "NaN": (0, None, [rows_of(lambda rows: [[float("nan")] * 384, *rows[1:]])], FIRST),
    "NaN at the second request": (0, None, [None, rows_of(lambda rows: [[float("nan")] * 384, *rows[1:]])], 28),
}


def probed_engine(server, store):
    """Rows of all texts by an encoder that was probed before; faults strike what comes after the first look at it."""
    with opened(server, connections=3) as encoder:
        faults, server.faults = server.faults, []
        probed(store, encoder)
        server.faults = [None, *faults]
        return embed(store, encoder, TEXTS, "document")


@pytest.mark.parametrize("name", WHOLE)
def test_vectors_are_whole_and_paid_once_whatever_a_server_takes_or_does_for_a_time(server, tmp_path, name):
    status, takes, faults, n_twice = WHOLE[name]
    server.refusal, server.faults = status, faults
    server.takes = takes or server.takes
    vectors = probed_engine(server, Store(tmp_path))
    assert np.allclose(vectors.rows, toy_rows(TEXTS), atol=1e-6)
    assert vectors.facts["revision"] == "unverified"
    paid = Counter(server.answered)
    assert Counter(paid[text] for text in TEXTS) == +Counter({1: len(TEXTS) - n_twice, 2: n_twice})


def test_a_size_that_a_server_refused_is_not_tried_again(server):
    server.takes = lambda request: len(request.texts) <= 10
    with opened(server) as encoder:
        assert all(answer.rows is not None for answer in encoder.embed(batches(TEXTS, 30)))
    assert [len(request.texts) for request in server.log] == [30, 15, 8, 7, 15, 8, 7, *[8] * 3, 6]


NEVER = {
    "a text refused": (400, lambda request: TEXTS[12] not in request.texts, [], "HTTP 400 .*: the text that begins", 1),
    "no request taken": (413, lambda request: not {*request.texts} & {*TEXTS}, [], "HTTP 413", 1),
    "another width": (0, None, rows_of(lambda rows: [row[:-1] for row in rows]), "383 numbers", 3),
    "NaN": (0, None, rows_of(lambda rows: [[float("nan")] * 384, *rows[1:]]), "NaN", 3),
    "429 for ever": (0, None, OVERLOAD, r"HTTP 429 .* wait 7 seconds\. Run the command again", 0),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_a_server_does_for_ever_is_one_error_that_says_what_is_kept(server, tmp_path, name):
    status, takes, faults, words, n_paid = NEVER[name]
    with opened(server) as encoder:
        probed(Store(tmp_path), encoder)
    server.refusal, server.faults = status, [faults] * 40 if faults else []
    server.takes = takes or server.takes
    with pytest.raises(BackendError, match=rf"(?s){words}.* 0 of 60 texts are embedded and kept"):
        probed_engine(server, Store(tmp_path))
    paid = Counter(server.answered)
    assert max(paid[text] for text in TEXTS) <= n_paid
