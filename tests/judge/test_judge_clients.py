"""What the clients of judges' services send, read, try again, give up and pay, against stand-ins of both services."""

import json
import logging
import re
import signal
import subprocess
import sys
import threading
import traceback
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.base.http_client import Patience, is_own
from runner.base.places import CHECKOUT
from runner.embed.cost.ledger import Budget, BudgetError, Ledger
from runner.embed.cost.prices import FREE, PRICE_FLAG, Price, price_of
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.api import JudgeOptions, model_price, open_model
from runner.judge.models.claude import ClaudeMessages, reply_of, usage_of
from runner.judge.models.claude_batches import read_results
from runner.judge.models.client import ANTHROPIC_KEY, JUDGE_KEY, Way, judge_address
from runner.judge.models.openai_chat import OpenAIChat
from tests.support import anthropic_server as wire
from tests.support import openai_chat_server as chat
from tests.support.anthropic_server import (
    MODEL,
    RIGHT,
    SCHEMA,
    AnthropicServer,
    answered,
    ask,
    asks,
    only,
    served,
    worst_usd,
)
from tests.support.openai_chat_server import ChatServer

KEY = "pse-planted-KEY/0123456789"
LOCAL = "qwen3-32b"
PAID = Price(1.0, 2.0)


class Kind(NamedTuple):
    """A client, what it is asked for, and the stand-in that it asks."""

    client: type
    model: str
    variable: str
    price: Price
    server: type


CLAUDE = Kind(ClaudeMessages, MODEL, ANTHROPIC_KEY, price_of(MODEL), AnthropicServer)
CHAT = Kind(OpenAIChat, LOCAL, JUDGE_KEY, PAID, ChatServer)
claude = pytest.mark.parametrize("kind", [CLAUDE], ids=["claude"])
of_chat = pytest.mark.parametrize("kind", [CHAT], ids=["chat"])


@pytest.fixture(name="kind", params=[CLAUDE, CHAT], ids=["claude", "chat"])
def _kind(request):
    """Either client, where a test does not name one."""
    return request.param


@pytest.fixture(name="server")
def _server(kind, monkeypatch):
    monkeypatch.delenv(JUDGE_KEY, raising=False)
    monkeypatch.setenv(kind.variable, KEY)
    with served(kind.server(grade=lambda user: RIGHT)) as server:
        yield server


@pytest.fixture(name="opened")
def _opened(kind, server, tmp_path, closed):
    """Opens the model. Waits are noted in `slept`, and not waited."""

    def opened(model=kind.model, max_usd=100.0, slept=None, **more):
        price = price_of(model) if kind is CLAUDE else kind.price
        patience = Patience(sleep=(slept if slept is not None else []).append)
        way = Way(url=server.url, patience=patience, **more)
        return closed(kind.client(model, Budget(tmp_path / "spend", max_usd), price, way))

    return opened


# What is sent


def test_every_ask_has_one_reply_with_what_the_model_wrote(opened, server):
    replies = answered(opened(), asks(20))
    assert set(replies) == {f"key {number}" for number in range(20)}
    assert {json.loads(reply.text)["grade"] for reply in replies.values()} == {2}
    assert {reply.problem for reply in replies.values()} == {""}
    assert len(server.requests) == 20


@claude
def test_temperature_schema_limit_and_a_cached_system_text_are_really_sent(opened, server):
    only(opened())
    (request,) = server.requests
    body = request.body
    assert request.path == "/v1/messages"
    assert (body["model"], body["max_tokens"], body["temperature"]) == (MODEL, 300, 0.0)
    assert body["system"] == [{"type": "text", "text": "Grade the document.", "cache_control": {"type": "ephemeral"}}]
    assert body["messages"] == [{"role": "user", "content": "harbor dues 0"}]
    form = body["output_config"]["format"]
    assert form["type"] == "json_schema"
    assert form["schema"]["properties"]["grade"] == {"enum": [0, 1, 2, 3]}
    assert form["schema"]["required"] == ["grade", "reason", "passages"]
    # A later version of the API takes no temperature from anybody.
    assert request.headers["anthropic-version"] == "2023-06-01"


