"""What is asked, kept and imported when a language model judges exported batches, whatever it does."""

import json
import shlex
import shutil
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.base.progress import Progress
from runner.embed.cost.ledger import BudgetError
from runner.eval_set.batches import rebound
from runner.eval_set.shapes.labels import BatchRow
from runner.judge.models.judging import ASKED_AGAIN, MANY_UNREADABLE, Judged, Judging
from tests.support.judge_rows import (
    JUDGE,
    SERVED,
    Model,
    as_reply,
    grade_of,
    prose,
    refused,
    right,
    said,
    small_batches,
    too_long,
)
from tests.support.small_set import make_version

DAY = "2026-01-31"
PAIRS, AT_ONCE = 30, 10


@pytest.fixture(name="batches")
def _batches(version):
    return small_batches(version, PAIRS, AT_ONCE)


class Desk:
    """An importer that notes what it is given."""

    def __init__(self):
        self.calls = []
        self.imported = {}
        self.places = []

    def __call__(self, given):
        self.calls.append([name for name, _ in groupby(given, lambda one: one[1].batch)])
        for _, label in given:
            self.imported[label.batch, *label.pair] = label
        self.places += [where for where, _ in given]

    @property
    def names(self):
        """The batches as they were imported."""
        return [name for call in self.calls for name in call]

    @property
    def grades(self):
        return {key: one.grade for key, one in self.imported.items()}


def judge(version, batches, model=None, desk=None, day=DAY, **more):
    desk = desk or Desk()
    done = Judging(version, batches, model or Model(), desk, today=lambda: day, **more).run()
    return desk, done


def only(one: BatchRow, *faults, forever=False):
    """What `always` of a model is, so that asks about one pair meet these faults, and the last for ever or none."""
    left = list(faults)

    def reply(ask):
        if one.query not in ask.user or not left:
            return right(ask)
        return left[0](ask) if forever and len(left) == 1 else left.pop(0)(ask)

    return {one.title: reply}


def all_rows(batches):
    return [one for rows in batches.values() for one in rows]


def test_all_batches_are_asked_about_in_one_call_and_imported_once_in_order_with_answers_in_row_order(version, batches):
    model = Model()
    desk, done = judge(version, batches, model)
    assert done == Judged(pairs=PAIRS, kept=0, requests=PAIRS)
    assert desk.names == list(batches) == ["batch-0001", "batch-0002", "batch-0003"]
    for (key, one), of in zip(desk.imported.items(), all_rows(batches), strict=True):
        assert key == (of.batch, of.query_id, of.doc_id)
        assert (one.judge, one.model, one.judged_on, one.round) == (JUDGE, SERVED, DAY, 0)
        assert one.evidence_sha256 == of.evidence_sha256
    for where, of in zip(desk.places, all_rows(batches), strict=True):
        assert where.endswith(f"{of.batch}.jsonl (query {of.query_id} and {of.doc_id})")
    assert set(desk.grades.values()) >= {0, 1}
    assert [len(call) for call in model.calls] == [PAIRS]
    assert len({ask.system for ask in model.calls[0]}) == 1


def test_what_was_answered_is_not_asked_again_and_is_imported_again(version, batches):
    first, _ = judge(version, batches)
    model = Model()
    again, done = judge(version, batches, model, day="2026-02-01")
    assert model.calls == []
    assert done == Judged(pairs=PAIRS, kept=PAIRS, requests=0)
    assert list(again.imported.items()) == list(first.imported.items()), (
        "the day of a label is the day on which its reply came"
    )


@pytest.mark.parametrize("fault", [prose, refused], ids=["prose", "refused"])
@pytest.mark.parametrize("times", [1, ASKED_AGAIN])
def test_a_pair_without_a_usable_reply_is_asked_about_again_and_no_other(version, batches, fault, times, capsys):
    expected, _ = judge(version, batches, Model(model="other"))
    one = all_rows(batches)[13]
    model = Model(always=only(one, *[fault] * times))
    desk, done = judge(version, batches, model)
    assert [len(call) for call in model.calls] == [PAIRS, *[1] * times]
    assert done.requests == PAIRS + times
    assert desk.grades == expected.grades
    assert desk.names == list(batches)
    assert f"{JUDGE}: asking once more about 1 of {PAIRS} pairs (the first: " in capsys.readouterr().err


def attempts(version, batch):
    path = version.judging / "replies" / JUDGE / f"{batch}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_of_two_kept_answers_to_a_pair_the_earlier_counts(version, batches):
    first, _ = judge(version, batches)
    path = version.judging / "replies" / JUDGE / "batch-0001.jsonl"
    later = [{**line, "text": said(3, "Changed.", [])} for line in attempts(version, "batch-0001")]
    path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in later))
    again, _ = judge(version, batches)
    assert again.imported == first.imported


