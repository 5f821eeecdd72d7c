"""The one ledger of a version: what is held before it is spent, by threads, by processes, and by killed ones."""

import json
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError
from runner.base.http_client import Unusable
from runner.base.places import CHECKOUT
from runner.embed.cost.ledger import LEDGER, Budget, BudgetError, Ledger, spend_receipt
from tests.support.ledger_entries import entry, written


def budget(folder, max_usd=1.0):
    return Budget(folder, max_usd)


def on_disk(folder):
    return sum(each.usd for each in Ledger(folder).entries())


def test_what_is_held_counts_on_disk_until_it_is_known_what_it_cost(tmp_path):
    judge = budget(tmp_path)
    hold = judge.hold(0.3, "judge", "claude-a")
    (held,) = Ledger(tmp_path).entries()
    assert (held.kind, held.what, held.usd, held.ended, held.gpu) == ("judge", "claude-a", 0.3, False, "")
    hold.settle(0.1)
    (settled,) = Ledger(tmp_path).entries()
    assert (settled.id, settled.usd, settled.ended) == (held.id, 0.1, True)
    assert judge.spent() == judge.spent("claude-a") == 0.1
    assert judge.spent("claude-b") == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, 0.5),
        (Unusable("no answer in time"), 0.5),
        (Unusable("turned away", is_charged=False), 0.0),
        (BackendError("the key was refused"), 0.0),
        (KeyboardInterrupt(), 0.5),
    ],
)
def test_a_request_that_may_have_been_carried_out_keeps_what_was_held_and_no_other(tmp_path, error, expected):
    judge = budget(tmp_path)
    hold = judge.hold(0.5, "judge", "a")
    hold.__exit__(error and type(error), error, None)
    assert judge.spent() == on_disk(tmp_path) == expected


def test_as_a_context_it_counts_the_cost_that_is_told(tmp_path):
    with budget(tmp_path).hold(0.5, "judge", "a") as hold:
        hold.cost = 0.2
    assert on_disk(tmp_path) == 0.2


def test_a_request_beyond_the_ceiling_is_refused_and_holds_nothing(tmp_path):
    judge = budget(tmp_path)
    judge.hold(0.4, "judge", "a").settle(0.4)
    judge.hold(0.4, "embed", "b")
    with pytest.raises(BudgetError, match=r"\$0.80 is spent or held.*may cost \$0.30 .*higher --max-usd") as error:
        judge.hold(0.3, "judge", "a")
    assert str(tmp_path) in str(error.value)
    assert error.value.exit_code == 5
    assert judge.spent() == on_disk(tmp_path) == 0.8


def test_other_processes_spend_from_the_same_ceiling(tmp_path):
    written(tmp_path, entry(usd=0.6))
    here, there = budget(tmp_path), budget(tmp_path)
    there.hold(0.3, "judge", "a")
    with pytest.raises(BudgetError):
        here.hold(0.2, "judge", "a")
    assert here.spent() == pytest.approx(0.9)


