"""The pool, and the way of its pairs to a judge and back: batches out, answers in, by file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.canonical import digest, file_sha256, json_line, jsonl_bytes, read_jsonl, write_atomic
from runner.errors import InputError
from runner.eval_set import DRIVER, Version, load_corpus, load_queries
from runner.labels import append_labels, load_labels
from runner.records import Document, Query, Run, Span
from runner.schemas import Answer, Label
from runner.strict import checked

BATCH_PAIRS = 100
EVIDENCE_CHARS = 6_000
"""The most that a judge gets to read of one document, in characters."""

Pair = tuple[str, str]
"""Query id and document id."""


def pool(runs: Iterable[Run], depth: int) -> list[Pair]:
    """Every (query, document) within `depth` of any run, sorted."""
    return sorted(
        {(query_id, hit.doc_id) for run in runs for query_id, hits in run.hits.items() for hit in hits[:depth]}
    )


def evidence_spans(pairs: Iterable[Pair], runs: Iterable[Run]) -> dict[Pair, tuple[Span, ...]]:
    """Each pair's best chunks in text order, from every run that ranks the document at any depth."""
    spans: dict[Pair, set[Span]] = {pair: set() for pair in pairs}
    for run in runs:
        for query_id, hits in run.hits.items():
            for hit in hits:
                if (query_id, hit.doc_id) in spans:
                    spans[query_id, hit.doc_id].add(hit.span)
    return {pair: tuple(sorted(found)) for pair, found in spans.items()}


def passages(document: Document, spans: Iterable[Span]) -> tuple[Span, ...]:
    """What a judge reads of a document: all of it where that fits, else its shortest spans, merged, in text order.

    The shortest first, because a cell over whole documents points at everything, and the beginning of a long bill
    says little about its middle. One span that is too long by itself is cut.
    """
    if len(document.text) <= EVIDENCE_CHARS:
        return (Span(0, len(document.text)),)
    chosen: tuple[Span, ...] = ()
    for span in sorted(spans, key=lambda span: (span.end - span.start, span.start)):
        more = _merged([*chosen, span])
        if sum(one.end - one.start for one in more) <= EVIDENCE_CHARS:
            chosen = more
        elif not chosen:
            return (Span(span.start, span.start + EVIDENCE_CHARS),)
    return chosen


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def unjudged(pairs: Iterable[Pair], labels: Iterable[Label]) -> list[Pair]:
    """The pairs that no judge has graded in a first round, in order: those that scores have no grade for."""
    judged = {(label.query_id, label.doc_id) for label in labels if label.round == 1}
    return [pair for pair in pairs if pair not in judged]


def export_batches(
    version: Version,
    missing: Mapping[Pair, tuple[Span, ...]],
    queries: Mapping[str, Query],
    documents: Mapping[str, Document],
) -> list[Path]:
    """Batch files that together hold every missing pair; pairs of batches written earlier are not written again.

    Order is by a digest of the pair: it tells a judge nothing about rank or system.
    """
    folder = version.judging
    waiting = {(row["query_id"], row["doc_id"]): path for path, row in _exported(folder)}
    fresh = sorted((pair for pair in missing if pair not in waiting), key=digest)
    number = max((int(path.stem.split("-")[1]) for path in _batch_files(folder)), default=0)
    paths = {waiting[pair] for pair in missing if pair in waiting}
    for start in range(0, len(fresh), BATCH_PAIRS):
        number += 1
        path = folder / f"batch-{number:04d}.jsonl"
        rows = [_batch_row(queries[q], documents[d], missing[q, d]) for q, d in fresh[start : start + BATCH_PAIRS]]
        write_atomic(path, jsonl_bytes(rows))
        paths.add(path)
    write_atomic(folder / version.judge_path.name, version.judge_path.read_bytes())
    return sorted(paths)


def _batch_row(query: Query, document: Document, spans: Iterable[Span]) -> dict[str, Any]:
    evidence = [
        {"start": span.start, "end": span.end, "text": document.text[span.start : span.end]}
        for span in passages(document, spans)
    ]
    return {
        "query_id": query.query_id,
        "query": query.text,
        "doc_id": document.doc_id,
        "title": document.title,
        "evidence": evidence,
        "evidence_sha256": digest(evidence),
    }


def _batch_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if re.fullmatch(r"batch-\d+\.jsonl", path.name))


