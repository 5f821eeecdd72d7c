import json
import logging

import pytest

from runner.base.errors import BackendError, InputError
from runner.base.http_client import Patience, is_own
from runner.embed.cost.ledger import BudgetError
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.api import model_price, open_model
from runner.judge.models.client import ANTHROPIC_KEY, JUDGE_KEY, JudgeMeter, Way, judge_address
from runner.judge.models.openai_chat import JUDGE, OpenAIChat, endpoint
from runner.judge.models.prices import FREE, PRICE_FLAG, Price
from tests.support import anthropic_server as wire
from tests.support import openai_chat_server as chat
from tests.support.anthropic_server import RIGHT, SCHEMA, answered, asks, only, served
from tests.support.openai_chat_server import ChatServer

MODEL = "qwen3-32b"
KEY = "pse-planted-KEY/0123456789"
PAID = Price(1.0, 2.0)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv(JUDGE.key_variable, raising=False)


@pytest.fixture(name="server")
def _server():
    with served(ChatServer(grade=lambda user: RIGHT)) as server:
        yield server


@pytest.fixture(name="opened")
def _opened(server, tmp_path, closed):
    def opened(price=FREE, max_usd=100.0, **more):
        meter = JudgeMeter(tmp_path / "spend", max_usd, MODEL, price)
        way = Way(url=server.url, patience=Patience(sleep=lambda seconds: None), **more)
        return closed(OpenAIChat(MODEL, meter, way))

    return opened


def test_every_ask_has_one_reply_and_a_server_of_ones_own_costs_nothing(opened, tmp_path):
    model = opened()
    replies = answered(model, asks(12))
    assert {json.loads(reply.text)["grade"] for reply in replies.values()} == {2}
    assert {reply.model for reply in replies.values()} == {MODEL}
    assert replies["key 1"].usage.cache_read == 4
    assert model.meter.usd() == 0
    assert not (tmp_path / "spend").exists() or not list((tmp_path / "spend").iterdir())


def test_temperature_schema_limit_and_both_texts_are_really_sent(opened, server):
    only(opened())
    (request,) = server.requests
    body = request.body
    assert (body["model"], body["max_tokens"], body["temperature"]) == (MODEL, 300, 0)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    assert "authorization" not in request.headers


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/chat/completions"])
def test_an_address_may_end_anywhere_on_the_way(url):
    assert endpoint(url) == "http://h:1/v1/chat/completions"


@pytest.mark.parametrize(
    "fault", [chat.error(429, "busy"), chat.error(503, "loading"), chat.error(500, "boom"), wire.reset(), wire.reset(5)]
)
def test_a_passing_failure_is_tried_again(opened, server, fault):
    server.faults = [fault, fault]
    assert only(opened()).problem == ""
    assert len(server.requests) == 3


def test_a_request_at_which_the_server_breaks_is_a_reply_that_says_so(opened, server):
    server.always = {"dues 2": chat.error(500, "boom")}
    replies = answered(opened(), asks(4))
    assert "5 times" in replies.pop("key 2").problem
    assert not any(reply.problem for reply in replies.values())


def test_a_server_that_breaks_at_everything_ends_the_session(opened, server):
    server.always = {"dues": chat.error(500, "boom")}
    with pytest.raises(BackendError, match="5 requests in a row"):
        answered(opened(), asks(40))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (chat.error(401, "bad key"), JUDGE.key_variable),
        (chat.error(402, "no credit"), "billing"),
        (chat.error(404, "no such model"), "--judge-url"),
        (chat.error(429, "busy"), "when the server is up"),
    ],
)
def test_what_every_request_would_meet_ends_the_session(opened, server, fault, words):
    server.always = {"dues": fault}
    with pytest.raises(BackendError, match=words):
        answered(opened(parallel=1), asks(9))


@pytest.mark.parametrize(
    ("fault", "words", "is_final"),
    [
        (chat.refusal, "refused", False),
        (chat.cut_off, "cut off", False),
        (chat.wrong_role, "assistant's", False),
        (chat.empty, "assistant's", False),
        (wire.not_json(), "not JSON", False),
        (wire.Wire(b"[1]"), "no JSON object", False),
        (wire.huge(4_000_001), "more than 4,000,000 bytes", False),
        (chat.error(400, "context length exceeded"), "HTTP 400", True),
    ],
)
def test_an_answer_that_is_none_is_a_problem_and_no_text(opened, server, fault, words, is_final):
    server.faults = [fault]
    reply = only(opened())
    assert (reply.text, reply.final) == ("", is_final)
    assert words in reply.problem


@pytest.mark.parametrize("fault", [chat.prose, chat.off_schema])
def test_what_the_model_wrote_is_handed_on_as_it_is(opened, server, fault):
    server.faults = [fault]
    reply = only(opened())
    assert reply.problem == ""
    assert reply.text == reply.raw["choices"][0]["message"]["content"]


def test_a_second_model_within_a_session_is_a_problem(opened, server):
    server.faults = [None, chat.other_model]
    replies = answered(opened(parallel=1), asks(3))
    assert [bool(replies[f"key {number}"].problem) for number in range(3)] == [False, True, False]


def test_a_price_that_is_given_is_counted_and_held_to_the_ceiling(opened, server):
    server.faults = [chat.no_usage]
    model = opened(price=PAID)
    (first, second) = answered(model, asks(2)).values()
    assert first.usage is None
    assert model.meter.usd() == pytest.approx(PAID.worst_usd(asks(1)[0]) + PAID.usd(second.usage))
    sent = len(server.requests)
    with pytest.raises(BudgetError):
        only(opened(price=PAID, max_usd=1e-5))
    assert len(server.requests) == sent


