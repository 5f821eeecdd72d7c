"""Batches of the pool's pairs for a judge: what is shown of each document, and no word of which system found it."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path

from runner.base.canonical import digest, file_sha256, json_line, write_atomic
from runner.base.places import DRIVER
from runner.base.progress import duration
from runner.base.records import Document, Run, Span, merged
from runner.base.steps import Step
from runner.eval_set.batches import BATCH_PAIRS, Pair, batch_files, make_row, read_batch, write_batches
from runner.eval_set.labels import newest_batch, version_labels
from runner.eval_set.shapes.labels import BatchRow, JudgeSpec
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version, load_queries

PERSON_SECONDS = 30
"""For a person to read and grade a pair: a round figure, since nobody was timed here."""

EVIDENCE_CHARS = 5_000
"""The most that a judge gets to read of one document, in characters."""

REPEATS = 3
"""Pairs of earlier batches that every further batch holds once more, to see whether a judge repeats itself."""


def evidence_spans(pairs: Iterable[Pair], runs: Iterable[Run]) -> dict[Pair, tuple[Span, ...]]:
    """Return each pair's best chunks in text order, from every run that ranks the document at any depth."""
    spans: dict[Pair, set[Span]] = {pair: set() for pair in pairs}
    for run in runs:
        for query_id, hits in run.hits.items():
            for hit in hits:
                if (query_id, hit.doc_id) in spans:
                    spans[query_id, hit.doc_id].add(hit.span)
    return {pair: tuple(sorted(pointed_at)) for pair, pointed_at in spans.items()}


def passages(document: Document, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return what a judge reads of a document: all of it if that fits, else its shortest spans, merged, in text order.

    Shortest first, because a cell over whole documents points at everything. A single span that is too long is cut.
    """
    if len(document.text) <= EVIDENCE_CHARS:
        return (Span(0, len(document.text)),)
    chosen: tuple[Span, ...] = ()
    for span in sorted(spans, key=lambda span: (span.end - span.start, span.start)):
        more = merged([*chosen, span])
        if sum(part.end - part.start for part in more) <= EVIDENCE_CHARS:
            chosen = more
        elif not chosen:
            return (Span(span.start, span.start + EVIDENCE_CHARS),)
    return chosen


def export_missing(
    version: Version, missing: Sequence[Pair], runs: Iterable[Run], documents: Mapping[str, Document]
) -> list[Path]:
    """Return batch files for these pairs of a version, with what any of the runs points at as evidence."""
    queries = {query.id: query for query in load_queries(version.queries_path)}
    evidence = evidence_spans(missing, runs)
    return export_batches(version, evidence, queries, documents, above=newest_batch(version_labels(version)))


def export_batches(
    version: Version,
    missing: Mapping[Pair, tuple[Span, ...]],
    queries: Mapping[str, QueryRow],
    documents: Mapping[str, Document],
    *,
    above: int = 0,
) -> list[Path]:
    """Return batch files that together hold every missing pair, earlier ones included; new numbers exceed `above`.

    Order is by a digest of the pair, which tells nothing about rank or system. Every batch but the first holds REPEATS
    pairs of earlier ones.
    """
    folder = version.judging
    waiting: dict[Pair, Path] = {}
    shown: dict[Pair, list[BatchRow]] = {}
    n_before = 0
    for path in batch_files(folder):
        for row in read_batch(path):
            n_before += 1
            shown.setdefault(row.pair, []).append(row)
            waiting.setdefault(row.pair, path)
    # By a digest, so that neither rank nor system nor query shows in the order.
    fresh = sorted((pair for pair in missing if pair not in waiting), key=digest)
    once = [rows[0] for rows in shown.values() if len(rows) == 1]
    prompt, name = file_sha256(version.judge_path), version.number_name
    rows = [
        make_row(name, prompt, (q, queries[q].text), documents[d], passages(documents[d], missing[q, d]))
        for q, d in fresh
    ]
    paths = {waiting[pair] for pair in missing if pair in waiting}
    paths.update(write_batches(folder, with_repeats(rows, once, n_before), above=above))
    write_atomic(folder / version.judge_path.name, version.judge_path.read_bytes())
    return sorted(paths)


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
    """Return the command that takes answers in, as a stop says it; `judge` is the plan's, if it names one."""
    command = f"{DRIVER} labels import {version.flags} --judge={name}"
    if judge is not None and judge.by_file:
        return f"{command} --model={judge.model} FILE ...      --person if a person judged"
    return f"{command} --person FILE ...      --model=ID if a model judged"


def judging_step(version: Version, pooled: int, missing: Sequence[Pair], batches: Sequence[Path], again: str) -> Step:
    """Return what a person who has to judge is told: how much, where, by what prompt, and how to give it back."""
    wanted = set(missing)
    row = next(row for path in batches for row in read_batch(path) if row.pair in wanted)
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
    return Step(
        "labels",
        "open",
        f"{len(missing):,} of {pooled:,} pairs to judge, in {len(batches)} file{'s' if len(batches) > 1 else ''}",
        (
            "Judge them, one of:\n"
            f"{DRIVER} labels page {flags}      by keyboard, in your browser: {hours} for one person"
            f"{'' if first and first.by_file else asks}\n"
            f"{version.judging / 'batch-*.jsonl'}      any other way, by {version.judge_path.name} beside them",
            f"Import what was judged: one line per pair, such as\n{example}\n{import_command(version, first)}",
            again,
        ),
        "person",
    )