def _exported(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in _batch_files(folder):
        for number, row in read_jsonl(path):
            if not {"query_id", "doc_id", "evidence_sha256"} <= row.keys():
                raise InputError(f"{path}:{number}: not a row of a batch. Delete {path} and run the driver again.")
            yield path, row


def judging_message(version: Version, pooled: int, missing: Sequence[Pair], batches: Sequence[Path]) -> str:
    """What a person is told who has to judge: how much, where, by what, in what form, and how it comes back."""
    example = json_line({"query_id": missing[0][0], "doc_id": missing[0][1], "grade": 0, "reason": "why"})
    waiting = " ".join(path.name for path in batches[:2]) + (" ..." if len(batches) > 2 else "")
    return (
        f"{version.name}: {len(missing)} of {pooled} pairs are to be judged, in {len(batches)} batches of at most "
        f"{BATCH_PAIRS}: {version.judging} ({waiting}).\n"
        f"Judge them by {version.judging / version.judge_path.name}. An answer file has one line a pair:\n"
        f"  {example}\n"
        f"Import answers, a batch or several at a time: "
        f"{DRIVER} labels import {version.flags} --judge=NAME FILE ..."
    )


@dataclass(frozen=True, slots=True)
class Imported:
    """What one answer file brought: new labels, and answers that were in labels.jsonl already."""

    added: int
    known: int


def import_answers(version: Version, path: Path, *, judge: str, model: str, judged_on: str) -> Imported:
    """Append a file of answers to labels.jsonl, all of them or none.

    An answer that is there already with the same grade is left out; with another grade, or for a query or
    document that the version does not have, it is an InputError that names file and line.
    """
    known = {label.key: label for label in load_labels(version.labels_path)}
    check = _AnswerCheck(version)
    fresh: dict[tuple[str, str, str, int], Label] = {}
    repeated = 0
    for number, row in read_jsonl(path):
        where = f"{path}:{number}"
        label = check.label(checked(Answer, row, where), where, judge=judge, model=model, judged_on=judged_on)
        earlier = known.get(label.key) or fresh.get(label.key)
        if earlier is None:
            fresh[label.key] = label
        elif earlier.grade == label.grade:
            repeated += 1
        else:
            raise InputError(
                f"{where}: query {label.query_id} and {label.doc_id} have grade {earlier.grade} by {label.judge} "
                f"already; this line says {label.grade}. Nothing of the file was imported. "
                "A second reading is another round."
            )
    if not fresh and not repeated:
        raise InputError(f"{path} holds no answers.")
    if fresh:
        append_labels(version.labels_path, list(fresh.values()))
    return Imported(len(fresh), repeated)


class _AnswerCheck:
    """What answers of one version are held to."""

    def __init__(self, version: Version) -> None:
        self.queries = {query.query_id for query in load_queries(version.queries_path)}
        self.corpus = {row.doc_id: row for row in load_corpus(version.corpus_path)[1]}
        self.prompt = file_sha256(version.judge_path)
        self.exported = {
            (row["query_id"], row["doc_id"]): (path.stem, str(row["evidence_sha256"]))
            for path, row in _exported(version.judging)
        }
        self.name = f"{version.source.name} v{version.number}"

    def label(self, answer: Answer, where: str, *, judge: str, model: str, judged_on: str) -> Label:
        """The answer as a row of labels.jsonl."""
        for kind, name, known in (
            ("query", answer.query_id, self.queries),
            ("document", answer.doc_id, self.corpus.keys()),
        ):
            if name not in known:
                raise InputError(
                    f"{where}: {self.name} has no {kind} {name!r}. Nothing of the file was imported; "
                    "is it an answer to another version?"
                )
        if not (answer.judge or judge):
            raise InputError(f"{where}: who judged? Give --judge NAME, or a judge in every line.")
        row = self.corpus[answer.doc_id]
        if any(not 0 <= start < end <= row.n_chars for start, end in answer.spans):
            raise InputError(f"{where}: a supporting span lies outside {answer.doc_id} (0 to {row.n_chars}).")
        # A pair that was in no batch was judged on the whole document, and carries its digest.
        batch, evidence = self.exported.get((answer.query_id, answer.doc_id), ("", row.sha256))
        return Label(
            query_id=answer.query_id,
            doc_id=answer.doc_id,
            grade=answer.grade,
            reason=answer.reason,
            judge=answer.judge or judge,
            model=answer.model or model,
            prompt_sha256=self.prompt,
            evidence_sha256=evidence,
            spans=answer.spans,
            round=answer.round,
            batch=batch,
            judged_on=judged_on,
        )