@of_chat
def test_temperature_schema_limit_and_both_texts_are_really_sent(opened, server, monkeypatch):
    monkeypatch.delenv(JUDGE_KEY)
    only(opened())
    (request,) = server.requests
    body = request.body
    assert (body["model"], body["max_tokens"], body["temperature"]) == (LOCAL, 300, 0)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    assert "authorization" not in request.headers


@claude
@pytest.mark.parametrize(
    ("model", "thinking", "effort", "max_tokens"),
    [
        ("claude-opus-4-7", None, None, 300),
        ("claude-sonnet-5", {"type": "disabled"}, None, 300),
        ("claude-haiku-5-5", {"type": "disabled"}, None, 300),
        ("claude-sonnet-5-5", {"type": "between_tools"}, None, 300),
        ("claude-opus-5-5", None, "low", 300 + 2048),
    ],
)
def test_a_model_that_takes_no_temperature_is_sent_none_and_thinks_as_little_as_it_can(
    opened, server, model, thinking, effort, max_tokens
):
    only(opened(model))
    body = server.requests[0].body
    assert "temperature" not in body
    assert (body.get("thinking"), body["output_config"].get("effort")) == (thinking, effort)
    assert body["max_tokens"] == max_tokens
    assert server.requests[0].headers["anthropic-version"] == "2026-10-21"


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/chat/completions"])
def test_an_address_may_end_anywhere_on_the_way(url, tmp_path, closed):
    model = closed(OpenAIChat(LOCAL, Budget(tmp_path, 1.0), FREE, Way(url=url)))
    assert model.url == "http://h:1/v1/chat/completions"


# What is tried again, and what is given up


@pytest.mark.parametrize(
    "fault", [wire.overloaded(), wire.broken(), wire.reset(), wire.reset(5), wire.rate_limited(), wire.status(504)]
)
def test_a_passing_failure_is_tried_again(opened, server, fault):
    server.faults = [fault, fault]
    assert only(opened()).problem == ""
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("kind", "fault", "words"),
    [
        (CLAUDE, wire.overloaded(), r"HTTP 529 \(Overloaded\), 5 times"),
        (CLAUDE, wire.broken(), r"HTTP 500 \(Internal server error\), 5 times"),
        (CHAT, wire.broken(), r"HTTP 500 \(Internal server error\), 5 times"),
    ],
)
def test_a_request_that_fails_again_and_again_is_a_reply_that_says_so(opened, server, fault, words):
    server.always = {"dues 3": fault}
    replies = answered(opened(), asks(6))
    bad = replies.pop("key 3")
    assert re.search(words, bad.problem)
    assert (bad.text, bad.final) == ("", False)
    assert not any(reply.problem for reply in replies.values())


def test_a_service_that_fails_at_everything_ends_the_session(opened, server):
    server.always = {"dues": wire.broken()}
    given = []
    with pytest.raises(BackendError, match=r"5 requests in a row came to nothing.*HTTP 500"):
        given += opened(parallel=1).replies(asks(50))
    assert len(given) == 4
    assert len(server.requests) == 25


@claude
@pytest.mark.parametrize("fault", [wire.other_model, wire.status(400, "thinking: not supported"), wire.not_json()])
def test_what_all_requests_seem_to_meet_is_not_paid_for_a_thousand_times(opened, server, fault):
    server.always = {"dues": fault}
    with pytest.raises(BackendError, match="5 requests in a row"):
        list(opened(parallel=1).replies(asks(100)))
    assert len(server.requests) == 5


