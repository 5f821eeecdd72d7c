"""Findings on the archived documents in the substrate: their texts, and each chunk of the decided chunker once."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from runner.base.records import Chunk, Document
from runner.substrate.database import AMONG_DOCUMENTS, Substrate, json_array
from runner.substrate.shapes import CoverageResult, FindingResult, finding

Place = tuple[object, object, object]
"""Start, end and context; of a chunk in the substrate whatever is stored there."""


LACKING = "documents of the manifest have no chunk, or characters that no chunk covers"
CHANGED = "documents of the manifest have a chunk whose text is not the archived one"
AMENDED = "the document, or how it is read, has changed since, and its grades may no longer hold"


class Stored(NamedTuple):
    """A chunk of the substrate; `span` is None if it leaves the archived text, and `is_same` says if texts agree."""

    chunk_id: int
    place: Place
    span: tuple[int, int] | None
    is_same: bool


def document_findings(
    substrate: Substrate, documents: Sequence[Document], chunker: str, chunks: Sequence[Chunk]
) -> tuple[list[FindingResult], CoverageResult]:
    """Return whether the documents are there whole, as archived and cut as the chunker cut them, and the coverage."""
    expected: defaultdict[str, list[Place]] = defaultdict(list)
    for chunk in chunks:
        expected[chunk.doc_id].append((chunk.span.start, chunk.span.end, chunk.context))
    stored = _read(substrate, documents)
    lacking, changed, others = [], [], []
    with_chunks = characters = covered = n_whole = n_missing = n_surplus = 0
    for document in documents:
        rows = stored[document.doc_id]
        # Its text in chunks, and as it is archived.
        spans = [row.span for row in rows if row.span is not None]
        length, uncovered = uncovered_of(document.text, spans)
        with_chunks, characters, covered = with_chunks + bool(spans), characters + length, covered + length - uncovered
        if uncovered or not spans:
            what = f"{uncovered:,} of {length:,} characters in no chunk" if spans else "no chunk"
            lacking.append(f"{document.doc_id}: {what}")
        amended = next((row for row in rows if not row.is_same), None)
        if amended is not None:
            changed.append(f"{document.doc_id}: chunk {amended.chunk_id}, {_characters(amended)}")
        # Chunks of a document that is amended or not there whole differ of necessity, so they are not compared.
        if uncovered or not spans or amended is not None:
            continue
        n_whole += 1
        # Cut as the chunker cuts it: the same places, each as often.
        missing, surplus = differences(expected[document.doc_id], rows)
        n_missing, n_surplus = n_missing + len(missing), n_surplus + len(surplus)
        if missing or surplus:
            others.append(f"{document.doc_id}: {_difference(expected[document.doc_id], missing, surplus)}")
    stored_otherwise = (
        f"{n_missing:,} of its chunks are missing, and {n_surplus:,} stored ones are not its own or are stored again, "
        "so what was decided is not what was embedded"
    )
    cut_otherwise = f"documents that are there whole and unchanged are not cut as {chunker} cuts them"
    total = len(documents)
    return [
        finding("missing chunks", len(lacking), total, LACKING, "what was graded there cannot be found", lacking),
        finding("changed documents", len(changed), total, CHANGED, AMENDED, changed),
        finding("other chunks", len(others), n_whole, cut_otherwise, stored_otherwise, others),
    ], CoverageResult(documents=total, with_chunks=with_chunks, characters=characters, covered=covered)


def _read(substrate: Substrate, documents: Sequence[Document]) -> defaultdict[str, list[Stored]]:
    """Return every chunk of each document, by chunk_id; each text is compared as it is read, and not kept."""
    ids = substrate.ids_of([document.doc_id for document in documents])
    by_id = {ids[document.doc_id]: document for document in documents}
    stored: defaultdict[str, list[Stored]] = defaultdict(list)
    rows = substrate.rows(
        "SELECT chunk_id, document_id, char_start, char_end, context, text FROM {chunks} "
        f"WHERE {AMONG_DOCUMENTS} ORDER BY chunk_id",
        (json_array(by_id),),
    )
    for chunk_id, document_id, start, end, context, text in rows:
        archived = by_id[document_id].text
        # A column holds anything in SQLite, so that a place need not be two numbers.
        is_within = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(archived)
        as_stored = (start, end, "" if context is None else context)  # NULL is no context
        row = Stored(
            chunk_id, as_stored, (start, end) if is_within else None, is_within and text == archived[start:end]
        )
        stored[by_id[document_id].doc_id].append(row)
    return stored


def uncovered_of(text: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return how many characters the text has, and how many of them no span covers, both without white space."""
    reached, gaps = 0, []
    for start, end in (*sorted(spans), (len(text), len(text))):
        gaps.append(text[reached:start])  # "" where the span begins before the last one's end
        reached = max(reached, end)
    length, uncovered = (sum(map(len, words.split())) for words in (text, "\n".join(gaps)))
    return length, uncovered


def differences(expected: Sequence[Place], stored: Sequence[Stored]) -> tuple[list[Place], list[Stored]]:
    """Return, as multisets, the expected places that are not stored, and the stored chunks that are not expected."""
    left = Counter(expected)
    surplus = []
    for row in stored:
        if left[row.place] > 0:
            left[row.place] -= 1
        else:
            surplus.append(row)
    return list(left.elements()), surplus


def _difference(expected: Sequence[Place], missing: Sequence[Place], surplus: Sequence[Stored]) -> str:
    """Return how many chunks differ, and the first that does, by id and characters."""
    if not surplus:
        return f"{len(missing):,} missing, first characters {missing[0][0]} to {missing[0][1]}"
    first = surplus[0]
    why = "not its own"
    if first.place in expected:
        why = "stored again"
    elif first.place[:2] in {place[:2] for place in expected}:
        why = "with another context"
    return (
        f"{len(missing):,} missing, {len(surplus):,} too many, first chunk {first.chunk_id}, "
        f"{_characters(first)}, {why}"
    )


def _characters(row: Stored) -> str:
    return "characters that it does not have" if row.span is None else f"characters {row.span[0]} to {row.span[1]}"
