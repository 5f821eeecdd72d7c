"""The same labels, whatever the service did on the way: every fault, through loopback stand-ins of the APIs."""

import json
import shutil
import signal

import pytest
from hypothesis import settings

from runner.base.errors import BackendError
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels
from runner.judge.answers import Importer
from runner.judge.models.api import RECORDS
from runner.judge.models.client import Way
from runner.judge.models.judging import MANY_UNREADABLE
from runner.judge.models.kept_replies import ReplyFiles
from runner.judge.models.prompt import asks_of
from tests.support import anthropic_server as faults
from tests.support import openai_chat_server as chat
from tests.support.anthropic_server import AnthropicServer, served
from tests.support.forked import processes
from tests.support.judge_rows import grade_of, small_batches
from tests.support.judging_process import KEY, MODEL, judge, judge_in
from tests.support.openai_chat_server import ChatServer
from tests.support.small_set import make_version

PAIRS, AT_ONCE = 60, 20
KILLS = settings().max_examples // 12
"""Two in the suite, eight in the profile "all"."""

KILLED = -signal.SIGKILL
BY_JUDGE = ("judge", "model", "judged_on")
WAYS = ("messages", "batches")


@pytest.fixture(name="exported", scope="module")
def _exported(ready, tmp_path_factory):
    """The folder of a version whose batches wait for a judge; to be copied."""
    folder = tmp_path_factory.mktemp("exported")
    shutil.copytree(ready, folder, dirs_exist_ok=True)
    small_batches(make_version(folder), PAIRS, AT_ONCE)
    return folder


@pytest.fixture(name="expected", scope="module")
def _expected(exported, tmp_path_factory):
    """The labels that file answers with the stand-in's grades make, a batch at a time."""
    folder = tmp_path_factory.mktemp("by-file")
    shutil.copytree(exported, folder, dirs_exist_ok=True)
    version = make_version(folder)
    for path in batch_files(version.judging):
        rows = read_batch(path)
        answers = [
            {"query_id": row.query_id, "doc_id": row.doc_id, **grade_of(ask.user)}
            for row, ask in zip(rows, asks_of(rows, "", ""), strict=True)
        ]
        file = path.with_name(f"{path.stem}.answers.jsonl")
        file.write_text("".join(json.dumps(one) + "\n" for one in reversed(answers)))
        Importer(version).take_file(file, judge="a person", model="", judged_on="2026-02-14")
    found = labels(version)
    assert len(found) == PAIRS
    assert {label["grade"] for label in found} >= {0, 1}
    assert any(label["spans"] for label in found)
    return found


@pytest.fixture(name="waiting")
def _waiting(exported, tmp_path, monkeypatch):
    """A version whose batches wait, and a key for the service."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    shutil.copytree(exported, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


def labels(version):
    """The labels in file order, without what the judge is."""
    dumped = [label.model_dump() for label in load_labels(version.labels_path)]
    return [{name: value for name, value in label.items() if name not in BY_JUDGE} for label in dumped]


def marks(version):
    """A word of each row's ask that no other has, by place in the order of the batches."""
    rows = [row for path in batch_files(version.judging) for row in read_batch(path)]
    return [ask.user.split("\n")[0].rsplit(" ", 1)[-1] for ask in asks_of(rows, "", "")]


