import dataclasses
import json
import logging
import socket
import threading
import traceback
from contextlib import nullcontext, suppress

import numpy as np
import pytest

from runner.base.errors import BackendError, InputError
from runner.base.http_client import Client, Patience, plain_address, trusted
from runner.embed.over_http.dialects import ENCODER, KEY_VARIABLE
from runner.embed.over_http.encoder import HttpBackend
from tests.support.embedding_server import Server, tei_info, toy_rows
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import (
    batches,
    one_answer,
    opened,
    planted_server,  # noqa: F401  # a fixture
)
from tests.support.loopback import Wire, as_json, served

KEY = "pse-planted-KEY/0123456789"
OVERLOAD = Wire(b'{"error": "Model is overloaded"}', 429)


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("Sun, 22 Nov 2026 12:00:30 GMT", 30.0), ("Sun, 22 Nov 2026 11:00:00 GMT", 0.0)]
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_after_the_wait_that_it_names(server, status, header, seconds):
    server.faults = [Wire(b"busy", status, headers=(("Retry-After", header),))]
    slept = []
    with opened(server, slept=slept) as encoder:
        assert one_answer(encoder).rows is not None
    assert slept == [seconds]


@pytest.mark.parametrize("header", ["", "soon", "-1", "nan", "Sun, 99 Nov 2026 12:00:30 GMT"])
def test_without_a_usable_retry_after_the_waits_grow(server, header):
    server.faults = [Wire(b"", 503, headers=(("Retry-After", header),) if header else ())] * 3
    slept = []
    with opened(server, slept=slept) as encoder:
        assert one_answer(encoder).rows is not None
    assert [int(seconds) for seconds in slept] in ([1, 2, 4], [2, 3, 5], [1, 2, 5], [1, 3, 4], [1, 3, 5], [2, 2, 4])


def test_a_server_that_stays_overloaded_ends_the_session_after_five_tries(server):
    server.faults = [OVERLOAD] * 9
    with opened(server) as encoder, pytest.raises(BackendError, match=r"HTTP 429 .*overloaded.* 5 times"):
        one_answer(encoder)
    assert len(server.log) == 5


@pytest.mark.parametrize("waits", [["121"], ["70", "60"], ["999999999999999"]])
def test_no_request_waits_more_than_two_minutes_in_all(server, waits):
    server.faults = [dataclasses.replace(OVERLOAD, headers=(("Retry-After", wait),)) for wait in waits]
    slept = []
    with opened(server, slept=slept) as encoder, pytest.raises(BackendError, match="asks to wait"):
        one_answer(encoder)
    assert sum(slept) <= 120
    assert len(server.log) == len(waits)


def test_answers_under_way_are_given_before_a_failed_session_ends(server):
    server.faults = [None, None, Wire(b"no", 401)]
    given = []
    with opened(server) as encoder:
        coming = encoder.embed(batches())
        given += [next(coming), next(coming)]
        with pytest.raises(BackendError):
            next(coming)
    assert [answer.batch_id for answer in given] == [batch.batch_id for batch in batches()[:2]]


def test_the_words_of_a_failure_may_be_long_and_an_answer_may_not_be_compressed_unasked(server):
    server.faults = [Wire(b"busy " * 1_000_000, 503), Wire(b"{}", headers=(("Content-Encoding", "br"),))]
    with opened(server) as encoder:
        answer = one_answer(encoder)
    assert "compressed" in answer.error
    assert len(server.log) == 2


def test_a_request_that_waits_does_not_hold_up_the_end_of_a_session(server):
    both = threading.Barrier(2)

    def busy(server, request):
        both.wait(30)
        return Wire(b"busy", 503, headers=(("Retry-After", "100"),))

    def refused(server, request):
        both.wait(30)
        return Wire(b"no", 401)

    server.faults = [busy, refused, *[Wire(b"busy", 503, headers=(("Retry-After", "9"),))] * 9]
    with HttpBackend(server.url, connections=2) as backend, pytest.raises(BackendError, match="401"):
        list(backend.encoder("minilm-l6-v2").embed(batches()))
    assert len(server.log) <= 3


