import dataclasses
import json

import numpy as np
import pytest

from runner.base.errors import BackendError
from runner.embed.over_http.dialects import address
from tests.support.embedding_server import DIM, MINILM, tei_info, toy_rows
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import (
    APIS,
    LONG,
    batches,
    data_of,
    one_answer,
    opened,
    planted_server,  # noqa: F401  # a fixture
    rows_of,
)
from tests.support.loopback import Wire, as_json


def _indexed(index):
    return data_of(lambda data: [data[0] | {"index": index}, *data[1:]])


def _with_constant(constant):
    def fault(server, request):
        body = server.with_rows(request, [["MARK", *row[1:]] for row in toy_rows(request.texts).tolist()]).body
        return Wire(body.replace(b'"MARK"', constant))

    return fault


BAD_ANSWERS = [
    (APIS, rows_of(lambda rows: rows[:-1]), "4 texts sent, 3 vectors received"),
    (APIS, rows_of(lambda rows: [*rows, rows[0]]), "4 texts sent, 5 vectors received"),
    (APIS, rows_of(lambda rows: [row[:-1] for row in rows]), "vectors of 384 were catalogued, 383"),
    (APIS, rows_of(lambda rows: [rows[0][:-1], *rows[1:]]), "differ in length"),
    (APIS, rows_of(lambda rows: [[None] * DIM, *rows[1:]]), "no rows of numbers"),
    (APIS, rows_of(lambda rows: [None, *rows[1:]]), "differ in length, or are none"),
    (APIS, rows_of(lambda rows: [["a"] * DIM] * 4), "no rows of numbers"),
    (APIS, rows_of(lambda rows: [[0.0] * DIM, *rows[1:]]), "1 of 4 vectors are all zeros"),
    (APIS, _with_constant(b"NaN"), "not JSON: it holds NaN"),
    (APIS, _with_constant(b"-Infinity"), "not JSON: it holds -Infinity"),
    (APIS, _with_constant(b"1e999"), "4 of 4 vectors are not finite"),
    (APIS, _with_constant(b"null"), "no rows of numbers"),
    (APIS, Wire(b"embeddings, probably"), "not JSON"),
    (APIS, Wire(b"<html><body>Sign in</body></html>", type="text/html"), "page of HTML"),
    (APIS, Wire(b"[" * 100_000), "not JSON"),
    (APIS, Wire(b'"text"'), "answer"),
    (APIS, Wire(b" " * 3_000_000), "more than 1,098,304 bytes"),
    (["openai"], as_json({"data": None}), 'no list "data"'),
    (["openai"], data_of(lambda data: [data[0], *data[:-1]]), "two vectors have the index 0"),
    (["openai"], data_of(lambda data: [{"embedding": d["embedding"]} for d in data]), "no index"),
    (["openai"], data_of(lambda data: [d | {"index": d["index"] + 1} for d in data]), "no index"),
    *((["openai"], _indexed(index), "no index") for index in (True, -1, None, "0")),
    (["openai"], data_of(lambda data: [d | {"embedding": "not base64!"} for d in data]), "vectors"),
]


@pytest.mark.parametrize(
    ("api", "fault", "reason"), [(api, fault, reason) for apis, fault, reason in BAD_ANSWERS for api in apis]
)
def test_an_answer_that_cannot_be_trusted_is_the_error_of_its_batch_alone(server, api, fault, reason):
    server.faults = [fault]
    with opened(server, api) as encoder:
        answers = {answer.batch_id: answer for answer in encoder.embed(batches(TEXTS[:8], 4))}
    bad, good = (answers[batch.batch_id] for batch in batches(TEXTS[:8], 4))
    assert bad.rows is None
    assert reason in bad.error
    assert np.allclose(good.rows, toy_rows(TEXTS[4:8]), atol=1e-6)


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("api", APIS)
def test_a_text_that_the_server_refuses_is_named_in_the_error_of_its_batch_alone(server, api, status):
    server.poison = {TEXTS[12]: as_json({"error": "input is too long"}, status)}
    with opened(server, api) as encoder:
        answers = {answer.batch_id: answer for answer in encoder.embed(batches())}
    bad = answers.pop(batches()[1].batch_id)
    assert bad.error == f"HTTP {status} (input is too long): the text that begins {TEXTS[12][:60]!r}"
    assert len(answers) == 5
    assert all(answer.rows is not None for answer in answers.values())


