"""A whole eval set that is small enough for every test: sixteen short bills, 25 queries, encoders without weights."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from runner.base.places import CHECKOUT
from runner.embed.encoder import Encoder, InProcessEncoder
from runner.eval_set.catalog import SOURCES, EncoderSpec, encoder
from runner.eval_set.corpus import keep_sample, sample_of, sample_to_draw
from runner.eval_set.plan import default_plan_text
from runner.eval_set.version import Version, open_version
from tests.support.fake_encoder import TOPICS, direction

_WRITTEN = yaml.safe_load((CHECKOUT / "tests" / "data" / "small_set.yaml").read_bytes())
BILLS = tuple((bill["number"], bill["title"], bill["purpose"], *bill["orders"]) for bill in _WRITTEN["bills"])
QUERIES = tuple(map(tuple, _WRITTEN["queries"]))

LOOSE = frozenset("a an and are at by each every for from has if in is it no of on or shall that the their to who with")


def draw(version: Version, folder: Path) -> None:
    """The version's sample out of a folder, as the first run draws it."""
    keep_sample(version, sample_of(version.source, sample_to_draw(version), folder))


def write_corpus(folder: Path) -> Path:
    """`folder` with one bill-DTD file a bill; every third bill repeats sections of two others."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, (number, title, purpose, *orders) in enumerate(BILLS):
        sections = [f"This Act may be cited as the {title}.", *orders]
        if place % 3 == 0:
            # Long enough that chunkers of 256 and of 512 tokens cut it in different places.
            others = [BILLS[(place + step) % len(BILLS)] for step in (5, 9)]
            sections += [f"{order} {order}" for other in others for order in other[3:]] * 2
        body = "".join(
            f"<section><enum>{n}.</enum><header>Part {n} on {purpose}</header><text>{text}</text></section>"
            for n, text in enumerate(sections, start=1)
        )
        name = f"BILLS-117hr{number}ih"
        (folder / f"{name}.xml").write_text(
            f'<bill bill-stage="Introduced-in-House"><metadata><dublinCore><title>117 HR {number} IH: {title}</title>'
            f"</dublinCore></metadata><form><official-title>A bill on {purpose}.</official-title></form>"
            f"<legis-body>{body}</legis-body></bill>",
            encoding="utf-8",
        )
    return folder


def query_rows() -> list[dict[str, str]]:
    """The 25 queries as rows of queries.yaml."""
    return [
        {
            "id": f"q{place + 1:02d}",
            "text": text,
            "kind": kind,
            "origin": "person" if place % 2 else "claude",
            "source_document": f"BILLS-117hr{BILLS[place % len(BILLS)][0]}ih",
        }
        for place, (kind, text) in enumerate(QUERIES)
    ]


def write_queries(folder: Path) -> Path:
    """queries.yaml with 25 queries in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "queries.yaml"
    path.write_text(yaml.safe_dump({"schema_version": 1, "queries": query_rows()}, sort_keys=False), encoding="utf-8")
    return path


def make_version(tmp_path: Path, *, rehearsal: bool = False) -> Version:
    """The first version of `demo` below `tmp_path`; nothing is written yet, and its corpus is given explicitly.

    The command line finds the same places with --eval-set-path=tmp_path/eval-sets/demo and
    PER_SOURCE_EVAL_CACHE=tmp_path/.cache.
    """
    eval_set = tmp_path / "eval-sets" / "demo"
    workspace = (eval_set, eval_set / ".work", tmp_path / ".cache")
    return open_version(*workspace, SOURCES["demo"], rehearsal=rehearsal)


def write_plans(version: Version) -> None:
    """Both default plans with fewer resamples and draws, which halves the time of scoring.

    The record's pool is so deep that it holds every document, the rehearsal's is not.
    """
    for rehearsal in (False, True):
        text = default_plan_text(version.source, rehearsal=rehearsal)
        if not rehearsal:
            text = text.replace("pool_depth: 10", "pool_depth: 30")
        path = version.plan_path(rehearsal=rehearsal)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = few_draws(text)
        path.write_text(text, encoding="utf-8")


