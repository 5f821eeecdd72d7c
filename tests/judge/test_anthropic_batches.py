import json
import signal
import subprocess
import sys
import threading

import pytest

from runner.base.errors import BackendError
from runner.base.http_client import Patience
from runner.base.places import CHECKOUT
from runner.embed.cost.ledger import Budget, BudgetError, Ledger
from runner.embed.cost.prices import price_of
from runner.judge.models.claude_batches import (
    DENIED_LOOKS,
    FEWEST_REQUESTS,
    ClaudeBatches,
    under_way,
)
from runner.judge.models.client import Way
from tests.support import anthropic_server as wire
from tests.support.anthropic_server import KEY, MODEL, RIGHT, answered, asks, worst_usd

PRICE = price_of(MODEL).in_batches()
WORST = worst_usd(asks(1)[0], PRICE)


@pytest.fixture(name="opened")
def _opened(server, tmp_path, closed):
    """Opens the model over the same folder each time, as each run does."""

    def opened(max_usd=100.0, folder=tmp_path):
        budget = Budget(folder / "spend", max_usd)
        way = Way(url=server.url, patience=Patience(sleep=lambda seconds: None))
        return closed(ClaudeBatches(MODEL, budget, PRICE, way, folder / "batches", poll_seconds=0.01))

    return opened


def creations(server):
    return [request for request in server.requests if request.method == "POST"]


def sizes(server):
    return [len(request.body["requests"]) for request in creations(server)]


def spent(tmp_path):
    return sum(entry.usd for entry in Ledger(tmp_path / "spend").entries())


def cost(replies):
    return pytest.approx(sum(PRICE.usd(reply.usage) for reply in replies.values()))


def test_all_asks_are_one_batch_at_half_the_price(opened, server, tmp_path):
    model = opened()
    replies = answered(model, asks(30))
    assert {json.loads(reply.text)["grade"] for reply in replies.values()} == {2}
    assert sizes(server) == [30]
    assert model.budget.spent() == cost(replies)
    assert PRICE.usd(replies["key 1"].usage) == price_of(MODEL).usd(replies["key 1"].usage) / 2
    assert under_way(tmp_path / "batches") == []
    assert [entry.ended for entry in model.budget.entries()] == [True]
    # The batch names another host's address of its results.
    assert server.requests[-1].path.endswith("/results")


def test_a_request_in_a_batch_says_the_same_as_one_alone(opened, server):
    answered(opened(), asks(1))
    (request,) = creations(server)
    (row,) = request.body["requests"]
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert row["params"]["temperature"] == 0.0
    assert row["params"]["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert row["params"]["output_config"]["format"]["type"] == "json_schema"
    assert row["params"]["max_tokens"] == 300
    assert len(row["custom_id"]) == 64


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("errored", "overloaded_error"),
        ("expired", "expired"),
        ("canceled", "cancelled"),
        (wire.refusal, "refused"),
        (wire.cut_off, "cut off"),
        (wire.other_model, "was asked"),
    ],
)
def test_what_came_to_nothing_is_its_own_problem_and_can_be_asked_again(opened, server, fault, words):
    server.by_text = {"dues 3": [fault, "expired"]}
    model = opened()
    replies = answered(model, asks(6))
    assert list(replies)[-1] == "key 3", "answers come first, so that a judging that is given up has taken them"
    assert words in replies.pop("key 3").problem
    assert len(replies) == 5
    assert not any(reply.problem for reply in replies.values())
    again = asks(6)[3:4]
    assert "expired" in answered(model, again)["key 3"].problem
    assert answered(model, again)["key 3"].problem == ""
    assert sizes(server) == [6, 1, 1]


def test_what_was_not_reached_costs_nothing(opened, server):
    server.always = {"dues": "expired"}
    model = opened()
    answered(model, asks(6))
    assert model.budget.spent() == 0


def test_results_may_come_in_any_order_and_twice(opened, server):
    server.grade = lambda user: {**RIGHT, "reason": user}
    server.mangle = lambda lines: [*reversed(lines), lines[2]]
    replies = answered(opened(), asks(6))
    assert [json.loads(replies[f"key {n}"].text)["reason"] for n in range(6)] == [f"harbor dues {n}" for n in range(6)]


