import json
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from runner.embed.cost.budget import IDLE_SECONDS, ContainerPool, Meter
from runner.embed.cost.ledger import BudgetError, Ledger, all_sessions
from runner.embed.cost.prices import CORE_USD, GPUS, PRICE_SOURCE, RemoteOptions, container_price, weights_price

PRICE = 0.5


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture(name="clock")
def _clock():
    return Clock()


@pytest.fixture(name="meter")
def _meter(tmp_path, clock):
    return quiet_meter(tmp_path / "spend", clock)


@pytest.fixture(autouse=True)
def _closed():
    """Every meter of a test closed at its end, and its watchdog gone."""
    yield
    while METERS:
        METERS.pop().close()
    finish_watchdogs()


METERS = []


def quiet_meter(folder, clock, max_usd=1e6, beat_seconds=3600):
    """A meter whose watchdog has nothing to say for the length of a test, unless `beat_seconds` are fewer."""
    METERS.append(Meter(folder, max_usd, PRICE, clock=clock, beat_seconds=beat_seconds))
    return METERS[-1]


def embedding(meter, what="mxbai-large-v1", max_containers=4):
    return meter.session(what, "L4", max_containers, "embed")


def test_containers_that_never_answer_are_charged_as_long_as_the_one_that_does(meter, clock):
    with embedding(meter) as session:
        for number in range(10):
            clock.now += 10
            assert meter.spent() == (number + 1) * 10 * 4 * PRICE
            session.seen("a", 100, 1)
    clock.now += 2 * IDLE_SECONDS
    assert meter.spent() == (100 + IDLE_SECONDS) * 4 * PRICE
    (row,) = meter.rows()
    assert (row.containers, row.container_seconds) == (1, (100 + IDLE_SECONDS) * 4)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.floats(0, 500), st.floats(0, 500)), max_size=30),
    st.lists(st.tuples(st.floats(0, 500), st.integers(0, 7)), max_size=30),
)
def test_the_ceiling_is_passed_by_no_containers_however_they_start_hang_and_are_replaced(n_places, lives, answers):
    """`lives` are containers by start and length, of which no more than `n_places` run at once, and few answer."""
    pool = ContainerPool("embed", "e", "L4", PRICE, n_places, 0.0, "2026-05-01T08:00:00+00:00")
    free, billed = [0.0] * n_places, []
    for start, length in sorted(lives):
        place = free.index(min(free))
        begun = max(start, free[place])
        free[place] = begun + length
        billed.append((begun, begun + length))
    for at, name in sorted(answers):
        pool.seen(f"c{name % n_places}", 1, 1, at)
        used = sum(max(0.0, min(at, end) - begun) for begun, end in billed)
        assert pool.usd(at) >= PRICE * used * (1 - 1e-9)


def test_containers_are_charged_while_they_idle_and_no_longer(meter, clock):
    with embedding(meter, max_containers=1) as session:
        clock.now += 10
        session.seen("a", 1, 1)
    clock.now += 20
    assert meter.spent() == 30 * PRICE
    clock.now += 1_000
    assert meter.spent() == (10 + IDLE_SECONDS) * PRICE


def test_a_stopped_app_ends_the_idling_at_once(meter, clock):
    with embedding(meter, max_containers=1):
        clock.now += 10
    for _ in range(2):
        meter.close()
        clock.now += 30
    assert meter.spent() == 10 * PRICE
    (row,) = Ledger(meter.folder).rows()
    assert (row.usd, row.ended, row.seconds) == (10 * PRICE, True, 10)


def test_an_app_stopped_under_a_session_is_charged_no_further(meter, clock):
    with embedding(meter, max_containers=1) as session:
        clock.now += 10
        meter.close()
        clock.now += 10
        session.seen("late", 1, 1)
    clock.now += 10
    assert meter.spent() == 10 * PRICE


def test_sessions_that_meet_warm_containers_are_one_row_with_the_gap(meter, clock):
    for _ in range(3):
        with embedding(meter, max_containers=2) as session:
            session.seen("a", 5, 1)
            clock.now += 10
        clock.now += IDLE_SECONDS - 1
    meter.close()
    (row,) = Ledger(meter.folder).rows()
    assert (row.texts, row.tokens, row.containers) == (3, 15, 1)
    assert row.container_seconds == 3 * (10 + IDLE_SECONDS - 1) * 2


def test_sessions_after_the_containers_went_are_rows_of_their_own(meter, clock):
    for _ in range(2):
        with embedding(meter, max_containers=1):
            clock.now += 10
        clock.now += IDLE_SECONDS
    assert [row.container_seconds for row in meter.rows()] == [70, 70]
    assert meter.spent() == 140 * PRICE