MET_BY_ALL = [
    (CLAUDE, wire.status(401, "invalid x-api-key", "authentication_error"), ANTHROPIC_KEY),
    (CLAUDE, wire.status(404, "model: claude-nonesuch", "not_found_error"), "model id in plan.yaml"),
    (CLAUDE, wire.status(402, "billing", "billing_error"), "account's billing"),
    (CLAUDE, wire.credit_exhausted(), "account's billing"),
    (CLAUDE, wire.Wire(b"", 302, headers=(("Location", "http://127.0.0.1:1/"),)), "Redirects are not followed"),
    (CHAT, chat.error(401, "bad key"), JUDGE_KEY),
    (CHAT, chat.error(402, "no credit"), "billing"),
    (CHAT, chat.error(404, "no such model"), "--judge-url"),
]


@pytest.mark.parametrize(("kind", "fault", "words"), MET_BY_ALL)
def test_what_every_request_would_meet_ends_the_session_at_once(opened, server, fault, words):
    server.faults = [None, fault]
    given = []
    with pytest.raises(BackendError, match=words):
        given += opened(parallel=1).replies(asks(9))
    assert len(server.requests) == 2
    assert [reply.key for reply in given] == ["key 0"]


@pytest.mark.parametrize("fault", [wire.too_long(), wire.status(413, "too large", "request_too_large")])
def test_a_request_that_the_service_does_not_take_is_its_own_problem_and_final(opened, server, fault):
    server.always = {"dues 1": fault}
    replies = answered(opened(), asks(3))
    assert (replies["key 1"].final, "HTTP 4" in replies["key 1"].problem) == (True, True)
    assert server.sent("dues 1") == 1
    assert replies["key 0"].problem == replies["key 2"].problem == ""


def test_a_session_that_is_left_begins_no_further_request(opened, server):
    replies = opened(parallel=2).replies(asks(200))
    next(replies)
    replies.close()
    # What was under way may still arrive; the rest of two hundred does not.
    assert len(server.requests) < 20


# What is read


ANSWERS = [
    *((kind, wire.not_json(), "not JSON") for kind in (CLAUDE, CHAT)),
    *((kind, wire.as_json([1]), "no JSON object") for kind in (CLAUDE, CHAT)),
    *((kind, wire.huge(4_000_001), "more than 4,000,000 bytes") for kind in (CLAUDE, CHAT)),
    (CLAUDE, wire.refusal, r"refused \(bio\)"),
    (CLAUDE, wire.cut_off, "cut off"),
    (CLAUDE, wire.other_model, "claude-instant-1.2 answered, claude-sonnet-4-6 was asked"),
    (CLAUDE, wire.wrong_role, "no message of the assistant's"),
    (CLAUDE, wire.empty, "no text"),
    (CLAUDE, wire.Wire(rb'{"model": "\ud800"}'), "not JSON"),
    (CLAUDE, wire.Wire(b'{"usage": 1e999}'), "not JSON"),
    (CLAUDE, wire.Wire(b"[" * 60 + b"]" * 60), "nested too deep"),
    (CLAUDE, wire.Wire(b"{}", headers=(("Content-Encoding", "br"),)), "compressed"),
    (CLAUDE, wire.as_json({"type": "message", "role": "assistant", "model": MODEL, "content": 3}), "no known reason"),
    (CHAT, chat.refusal, "refused"),
    (CHAT, chat.cut_off, "cut off"),
    (CHAT, chat.wrong_role, "assistant's"),
    (CHAT, chat.empty, "assistant's"),
]


@pytest.mark.parametrize(("kind", "fault", "words"), ANSWERS)
def test_an_answer_that_is_none_is_a_problem_and_no_text(opened, server, fault, words):
    server.faults = [fault]
    reply = only(opened())
    assert (reply.text, reply.final) == ("", False)
    assert re.search(words, reply.problem)


WRITTEN = [(CLAUDE, fault) for fault in (wire.prose, wire.off_schema, wire.two_objects, wire.not_an_object)]


@pytest.mark.parametrize(("kind", "fault"), [*WRITTEN, (CHAT, chat.prose), (CHAT, chat.off_schema)])
def test_what_the_model_wrote_is_handed_on_as_it_is(kind, opened, server, fault):
    server.faults = [fault]
    reply = only(opened())
    raw = reply.raw["content"][-1] if kind is CLAUDE else reply.raw["choices"][0]["message"]
    assert reply.problem == ""
    assert reply.text == raw["text" if kind is CLAUDE else "content"]