@pytest.mark.parametrize("cut", [0, 1, 3000])
def test_a_connection_reset_in_mid_answer_is_asked_again(server, cut):
    server.faults = [lambda server, request: dataclasses.replace(server.right(request), cut=cut)] * 2
    with opened(server) as encoder:
        assert np.allclose(one_answer(encoder).rows, toy_rows(TEXTS[:4]), atol=1e-6)
    assert len(server.log) == 3


def test_an_answer_that_does_not_come_in_time_is_asked_for_again(server):
    hold = threading.Event()
    server.faults = [Wire(b"[]", hold=hold)]
    with opened(server, timeout=1.0) as encoder:
        answer = one_answer(encoder)
    hold.set()
    assert answer.rows is not None
    assert len(server.log) == 2


@pytest.mark.parametrize("fault", [Wire(b"boom", 500), Wire(b'{"error": "inference failed"}', 424), Wire(b"[]", cut=1)])
def test_a_text_on_which_the_server_breaks_is_the_error_of_its_batch_alone(server, fault):
    server.poison = {TEXTS[12]: fault}
    with opened(server) as encoder:
        answers = {answer.batch_id: answer for answer in encoder.embed(batches())}
    bad = answers.pop(batches()[1].batch_id)
    assert "5 times" in bad.error
    assert all(answer.rows is not None for answer in answers.values())


def test_nobody_at_the_address_ends_the_session_with_the_address(server):
    with served(Server()) as gone:
        url = gone.url
    with opened(server, url=url) as encoder, pytest.raises(BackendError, match="connection failed") as caught:
        one_answer(encoder)
    assert url in str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("key", ["", KEY])
def test_a_refused_key_ends_the_session_at_once_and_names_the_variable_alone(server, monkeypatch, status, key):
    monkeypatch.setenv(KEY_VARIABLE, key)
    server.faults = [as_json({"error": f"bad key {KEY}" if key else "no key"}, status)]
    with opened(server) as encoder, pytest.raises(BackendError, match=KEY_VARIABLE) as caught:
        one_answer(encoder)
    assert len(server.log) == 1
    assert ("was refused" if key else "has no key") in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_key_is_sent_as_a_bearer_and_shows_nowhere(server, monkeypatch, caplog):
    monkeypatch.setenv(KEY_VARIABLE, f" {KEY} ")
    caplog.set_level(logging.DEBUG)
    server.model = f"echo {KEY.lower()}"
    server.info = tei_info(version=KEY)
    escaped = json.dumps({"error": f"you sent Bearer {KEY}"}).replace("/", "\\/").encode()
    server.faults = [None, Wire(escaped, 400), *[Wire(escaped, 503)] * 5]
    seen = []
    with opened(server) as encoder:
        answers = [one_answer(encoder), one_answer(encoder, TEXTS[:1])]
        try:
            one_answer(encoder)
        except BackendError:
            seen.append(traceback.format_exc())
        seen += [repr(answers), json.dumps(encoder.identity()), repr(vars(encoder)), caplog.text]
    assert server.log[0].headers["authorization"] == f"Bearer {KEY}"
    assert answers[0].facts["model"] == "echo [key]"
    assert "[key]" in answers[1].error
    shown = "\n".join(seen).lower().replace("\\", "")
    assert "overloaded" in shown or "503" in shown
    assert KEY.lower() not in shown


def test_without_a_key_none_is_sent(server):
    with opened(server) as encoder:
        one_answer(encoder)
    assert "authorization" not in server.log[0].headers


def test_a_key_that_is_none_is_refused_and_not_shown(server, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "two words-planted")
    with pytest.raises(InputError, match=KEY_VARIABLE) as caught:
        HttpBackend(server.url)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("host", ["gpu-box", "localhost.example.org", "127.1", "[::ffff:8.8.8.8]", "a@[::1]"])
