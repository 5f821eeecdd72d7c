"""Services that fail and lie, at random: the answers that stand in the end are those of a service that never did."""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from runner.base.errors import BackendError
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels
from runner.judge.models.prompt import asks_of
from tests.soak.trials import Kind, Trial
from tests.support import anthropic_server as anthropic
from tests.support import modal_words
from tests.support import openai_chat_server as chat
from tests.support.embedding_server import Server
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import APIS, opened, rows_of
from tests.support.judge_rows import grade_of, small_batches
from tests.support.judging_process import KEY, judge
from tests.support.loopback import Wire, served
from tests.support.small_set import begin, make_version

PAIRS, AT_ONCE = 40, 20
WAYS = ("messages", "batches", "chat")
RUNS = 12
"""Times that a command may be run again before what it cannot do is a finding."""

ON_THE_WAY = (
    anthropic.rate_limited(0),
    anthropic.overloaded(),
    anthropic.broken(),
    anthropic.reset(),
    anthropic.reset(7),
    anthropic.not_json(),
)
IN_ANSWERS = (
    anthropic.prose,
    anthropic.two_objects,
    anthropic.off_schema,
    anthropic.not_an_object,
    anthropic.refusal,
    anthropic.cut_off,
    anthropic.other_model,
    anthropic.wrong_role,
    anthropic.empty,
    anthropic.no_usage,
)
IN_BATCHES = ("errored", "expired", "canceled")
IN_CHAT = (chat.prose, chat.off_schema, chat.refusal, chat.cut_off, chat.other_model, chat.wrong_role, chat.empty)
BY_WAY = {
    "messages": (*IN_ANSWERS, *ON_THE_WAY),
    "batches": (*IN_ANSWERS, *IN_BATCHES),
    "chat": (*IN_CHAT, *ON_THE_WAY),
}
OF_ROWS = (
    Wire(b'{"error": "Model is overloaded"}', 429),
    Wire(b"<html>", 502),
    Wire(b"", 500),
    Wire(b'{"data": [', cut=5),
    rows_of(lambda rows: rows[:-1]),
    rows_of(lambda rows: [*rows, rows[0]]),
    rows_of(lambda rows: [row[:-1] for row in rows]),
    rows_of(lambda rows: [[float("nan")] * len(rows[0]), *rows[1:]]),
    rows_of(lambda rows: [[0.0] * len(rows[0]), *rows[1:]]),
)


Struck = tuple[str, int, str]
"""What was played, how many faults struck, and what went wrong, "" if nothing."""


def _trials(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """Judges by three ways, embeddings by two dialects and on Modal, taking turns."""
    os.environ["ANTHROPIC_API_KEY"] = KEY
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name)
        ways = (_Judging(folder), _Rows(folder), _Modal(folder))
        for number in numbers:
            began, rng = time.perf_counter(), random.Random(f"faults {seed} {number}")
            what, struck, found = ways[number % len(ways)].play(rng)
            outcome = "wrong" if found else "same answers"
            yield Trial("faults", number, struck, what, outcome, time.perf_counter() - began, found)