def test_the_key_is_sent_as_a_bearer_and_shows_nowhere(opened, server, monkeypatch, caplog):
    monkeypatch.setenv(JUDGE.key_variable, KEY)
    caplog.set_level(logging.DEBUG)
    server.faults = [
        lambda answer: {**answer, "id": KEY},
        chat.error(400, f"you sent {KEY}"),
        chat.error(401, f"you sent {KEY}"),
    ]
    seen = []
    with pytest.raises(BackendError) as caught:
        seen += opened(parallel=1).replies(asks(5))
    assert KEY not in f"{seen}{caught.value}{caplog.text}"
    assert len(seen) == 2
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


SPEC = JudgeSpec(api="openai", model=MODEL)
OWN = [
    *("http://localhost:8000/v1", "http://LOCALHOST.", "http://0.0.0.0:8000", "http://127.0.0.1:1", "http://[::1]:1"),
    *("http://10.1.2.3", "http://172.31.0.1/v1", "http://192.168.0.9:8000", "http://169.254.1.1", "http://[fd00::1]"),
    *("http://[fe80::1]", "http://[::ffff:192.168.0.9]"),
]
ELSEWHERE = [
    *("https://openrouter.ai/api", "https://api.openai.com/v1", "http://localhost.example.org", "http://gpu-box:8000"),
    *("http://gpu.localhost", "http://127.0.0.1.", "http://64:ff9b::8.8.8.8".replace("64:", "[64:") + "]"),
    *("http://8.8.8.8", "http://172.32.0.1", "http://100.64.0.1", "http://2130706433", "http://127.1"),
    *("http://[2606:4700::1]", "http://[::ffff:8.8.8.8]", "http://127.0.0.1.example.org", "http://10.0.0.1.nip.io"),
]


@pytest.mark.parametrize("url", OWN)
def test_an_address_of_this_machine_or_a_private_network_is_ones_own(url):
    assert is_own(judge_address(url).host)
    assert model_price(SPEC, url).is_free


@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_server_elsewhere_is_not_asked_without_a_price(url, tmp_path):
    assert not is_own(judge_address(url).host)
    with pytest.raises(InputError, match=f"{PRICE_FLAG} 0,0"):
        open_model(SPEC, "messages", url, tmp_path, 1.0)
    with open_model(SPEC, "messages", url, tmp_path, 1.0, PAID) as model:
        assert model.meter.price == PAID
    with open_model(SPEC, "messages", url, tmp_path, 1.0, Price(0.0, 0.0)) as model:
        assert model.meter.price.is_free


@pytest.mark.parametrize("url", [url for url in ELSEWHERE if url.startswith("http:")])
@pytest.mark.parametrize(
    ("variable", "spec"), [(JUDGE_KEY, SPEC), (ANTHROPIC_KEY, JudgeSpec(api="anthropic", model="claude-sonnet-4-6"))]
)
def test_a_key_goes_unencrypted_to_no_public_address(url, variable, spec, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, KEY)
    with pytest.raises(InputError, match=variable) as caught:
        open_model(spec, "messages", url, tmp_path, 1.0, PAID)
    assert KEY not in str(caught.value)
    open_model(spec, "messages", url.replace("http:", "https:"), tmp_path, 1.0, PAID).close()


def test_a_server_that_refuses_the_key_says_so_before_anything_is_asked(server, opened, monkeypatch):
    monkeypatch.setenv(JUDGE_KEY, KEY)
    model = opened()
    for status in (200, 403, 404, 500):  # a gateway may let nothing pass but what it is for
        server.models = status
        model.check()
    server.models = 401
    with pytest.raises(BackendError, match=JUDGE_KEY):
        model.check()
    assert {request.path for request in server.requests} == {"/v1/models"}


def test_a_server_that_wants_a_key_says_so_though_its_models_are_for_all_to_see(server, opened):
    server.models = 200
    opened().check()
    server.always = {"word": chat.error(401, "no key")}
    with pytest.raises(BackendError, match=JUDGE_KEY):
        opened().check()
    assert {request.body["max_tokens"] for request in server.requests} == {1}


def test_a_request_that_broke_off_counts_once_more_when_it_is_tried_again(opened, server):
    server.faults = [wire.reset(5), chat.error(503, "loading"), wire.reset(5)]
    model = opened(price=PAID)
    reply = only(model)
    assert model.meter.usd() == pytest.approx(2 * PAID.worst_usd(asks(1)[0]) + PAID.usd(reply.usage))


def test_that_nothing_is_counted_at_ones_own_server_is_said_once(server, tmp_path, capsys):
    with open_model(SPEC, "messages", server.url, tmp_path, 1.0, PAID):
        assert capsys.readouterr().err == ""
    for _ in range(2):
        with open_model(SPEC, "messages", server.url, tmp_path, 1.0) as model:
            only(model)
    said = capsys.readouterr().err
    assert said.count("nothing is counted") == said.count("\n") == 1
    assert server.url in said


@pytest.mark.parametrize("variable", [ANTHROPIC_KEY, JUDGE_KEY])
@pytest.mark.parametrize("shape", ["http://127.0.0.1:1/{}", "http://127.0.0.1:1/proxy/{}/v1", "http://{}.localhost/v1"])
@pytest.mark.parametrize("written", [KEY, KEY.lower(), KEY.replace("/", "%2F")])
def test_an_address_that_holds_a_key_is_refused_without_repeating_it(monkeypatch, variable, shape, written):
    monkeypatch.setenv(variable, f" {KEY} ")
    with pytest.raises(InputError, match="--judge-url") as caught:
        endpoint(shape.format(written))
    assert "planted" not in str(caught.value).lower()