def test_a_key_goes_unencrypted_to_no_public_address(monkeypatch, host):
    with suppress(InputError):
        HttpBackend(f"http://{host}")  # without a key there is nothing to read
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.raises(InputError) as caught:
        HttpBackend(f"http://{host}/v1")
    assert KEY not in str(caught.value)
    with pytest.raises(InputError, match=KEY_VARIABLE):
        HttpBackend("http://{encoder}.example.org")
    if "@" not in host:
        HttpBackend(f"https://{host}/v1")


def test_a_key_that_goes_unencrypted_to_ones_own_server_passes_no_proxy(server, monkeypatch):
    with served(Server()) as proxy:
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, proxy.url)
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        with opened(server) as encoder:
            one_answer(encoder)
    assert {request.headers["authorization"] for request in server.log} == {f"Bearer {KEY}"}
    assert not proxy.log


@pytest.mark.parametrize(("status", "is_refused"), [(401, True), (403, True), (404, True), (503, False), (400, False)])
def test_what_every_request_would_meet_is_noticed_by_one_word_before_anything_long(server, status, is_refused):
    server.faults = [Wire(b"no", status)]
    with HttpBackend(server.url) as backend, pytest.raises(BackendError) if is_refused else nullcontext():
        backend.check(["minilm-l6-v2"])
    (request,) = server.log
    assert len(request.texts) == 1


def test_a_wrong_path_or_model_ends_the_session_and_names_both_apis(server):
    server.paths = ("/elsewhere",)
    with opened(server) as encoder, pytest.raises(BackendError, match=r"(?s)404.*/v1/embeddings.*/embed") as caught:
        one_answer(encoder)
    assert "<html" not in str(caught.value)
    assert len(server.log) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_so_that_the_key_goes_nowhere_else(server, monkeypatch, status):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with served(Server()) as other:
        target = f"{other.url}/v1/embeddings?key={KEY}"
        server.faults = [Wire(b"", status, headers=(("Location", target),))]
        with opened(server) as encoder, pytest.raises(BackendError, match="Redirects are not followed") as caught:
            one_answer(encoder)
        assert not other.log
    assert other.url in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("status", [307, 401, 402, 404, 429])
def test_a_key_in_the_path_of_an_address_is_not_shown(server, monkeypatch, status):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    server.faults = [Wire(b"no", status)] * 5
    place = plain_address(server.url, "--encoder-url", KEY_VARIABLE)
    client = Client(5.0, Patience(lambda seconds: None), ENCODER, place)
    try:
        with pytest.raises(BackendError, match=r"/\[key\]/v1: HTTP") as caught:
            client.post(f"{server.url}/{KEY}/v1", b'{"input": []}', 1000, threading.Event())
    finally:
        client.close()
    assert KEY not in str(caught.value)


def test_a_connection_that_is_made_while_the_client_is_closed_is_closed_too(server, monkeypatch):
    """A thread that nobody waits for any more may be anywhere in its request when the session ends."""
    connecting, go_on, made = threading.Event(), threading.Event(), []
    connect = socket.create_connection

    def slowly(*arguments, **options):
        connecting.set()
        assert go_on.wait(60)
        made.append(connect(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(socket, "create_connection", slowly)
    client = Client(5.0, Patience(), ENCODER, plain_address(server.url, "--encoder-url", KEY_VARIABLE))
    asked = threading.Thread(target=client.get, args=(f"{server.url}/info", 1000, threading.Event()))
    asked.start()
    assert connecting.wait(60)
    client.close()
    go_on.set()
    asked.join(60)
    assert [connection.fileno() for connection in made] == [-1]


def test_certificates_that_cannot_be_read_are_an_error_of_input(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    with pytest.raises(InputError, match="SSL_CERT_FILE"):
        trusted.__wrapped__(from_env=True)