class _Judging:
    """Labels by messages, by message batches and by an OpenAI-compatible server."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.exported = folder, folder / "exported"
        begin(self.exported)
        small_batches(make_version(self.exported), PAIRS, AT_ONCE)
        rows = [row for path in batch_files(make_version(self.exported).judging) for row in read_batch(path)]
        self.marks = [ask.user.split("\n")[0].rsplit(" ", 1)[-1] for ask in asks_of(rows, "", "")]
        self.expected = {way: self._labels(way, anthropic.AnthropicServer(grade=grade_of)) for way in WAYS[:2]}
        self.expected["chat"] = self._labels("chat", chat.ChatServer(grade=grade_of))

    def play(self, rng: random.Random) -> Struck:
        way = rng.choice(WAYS)
        kinds = BY_WAY[way]
        planted = {word: rng.choices(kinds, k=rng.randint(1, 3)) for word in rng.sample(self.marks, rng.randint(1, 8))}
        on_the_way = rng.choices(ON_THE_WAY, k=rng.randint(0, 2)) if way == "batches" else []
        server: anthropic.Scripted
        if way == "chat":
            server = chat.ChatServer(grade=grade_of, by_text=planted)
        else:
            server = anthropic.AnthropicServer(grade=grade_of, by_text=planted, turned_away=on_the_way)
        n_planted = sum(map(len, planted.values())) + len(on_the_way)
        found = self._labels(way, server)
        struck = n_planted - sum(map(len, planted.values())) - len(on_the_way)
        wrong = "" if found == self.expected[way] else f"{len(found)} labels, or other ones"
        return f"judging by {way}, {n_planted} faults", struck, wrong

    def _labels(self, way: str, server: anthropic.Scripted) -> list[dict[str, object]]:
        """The labels of a fresh copy, judged again and again until nothing is missing."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name, served(server):
            shutil.copytree(self.exported, name, dirs_exist_ok=True)
            version = make_version(Path(name))
            for _ in range(RUNS):
                with suppress(BackendError):
                    judge(version, way, f"{server.url}/v1" if way == "chat" else server.url)
                    break
            labels = [label.model_dump() for label in load_labels(version.labels_path)]
            return sorted(labels, key=lambda label: (label["query_id"], label["doc_id"]))


class _Rows:
    """Rows of texts from a server that speaks OpenAI's dialect or TEI's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected = {api: self._embedded(api, []) for api in APIS}

    def play(self, rng: random.Random) -> Struck:
        api = rng.choice(APIS)
        faults = [rng.choice(OF_ROWS) if rng.random() < 0.4 else None for _ in range(rng.randint(2, 16))]
        planted = sum(fault is not None for fault in faults)
        rows = self._embedded(api, faults)
        wrong = "" if rows is not None and np.array_equal(rows, self.expected[api]) else "other rows"
        return f"rows by {api}, {planted} faults", planted - sum(fault is not None for fault in faults), wrong

    def _embedded(self, api: str, faults: list) -> "np.ndarray | None":
        with tempfile.TemporaryDirectory(dir=self.folder) as name, served(Server(faults=faults)) as server:
            for _ in range(RUNS):
                with suppress(BackendError), opened(server, api) as encoder:
                    return embed(Store(Path(name)), encoder, TEXTS, "document").rows
        return None


class _Modal:
    """Rows of texts from Modal's stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.probe = modal_words.probe_passed_in(folder / "modal")
        self.expected = modal_words.local_rows(folder)

    def play(self, rng: random.Random) -> Struck:
        text = rng.choice(modal_words.TEXTS)
        name, plant = rng.choice(list(ON_MODAL.items()))
        with (
            tempfile.TemporaryDirectory(dir=self.folder) as parent,
            modal_words.benches(Path(parent), self.probe) as (make, _),
        ):
            bench = make()
            plant(bench.server.faults, modal_words.holds(text))
            planted = len(bench.server.faults.left())
            rows = bench.embed().rows
            struck = planted - len(bench.server.faults.left())
        return f"modal: {name}", struck, "" if np.array_equal(rows, self.expected) else "other rows"


ON_MODAL = {
    "unavailable": lambda faults, _: faults.unavailable("FunctionPutInputs", times=1),
    "lost reply": lambda faults, _: faults.lose_reply("FunctionPutInputs"),
    "lost output": lambda faults, when: faults.lose_output(when=when),
    "output twice": lambda faults, when: faults.duplicate_output(when=when),
    "failed input": lambda faults, when: faults.fail_input(when),
    "input that ran out of time": lambda faults, when: faults.time_out_input(when),
    "dead container": lambda faults, when: faults.kill_container(when),
}

KIND = Kind(_trials, at_once=25, unit="faults that struck")