def test_a_line_that_is_no_result_of_the_batch_costs_only_its_own_request(opened, server):
    server.mangle = lambda lines: [{**lines[0], "custom_id": "f" * 64}, *lines[:4], 3, {"custom_id": None}]
    model = opened()
    replies = answered(model, asks(6))
    problems = {key: reply.problem for key, reply in replies.items() if reply.problem}
    assert problems == dict.fromkeys(("key 4", "key 5"), "the batch has no result for it")
    # What it cost is not known for two of the six.
    known = sum(PRICE.usd(reply.usage) for reply in replies.values() if not reply.problem)
    assert model.budget.spent() == pytest.approx(known + 2 * WORST)


@pytest.mark.parametrize(
    ("faults", "n_creations"),
    [
        ({"retrieved": [wire.overloaded(), wire.broken(), wire.reset(), wire.not_json(), None]}, 1),
        ({"turned_away": [wire.overloaded(), wire.rate_limited(3)]}, 3),
    ],
    ids=["looks fail and pass", "turned away by a busy service"],
)
def test_a_busy_service_is_asked_again_and_makes_one_batch(opened, server, tmp_path, faults, n_creations):
    for field, answers in faults.items():
        setattr(server, field, list(answers))
    replies = answered(opened(), asks(3))
    assert not any(reply.problem for reply in replies.values())
    assert (len(server.batches), len(creations(server))) == (1, n_creations)
    assert spent(tmp_path) == cost(replies)


@pytest.mark.parametrize(
    "answer", [wire.reset(), wire.reset(6), wire.broken(), wire.not_json(), wire.as_json({})], ids=str
)
@pytest.mark.parametrize("arrived", [True, False])
def test_a_batch_of_which_nobody_says_whether_it_arrived_is_looked_up_by_a_person(
    opened, server, tmp_path, answer, arrived
):
    """Handed in again by itself, it could be paid twice."""
    if arrived:
        server.created = [answer]
    else:
        server.turned_away = [answer]
    for _ in range(2):
        with pytest.raises(BackendError, match="whether it arrived is not known") as refused:
            answered(opened(), asks(3))
        assert len(creations(server)) == 1
        assert spent(tmp_path) == pytest.approx(3 * WORST), "it counts at the most that it may have cost"
    (record,) = (tmp_path / "batches").iterdir()
    assert str(record) in str(refused.value)
    if arrived:
        (batch_id,) = server.batches
        record.write_text(json.dumps(json.loads(record.read_text()) | {"id": batch_id}))
    else:
        record.unlink()
    replies = answered(opened(), asks(3))
    assert not any(reply.problem for reply in replies.values())
    assert len(server.batches) == 1


@pytest.mark.parametrize("where", ["retrieved", "fetched"])
@pytest.mark.parametrize("denials", [DENIED_LOOKS - 1, DENIED_LOOKS])
def test_a_batch_that_the_service_denies_is_looked_for_and_not_paid_again_by_itself(
    opened, server, tmp_path, where, denials
):
    setattr(server, where, [wire.not_there()] * denials)
    if denials == DENIED_LOOKS:
        with pytest.raises(BackendError, match=r"does not have message batch msgbatch_\d+ either, delete .*json"):
            answered(opened(), asks(3))
    replies = answered(opened(), asks(3))
    assert not any(reply.problem for reply in replies.values())
    assert (len(creations(server)), spent(tmp_path)) == (1, cost(replies))


def test_an_interrupted_wait_says_that_the_batch_goes_on_and_the_next_run_takes_it(opened, server, capsys, tmp_path):
    server.polls = 10**9

    class Interrupted:
        def wait(self, seconds):
            raise KeyboardInterrupt

    for _ in range(3):
        model = opened()
        model._never = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            list(model.replies(asks(4)))
        assert "goes on" in capsys.readouterr().err
        assert spent(tmp_path) == pytest.approx(4 * WORST)
    server.polls = 0
    again = opened()
    replies = answered(again, asks(4))
    assert len(creations(server)) == 1
    assert spent(tmp_path) == cost(replies)