MIX = [chat.prose, chat.off_schema, chat.refusal, chat.cut_off, chat.empty, chat.wrong_role]
MIX += [faults.rate_limited(0), faults.broken(), faults.reset(), faults.not_json()]
COMPLETE = {
    # By way: what some requests meet once, what the server is told beside, and how many pairs are asked about again.
    "messages: cut off": ("messages", faults.cut_off, {}, 20),
    "messages: refused": ("messages", faults.refusal, {}, 20),
    "messages: fenced": ("messages", faults.prose, {}, 20),
    "messages: 429 with Retry-After": ("messages", faults.rate_limited(7), {}, 20),
    "messages: 409": ("messages", faults.status(409), {}, 20),
    "messages: 500": ("messages", faults.broken(), {}, 20),
    "batches: cut off": ("batches", faults.cut_off, {}, 20),
    "batches: expired": ("batches", "expired", {}, 20),
    "batches: errored": ("batches", "errored", {}, 20),
    "batches: 409 of the batch": ("batches", None, {"retrieved": [faults.status(409)] * 4}, 0),
    "batches: 409 at its creation": ("batches", None, {"turned_away": [faults.status(409)] * 4}, 0),
    "chat: cut off": ("chat", chat.cut_off, {}, 20),
    "chat: refused": ("chat", chat.refusal, {}, 20),
    "chat: fenced": ("chat", chat.fenced, {}, 20),
    "chat: thinks in its answer": ("chat", chat.thought, {}, 20),
    "chat: many things": ("chat", MIX, {}, 20),
    "chat: thinks beside its answer": ("chat", None, {"always": {"": chat.reasoned}}, 0),
    "chat: no temperature, another limit": ("chat", None, {"thinks": True}, 0),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_every_pair_has_its_label_and_is_paid_for_once_whatever_a_service_does_for_a_time(waiting, expected, name):
    how, fault, told, n_again = COMPLETE[name]
    kinds = fault if isinstance(fault, list) else [fault]
    struck = {word: [kinds[n % len(kinds)]] for n, word in enumerate(marks(waiting)) if fault and n % 3 == 1}
    kind = ChatServer if how == "chat" else AnthropicServer
    with served(kind(grade=grade_of, by_text=struck, **told)) as server:
        done = judge(waiting, how, server.url)
    assert labels(waiting) == expected
    assert done.pairs == PAIRS
    assert len(server.asked) == PAIRS + n_again
    assert not any(struck.values()), "a fault never struck"


NEVER = {
    "messages: cut off": ("messages", faults.cut_off, "cut off"),
    "messages: refused": ("messages", faults.refusal, "refused"),
    "messages: fenced": ("messages", faults.prose, "begins"),
    "messages: thinks in its answer": ("messages", faults.thought, "<think>"),
    "batches: cut off": ("batches", faults.cut_off, "cut off"),
    "batches: refused": ("batches", faults.refusal, "refused"),
    "chat: cut off": ("chat", chat.cut_off, "cut off"),
    "chat: refused": ("chat", chat.refusal, "refused"),
    "chat: fenced": ("chat", chat.fenced, "begins"),
    "chat: thinks in its answer": ("chat", chat.thought, "<think>"),
}


@pytest.mark.parametrize("name", NEVER)
def test_a_judge_that_never_answers_is_given_up_after_twenty_replies_which_are_kept(waiting, name):
    how, fault, words = NEVER[name]
    kind = ChatServer if how == "chat" else AnthropicServer
    with (
        served(kind(grade=grade_of, always={"": fault})) as server,
        pytest.raises(BackendError, match=f"(?s)no answer among them.*{words}"),
    ):
        judge(waiting, how, server.url)
    # Those that were under way are paid, and a message batch is as a whole.
    assert len(server.asked) <= (PAIRS if how == "batches" else MANY_UNREADABLE + 3 * Way().parallel)
    kept = ReplyFiles(waiting.judging, MODEL)
    assert sum(len(kept.read(path.stem)) for path in batch_files(waiting.judging)) == MANY_UNREADABLE
    assert not waiting.labels_path.exists()


def start(*arguments):
    process = processes.Process(target=judge_in, args=arguments)
    process.start()
    process.join(timeout=120)
    return process.exitcode


def looked_up(version, server):
    """What a person does for a batch whose creation was not answered: its id from the console, or no record."""
    for path in (version.work / RECORDS).glob("*.json"):
        record = json.loads(path.read_text())
        if not record["id"] and server.batches:
            path.write_text(json.dumps(record | {"id": next(iter(server.batches))}))
        elif not record["id"]:
            path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS)
def test_a_judging_that_is_killed_anywhere_is_finished_by_the_next_with_the_same_labels(
    exported, expected, tmp_path_factory, how, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    def copied():
        folder = tmp_path_factory.mktemp("killed")
        shutil.copytree(exported, folder, dirs_exist_ok=True)
        return folder

    total = tmp_path_factory.mktemp("total") / "steps"
    with served(AnthropicServer(grade=grade_of)) as server:
        assert start(copied(), how, server.url, None, total) == 0
    steps = int(total.read_text())
    assert steps > PAIRS
    for last in range(1, steps, max(1, steps // KILLS)):
        folder = copied()
        with served(AnthropicServer(grade=grade_of)) as server:
            assert start(folder, how, server.url, last, total) == KILLED
            looked_up(make_version(folder), server)
            done = judge(make_version(folder), how, server.url)
            assert labels(make_version(folder)) == expected
            assert done.kept + done.requests == PAIRS
            twice = len(server.asked) - PAIRS
            # Replies that were under way or not yet taken at the kill are lost with it; a message batch is not.
            assert twice <= (9 if how == "messages" else 0), f"killed at step {last}"