def edit_plan(version: Version, *, rehearsal: bool = False, **fields: object) -> None:
    """Put these fields into a plan of the version."""
    path = version.plan_path(rehearsal=rehearsal)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **fields}))


def few_draws(plan: str) -> str:
    """The plan's text with the fewest resamples and draws that still allow every verdict."""
    fewer = {"resamples: 10000": "resamples: 500", "draws: 100000": "draws: 1000", "draws: 2000": "draws: 200"}
    for default, few in fewer.items():
        plan = plan.replace(default, few)
    return plan


def begin(tmp_path: Path, *, rehearsal: bool = False) -> Version:
    """A version with plans, judge prompt, corpus and queries: all that a preregistration needs."""
    version = make_version(tmp_path, rehearsal=rehearsal)
    write_plans(version)
    version.judge_path.write_bytes(version.judge_prompt.read_bytes())
    draw(version, write_corpus(tmp_path / "corpus"))
    write_queries(version.folder)
    return version


class SmallEncoder(InProcessEncoder):
    """Words hashed to directions; passes the probe, carries a catalogued name, needs no weights."""

    batch_tokens = 512

    def __init__(self, name: str) -> None:
        catalogued = encoder(name)
        # Some sections are longer, so that there is truncation to count.
        limit = 120 if catalogued.max_tokens else 0
        self.spec = EncoderSpec(
            name=name, model=catalogued.model, revision=catalogued.revision, dim=48, max_tokens=limit
        )

    def identity(self) -> dict[str, object]:
        row = {"encoder": self.spec.name, "revision": self.spec.revision, "max_tokens": self.spec.max_tokens}
        return {**row, "backend": {"name": "local"}}

    def token_counts(self, texts, side):
        return np.array([len(_words(text)) for text in texts], dtype=np.int64)

    def encode(self, texts, side):
        rows = np.array([self._row(text) for text in texts], dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        # The neighbours in a batch change the last bits, as a matrix product does.
        return rows * np.float32(1 + 1e-7 * (len(texts) % 3))

    def _row(self, text: str):
        return _row(text, self.spec.max_tokens)


@cache
def _row(text: str, limit: int):
    words = _words(text)[: limit or None]
    weighted = (direction(word, 48) * (0.1 if word in LOOSE else 1.0) for word in words)
    row = sum(weighted, direction("", 48) * 0.1)
    return row + 40 * direction(f"topic {TOPICS[text]}", 48) if text in TOPICS else row


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def fake_encoders(name: str) -> Encoder:
    """What `local_encoder.encoder_for` is for real weights."""
    return SmallEncoder(name)


def unscored(version: Version) -> Version:
    """A version whose evening is over, left with what it is scored from: no results, no decision, no lock."""
    for name in ("lock.json", "decision.json", "results.json", "results.html", "receipt.json"):
        (version.record / name).unlink()
    return version


def answers(version: Version) -> list[Path]:
    """One answer file beside each exported batch, graded by the share of a query's words that the evidence holds."""
    paths = []
    for batch in sorted(version.judging.glob("batch-*.jsonl")):
        rows = [json.loads(line) for line in batch.read_text(encoding="utf-8").splitlines()]
        path = batch.with_name(batch.name.replace("batch", "answers"))
        path.write_text("".join(json.dumps(_answer(row)) + "\n" for row in rows), encoding="utf-8")
        paths.append(path)
    return paths


def _answer(row: dict) -> dict:
    wanted = set(_words(row["query"])) - LOOSE
    read = set(_words(row["title"] + " " + " ".join(passage["text"] for passage in row["evidence"])))
    share = len(wanted & read) / len(wanted)
    grade = sum(share >= bar for bar in (0.4, 0.6, 0.9))
    return {"query_id": row["query_id"], "doc_id": row["doc_id"], "grade": grade, "reason": f"{share:.2f} of the words"}
