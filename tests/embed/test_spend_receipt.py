"""The receipt of what was spent: all attempts together, whichever evening asks."""

import pytest

from runner.base.errors import InputError
from runner.embed.cost.ledger import ATTEMPTS, Attempt, BudgetError, remember_attempt, spend_receipt, write_session
from tests.embed.test_estimate import session


def attempt(run_id, usd=2.0, max_usd=5.0):
    return Attempt(
        run_id=run_id, began_on="2026-06-27T20:00:00+00:00", estimate_usd=usd, max_usd=max_usd, price_source="a table"
    )


def silent(run_id, began):
    return None


def test_it_sums_every_attempt_and_keeps_weights_apart(tmp_path):
    write_session(tmp_path / "a.json", session())
    write_session(tmp_path / "b.json", session(gpu="A10", usd=0.3, container_seconds=1.5))
    write_session(tmp_path / "c.json", session(kind="weights", gpu="cpu", usd=0.004))
    write_session(tmp_path / "d.json", session(gpu="", price_per_second=0.0, container_seconds=0.0, usd=0.07))
    remember_attempt(tmp_path, attempt("one"))
    remember_attempt(tmp_path, attempt("two", usd=0.4, max_usd=7.0))
    receipt = spend_receipt(tmp_path, lambda run_id, _: {"one": 0.25, "two": 0.16}[run_id])
    assert receipt.model_dump() == {
        "estimate_usd": 2.0,
        "embedding_usd": 0.5,
        "weights_usd": 0.004,
        "services_usd": 0.07,
        "actual_usd": 0.41,
        "gpu": "A10, L4",
        "gpu_seconds": 201.5,
        "price_per_second": pytest.approx(session().price_per_second),
        "price_source": "a table",
        "sessions": 3,
        "max_usd": 7.0,
    }


def test_what_was_billed_is_unknown_where_one_attempt_is(tmp_path):
    write_session(tmp_path / "a.json", session())
    remember_attempt(tmp_path, attempt("one"))
    remember_attempt(tmp_path, attempt("two"))
    receipt = spend_receipt(tmp_path, lambda run_id, began: 0.2 if run_id == "one" and began.hour == 20 else None)
    assert receipt.actual_usd is None


def test_where_nothing_was_spent_there_is_no_receipt(tmp_path):
    assert spend_receipt(tmp_path / "spend", silent) is None


def test_a_session_without_a_recorded_attempt_still_counts(tmp_path):
    write_session(tmp_path / "a.json", session())
    receipt = spend_receipt(tmp_path, silent)
    assert (receipt.embedding_usd, receipt.estimate_usd, receipt.max_usd, receipt.actual_usd) == (0.2, None, None, None)


def test_an_estimate_that_nobody_asked_for_is_none_and_no_zero(tmp_path):
    write_session(tmp_path / "a.json", session())
    remember_attempt(tmp_path, attempt("one", usd=None))
    receipt = spend_receipt(tmp_path, silent)
    assert (receipt.estimate_usd, receipt.max_usd) == (None, 5.0)


def test_a_damaged_session_is_an_error_that_names_it(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(BudgetError, match=r"a\.json"):
        spend_receipt(tmp_path, silent)


def test_the_last_attempt_torn_by_a_kill_is_left_out_and_overwritten_by_the_next(tmp_path):
    write_session(tmp_path / "a.json", session())
    for name in ("one", "two"):
        remember_attempt(tmp_path, attempt(name))
    path = tmp_path / ATTEMPTS
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for end in range(second, len(whole)):
        path.write_bytes(whole[:end])
        assert spend_receipt(tmp_path, lambda run_id, _: {"one": 0.2}[run_id]).actual_usd == 0.2
        remember_attempt(tmp_path, attempt("two"))
        assert path.read_bytes() == whole


@pytest.mark.parametrize("damage", ["{", "[]", '{"run_id": "x"}'])
def test_an_earlier_attempt_that_is_damaged_is_an_error_that_names_the_line(tmp_path, damage):
    write_session(tmp_path / "a.json", session())
    remember_attempt(tmp_path, attempt("one"))
    path = tmp_path / ATTEMPTS
    path.write_text(path.read_text() + damage + "\n")
    remember_attempt(tmp_path, attempt("three"))
    with pytest.raises(InputError, match=r"attempts\.jsonl line 2"):
        spend_receipt(tmp_path, silent)


def test_attempts_are_lines_that_are_added(tmp_path):
    for name in ("one", "two"):
        remember_attempt(tmp_path / "spend", attempt(name))
    assert (tmp_path / "spend" / ATTEMPTS).read_text().count("\n") == 2