def test_a_pair_that_is_refused_for_ever_is_named_after_all_others_are_imported(version, batches):
    one = batches["batch-0001"][4]
    model = Model(always=only(one, refused, forever=True))
    desk = Desk()
    with pytest.raises(BackendError) as caught:
        judge(version, batches, model, desk)
    lines = str(caught.value).split("\n")
    assert lines[0] == f"Pairs without an answer by {JUDGE}: 1 of {PAIRS}."
    assert lines[1] == f"  batch-0001: query {one.query_id} and {one.doc_id}: it was refused (stop_reason refusal)"
    assert "Run the command again" in lines[2]
    answer = json.loads(lines[3])
    assert (answer["query_id"], answer["doc_id"]) == (one.query_id, one.doc_id)
    command = shlex.split(lines[4])
    assert command[:3] == ["bin/per-source-eval.py", "labels", "import"]
    assert command[3:5] == shlex.split(version.flags)
    assert command[-3:] == ["--judge=NAME", "--person", str(version.judging / "batch-0001.answers.jsonl")]
    assert "--model=ID" in lines[5]
    assert [len(call) for call in model.calls] == [PAIRS, 1, 1]
    assert desk.names == list(batches)
    assert len(desk.imported) == PAIRS - 1

    later = Model()
    desk, done = judge(version, batches, later)
    assert [len(call) for call in later.calls] == [1]
    assert (done.kept, len(desk.imported)) == (PAIRS - 1, PAIRS)


def test_what_would_fail_again_is_not_asked_again(version, batches):
    model = Model(always=only(all_rows(batches)[0], too_long))
    with pytest.raises(BackendError, match="the request is too long"):
        judge(version, batches, model)
    assert [len(call) for call in model.calls] == [PAIRS]


STOPS = {
    "service": (BackendError("the key was refused."), BackendError),
    "budget": (BudgetError("the budget is used up."), BudgetError),
    "Ctrl-C": (KeyboardInterrupt(), KeyboardInterrupt),
    "defect": (RuntimeError("Authorization: Bearer sk-secret"), BackendError),
}