@claude
@pytest.mark.parametrize(
    ("asked", "answers", "is_same"),
    [
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001", True),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001", True),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5-20260101", False),
        ("claude-opus-5", "claude-opus-5-5", False),
        ("claude-opus-5-5", "claude-opus-5", False),
    ],
)
def test_a_date_is_all_that_an_answering_model_may_add_to_its_name(opened, server, asked, answers, is_same):
    server.faults = [lambda message: {**message, "model": answers}]
    assert (only(opened(asked)).problem == "") is is_same


@of_chat
def test_a_second_model_within_a_session_is_a_problem(opened, server):
    server.faults = [None, chat.other_model]
    replies = answered(opened(parallel=1), asks(3))
    assert [bool(replies[f"key {number}"].problem) for number in range(3)] == [False, True, False]


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = ("type", "role", "model", "content", "stop_reason", "stop_details", "usage")
_words = st.sampled_from(["message", "assistant", MODEL, "end_turn", "refusal", "model_context_window_exceeded"])
_usage = st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "cache_read_input_tokens"]), _anything)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(_FIELDS, _anything | _words | _usage)) | _anything)
def test_whatever_a_message_holds_there_is_a_reply(message):
    reply = reply_of("key", MODEL, message)
    assert bool(reply.text) != bool(reply.problem)
    usage = usage_of(message)
    assert usage is None or usage.read >= 0


@given(st.text(), st.lists(_anything))
def test_whatever_a_file_of_results_holds_every_ask_has_a_reply(text, rows):
    lines = "\n".join([text, *map(json.dumps, rows), json.dumps({"custom_id": "a", "result": {"type": rows}})])
    assert not read_results(lines, ["a", "b"]).keys() - {"a"}


# What is paid


def test_the_ceiling_is_asked_before_anything_is_sent(opened, server, tmp_path):
    with pytest.raises(BudgetError, match="may cost"):
        only(opened(max_usd=1e-5))
    assert server.requests == []
    assert Ledger(tmp_path / "spend").entries() == []


@claude
@pytest.mark.parametrize("times", [1, 3])
def test_no_bill_goes_beyond_the_ceiling_even_if_it_is_more_than_can_be(opened, server, times):
    text = "0 1 2 3 4 5 6 7 8 9 " * 40  # a token a character or so, as a table has them
    worst = worst_usd(ask(text=text), price_of(MODEL))
    n_bytes = len("Grade the document.") + len(text) + 5
    billed = {"input_tokens": times * n_bytes, "output_tokens": times * 300}
    server.always = {"0 1": wire.changed(usage={**billed, "cache_creation_input_tokens": times * 500})}
    model, given = opened(max_usd=30 * worst), []
    with pytest.raises(BudgetError):
        given += model.replies(asks(1000, text))
    assert len(given) >= 5
    assert (25 - 5 * times) * worst < model.budget.spent() <= 30 * worst


def test_an_answer_that_does_not_say_what_it_cost_is_counted_at_its_worst(kind, opened, server):
    server.faults = [wire.no_usage]
    model = opened()
    assert only(model).problem == ""
    assert model.budget.spent() == pytest.approx(worst_usd(ask(), kind.price))


def test_each_request_that_broke_off_may_have_cost_something_and_one_turned_away_did_not(kind, opened, server):
    server.faults = [wire.reset(5), wire.overloaded(), wire.reset(5)]
    model = opened()
    reply = only(model)
    assert model.budget.spent() == pytest.approx(2 * worst_usd(ask(), kind.price) + kind.price.usd(reply.usage))


CHILD = """
import sys
from pathlib import Path
from runner.embed.cost.ledger import Budget
from runner.embed.cost.prices import (price_of)
from runner.judge.models.claude import ClaudeMessages
from runner.judge.models.client import Way
from tests.support.anthropic_server import MODEL, asks
budget = Budget(Path(sys.argv[2]), 1.0)
with ClaudeMessages(MODEL, budget, price_of(MODEL), Way(url=sys.argv[1])) as model:
    print(len(list(model.replies(asks(50)))))
"""