def test_a_run_that_lacks_a_few_replies_takes_them_from_the_batch_and_hands_in_the_others(opened, server):
    server.polls = 0
    model = opened()
    coming = model.replies(asks(5))
    kept = [next(coming) for _ in range(2)]
    coming.close()
    replies = answered(opened(), asks(8)[2:])
    assert sizes(server) == [5, 3]
    assert {reply.key for reply in kept} | set(replies) == {f"key {number}" for number in range(8)}


CHILD = """
import sys
from pathlib import Path
from runner.embed.cost.ledger import Budget
from runner.embed.cost.prices import (price_of)
from runner.judge.models.claude_batches import ClaudeBatches
from runner.judge.models.client import Way
from tests.support.anthropic_server import MODEL, asks
folder = Path(sys.argv[2])
budget, price = Budget(folder / "spend", 100.0), price_of(MODEL).in_batches()
with ClaudeBatches(MODEL, budget, price, Way(url=sys.argv[1]), folder / "batches", poll_seconds=0.05) as model:
    list(model.replies(asks(5)))
"""


@pytest.mark.slow
def test_a_killed_run_pays_once(opened, server, tmp_path):
    server.polls = 10**9
    there = threading.Event()
    server.answering = lambda request: there.set() if request.method == "GET" else None
    child = subprocess.Popen([sys.executable, "-c", CHILD, server.url, str(tmp_path)], cwd=CHECKOUT)
    try:
        assert there.wait(60)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert spent(tmp_path) == pytest.approx(5 * WORST)
    server.polls = 0
    model = opened()
    replies = answered(model, asks(5))
    assert not any(reply.problem for reply in replies.values())
    assert (len(replies), len(server.batches)) == (5, 1)
    assert spent(tmp_path) == cost(replies)


CEILINGS = {
    "enough for all": (150, 180, 180, None),
    "no row of ever smaller batches": (28, 160, FEWEST_REQUESTS, f"the next {FEWEST_REQUESTS} requests may cost"),
    "below the smallest batch": (7, 16, 0, "the next 16 requests may cost"),
    "the few that are left": (7, 6, 6, None),
    "below one request": (0.01, 3, 0, "may cost"),
}


@pytest.mark.parametrize("name", CEILINGS)
def test_the_ceiling_is_asked_before_a_batch_is_handed_in_which_is_as_large_as_it_allows(opened, server, name):
    n_worst, n_asks, fewest, refused = CEILINGS[name]
    replies, why = [], None
    try:
        replies += opened(max_usd=WORST * n_worst).replies(asks(n_asks))
    except BudgetError as error:
        why = str(error)
    assert (refused is None and why is None) or refused in why
    assert n_asks >= len(replies) == sum(sizes(server)) >= fewest
    assert (len(replies) < n_asks) is bool(refused)
    assert all(size >= min(FEWEST_REQUESTS, n_asks) for size in sizes(server))
    assert bool(server.requests) is bool(fewest)
    assert not any(reply.problem for reply in replies)


@pytest.mark.parametrize(
    "fault", [wire.status(401, "no", "authentication_error"), wire.credit_exhausted(), wire.status(400)]
)
def test_a_batch_that_the_service_refuses_costs_nothing_and_leaves_nothing_to_look_for(opened, server, tmp_path, fault):
    server.turned_away = [fault]
    model = opened()
    with pytest.raises(BackendError):
        answered(model, asks(3))
    assert model.budget.spent() == 0
    assert under_way(tmp_path / "batches") == []


def test_a_damaged_record_is_named_since_it_stands_for_money(opened, server, tmp_path):
    folder = tmp_path / "batches"
    folder.mkdir()
    (folder / "x.json").write_text("{")
    with pytest.raises(BackendError, match=r"x\.json"):
        answered(opened(), asks(1))
    assert server.requests == []


def test_the_key_is_in_no_record(opened, server, tmp_path, caplog):
    server.mangle = lambda lines: [{**lines[0], "result": {"type": "expired", "echo": KEY}}]
    (reply,) = opened().replies(asks(1))
    files = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in f"{reply}{files}{caplog.text}"
