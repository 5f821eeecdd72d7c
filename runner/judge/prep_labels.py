"""Batches of the pool's pairs for a judge: what is shown of each document, and no word of which system found it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path

from runner.base.canonical import digest, file_sha256, json_line, write_atomic
from runner.base.places import DRIVER
from runner.base.progress import duration, watched
from runner.base.records import Document
from runner.base.steps import Step
from runner.eval_set.batches import (
    BATCH_PAIRS,
    FULLER,
    Kind,
    Pair,
    Shown,
    batch_files,
    make_row,
    read_batch,
    write_batches,
)
from runner.eval_set.labels import first_readings, newest_batch, version_labels
from runner.eval_set.shapes.labels import BatchRow, JudgeSpec
from runner.eval_set.version import Version, load_queries

PERSON_SECONDS = 30
"""For a person to read and grade a pair: a round figure, since nobody was timed here."""

REPEATS = 3
"""Pairs of earlier batches that every further batch holds once more, to see whether a judge repeats itself."""

KINDS: tuple[Kind, ...] = ("batch", "fuller")
"""Of batches for the first judge."""


Show = Callable[[Document, Sequence[Sequence[str]], int], Sequence[Shown]]
"""Says what is shown of a document for each topic, given as its wordings, in so many times the plan's characters."""


def export_missing(
    version: Version, missing: Sequence[Pair], documents: Mapping[str, Document], show: Show
) -> list[Path]:
    """Return the files that hold these pairs of a version: in batches what nobody has read, in fuller ones doubts."""
    labels = version_labels(version)
    read = first_readings(labels)
    paths: list[Path] = []
    for kind in KINDS:
        wanted = [pair for pair in missing if (pair in read) == (kind == "fuller")]
        paths += export_batches(version, wanted, documents, show, kind, above=newest_batch(labels, kind))
    return paths


def export_batches(
    version: Version,
    wanted: Collection[Pair],
    documents: Mapping[str, Document],
    show: Show,
    kind: Kind = "batch",
    *,
    above: int = 0,
) -> list[Path]:
    """Return files of one kind that together hold every pair, earlier ones included; new numbers exceed `above`.

    Order is by a digest of the pair, which tells nothing about rank or system. Every batch of the pool but the first
    holds REPEATS pairs of earlier ones.
    """
    if not wanted:
        return []
    folder = version.judging
    waiting: dict[Pair, Path] = {}
    held: dict[Pair, list[BatchRow]] = {}
    n_before = 0
    for path in batch_files(folder, kind):
        for row in read_batch(path):
            n_before += 1
            held.setdefault(row.pair, []).append(row)
            waiting.setdefault(row.pair, path)
    # By a digest, so that neither rank nor system nor query shows in the order.
    rows = _rows(version, sorted(set(wanted) - waiting.keys(), key=digest), documents, show, kind)
    if kind == "batch":
        rows = with_repeats(rows, [of_pair[0] for of_pair in held.values() if len(of_pair) == 1], n_before)
    paths = {waiting[pair] for pair in wanted if pair in waiting}
    paths.update(write_batches(folder, rows, kind, above=above))
    write_atomic(folder / version.judge_path.name, version.judge_path.read_bytes())
    return sorted(paths)


def _rows(
    version: Version, pairs: Sequence[Pair], documents: Mapping[str, Document], show: Show, kind: Kind
) -> list[BatchRow]:
    """Return a row of every pair, in their order; a document's windows are ranked for all of its topics at once."""
    queries = {query.id: query for query in load_queries(version.queries_path)}
    topics: dict[str, list[str]] = {}
    for query_id, doc_id in pairs:
        topics.setdefault(doc_id, []).append(query_id)
    shown: dict[Pair, Shown] = {}
    for doc_id in watched(sorted(topics), len(topics), "passages for judges:", "documents"):
        wordings = [[*queries[query_id].wordings.values()] for query_id in topics[doc_id]]
        found = show(documents[doc_id], wordings, FULLER if kind == "fuller" else 1)
        shown |= {(query_id, doc_id): each for query_id, each in zip(topics[doc_id], found, strict=True)}
    prompt, name = file_sha256(version.judge_path), version.number_name
    return [make_row(name, prompt, (q, queries[q].in_full), documents[d], shown[q, d]) for q, d in pairs]


def waiting_files(version: Version, missing: Sequence[Pair]) -> dict[Path, BatchRow]:
    """Return the files in which these pairs wait, each with the first row that does.

    In batches waits what nobody has read, in fuller ones what is in doubt.
    """
    wanted, read = set(missing), first_readings(version_labels(version))
    waiting: dict[Path, BatchRow] = {}
    for path in (path for kind in KINDS for path in batch_files(version.judging, kind)):
        for row in read_batch(path):
            if row.pair in wanted and (row.pair in read) == row.is_fuller:
                waiting.setdefault(path, row)
    return waiting