def test_two_cells_of_one_encoder_at_once_share_their_containers_and_encoders_do_not(meter, clock):
    with embedding(meter) as first, embedding(meter) as second, embedding(meter, "nomic-v1.5") as other:
        for session in (first, second, other):
            session.seen("a", 1, 1)
        clock.now += 10
        assert meter.spent() == 2 * 10 * 4 * PRICE
        assert meter.spent_on("nomic-v1.5") == 10 * 4 * PRICE


def test_containers_do_not_idle_while_one_of_two_sessions_goes_on(meter, clock):
    with embedding(meter, max_containers=1):
        with embedding(meter, max_containers=3):
            clock.now += 10
        clock.now += 500
        assert meter.spent() == 510 * 3 * PRICE


def test_weights_are_charged_by_the_core_and_another_gpu_by_its_list_price(meter, clock):
    with meter.session("e", "cpu", 1, "weights"), meter.session("e", "H100", 1, "embed"):
        clock.now += 10
    meter.close()
    assert {row.kind: row.usd for row in meter.rows()} == {
        "weights": pytest.approx(10 * CORE_USD),
        "embed": pytest.approx(10 * (GPUS["H100"].usd + CORE_USD)),
    }


def test_a_clock_that_jumps_back_takes_nothing_off_and_time_goes_on(meter, clock):
    with embedding(meter, max_containers=1):
        clock.now += 10
        assert meter.spent() == 10 * PRICE
        clock.now -= 500
        assert meter.spent() == 10 * PRICE
        clock.now += 5
        assert meter.spent() == 15 * PRICE


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from("xy"), st.integers(1, 4)),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("answer"), st.integers(0, 5), st.sampled_from("abc")),
        st.tuples(st.just("time"), st.integers(-100, 100)),
        st.tuples(st.just("beat")),
        st.tuples(st.just("close")),
    ),
    max_size=40,
)


@given(EVENTS)
def test_spent_never_falls_and_ends_as_the_sum_of_the_ledger(tmp_path_factory, events):
    folder, clock = tmp_path_factory.mktemp("spend"), Clock()
    meter, opened, before = quiet_meter(folder, clock), [], 0.0
    for event, *details in events:
        if event == "enter":
            context = embedding(meter, *details)
            opened.append((context, context.__enter__()))
        elif event == "leave" and opened:
            opened.pop(details[0] % len(opened))[0].__exit__(None, None, None)
        elif event == "answer" and opened:
            opened[details[0] % len(opened)][1].seen(details[1], 10, 1)
        elif event == "time":
            clock.now += details[0]
        elif event in ("beat", "close"):
            getattr(meter, event)()
        assert meter.spent() >= before
        before = meter.spent()
    for context, _ in opened:
        context.__exit__(None, None, None)
    meter.close()
    written = Ledger(folder).rows()
    assert all(row.ended for row in written)
    assert meter.spent() == pytest.approx(sum(row.usd for row in written))
    assert quiet_meter(folder, clock).spent() == pytest.approx(meter.spent())


def test_answers_from_many_threads_are_all_counted(meter):
    def work():
        for number in range(20):
            with embedding(meter) as session:
                session.seen(f"container {number % 3}", 7, 2)
                session.check()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    meter.close()
    (row,) = Ledger(meter.folder).rows()
    assert (row.tokens, row.texts, row.containers) == (8 * 20 * 7, 8 * 20 * 2, 3)


def test_two_processes_on_one_version_share_the_ceiling(tmp_path):
    clocks = Clock(), Clock()
    meters = [quiet_meter(tmp_path, clock, max_usd=100 * PRICE) for clock in clocks]
    with embedding(meters[0], max_containers=1) as here, embedding(meters[1], max_containers=1) as there:
        for clock, meter in zip(clocks, meters, strict=True):
            clock.now += 60
            meter.beat()
        meters[0].beat()
        # Each takes its own seconds as they are, and the other's as the ledger has them: with the idle end.
        assert [meter.spent() for meter in meters] == [(60 + 60 + IDLE_SECONDS) * PRICE] * 2
        for session in (here, there):
            with pytest.raises(BudgetError, match="used up"):
                session.check()
    for meter in reversed(meters):
        meter.close()
    assert meters[0].rows()[0].usd == 60 * PRICE
    assert meters[0].spent() == (60 + 60 + IDLE_SECONDS) * PRICE  # never less than it said
    assert sum(row.usd for row in Ledger(tmp_path).rows()) == 120 * PRICE


