import json
import threading

import pytest

from runner.base.errors import InputError
from runner.embed.cost.budget import Meter
from runner.embed.cost.ledger import BudgetError, Ledger, all_sessions, spend_receipt, write_session
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.api import open_model
from runner.judge.models.client import JudgeMeter
from runner.judge.models.prices import CLAUDE, FREE, PRICE_FLAG, Price, given_price, price_of
from runner.judge.models.requests import Ask, Usage
from tests.embed.test_estimate import session

PRICE = Price(2.0, 10.0)


def ask(n_characters=300, max_tokens=100):
    return Ask("key", "", "x" * n_characters, {}, max_tokens)


WORST = PRICE.worst_usd(ask())


def meter(folder, max_usd=1.0, price=PRICE):
    return JudgeMeter(folder, max_usd, "claude-a", price)


def on_disk(folder):
    return sum(row.usd for row in Ledger(folder).rows())


def test_what_is_held_counts_on_disk_before_anything_is_sent_and_when_the_session_has_ended(tmp_path):
    with meter(tmp_path) as judge:
        judge.reserve([ask(), ask()])
        assert on_disk(tmp_path) == pytest.approx(2 * WORST)
        (row,) = Ledger(tmp_path).rows()
        assert (row.kind, row.what, row.gpu, row.price_per_second, row.containers, row.ended) == (
            "judge", "claude-a", "", 0.0, 0, False,
        )  # fmt: skip
    assert on_disk(tmp_path) == pytest.approx(2 * WORST)


def test_what_was_really_used_takes_the_place_of_what_was_held(tmp_path):
    judge = meter(tmp_path)
    usage = Usage(read=50, cache_written=40, cache_read=30, written=20)
    judge.settle(judge.reserve([ask()]), [usage])
    expected = (2 * (50 + 1.25 * 40 + 0.1 * 30) + 10 * 20) / 1e6
    assert judge.usd() == judge.spent() == pytest.approx(expected)
    judge.close()
    (row,) = Ledger(tmp_path).rows()
    assert (row.usd, row.tokens, row.texts, row.ended) == (pytest.approx(expected), 140, 1, True)


def test_a_request_of_unknown_cost_keeps_its_share_of_what_was_held(tmp_path):
    judge = meter(tmp_path)
    judge.settle(judge.reserve([ask(), ask(), ask()]), [None, Usage()])
    assert judge.usd() == pytest.approx(WORST)


def test_what_a_service_bills_beyond_the_worst_is_counted_and_held_from_then_on(tmp_path):
    judge = meter(tmp_path, max_usd=10 * WORST)
    judge.settle(judge.reserve([ask()]), [Usage(written=round(3 * WORST * 1e5))])
    assert judge.spent() == pytest.approx(3 * WORST, rel=0.01)
    held = judge.reserve([ask(), ask()])
    assert held.usd == pytest.approx(6 * WORST, rel=0.01)
    with pytest.raises(BudgetError):
        judge.reserve([ask()])
    judge.settle(held, [Usage(written=round(3 * WORST * 1e5))] * 2)
    assert judge.spent() <= 10 * WORST


@pytest.mark.parametrize("text", ["0123456789" * 80, "§¶†" * 200, "字" * 300, "plain words of a bill " * 30])
def test_no_text_has_more_tokens_than_are_held(text):
    asked = Ask("key", "", text, {}, 100)
    most = Usage(cache_written=len(text.encode()), written=100)
    assert PRICE.usd(most) < PRICE.worst_usd(asked)


def test_a_request_beyond_the_ceiling_is_refused_and_holds_nothing(tmp_path):
    judge = meter(tmp_path, max_usd=2.5 * WORST)
    judge.reserve([ask()])
    judge.reserve([ask()])
    with pytest.raises(BudgetError, match=r"may cost.*higher --max-usd"):
        judge.reserve([ask()])
    assert judge.spent() == on_disk(tmp_path) == pytest.approx(2 * WORST)


def test_embedding_and_other_processes_spend_from_the_same_ceiling(tmp_path):
    write_session(tmp_path / "embedding.json", session(usd=1.0))
    judge = meter(tmp_path, max_usd=1.0 + 1.5 * WORST)
    other = meter(tmp_path, max_usd=1.0 + 1.5 * WORST)
    other.reserve([ask()])
    with pytest.raises(BudgetError):
        judge.reserve([ask()])
    assert Meter(tmp_path, 9.0, 0.001).spent() == pytest.approx(1.0 + WORST)


