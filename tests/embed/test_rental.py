"""Containers rented by the second: what they are charged, held ahead of time, and stopped at the ceiling."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.embed.cost.ledger import LEDGER, Budget, BudgetError, Ledger
from runner.embed.cost.prices import CORE_USD, GPUS, PRICE_SOURCE, RemoteOptions, container_price, weights_price
from runner.embed.cost.rental import IDLE_SECONDS, Rental, Rentals

PRICE = container_price("L4")


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture(name="clock")
def _clock():
    return Clock()


OPENED = []


@pytest.fixture(autouse=True)
def _closed():
    """All rentals of a test closed at its end, and their watchdogs gone."""
    yield
    while OPENED:
        OPENED.pop().close()
    finish_watchdogs()


def finish_watchdogs():
    """Waits for the threads of closed rentals."""
    for thread in threading.enumerate():
        if thread.name == "budget":
            thread.join(30)
            assert not thread.is_alive()


def quiet(folder, clock, max_usd=1e6, containers=1, beat_seconds=3600, **more):
    """Rentals whose watchdog has nothing to say for the length of a test, unless `beat_seconds` are fewer."""
    options = RemoteOptions(max_usd=max_usd, containers=containers, **more)
    OPENED.append(Rentals(Budget(folder, max_usd), options, clock, beat_seconds))
    return OPENED[-1]


def embedding(rentals, what="mxbai-large-v1"):
    return rentals.session(what, "embed")


def seconds(folder):
    """Container-seconds of each line, as the ledger has them now."""
    return [each.container_seconds for each in Ledger(folder).entries()]


def test_a_minute_is_in_the_ledger_before_anything_can_cost_and_every_beat_holds_the_next(tmp_path, clock):
    rentals = quiet(tmp_path, clock, containers=2)
    with embedding(rentals):
        (entry,) = Ledger(tmp_path).entries()
        assert entry.usd == pytest.approx(2 * IDLE_SECONDS * PRICE)
        assert (entry.ended, entry.price_per_second, entry.gpu, entry.what) == (False, PRICE, "L4", "mxbai-large-v1")
        for number in range(1, 4):
            clock.now += 40
            rentals.beat()
            assert seconds(tmp_path) == [2 * (40 * number + IDLE_SECONDS)]


def test_containers_that_never_answer_are_charged_as_long_as_the_one_that_does(tmp_path, clock):
    rentals = quiet(tmp_path, clock, containers=4)
    with embedding(rentals):
        clock.now += 100
    clock.now += 2 * IDLE_SECONDS
    rentals.close()
    assert rentals.budget.spent() == pytest.approx((100 + IDLE_SECONDS) * 4 * PRICE)


@given(st.integers(1, 8), st.lists(st.tuples(st.floats(0, 500), st.floats(0, 500)), max_size=30), st.floats(0, 1000))
def test_what_is_charged_is_never_below_what_containers_cost_however_they_start_hang_and_are_replaced(
    n_places, lives, at
):
    """`lives` are containers by start and length, of which no more than `n_places` run at once."""
    rental = Rental(None, PRICE, n_places, began=0.0)
    free, billed = [0.0] * n_places, []
    for start, length in sorted(lives):
        place = free.index(min(free))
        begun = max(start, free[place])
        free[place] = begun + length
        billed.append((begun, begun + length))
    used = sum(max(0.0, min(at, end) - begun) for begun, end in billed)
    assert rental.usd(at) >= PRICE * used * (1 - 1e-9)


def test_containers_are_charged_while_they_idle_and_no_longer(tmp_path, clock):
    rentals = quiet(tmp_path, clock)
    with embedding(rentals):
        clock.now += 10
    assert seconds(tmp_path) == [10 + IDLE_SECONDS]
    clock.now += 1_000
    rentals.beat()
    (entry,) = Ledger(tmp_path).entries()
    assert (entry.container_seconds, entry.ended) == (10 + IDLE_SECONDS, True)


def test_a_stopped_app_ends_the_idling_at_once_and_is_charged_no_further(tmp_path, clock):
    rentals = quiet(tmp_path, clock)
    with embedding(rentals):
        clock.now += 10
        for _ in range(2):
            rentals.close()
            clock.now += 30
    (entry,) = Ledger(tmp_path).entries()
    assert (entry.container_seconds, entry.ended) == (10, True)


@pytest.mark.parametrize(
    ("gap", "expected"), [(IDLE_SECONDS - 1, [2 * (10 + IDLE_SECONDS - 1)]), (IDLE_SECONDS, [10 + IDLE_SECONDS] * 2)]
)
def test_sessions_that_meet_warm_containers_are_one_line_with_the_gap_and_later_ones_are_not(
    tmp_path, clock, gap, expected
):
    rentals = quiet(tmp_path, clock)
    for _ in range(2):
        with embedding(rentals):
            clock.now += 10
        clock.now += gap
    rentals.close()
    assert seconds(tmp_path) == expected


def test_two_cells_of_one_encoder_at_once_share_their_containers_and_encoders_do_not(tmp_path, clock):
    rentals = quiet(tmp_path, clock)
    with embedding(rentals), embedding(rentals, "nomic-v1.5"):
        with embedding(rentals):
            clock.now += 10
        clock.now += 500  # no idle time while one of two goes on
        rentals.close()
    assert seconds(tmp_path) == [510, 510]
    assert rentals.budget.spent("nomic-v1.5") == pytest.approx(510 * PRICE)


def test_weights_are_charged_by_the_core_whatever_embeds(tmp_path, clock):
    rentals = quiet(tmp_path, clock, gpu="H100", containers=3)
    with rentals.session("e", "weights"), embedding(rentals, "e"):
        clock.now += 10
        rentals.close()
    assert {each.kind: (each.gpu, each.usd) for each in Ledger(tmp_path).entries()} == {
        "weights": ("cpu", pytest.approx(10 * CORE_USD)),
        "embed": ("H100", pytest.approx(30 * (GPUS["H100"].usd + CORE_USD))),
    }


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from("xy")),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("time"), st.integers(0, 100)),
        st.tuples(st.just("beat")),
        st.tuples(st.just("close")),
    ),
    max_size=40,
)


@given(EVENTS)
def test_whatever_happens_no_second_with_a_user_is_unpaid_and_all_ends(tmp_path_factory, events):
    folder, clock = tmp_path_factory.mktemp("spend"), Clock()
    rentals, opened, used = quiet(folder, clock), [], 0.0
    is_closed = False
    for event, *details in events:
        if event == "enter" and not is_closed:
            context = embedding(rentals, *details)
            opened.append((context, context.__enter__(), details[0]))
        elif event == "leave" and opened:
            opened.pop(details[0] % len(opened))[0].__exit__(None, None, None)
        elif event == "time":
            clock.now += details[0]
            used += 0 if is_closed else details[0] * len({what for *_, what in opened})
        elif event in ("beat", "close"):
            getattr(rentals, event)()
            is_closed |= event == "close"
    for context, *_ in opened:
        context.__exit__(None, None, None)
    rentals.close()
    entries = Ledger(folder).entries()
    assert all(entry.ended for entry in entries)
    assert sum(entry.container_seconds for entry in entries) >= used
    assert rentals.budget.spent() == pytest.approx(sum(entry.container_seconds for entry in entries) * PRICE)


def test_sessions_of_many_threads_are_one_rental(tmp_path, clock):
    rentals = quiet(tmp_path, clock)

    def work():
        for _ in range(20):
            with embedding(rentals):
                rentals.check()

    with embedding(rentals) as rental:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rental.users == 1
    rentals.close()
    assert len(Ledger(tmp_path).entries()) == 1


def test_two_processes_on_one_version_share_the_ceiling(tmp_path):
    clocks = Clock(), Clock()
    rentals = [quiet(tmp_path, clock, max_usd=(2 * IDLE_SECONDS + 50) * PRICE) for clock in clocks]
    with embedding(rentals[0]), embedding(rentals[1]):
        for clock in clocks:
            clock.now += 30
        rentals[0].beat()
        rentals[0].check()
        with pytest.raises(BudgetError, match=r"not enough"):
            rentals[1].check()
        assert rentals[0].budget.spent() == pytest.approx((2 * IDLE_SECONDS + 30) * PRICE)


def test_the_ceiling_holds_the_next_minute_and_ends_a_session_with_the_figures_and_the_way_on(tmp_path, clock):
    rentals = quiet(tmp_path, clock, max_usd=(IDLE_SECONDS + 10) * PRICE)
    with embedding(rentals):
        clock.now += 9
        rentals.check()
        clock.now += 9
        with pytest.raises(BudgetError) as error:
            rentals.check()
    for part in ("--max-usd", "another minute of its containers", str(tmp_path / LEDGER)):
        assert part in str(error.value)
    assert rentals.budget.spent() <= rentals.budget.max_usd


def test_no_session_begins_past_the_ceiling(tmp_path, clock):
    rentals = quiet(tmp_path, clock, max_usd=(IDLE_SECONDS - 1) * PRICE)
    with pytest.raises(BudgetError), embedding(rentals):
        pytest.fail("the session began")
    assert Ledger(tmp_path).entries() == []


def test_the_watchdog_calls_a_stop_once_from_its_own_thread_and_tells_no_more_than_the_kind_of_its_error(
    tmp_path, clock, caplog
):
    calls, done = [], threading.Event()
    rentals = quiet(tmp_path, clock, max_usd=100 * PRICE, beat_seconds=0.001)

    def stop():
        calls.append(threading.current_thread().name)
        done.set()
        raise RuntimeError("key-0123")

    rentals.on_exhausted(stop)
    with embedding(rentals):
        clock.now += 100
        assert done.wait(30)
        with pytest.raises(BudgetError):
            rentals.check()
        rentals.on_exhausted(lambda: calls.append("late"))
        rentals.beat()
    finish_watchdogs()
    assert calls == ["budget", "late"]
    assert "RuntimeError" in caplog.text
    assert "key-0123" not in caplog.text


def test_the_watchdog_ends_with_the_last_session_and_begins_with_the_next(tmp_path):
    rentals = quiet(tmp_path, Clock())
    for _ in range(2):
        with embedding(rentals):
            assert [thread.name for thread in threading.enumerate()].count("budget") == 1
        rentals.close()
        finish_watchdogs()


def damage(folder):
    with (folder / LEDGER).open("ab") as stream:
        stream.write(b"{\n")


def put_in_the_way(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.write_bytes(b"in the way")


@pytest.mark.parametrize(("spoil", "said"), [(damage, rf"{LEDGER}:2"), (put_in_the_way, "cannot be written")])
def test_a_ledger_that_cannot_be_written_or_read_stops_a_session(tmp_path, clock, spoil, said):
    folder, stopped = tmp_path / "spend", threading.Event()
    rentals = quiet(folder, clock)
    rentals.on_exhausted(stopped.set)
    with embedding(rentals):
        spoil(folder)
        rentals.beat()
        assert stopped.is_set()
        with pytest.raises(BudgetError, match=said):
            rentals.check()
    with pytest.raises(BackendError):
        rentals.close()
    OPENED.remove(rentals)


def test_nothing_is_written_before_the_first_session(tmp_path, clock):
    rentals = quiet(tmp_path / "spend", clock)
    rentals.close()
    assert not (tmp_path / "spend").exists()


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
