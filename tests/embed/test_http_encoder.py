import dataclasses
import threading

import numpy as np
import pytest

from runner.base.errors import InputError
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from runner.embed.encoder import checked_encode
from runner.embed.local_encoder import encoder_for
from runner.embed.over_http.encoder import HttpBackend
from runner.embed.probe import probe
from tests.support.embedding_server import MINILM, tokenizer, toy_rows
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import (
    APIS,
    LONG,
    batches,
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


OVERLOAD = Wire(b'{"error": "Model is overloaded"}', 429)


def engine(server, store):
    with opened(server, connections=3) as encoder:
        return embed(store, encoder, TEXTS, "document")


def test_the_engine_gets_the_rows_of_a_server_that_fails_now_and_then(server, tmp_path):
    cuts = [lambda server, request: dataclasses.replace(server.right(request), cut=9)] * 3
    server.faults = [OVERLOAD, *cuts, Wire(b"<html>", 502), rows_of(lambda rows: rows[:-1])]
    vectors = engine(server, Store(tmp_path))
    assert np.allclose(vectors.rows, toy_rows(TEXTS), atol=1e-6)
    assert vectors.facts["revision"] == "unverified"