def test_many_threads_never_hold_more_than_the_ceiling(tmp_path):
    judges = [meter(tmp_path, max_usd=10.5 * WORST) for _ in range(2)]
    start, granted = threading.Barrier(8), []

    def work(judge):
        start.wait(30)
        for _ in range(4):
            try:
                granted.append(judge.reserve([ask()]))
            except BudgetError:
                return

    threads = [threading.Thread(target=work, args=(judges[number % 2],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 10
    assert on_disk(tmp_path) == pytest.approx(10 * WORST)


def test_a_damaged_session_is_named_before_anything_is_spent(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(BudgetError, match=r"a\.json"):
        meter(tmp_path)


def test_a_session_that_takes_over_what_another_held_counts_it_once(tmp_path):
    first = meter(tmp_path)
    first.settle(first.reserve([ask()]), [Usage(written=10)])
    first.reserve([ask(), ask()])
    first.close()
    second = meter(tmp_path)
    hold = second.take_over(first.path.name, 2 * WORST, 2)
    assert on_disk(tmp_path) == pytest.approx(2 * WORST + 1e-4)
    second.settle(hold, [Usage(written=1), Usage(written=1)])
    second.close()
    assert on_disk(tmp_path) == pytest.approx(1e-4 + 2e-5)


def test_what_is_free_is_neither_refused_nor_written(tmp_path):
    judge = meter(tmp_path / "spend", max_usd=1e-9, price=FREE)
    judge.settle(judge.reserve([ask()] * 1000), [None])
    judge.close()
    assert judge.spent() == 0
    assert not list((tmp_path / "spend").glob("*"))


def test_a_session_of_judging_is_no_measurement_of_an_encoder(tmp_path):
    folder = tmp_path / ".work" / "demo" / "v1" / "spend"
    with meter(folder) as judge:
        judge.settle(judge.reserve([ask()]), [Usage(read=10)])
    (row,) = all_sessions(folder)
    assert (row.busy_seconds, row.busy_tokens, row.container_seconds) == (0, 0, 0)


def test_the_receipt_of_judging_alone_has_no_embedding_in_it(tmp_path):
    with meter(tmp_path) as judge:
        judge.settle(judge.reserve([ask()]), [Usage(written=100_000)])
    receipt = spend_receipt(tmp_path, lambda run_id, _: None)
    assert (receipt.judging_usd, receipt.embedding_usd, receipt.weights_usd) == (1.0, 0, 0)
    assert (receipt.gpu, receipt.price_per_second, receipt.sessions) == ("", 0, 0)


def test_the_receipt_sums_judging_beside_embedding(tmp_path):
    write_session(tmp_path / "a.json", session())
    for _ in range(2):
        with meter(tmp_path, max_usd=9.0) as judge:
            judge.settle(judge.reserve([ask()]), [Usage(written=100_000)])
    receipt = spend_receipt(tmp_path, lambda run_id, _: None)
    assert (receipt.judging_usd, receipt.embedding_usd, receipt.sessions) == (2.0, 0.2, 1)
    assert receipt.price_per_second == pytest.approx(session().price_per_second)


def test_a_long_prompt_has_its_own_price_where_a_model_has_one():
    haiku = price_of("claude-haiku-5-5")
    assert haiku.usd(Usage(read=100_001)) == pytest.approx(5 * 0.1 * 0.100001)
    assert haiku.usd(Usage(read=100_000)) == pytest.approx(0.1 * 0.1)


@pytest.mark.parametrize("model", [*CLAUDE, "claude-haiku-4-5-20251001"])
def test_every_listed_model_costs_more_to_write_than_to_read_and_half_in_batches(model):
    price = price_of(model)
    assert 0 < price.read < price.written
    usage = Usage(read=100, written=10)
    assert price.in_batches().usd(usage) == pytest.approx(price.usd(usage) / 2)


@pytest.mark.parametrize("model", ["claude-nonesuch", "claude-opus-5-6", "claude-opus-5-202511"])
def test_a_model_without_a_known_price_is_refused_with_the_way_out(model):
    with pytest.raises(InputError, match=PRICE_FLAG):
        price_of(model)


@pytest.mark.parametrize("text", ["", "3", "3,15,1", "a,b", "-1,2", "nan,1", "inf,1"])
def test_a_price_that_is_none_is_refused(text):
    with pytest.raises(InputError, match=PRICE_FLAG):
        given_price(text)


def test_a_given_price_is_taken():
    assert given_price(" 3, 15 ")[:2] == (3.0, 15.0)
    assert given_price("0,0").is_free


def test_a_plan_that_asks_for_what_an_api_has_not_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    local = JudgeSpec(api="openai", model="qwen")
    with pytest.raises(InputError, match="no message batches"):
        open_model(local, "batches", "http://h", tmp_path, 1.0)
    with pytest.raises(InputError, match="--judge-url"):
        open_model(local, "messages", None, tmp_path, 1.0)
    with pytest.raises(InputError, match=PRICE_FLAG):
        open_model(JudgeSpec(api="anthropic", model="claude-nonesuch"), "messages", None, tmp_path, 1.0)
    unknown = local.model_copy(update={"api": "parrot"})
    with pytest.raises(InputError, match="no client speaks api: parrot"):
        open_model(unknown, "messages", None, tmp_path, 1.0, PRICE)
    with open_model(JudgeSpec(api="anthropic", model="claude-nonesuch"), "batches", None, tmp_path, 1.0, PRICE) as made:
        assert made.meter.price.read == 1.0
    assert json.dumps([str(path) for path in tmp_path.iterdir()]) == "[]"
