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
from tests.soak import Trial
from tests.support import anthropic_server as anthropic
from tests.support.embedding_server import Server
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import APIS, opened, rows_of
from tests.support.judge_rows import grade_of, small_batches
from tests.support.judging_process import KEY, judge
from tests.support.loopback import Wire, served
from tests.support.small_set import begin, make_version

RUNS = 12
"""Times that a command may be run again before what it cannot do is a finding."""

LIES = (anthropic.prose, anthropic.two_objects, anthropic.off_schema, anthropic.cut_off, anthropic.other_model)
OF_JUDGES = (*LIES, anthropic.rate_limited(0), anthropic.broken(), anthropic.reset(7), anthropic.not_json())
OF_ROWS = (
    Wire(b'{"error": "Model is overloaded"}', 429),
    Wire(b'{"data": [', cut=5),
    rows_of(lambda rows: rows[:-1]),
    rows_of(lambda rows: [[float("nan")] * len(rows[0]), *rows[1:]]),
)


def trials(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """Judges by messages and embeddings by two dialects, taking turns."""
    os.environ["ANTHROPIC_API_KEY"] = KEY
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as name:
        exported = Path(name) / "exported"
        begin(exported)
        small_batches(make_version(exported), 40, 20)
        rows = [row for path in batch_files(make_version(exported).judging) for row in read_batch(path)]
        marks = [ask.user.split("\n")[0].rsplit(" ", 1)[-1] for ask in asks_of(rows, "", "")]
        labels, expected = _labels(exported, {}), {api: _embedded(api, []) for api in APIS}
        for number in numbers:
            began, rng = time.perf_counter(), random.Random(f"faults {seed} {number}")
            if number % 2:
                planted = {m: rng.choices(OF_JUDGES, k=rng.randint(1, 3)) for m in rng.sample(marks, rng.randint(1, 8))}
                n_planted, what = sum(map(len, planted.values())), "judging by messages"
                same = _labels(exported, planted) == labels
                left = sum(map(len, planted.values()))
            else:
                api = rng.choice(APIS)
                faults = [rng.choice(OF_ROWS) if rng.random() < 0.4 else None for _ in range(rng.randint(2, 16))]
                n_planted, what = sum(fault is not None for fault in faults), f"rows by {api}"
                same = np.array_equal(_embedded(api, faults), expected[api])
                left = sum(fault is not None for fault in faults)
            found, struck = "" if same else "other answers", n_planted - left
            yield Trial("faults", number, struck, f"{what}, {n_planted} faults", time.perf_counter() - began, found)


def _labels(exported: Path, planted: dict[str, list]) -> list[dict[str, object]]:
    """The labels of a fresh copy, judged again and again until nothing is missing."""
    server = anthropic.AnthropicServer(grade=grade_of, by_text=planted)
    with tempfile.TemporaryDirectory(dir=exported.parent) as name, served(server):
        shutil.copytree(exported, name, dirs_exist_ok=True)
        version = make_version(Path(name))
        for _ in range(RUNS):
            with suppress(BackendError):
                judge(version, "messages", server.url)
                break
        labels = [label.model_dump() for label in load_labels(version.labels_path)]
        return sorted(labels, key=lambda label: (label["query_id"], label["doc_id"]))


def _embedded(api: str, faults: list) -> np.ndarray:
    with tempfile.TemporaryDirectory() as name, served(Server(faults=faults)) as server:
        for _ in range(RUNS):
            with suppress(BackendError), opened(server, api) as encoder:
                return embed(Store(Path(name)), encoder, TEXTS, "document").rows
    return np.empty(0)