def test_what_a_killed_process_spent_is_counted(tmp_path):
    program = (
        "import os, pathlib, signal, sys\n"
        "from runner.embed.cost.budget import Meter\n"
        "now = [0.0]\n"
        "meter = Meter(pathlib.Path(sys.argv[1]), 1000, 0.5, clock=lambda: now[0], beat_seconds=3600)\n"
        "with meter.session('mxbai-large-v1', 'L4', 2, 'embed') as session:\n"
        "    session.seen('a', 10, 1)\n"
        "    now[0] = 100.0\n"
        "    meter.beat()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=CHECKOUT, check=False)
    assert done.returncode == -signal.SIGKILL
    (row,) = Ledger(tmp_path).rows()
    assert not row.ended
    assert Meter(tmp_path, 1000, PRICE).earlier_usd == (100 + IDLE_SECONDS) * 2 * 0.5


def test_a_session_is_in_the_ledger_before_it_can_cost_anything(meter):
    with embedding(meter, max_containers=2):
        (row,) = Ledger(meter.folder).rows()
        assert row.usd == 2 * IDLE_SECONDS * PRICE
        assert (row.ended, row.price_per_second, row.gpu, row.what) == (False, PRICE, "L4", "mxbai-large-v1")


def test_every_beat_brings_the_ledger_up_to_date(meter, clock):
    with embedding(meter, max_containers=1) as session:
        session.seen("a", 3, 1)
        clock.now += 40
        meter.beat()
        (row,) = Ledger(meter.folder).rows()
        assert (row.seconds, row.tokens) == (40 + IDLE_SECONDS, 3)


DAMAGE = [
    *(b"", b'{"schema_version": 1', b"[]", b"\xff\xfe"),
    *({"usd": usd} for usd in (float("nan"), float("inf"), -1.0, None)),
    *({"kind": "holiday"}, {"started_on": "2026-05-01T"}, {"schema_version": 2}, {"more": 1}),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_ledger_is_an_error_that_names_the_file(meter, damage):
    with embedding(meter):
        pass
    (path,) = meter.folder.glob("*.json")
    is_whole = isinstance(damage, bytes)
    path.write_bytes(damage if is_whole else json.dumps(json.loads(path.read_bytes()) | damage).encode())
    with pytest.raises(BudgetError, match=path.name) as error:
        Meter(meter.folder, 5, PRICE)
    assert error.value.exit_code == 5


def test_what_a_kill_leaves_of_a_write_is_no_session(meter):
    with embedding(meter):
        (meter.folder / ".tmp-0123456789abcdef").write_bytes(b"{")
    assert Meter(meter.folder, 5e6, PRICE).spent() > 0


def test_the_ceiling_ends_a_session_with_the_figures_and_the_way_on(tmp_path, clock):
    with quiet_meter(tmp_path, clock) as first, embedding(first, max_containers=1):
        clock.now += 4
    meter = quiet_meter(tmp_path, clock, max_usd=5)
    with embedding(meter, max_containers=1) as session:
        clock.now += 6
        session.check()
        clock.now += 0.1
        with pytest.raises(BudgetError) as error:
            session.check()
    for part in ("$5.05", "--max-usd 5.00", "$2.00", str(tmp_path)):
        assert part in str(error.value)


def test_no_session_begins_past_the_ceiling(tmp_path, clock):
    with quiet_meter(tmp_path, clock) as first, embedding(first, max_containers=1):
        clock.now += 11
    meter = quiet_meter(tmp_path, clock, max_usd=5)
    with pytest.raises(BudgetError), embedding(meter):
        pytest.fail("the session began")
    assert len(Ledger(tmp_path).rows()) == 1


def test_the_watchdog_calls_every_stop_once_from_its_own_thread(tmp_path, clock, caplog):
    calls, done = [], threading.Event()
    meter = quiet_meter(tmp_path, clock, max_usd=5, beat_seconds=0.001)

    def broken():
        calls.append("broken")
        raise RuntimeError("key-0123")

    def stop():
        calls.append(threading.current_thread().name)
        done.set()

    meter.on_exhausted(broken)
    meter.on_exhausted(stop)
    with embedding(meter) as session:
        clock.now += 100
        assert done.wait(30)
        with pytest.raises(BudgetError):
            session.check()
        meter.beat()
    assert calls == ["broken", "budget"]
    assert "RuntimeError" in caplog.text
    assert "key-0123" not in caplog.text


def test_whoever_asks_too_late_to_be_stopped_is_stopped_at_once(tmp_path, clock):
    meter, calls = quiet_meter(tmp_path, clock, max_usd=5), []
    meter.on_exhausted(lambda: calls.append("in time"))
    with embedding(meter):
        clock.now += 100
        meter.beat()
        meter.on_exhausted(lambda: calls.append("late"))
        assert calls == ["in time", "late"]
        meter.beat()
    assert calls == ["in time", "late"]


def test_the_watchdog_ends_with_the_last_session_and_begins_with_the_next(tmp_path):
    meter = quiet_meter(tmp_path, Clock())
    for _ in range(2):
        with embedding(meter):
            assert [thread.name for thread in threading.enumerate()].count("budget") == 1
        meter.close()
        finish_watchdogs()


def finish_watchdogs():
    """Waits for the threads of closed meters."""
    for thread in threading.enumerate():
        if thread.name == "budget":
            thread.join(30)
            assert not thread.is_alive()


def damage(folder):
    (folder / "other.json").write_bytes(b"{")


def put_in_the_way(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.write_bytes(b"in the way")


@pytest.mark.parametrize(("spoil", "said"), [(damage, r"other\.json"), (put_in_the_way, "cannot be written")])
def test_a_ledger_that_cannot_be_written_or_read_stops_a_session(meter, spoil, said):
    stopped = threading.Event()
    meter.on_exhausted(stopped.set)
    with embedding(meter) as session:
        spoil(meter.folder)
        meter.beat()
        assert stopped.is_set()
        with pytest.raises(BudgetError, match=said):
            session.check()
        if meter.folder.is_file():
            meter.folder.unlink()


def test_nothing_begins_and_nothing_is_charged_where_the_ledger_cannot_be_written(tmp_path, clock):
    (tmp_path / "spend").write_bytes(b"in the way")
    meter = quiet_meter(tmp_path / "spend", clock)
    with pytest.raises(BackendError, match="cannot be written"), embedding(meter):
        pytest.fail("the session began")
    clock.now += 100
    assert meter.spent() == 0


def test_a_meter_writes_nothing_before_its_first_session(meter):
    assert meter.spent() == 0
    meter.close()
    assert not meter.folder.exists()


def test_the_rate_is_measured_from_one_answer_of_a_container_to_its_next(meter, clock):
    with embedding(meter) as session:
        for container, tokens in (("a", 1_000), ("b", 1_000), ("a", 30), ("b", 50), ("a", 20)):
            clock.now += 5
            session.seen(container, tokens, 1)
    (row,) = meter.rows()
    assert (row.tokens, row.busy_tokens, row.busy_seconds) == (2_100, 100, 20 + 10)


def test_the_time_between_sessions_is_left_out_of_the_rate(meter, clock):
    for _ in range(2):
        with embedding(meter) as session:
            session.seen("a", 1_000, 1)
            clock.now += 5
            session.seen("a", 10, 1)
        clock.now += 30
    (row,) = meter.rows()
    assert (row.tokens, row.busy_tokens, row.busy_seconds) == (2_020, 20, 10)


def test_every_ledger_below_the_work_that_a_folder_belongs_to_is_found(tmp_path, clock):
    places = ("bills/v1", "us_code/v2", "us_code/v2/replay", "replay/2026-05-01")
    ledgers = [tmp_path / ".work" / "outer" / ".work" / place / "spend" for place in places]
    for ledger in ledgers:
        with quiet_meter(ledger, clock) as meter, embedding(meter):
            clock.now += 1
    for folder in (*ledgers, *(ledger.parent for ledger in ledgers), ledgers[0].parents[2]):
        assert len(all_sessions(folder)) == len(places)
    assert len(all_sessions(tmp_path)) == len(places), "no folder of that name is above it"
    assert all_sessions(tmp_path / "nowhere") == []


def test_options_take_the_lists_price():
    assert RemoteOptions().price == container_price("L4") == GPUS["L4"].usd + CORE_USD
    assert RemoteOptions(gpu="l40s").gpu == "L40S"
    assert RemoteOptions(gpu="cpu").price == 4 * CORE_USD > weights_price()
    assert "2026-06-27" in PRICE_SOURCE


def test_a_gpu_without_a_price_is_refused_with_those_that_have_one():
    with pytest.raises(InputError, match="T4, L4, A10, L40S, A100-40GB, A100-80GB, H100, H200, cpu"):
        RemoteOptions(gpu="B200")


@pytest.mark.parametrize("amount", [0.0, -1.0, float("nan"), float("inf")])
def test_amounts_that_are_none_are_refused(amount):
    with pytest.raises(InputError, match="max-usd"):
        RemoteOptions(max_usd=amount)