def with_repeats(fresh: Sequence[BatchRow], earlier: Sequence[BatchRow], n_before: int) -> list[BatchRow]:
    """Return the rows in batches' order, each full batch but the first of all with REPEATS rows of batches before it.

    A pair is repeated once at most. `n_before` rows were exported earlier; a killed export goes on as if it had not
    been.
    """
    rows: list[BatchRow] = []
    left = list(fresh)
    to_repeat = [_by_chance(row) for row in earlier]
    heapify(to_repeat)
    while left:
        # Each row is worth one repeat; the digest decides which comes first, not rank or system.
        planted = [heappop(to_repeat)[1] for _ in range(min(REPEATS, len(to_repeat)))]
        own, left = left[: BATCH_PAIRS - len(planted)], left[BATCH_PAIRS - len(planted) :]
        rows += sorted([*own, *planted], key=lambda row: digest([n_before + len(rows), *row.pair]))
        for row in own:
            heappush(to_repeat, _by_chance(row))
    return rows


def _by_chance(row: BatchRow) -> tuple[str, BatchRow]:
    return (digest(["again", *row.pair]), row)


def import_command(version: Version, judge: JudgeSpec | None, name: str = "NAME") -> str:
    """Return the command that takes answers in, as a stop says it; `judge` is the plan's, None if any model may be."""
    command = f"{DRIVER} labels import {version.flags} --judge={name}"
    if judge is not None and judge.by_file:
        return f"{command} --model={judge.model} FILE ...      --person if a person judged"
    model = "ID if a model" if judge is None else f"{judge.model} if that model"
    return f"{command} --person FILE ...      --model={model} judged"


def left_to_judge(version: Version, pooled: int, missing: Sequence[Pair]) -> str:
    """Return how many pairs nobody has read, and how many that were read are in doubt."""
    read = first_readings(version_labels(version))
    n_doubts = sum(pair in read for pair in missing)
    said = []
    if n_new := len(missing) - n_doubts:
        said.append(f"{n_new:,} of {pooled:,} pairs to judge")
    if n_doubts:
        said.append(f"{n_doubts:,} of the judged pairs left in doubt, for a fuller reading")
    return "; ".join(said)


def double_first(version: Version) -> str:
    """Return why second readings come before the run that finds all grades, and the command that writes them."""
    return (
        "Have a tenth read by a second judge before `run` finds all grades: if no cell is a candidate, it keeps the "
        f"baseline and locks, and no grade is taken any more\n{DRIVER} labels double {version.flags}"
    )


def judging_step(
    version: Version, pooled: int, missing: Sequence[Pair], batches: Mapping[Path, BatchRow], again: str
) -> Step:
    """Return what a person who has to judge is told: how much, where, by what prompt, and how to give it back.

    `batches` are the files in which the pairs wait, each with one of its rows that do.
    """
    row = next(iter(batches.values()))
    kinds = [kind for kind in KINDS if any(path.name.startswith(kind) for path in batches)]
    named = " ".join(str(version.judging / f"{kind}-*.jsonl") for kind in kinds)
    example = json_line(
        {"batch": row.batch, "query_id": row.query_id, "doc_id": row.doc_id, "grade": 0, "reason": "why"}
    )
    hours = duration(PERSON_SECONDS * len(missing))
    flags, judges = version.flags, version.plan().judges
    first = judges.first if judges else None
    asks = (
        f"\n{DRIVER} run {version.viewed} --judge      by the plan's language models"
        f"\n{DRIVER} plan {version.viewed} --judge      what they cost"
    )
    before = double_first(version)
    by = f" by people or {first.model}, the one model that the plan lets grade first" if first else ""
    return Step(
        "labels",
        "open",
        f"{left_to_judge(version, pooled, missing)}, in {len(batches)} file{'s' if len(batches) > 1 else ''}",
        (
            "Judge them, one of:\n"
            f"{DRIVER} labels page {flags}      by keyboard, in your browser: {hours} for one person"
            f"{asks if first and not first.by_file else ''}\n"
            f"{named}      any other way, by {version.judge_path.name} beside them",
            f"Import what was judged{by}: one line per pair, such as\n{example}\n{import_command(version, first)}",
            f"If people judge, {before[0].lower()}{before[1:]}" if judges and judges.second else before,
            again,
        ),
    )