def test_many_threads_never_hold_more_than_the_ceiling(tmp_path):
    budgets, start, granted = [budget(tmp_path, 10.5) for _ in range(2)], threading.Barrier(8), []

    def work(own):
        start.wait(30)
        for _ in range(4):
            try:
                granted.append(own.hold(1.0, "judge", "a"))
            except BudgetError:
                return

    threads = [threading.Thread(target=work, args=(budgets[number % 2],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 10
    assert on_disk(tmp_path) == pytest.approx(10)


def test_what_a_service_bills_beyond_the_worst_is_counted_and_held_from_then_on(tmp_path, capsys):
    judge = budget(tmp_path, 10.0)
    judge.hold(1.0, "judge", "a").settle(3.0)
    assert judge.spent() == 3.0
    assert "3.0 times" in capsys.readouterr().err
    assert judge.hold(2.0, "judge", "a").entry.usd == 6.0
    assert judge.hold(1.0, "judge", "b").entry.usd == 1.0
    with pytest.raises(BudgetError):
        judge.hold(0.1, "judge", "a")


def test_what_is_free_is_neither_refused_nor_written(tmp_path):
    judge = budget(tmp_path / "spend", 1e-9)
    judge.hold(0.0, "judge", "a").settle(None)
    judge.hold(0.0, "judge", "a").settle(0.0)
    assert judge.spent() == 0
    assert not (tmp_path / "spend").exists()


def test_a_later_process_settles_what_a_killed_one_held(tmp_path):
    program = (
        "import os, pathlib, signal, sys\n"
        "from runner.embed.cost.ledger import Budget\n"
        "hold = Budget(pathlib.Path(sys.argv[1]), 1.0).hold(0.5, 'judge', 'a')\n"
        "print(hold.entry.id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    later = budget(tmp_path)
    assert later.spent() == 0.5
    hold = later.held(done.stdout.strip())
    hold.settle(0.2)
    assert on_disk(tmp_path) == 0.2
    assert later.held(hold.entry.id) is None
    assert later.held("0" * 16) is None


def test_a_line_torn_by_a_kill_stands_for_nothing_and_is_overwritten(tmp_path):
    first = budget(tmp_path)
    first.hold(0.5, "judge", "a").settle(0.25)
    path = tmp_path / LEDGER
    whole = path.read_bytes()
    settled = whole.index(b"\n") + 1
    for end in range(settled, len(whole)):
        path.write_bytes(whole[:end])
        later = budget(tmp_path)
        assert later.spent() == 0.5, "the line that is whole"
        later.hold(0.1, "judge", "b")
        assert path.read_bytes().startswith(whole[:settled])
        assert on_disk(tmp_path) == pytest.approx(0.6)


DAMAGE = [
    *(b"", b'{"id": 1', b"[]", b"\xff\xfe"),
    *({"usd": usd} for usd in (float("nan"), float("inf"), -1.0, None)),
    *({"kind": "holiday"}, {"on": "2026-05-01T"}, {"more": 1}),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_line_is_an_error_that_names_it_before_anything_is_spent(tmp_path, damage):
    written(tmp_path, entry(), entry(id="b" * 16))
    path = tmp_path / LEDGER
    lines = path.read_bytes().splitlines()
    lines[1] = damage if isinstance(damage, bytes) else json.dumps(json.loads(lines[1]) | damage).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    for read in (budget, spend_receipt):
        with pytest.raises(BudgetError, match=rf"{LEDGER}:2") as error:
            read(tmp_path)
        assert error.value.exit_code == 5


def test_nothing_is_held_where_the_ledger_cannot_be_written(tmp_path):
    (tmp_path / "spend").write_bytes(b"in the way")
    judge = budget(tmp_path / "spend")
    with pytest.raises(BackendError, match="cannot be written"):
        judge.hold(0.1, "judge", "a")
    assert judge.spent() == 0


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1), st.booleans()), max_size=12))
def test_spent_is_what_is_settled_and_what_is_still_held(tmp_path_factory, holds):
    folder = tmp_path_factory.mktemp("spend")
    judge, expected = budget(folder, 100.0), 0.0
    for worst, share, is_settled in holds:
        hold = judge.hold(worst, "judge", "a")
        if is_settled:
            hold.settle(worst * share)
        expected += worst * share if is_settled else worst
    assert (
        judge.spent() == budget(folder).spent() == pytest.approx(expected, abs=1e-7)
    )  # the ledger holds dollars to nine places


# The receipt


def app(run_id, usd=2.0, max_usd=5.0):
    more = {"estimate_usd": usd, "max_usd": max_usd, "price_source": "a table", "on": "2026-06-27T20:00:00+00:00"}
    rented = {"gpu": "", "price_per_second": 0.0, "container_seconds": 0.0}
    return entry(kind="app", what=run_id, usd=0.0, **rented, **more)


NO_GPU = {"gpu": "", "price_per_second": 0.0, "container_seconds": 0.0}


def test_it_sums_every_attempt_and_keeps_weights_services_and_judging_apart(tmp_path):
    written(
        tmp_path,
        app("one"),
        entry(),
        entry(gpu="A10", usd=0.3, container_seconds=1.5),
        entry(kind="weights", gpu="cpu", usd=0.004),
        entry(usd=0.07, **NO_GPU),
        app("two", usd=0.4, max_usd=7.0),
        entry(kind="judge", what="claude-a", usd=1.5, **NO_GPU),
    )
    receipt = spend_receipt(tmp_path)
    assert receipt.model_dump() == {
        "estimate_usd": 2.0,
        "embedding_usd": 0.5,
        "weights_usd": 0.004,
        "judging_usd": 1.5,
        "services_usd": 0.07,
        "gpu": "A10, L4",
        "gpu_seconds": 201.5,
        "price_per_second": pytest.approx(0.001),
        "price_source": "a table",
        "sessions": 3,
        "max_usd": 7.0,
    }


@pytest.mark.parametrize(("apps", "expected"), [([], (None, None)), ([app("one", usd=None)], (None, 5.0))])
def test_an_estimate_that_nobody_asked_for_is_none_and_no_zero(tmp_path, apps, expected):
    written(tmp_path, *apps, entry())
    receipt = spend_receipt(tmp_path)
    assert receipt.embedding_usd == 0.2
    assert (receipt.estimate_usd, receipt.max_usd) == expected


def test_where_nothing_was_spent_there_is_no_receipt(tmp_path):
    assert spend_receipt(tmp_path / "spend") is None
    written(tmp_path, app("one"))
    assert spend_receipt(tmp_path) is None


def test_the_receipt_of_judging_alone_has_no_embedding_in_it(tmp_path):
    written(tmp_path, entry(kind="judge", what="claude-a", usd=1.0, **NO_GPU))
    receipt = spend_receipt(tmp_path)
    assert (receipt.judging_usd, receipt.embedding_usd, receipt.weights_usd) == (1.0, 0, 0)
    assert (receipt.gpu, receipt.price_per_second, receipt.sessions) == ("", 0, 0)