def test_two_models_behind_one_address_are_told_apart(server):
    def other(server, request):
        return as_json(json.loads(server.right(request).body) | {"model": "another/model"})

    server.faults = [None, other]
    with opened(server) as encoder:
        answer = one_answer(encoder, [f"text {number}" for number in range(40)])
    assert "two models answered" in answer.error


@pytest.mark.parametrize(
    ("url", "endpoint", "info"),
    [
        ("http://H:80", "http://h:80/v1/embeddings", "http://h:80/info"),
        ("http://h/v1/", "http://h/v1/embeddings", "http://h/info"),
        ("http://h/v1/embeddings", "http://h/v1/embeddings", "http://h/info"),
        ("http://h/embeddings", "http://h/embeddings", "http://h/info"),
        ("https://h/a/b/v1", "https://h/a/b/v1/embeddings", "https://h/a/b/info"),
        ("http://[::1]:8080/embed", "http://[::1]:8080/embed", "http://[::1]:8080/info"),
        ("http://h/tei/embed", "http://h/tei/embed", "http://h/tei/info"),
        ("http://tei-{encoder}/{encoder}/embed/", "http://tei-mini/mini/embed", "http://tei-mini/mini/info"),
    ],
)
def test_an_address_may_be_given_with_or_without_its_endpoint(url, endpoint, info):
    found = address(url, "mini")
    assert (found.endpoint, found.info) == (endpoint, info)


@pytest.mark.parametrize("api", APIS)
def test_what_tei_says_of_itself_is_recorded_and_still_unverified(server, api):
    server.info = tei_info()
    with opened(server, api) as encoder:
        facts = one_answer(encoder).facts
    assert facts["model_sha"] == MINILM.revision
    assert facts["model_dtype"] == "float16"
    assert facts["server"] == "text-embeddings-inference 1.8.2"
    assert facts["revision"] == "unverified"
    assert [request.path for request in server.requests if request.method == "GET"] == ["/info"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"model_id": "sentence-transformers/all-mpnet-base-v2"}, "serves sentence-transformers/all-mpnet-base-v2"),
        ({"model_sha": "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"}, "serves revision 1110a243"),
        ({"max_input_length": 128}, "reads at most 128 tokens"),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_tei_with_another_model_revision_or_length_is_refused_before_anything_is_embedded(server, api, said, reason):
    server.info = tei_info(**said)
    with opened(server, api) as encoder, pytest.raises(BackendError, match=reason):
        one_answer(encoder)
    assert not server.log


@pytest.mark.parametrize("said", [{"model_id": "/repository", "model_sha": None}, {"model_id": MINILM.model.upper()}])
def test_tei_with_a_folder_or_other_letters_in_its_models_name_is_taken(server, said):
    server.info = tei_info(**said)
    with opened(server) as encoder:
        assert one_answer(encoder).rows is not None


@pytest.mark.parametrize("info", [Wire(b"<html>", 200), Wire(b"[]"), Wire(b"no", 403), as_json({"model_id": 3})])
def test_a_page_that_is_not_teis_says_nothing(server, info):
    server.info = info
    with opened(server) as encoder:
        assert set(one_answer(encoder).facts) == {"device", "model", "revision", "rows"}


def test_tei_that_takes_fewer_texts_a_request_gets_fewer(server):
    server.info = tei_info(max_client_batch_size=3)
    with opened(server, "tei") as encoder:
        rows = one_answer(encoder, TEXTS[:7]).rows
    assert [len(request.texts) for request in server.log] == [3, 3, 1]
    assert np.allclose(rows, toy_rows(TEXTS[:7]), atol=1e-6)


@pytest.mark.parametrize("api", APIS)
def test_tei_that_adds_a_prompt_of_its_own_is_found_out_by_its_token_count(server, api):
    def prompted(server, request):
        longer = request.body | {"inputs": [f"query: {text}" for text in request.texts]}
        return server.right(dataclasses.replace(request, data=json.dumps(longer).encode()))

    server.info = tei_info()
    server.faults = [prompted]
    with opened(server, api) as encoder, pytest.raises(BackendError, match="--default-prompt"):
        one_answer(encoder)


def test_tei_is_told_not_to_truncate(server):
    with opened(server, "tei") as encoder:
        one_answer(encoder, [LONG])
    assert server.log[0].body["truncate"] is False
    assert server.log[0].body["normalize"] is True
