"""A plan's own encoder behind a paid API, against stand-ins of three shapes."""

import json
import logging
import math

import numpy as np
import pytest

from chunkers.tokens import count_tokens
from runner.base.errors import BackendError, InputError
from runner.base.sent_keys import agree
from runner.base.store import Store
from runner.embed.cost.ledger import Budget, BudgetError, Ledger
from runner.embed.embed_chunks import embed
from runner.embed.encoder import Batch
from runner.embed.over_http.service import ServiceEncoder
from runner.embed.probe import probe
from tests.support.loopback import Wire, served
from tests.support.service_server import KEY, VARIABLE, ServiceServer, encoder, rows_of, spec

TEXTS = [f"the ferry {n} carries {word}" for n, word in enumerate(["hay", "bees", "sand", "snow", "ink"])]
APIS = ["openai", "cohere", "voyage"]


@pytest.fixture(name="server", params=APIS)
def _server(request, monkeypatch):
    monkeypatch.setenv(VARIABLE, KEY)
    with served(ServiceServer(request.param)) as server:
        yield server


def answer_of(server, folder, texts=TEXTS, side="document"):
    own = encoder(server, folder)
    try:
        (answer,) = own.embed([Batch(side, tuple(texts), (len(texts),))])
    finally:
        own.close()
    return answer


@pytest.mark.parametrize("side", ["query", "document"])
def test_rows_are_those_of_the_service_by_index_and_unit_and_it_is_told_the_side(server, tmp_path, side):
    answer = answer_of(server, tmp_path, side=side)
    told = "" if server.api == "openai" else side
    expected = rows_of(TEXTS, told)
    assert np.allclose(answer.rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert server.asked == [(told, TEXTS)]
    assert answer.facts["rows"] == "normalised here"


def test_what_is_billed_is_in_the_ledger(server, tmp_path):
    answer_of(server, tmp_path)
    (row,) = Ledger(tmp_path).entries()
    assert (row.kind, row.what, row.gpu, row.ended) == ("embed", "own", "", True)
    assert row.usd == pytest.approx(server.tokens * 10 / 1e6)


def test_it_passes_the_probe_which_sees_that_a_long_text_is_refused(server, tmp_path):
    apart = {"query_prompt": "query: "} if server.api == "openai" else {}
    own = encoder(server, tmp_path, **apart)
    found = probe(own)
    own.close()
    assert found["refuses_above"] == 400
    assert found["prompt_shift"] > 0


@pytest.mark.parametrize(
    ("fault", "check"),
    [({"cuts_silently": True}, "truncation"), ({"hears_sides": False}, "prompts"), ({"limit": 80}, "HTTP 400")],
)
def test_the_probe_catches_a_service_that_cuts_that_is_deaf_to_sides_or_takes_less(server, tmp_path, fault, check):
    for name, value in fault.items():
        setattr(server, name, value)
    if server.api == "openai" and "hears_sides" in fault:
        pytest.skip("OpenAI's API knows no sides")
    own = encoder(server, tmp_path)
    with pytest.raises(BackendError, match=check):
        probe(own)
    own.close()


def one_too_few(told):
    rows = told.get("data") or told["embeddings"]["float"]
    rows.pop()
    return told


HOSTILE = {
    "one too few": one_too_few,
    "no JSON": lambda told: Wire(b"<html>"),
    "a list": lambda told: [told],
    "nothing": lambda told: {},
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_an_answer_that_cannot_be_trusted_is_an_error_and_is_charged(server, tmp_path, fault):
    server.tamper = HOSTILE[fault]
    answer = answer_of(server, tmp_path)
    assert answer.rows is None
    assert answer.error
    (row,) = Ledger(tmp_path).entries()
    assert row.usd > 0


@pytest.mark.parametrize("said", [None, -5, "7", math.inf, True, {"total": 3}, 10**30])
def test_without_a_sound_count_the_most_that_a_request_can_cost_is_charged(tmp_path, monkeypatch, said):
    monkeypatch.setenv(VARIABLE, KEY)
    with served(ServiceServer("voyage")) as server:
        told_of = {"usage": {"total_tokens": said}}
        server.tamper = lambda told: Wire(json.dumps(told | told_of).replace("Infinity", "1e999").encode())
        assert answer_of(server, tmp_path).rows is not None
        (row,) = Ledger(tmp_path).entries()
        assert server.tokens * 10 / 1e6 < row.usd < 1e-2


def test_a_refused_request_costs_nothing_and_a_request_beyond_the_ceiling_is_not_sent(server, tmp_path):
    assert "HTTP 400" in answer_of(server, tmp_path / "one", ["word " * 600]).error
    assert [row.usd for row in Ledger(tmp_path / "one").entries()] == [0.0]
    n_before = len(server.asked)
    own = encoder(server, tmp_path / "two", max_usd=1e-5)
    with pytest.raises(BudgetError, match="max-usd"):
        list(own.embed([Batch("document", tuple(TEXTS), (len(TEXTS),))]))
    own.close()
    assert len(server.asked) == n_before


@pytest.mark.parametrize(("told", "sizes"), [({}, [5, 3, 2, 1, 2]), ({"texts_per_request": 2}, [2, 2, 1])])
def test_a_service_that_takes_fewer_texts_is_paid_once_and_may_be_asked_for_as_many(server, tmp_path, told, sizes):
    server.most = 2
    own = encoder(server, tmp_path, **told)
    (answer,) = own.embed([Batch("query", tuple(TEXTS), (len(TEXTS),))])
    own.close()
    assert answer.rows.shape == (len(TEXTS), 48)
    assert [len(texts) for _, texts in server.asked] == sizes
    assert own.identity() == encoder(server, tmp_path).identity(), "what was embedded is kept"
    assert server.tokens == sum(count_tokens(text) for text in TEXTS)
    assert sum(row.usd for row in Ledger(tmp_path).entries()) == pytest.approx(server.tokens * 10 / 1e6)


def test_a_text_over_the_limit_is_shown(server, tmp_path):
    own = encoder(server, tmp_path / "spend")
    store = Store(tmp_path / "cache")
    with pytest.raises(BackendError, match="first begins 'word word"):
        embed(store, own, [*TEXTS, "word " * 600], "document")
    own.close()


def test_a_key_is_refused_at_once_and_is_shown_nowhere(server, tmp_path, monkeypatch, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    wrong = KEY[::-1]
    monkeypatch.setenv(VARIABLE, wrong)
    own = encoder(server, tmp_path)
    with pytest.raises(BackendError, match=VARIABLE) as refused:
        own.check()  # the server repeats the key
    server.tamper = lambda told: Wire(json.dumps({"error": f"no {KEY} here"}).encode(), 400)
    monkeypatch.setenv(VARIABLE, KEY)
    answer = answer_of(server, tmp_path)
    own.close()
    said = [str(refused.value), answer.error, caplog.text, *capsys.readouterr(), json.dumps(own.identity())]
    said += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(key in text for text in said for key in (KEY, wrong))
    assert "[key]" in answer.error


def test_no_key_is_sent_to_a_host_that_nobody_agreed_to(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, KEY)
    with served(ServiceServer("openai")) as server:
        asked = spec(server)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
        with pytest.raises(InputError, match=f"{VARIABLE}=127.0.0.1"):
            ServiceEncoder(asked, Budget(tmp_path, 5.0))
        agree([f"{VARIABLE}=127.0.0.1"])
        ServiceEncoder(asked, Budget(tmp_path, 5.0)).close()