@claude
@pytest.mark.slow
def test_an_interrupted_session_ends_though_no_answer_comes_and_counts_what_it_sent(server, tmp_path):
    until, under_way = threading.Event(), threading.Semaphore(0)
    server.always = {"dues": wire.hang(until)}
    server.by_text = {"dues 0": [None]}
    server.answering = lambda request: under_way.release()
    child = subprocess.Popen([sys.executable, "-c", CHILD, server.url, str(tmp_path)], cwd=CHECKOUT, stderr=-1)
    for _ in range(5):
        assert under_way.acquire(timeout=60)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    until.set()
    assert child.returncode != 0
    assert b"KeyboardInterrupt" in said
    assert KEY.encode() not in said
    assert Budget(tmp_path, 1.0).spent() >= 4 * worst_usd(ask(), price_of(MODEL))


# Keys and addresses


def test_the_key_is_sent_and_shows_nowhere_else(opened, server, caplog, tmp_path, capsys):
    caplog.set_level(logging.DEBUG)
    echo = wire.echoing(wire.broken(), f"Bearer {KEY}")
    lower = wire.echoing(wire.status(400), KEY.lower())
    denied = wire.echoing(wire.status(401), KEY)
    server.faults = [lambda answer: {**answer, "id": KEY, "model": KEY}, *[echo] * 5, lower, denied]
    seen = []
    model = opened(parallel=1)
    with pytest.raises(BackendError) as caught:
        seen += model.replies(asks(4))
    model.__exit__(None, None, None)
    assert len(seen) == 3
    files = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    shown = "".join(traceback.format_exception(caught.value))
    everything = f"{seen}{shown}{caplog.text}{files}{capsys.readouterr()}{model.http.secret!r}"
    assert KEY.lower() not in everything.lower()
    assert "[key]" in seen[0].raw["id"]
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


@claude
@pytest.mark.parametrize("key", ["", "  ", "two words", "schlüssel"])
def test_without_a_key_nothing_is_opened(opened, monkeypatch, key):
    monkeypatch.setenv(ANTHROPIC_KEY, key)
    with pytest.raises(InputError, match=ANTHROPIC_KEY) as caught:
        opened()
    assert not key.strip() or key not in str(caught.value)


NO_ADDRESSES = [
    *("", "localhost", "localhost:80", "ftp://a", "http://", "http://h:x", "http://[::1", "http://a b", "http://x/\n"),
    *("http://é", "http://u:secret@h", "http://secret@h", "http://h/?key=secret", "http://h/?api_key=secret"),
    "http://h/#secret",
]
WITH_KEY = ["http://127.0.0.1:1/{}", "http://127.0.0.1:1/proxy/{}/v1", "http://{}.localhost/v1"]
KEYS = (KEY, KEY.lower(), KEY.replace("/", "%2F"))


@pytest.mark.parametrize("variable", [ANTHROPIC_KEY, JUDGE_KEY])
@pytest.mark.parametrize("url", [*NO_ADDRESSES, *(shape.format(key) for shape in WITH_KEY for key in KEYS)])
def test_an_address_that_is_none_or_holds_a_secret_is_refused_without_repeating_it(monkeypatch, variable, url):
    monkeypatch.setenv(variable, f" {KEY} ")
    with pytest.raises(InputError, match="--judge-url") as caught:
        judge_address(url)
    assert not any(secret in str(caught.value).lower() for secret in ("secret", "planted"))


