"""Findings on the archived documents in the substrate: their texts, and each chunk of the decided chunker once."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from runner.base.records import Chunk, Document
from runner.substrate.database import AMONG_DOCUMENTS, Substrate, json_array
from runner.substrate.shapes import FindingResult, finding

Place = tuple[object, object, object]
"""Start, end and context; of a chunk in the substrate whatever is stored there."""


class Stored(NamedTuple):
    """A chunk of the substrate; `is_within` if its place lies in the archived text, `is_same` if the texts agree."""

    chunk_id: int
    place: Place
    is_within: bool
    is_same: bool


def document_findings(
    substrate: Substrate, documents: Sequence[Document], chunker: str, chunks: Sequence[Chunk]
) -> list[FindingResult]:
    """Return whether the documents are there as archived, and cut as the chunker cut them."""
    expected: defaultdict[str, list[Place]] = defaultdict(list)
    for chunk in chunks:
        expected[chunk.doc_id].append((chunk.span.start, chunk.span.end, chunk.context))
    stored = _read(substrate, documents)
    changed, others = [], []
    n_missing = n_surplus = 0
    for document in documents:
        rows, wanted = stored[document.doc_id], expected[document.doc_id]
        amended = next((row for row in rows if not row.is_same), None)
        if amended is not None:
            # Its chunks differ of necessity, so they are not compared.
            changed.append(f"{document.doc_id}: chunk {amended.chunk_id}, {_characters(amended)}")
            continue
        # Cut as the chunker cuts it: the same places, each as often.
        missing, surplus = differences(wanted, rows)
        n_missing, n_surplus = n_missing + len(missing), n_surplus + len(surplus)
        if missing or surplus:
            others.append(f"{document.doc_id}: {_difference(missing, surplus) if rows else 'no chunk'}")
    stored_otherwise = (
        f"{n_missing:,} of its chunks are missing, and {n_surplus:,} stored ones are not its own or are stored again, "
        "so what was decided is not what was embedded"
    )
    cut_otherwise = f"documents that are not changed are not cut as {chunker} cuts them"
    amended_text = "documents of the manifest have a chunk whose text is not the archived one"
    doubt = "the document, or how it is read, has changed since, and its grades may no longer hold"
    total = len(documents)
    return [
        finding("changed documents", len(changed), total, amended_text, doubt, changed),
        finding("other chunks", len(others), total - len(changed), cut_otherwise, stored_otherwise, others),
    ]


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
        row = Stored(chunk_id, as_stored, is_within, is_within and text == archived[start:end])
        stored[by_id[document_id].doc_id].append(row)
    return stored


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


def _difference(missing: Sequence[Place], surplus: Sequence[Stored]) -> str:
    """Return how many chunks differ, and where the first that does stands."""
    where = f"chunk {surplus[0].chunk_id}" if surplus else f"characters {missing[0][0]} to {missing[0][1]}"
    return f"{len(missing):,} missing, {len(surplus):,} too many, first {where}"


def _characters(row: Stored) -> str:
    return f"characters {row.place[0]} to {row.place[1]}" if row.is_within else "characters that it does not have"