@pytest.mark.parametrize("name", STOPS)
@pytest.mark.parametrize("after", [0, 4, AT_ONCE, 14, PAIRS - 1])
def test_what_stops_the_asking_leaves_replies_that_the_next_run_imports(version, batches, name, after):
    raised, seen = STOPS[name]
    whole, _ = judge(version, batches, Model(model="other"))
    model, desk = Model(stop_after=after, stop_with=raised), Desk()
    with pytest.raises(seen) as caught:
        judge(version, batches, model, desk)
    assert desk.names == list(batches)[: after // AT_ONCE], "only what is complete"
    assert model.open_calls == 0, "nothing goes on behind an error"
    if name != "Ctrl-C":
        assert f"{after} of {PAIRS} pairs are answered and kept; run the command again" in str(caught.value)
        assert "secret" not in str(caught.value)
    later = Model()
    again, done = judge(version, batches, later, day="2026-02-01")
    assert (done.kept, done.requests) == (after, PAIRS - after)
    assert again.names == list(batches)
    assert list(again.grades.items()) == list(whole.grades.items())
    days = [one.judged_on for one in again.imported.values()]
    assert days == [DAY] * after + ["2026-02-01"] * (PAIRS - after)


def test_a_service_that_gives_up_on_the_last_pairs_does_not_keep_the_others_from_being_imported(version, batches):
    one = batches["batch-0001"][0]

    class GivesUp(Model):
        def replies(self, asks):
            if len(asks) == 1:
                raise BackendError("it came to nothing again and again.")
            yield from super().replies(asks)

    for _ in range(2):
        desk = Desk()
        with pytest.raises(BackendError, match=rf"(?s)again and again\..*: 1 of {PAIRS}\.") as caught:
            judge(version, batches, GivesUp(always=only(one, refused, forever=True)), desk)
        assert f"query {one.query_id} and {one.doc_id}: it was refused" in str(caught.value)
        assert len(desk.imported) == PAIRS - 1


@pytest.mark.parametrize("fault", [prose, refused], ids=["prose", "refused"])
def test_a_model_that_never_answers_in_the_form_is_given_up_before_all_is_paid_for(version, batches, fault):
    model = Model(always={"": fault})
    with pytest.raises(BackendError, match=f"{JUDGE} does not answer in the form: 20 replies and no answer among them"):
        judge(version, batches, model)
    assert len(model.asked) == MANY_UNREADABLE
    assert model.open_calls == 0
    assert len(attempts(version, "batch-0001") + attempts(version, "batch-0002")) == MANY_UNREADABLE
    # One answer is enough for it to be asked to the end.
    once = iter([right])
    model = Model(model="other", always={"": lambda ask: next(once, prose)(ask)})
    with pytest.raises(BackendError, match=f": {PAIRS - 1} of {PAIRS}\\."):
        judge(version, batches, model)
    assert [len(call) for call in model.calls] == [PAIRS, PAIRS - 1, PAIRS - 1]


def test_replies_in_any_order_to_nothing_and_again_change_nothing(version, batches):
    class Chatty(Model):
        def replies(self, asks):
            for reply in reversed(list(super().replies(asks))):
                yield as_reply(type(asks[0])("0" * 64, "", "", {}, 1), '{"grade": 3, "reason": "", "passages": []}')
                yield reply
                yield as_reply(asks[-1], '{"grade": 3, "reason": "changed", "passages": []}')

    whole, _ = judge(version, batches, Model(model="other"))
    desk, done = judge(version, batches, Chatty())
    assert list(desk.grades.items()) == list(whole.grades.items())
    assert done.requests == PAIRS
    assert sum(len(attempts(version, name)) for name in batches) == PAIRS


def test_a_second_judge_has_files_of_its_own_and_sees_no_first_grade(version, batches):
    doubles = {"double-0001": [rebound(one, "double-0001") for one in all_rows(batches)[:5]]}
    judge(version, batches)
    model = Model(model="claude-second-1")
    desk, done = judge(version, doubles, model)
    assert done.requests == 5
    assert {one.judge for one in desk.imported.values()} == {"claude-second-1"}
    assert (version.judging / "replies" / "claude-second-1" / "double-0001.jsonl").exists()
    for ask, of in zip(model.calls[0], doubles["double-0001"], strict=True):
        assert " words" in grade_of(ask.user)["reason"], "which is what a first reason says"
        assert " words" not in ask.user
        assert JUDGE not in ask.user
        assert of.query in ask.user


@pytest.mark.parametrize("field", ["version", "prompt_sha256"])
def test_rows_of_another_version_or_prompt_are_refused_before_anything_is_asked(version, batches, field):
    other = {"version": "demo v2", "prompt_sha256": "0" * 64}[field]
    rows = batches["batch-0002"]
    changed = BatchRow.model_validate({**rows[1].model_dump(), field: other})
    model = Model()
    with pytest.raises(InputError, match=r"batch-0002 was exported for another version or judge prompt than demo v1"):
        judge(version, {**batches, "batch-0002": [rows[0], changed]}, model)
    assert model.calls == []


def test_an_import_that_is_refused_ends_the_run_and_loses_no_reply(version, batches):
    def refuse(given):
        raise InputError(f"{given[0][1].batch}: another grade already.")

    model = Model()
    with pytest.raises(InputError, match=r"^batch-0001: another grade already\.$"):
        judge(version, batches, model, refuse)
    assert model.open_calls == 0
    later = Model()
    _, done = judge(version, batches, later)
    assert (done.kept, done.requests) == (PAIRS, 0)


def test_progress_counts_pairs_from_what_was_kept_to_all(version, batches):
    with pytest.raises(BackendError):
        judge(version, batches, Model(stop_after=4))
    seen = []
    judge(version, batches, report=seen.append)
    assert seen == [Progress(n, PAIRS, n, PAIRS) for n in range(4, PAIRS + 1)]


FAULTS = {"right": right, "prose": prose, "refused": refused, "off": lambda ask: as_reply(ask, '{"grade": 9}')}


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(0, 11), st.lists(st.sampled_from(list(FAULTS)), max_size=5), max_size=8),
    st.lists(st.integers(0, 14), max_size=3),
    st.randoms(use_true_random=False),
)
def test_any_faults_and_stops_end_in_the_answers_of_an_undisturbed_run(ready, tmp_path_factory, scripts, stops, order):
    folder = tmp_path_factory.mktemp("judging")
    shutil.copytree(ready, folder, dirs_exist_ok=True)
    version = make_version(folder)
    batches = small_batches(version, 12, 5)
    expected = {(one.batch, one.query_id, one.doc_id) for one in all_rows(batches)}
    script = {n: list(names) for n, names in scripts.items()}
    numbers: dict[str, int] = {}

    class Scripted(Model):
        def replies(self, asks):
            for ask in asks:
                numbers.setdefault(ask.key, len(numbers))
            yield from super().replies(order.sample(asks, len(asks)))

        def _reply(self, ask):
            names = script.get(numbers[ask.key])
            return FAULTS[names.pop(0)](ask) if names else right(ask)

    desk = Desk()
    for stop in [*stops, None, None, None]:
        try:
            judge(version, batches, Scripted(stop_after=stop), desk)
        except BackendError:
            continue
    assert set(desk.imported) == expected
    clean = Desk()
    judge(version, batches, Model(model="clean"), clean)
    assert desk.grades == clean.grades