SPEC = JudgeSpec(api="openai", model=LOCAL)
OWN = [
    *("http://localhost:8000/v1", "http://LOCALHOST.", "http://0.0.0.0:8000", "http://127.0.0.1:1", "http://[::1]:1"),
    *("http://10.1.2.3", "http://172.31.0.1/v1", "http://192.168.0.9:8000", "http://[fd00::1]"),
    "http://[::ffff:192.168.0.9]",
]
ELSEWHERE = [
    *("https://openrouter.ai/api", "https://api.openai.com/v1", "http://localhost.example.org", "http://gpu-box:8000"),
    *("http://gpu.localhost", "http://127.0.0.1.", "http://[64:ff9b::8.8.8.8]"),
    *("http://8.8.8.8", "http://172.32.0.1", "http://100.64.0.1", "http://2130706433", "http://127.1"),
    *("http://[2606:4700::1]", "http://[::ffff:8.8.8.8]", "http://127.0.0.1.example.org", "http://10.0.0.1.nip.io"),
    *("http://169.254.169.254", "http://[fe80::1]", "http://[::ffff:169.254.169.254]"),
]


@pytest.mark.parametrize("url", OWN)
def test_an_address_of_this_machine_or_a_private_network_is_ones_own(url):
    assert is_own(judge_address(url).host)
    assert model_price(SPEC, JudgeOptions(url=url)) == FREE


@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_server_elsewhere_is_not_asked_without_a_price(url, tmp_path, monkeypatch):
    monkeypatch.delenv(JUDGE_KEY, raising=False)
    assert not is_own(judge_address(url).host)
    with pytest.raises(InputError, match=f"{PRICE_FLAG} 0,0"):
        open_model(SPEC, JudgeOptions(url=url), tmp_path)
    for price in (PAID, Price(0.0, 0.0)):
        with open_model(SPEC, JudgeOptions(url=url, price=price), tmp_path) as model:
            assert model.price == price


@of_chat
def test_a_server_that_refuses_the_key_says_so_before_anything_is_asked(server, opened):
    model = opened()
    for status in (200, 403, 404, 500):  # a gateway may let nothing pass but what it is for
        server.models = status
        assert model.check() == ("HTTP 500 (no)" if status == 500 else "")
    server.models = 401
    with pytest.raises(BackendError, match=JUDGE_KEY):
        model.check()
    assert {request.path for request in server.requests} == {"/v1/models"}


@of_chat
def test_a_server_that_wants_a_key_says_so_though_its_models_are_for_all_to_see(server, opened, monkeypatch):
    monkeypatch.delenv(JUDGE_KEY)
    server.models = 200
    opened().check()
    server.always = {"word": chat.error(401, "no key")}
    with pytest.raises(BackendError, match=JUDGE_KEY):
        opened().check()
    assert {request.body["max_tokens"] for request in server.requests} == {1}


@of_chat
def test_a_server_of_ones_own_costs_nothing_which_is_said_once(server, tmp_path, capsys):
    with open_model(SPEC, JudgeOptions(url=server.url, price=PAID), tmp_path):
        assert capsys.readouterr().err == ""
    for _ in range(2):
        with open_model(SPEC, JudgeOptions(url=server.url), tmp_path) as model:
            assert only(model).usage.cache_read == 4
            assert model.budget.spent() == 0
    said = capsys.readouterr().err
    assert said.count("nothing is counted") == said.count("\n") == 1
    assert server.url in said
    assert not list(tmp_path.rglob("*.json*"))


def test_a_plan_that_asks_for_what_an_api_has_not_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv(ANTHROPIC_KEY, KEY)
    unpriced = JudgeSpec(api="anthropic", model="claude-nonesuch")
    with pytest.raises(InputError, match="no message batches"):
        open_model(SPEC, JudgeOptions("batches", "http://h"), tmp_path)
    with pytest.raises(InputError, match="--judge-url"):
        open_model(SPEC, JudgeOptions(), tmp_path)
    with pytest.raises(InputError, match=PRICE_FLAG):
        open_model(unpriced, JudgeOptions(), tmp_path)
    with pytest.raises(InputError, match="no client speaks api: parrot"):
        open_model(SPEC.model_copy(update={"api": "parrot"}), JudgeOptions(price=PAID), tmp_path)
    with open_model(unpriced, JudgeOptions("batches", price=PAID), tmp_path) as made:
        assert made.price.read == PAID.read / 2
    assert not list(tmp_path.iterdir())
