"""Batches on their way to a judge: files of at most BATCH_PAIRS rows outside git, every row bound by its digest."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from runner.base.canonical import digest, jsonl_bytes, read_jsonl, write_atomic
from runner.base.errors import InputError
from runner.base.records import Document, Span
from runner.base.schema import checked
from runner.eval_set.shapes.labels import BatchRow, Passage

BATCH_PAIRS = 100

Kind = Literal["batch", "fuller", "double"]
"""Pairs of the pool with some repeats, those in doubt with more of their documents, or pairs for a second judge."""

Pair = tuple[str, str]
"""Query id and document id."""

LONGEST_PIECE = 1_200
SHORTEST_PIECE = 300
"""Characters of a numbered passage: long ones are cut at a word, short ones joined with what follows."""

WHOLE_TEXT = "whole text"
"""The rule by which a document is shown of which nothing is left out."""


FULLER = 3
"""Times as many characters are shown of a document that left a doubt."""


class Shown(NamedTuple):
    """What a judge is shown of a document, in text order, and the rule that chose it."""

    spans: tuple[Span, ...]
    rule: str = WHOLE_TEXT


def batch_files(folder: Path, kind: Kind = "batch") -> list[Path]:
    """Return the batches of one kind in the order of their numbers; none for a folder that is not there."""
    if not folder.is_dir():
        return []
    of_kind = [path for path in folder.iterdir() if re.fullmatch(rf"{kind}-\d+\.jsonl", path.name)]
    return sorted(of_kind, key=lambda path: number_of(path.stem))


def read_batch(path: Path) -> list[BatchRow]:
    """Return the rows of a batch; an InputError names the line that is not a row, or was edited after export."""
    rows = []
    for number, fields in read_jsonl(path):
        row = checked(BatchRow, fields, f"{path}:{number}")
        # The row's digest binds all but the evidence, whose own digest is part of the row.
        is_sound = row.row_sha256 == _binding(fields) and row.evidence_sha256 == _evidence_digest(fields)
        if not is_sound or row.batch != path.stem:
            raise InputError(
                f"{path}:{number}: the row of query {row.query_id} and {row.doc_id} was edited after export, so nobody "
                f"can say what was judged. Put the file back; where that cannot be, delete {path} and run the driver "
                "again: its pairs that are not judged yet are exported anew."
            )
        rows.append(row)
    return rows


def all_rows(folder: Path) -> Iterator[BatchRow]:
    """Yield every row of every batch: of the pool first, then of fuller and of second readings, by number."""
    for kind in get_args(Kind):
        for path in batch_files(folder, kind):
            yield from read_batch(path)


def number_of(batch: str) -> int:
    """Return the number in a batch's name, 0 for a name without one."""
    number = batch.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def rounds(rows: Iterable[BatchRow]) -> dict[tuple[str, Pair], int]:
    """Return the round that an answer to each row belongs to, by batch and pair; rows in the order of the batches.

    1, and one more for every batch of the pool before that held the pair: it was planted once more. Fuller readings
    and a second judge's first ones are of round 1 too.
    """
    by_row: dict[tuple[str, Pair], int] = {}
    seen: Counter[Pair] = Counter()
    for row in rows:
        is_pooled = row.batch.startswith("batch-")
        by_row[row.batch, row.pair] = 1 + seen[row.pair] if is_pooled else 1
        seen[row.pair] += is_pooled
    return by_row


def write_batches(folder: Path, rows: Sequence[BatchRow], kind: Kind = "batch", *, above: int = 0) -> list[Path]:
    """Write the rows into new files, numbered after those there are and after `above`; return their paths.

    The rows get their batch's name.
    """
    # Labels may name batches whose files are gone; their numbers are not used again.
    number = max((number_of(path.stem) for path in batch_files(folder, kind)), default=0)
    number = max(number, above)
    paths = []
    for start in range(0, len(rows), BATCH_PAIRS):
        number += 1
        path = folder / f"{kind}-{number:04d}.jsonl"
        write_atomic(path, jsonl_bytes(_fields(rebound(row, path.stem)) for row in rows[start : start + BATCH_PAIRS]))
        paths.append(path)
    return paths


def make_row(
    version: str,
    prompt_sha256: str,
    query: tuple[str, str],
    document: Document,
    shown: Shown,
) -> BatchRow:
    """Return a row without a batch yet, for a query's id and text and the parts of a document that are shown."""
    evidence: list[dict[str, Any]] = []
    end, n_shown = 0, 0
    for number, span in enumerate(pieces(document.text, shown.spans), start=1):
        place = {"number": number, "left_out": span.start - end, "start": span.start, "end": span.end}
        evidence.append({**place, "text": document.text[span.start : span.end]})
        end, n_shown = span.end, n_shown + span.end - span.start
    left_out = len(document.text) - n_shown
    fields: dict[str, Any] = {
        "batch": "",
        "version": version,
        "prompt_sha256": prompt_sha256,
        "query_id": query[0],
        "query": query[1],
        "doc_id": document.doc_id,
        "title": document.title,
        "n_chars": len(document.text),
        "left_out": left_out,
        "shown_by": shown.rule if left_out else WHOLE_TEXT,
    }
    fields["evidence_sha256"] = _evidence_digest({**fields, "evidence": evidence})
    # Made without validation: a pool has tens of thousands of rows, all from checked documents.
    shown_as = [Passage.model_construct(None, **passage) for passage in evidence]
    return BatchRow.model_construct(None, **fields, evidence=shown_as, row_sha256=_binding(fields))


def rebound(row: BatchRow, batch: str) -> BatchRow:
    """Return the row as a batch of that name has it."""
    fields = {**dict(row), "batch": batch}
    return row.model_copy(update={"batch": batch, "row_sha256": _binding(fields)})


def _fields(row: BatchRow) -> dict[str, Any]:
    return {**dict(row), "evidence": [dict(passage) for passage in row.evidence]}


def _evidence_digest(fields: Mapping[str, Any]) -> str:
    """Return the digest of what is shown of a document, of how much is not, and of the rule."""
    return digest([fields["shown_by"], fields["n_chars"], fields["left_out"], fields["evidence"]])


def _binding(fields: Mapping[str, Any]) -> str:
    """Return the digest of what a row says; of its evidence through that one's own digest."""
    return digest({name: value for name, value in fields.items() if name not in ("row_sha256", "evidence")})


def pieces(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the spans cut at line breaks into pieces that a judge can name by number; together they are the spans."""
    cut = []
    for span in spans:
        start = span.start
        while start < span.end:
            cut.append(Span(start, _end_of_piece(text, start, span.end)))
            start = cut[-1].end
    return cut


def _end_of_piece(text: str, start: int, last: int) -> int:
    """Return after the first line break that leaves no short piece, else after the last space within LONGEST_PIECE."""
    if last - start <= SHORTEST_PIECE:
        return last
    limit = min(start + LONGEST_PIECE, last)
    # The first line break behind SHORTEST_PIECE ends a piece, unless a short rest would be left.
    line = text.find("\n", start + SHORTEST_PIECE - 1, limit)
    if line >= 0:
        return line + 1 if last - line > SHORTEST_PIECE or last - start > LONGEST_PIECE else last
    if limit == last:
        return last
    # No line break in reach: cut behind the last word that fits.
    space = text.rfind(" ", start + SHORTEST_PIECE, limit)
    return space + 1 if space >= 0 else limit
