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


class Account(NamedTuple):
    """What became of one document; `lacking`, `changed` and `other` are "" or an example of what is wrong with it."""

    has_chunks: bool
    characters: int
    uncovered: int
    lacking: str
    changed: str
    other: str
    n_missing: int
    n_surplus: int


def document_findings(
    substrate: Substrate, documents: Sequence[Document], chunker: str, chunks: Sequence[Chunk]
) -> tuple[list[FindingResult], CoverageResult]:
    """Return whether the documents are there whole, as archived and cut as the chunker cut them, and the coverage."""
    expected: defaultdict[str, list[Place]] = defaultdict(list)
    for chunk in chunks:
        expected[chunk.doc_id].append((chunk.span.start, chunk.span.end, chunk.context))
    stored = _read(substrate, documents)
    accounts = [_account(document, stored[document.doc_id], expected[document.doc_id]) for document in documents]
    # Chunks of a document that is amended or not there whole differ of necessity, so they are not compared.
    whole = [account for account in accounts if not account.lacking and not account.changed]
    lacking = [account.lacking for account in accounts if account.lacking]
    changed = [account.changed for account in accounts if account.changed]
    others = [account.other for account in whole if account.other]
    characters = sum(account.characters for account in accounts)
    coverage = CoverageResult(
        documents=len(documents),
        with_chunks=sum(account.has_chunks for account in accounts),
        characters=characters,
        covered=characters - sum(account.uncovered for account in accounts),
    )
    stored_otherwise = (
        f"{sum(account.n_missing for account in whole):,} of its chunks are missing, and "
        f"{sum(account.n_surplus for account in whole):,} stored ones are not its own or are stored again, "
        "so what was decided is not what was embedded"
    )
    cut_otherwise = f"documents that are there whole and unchanged are not cut as {chunker} cuts them"
    total = len(documents)
    return [
        finding("missing chunks", len(lacking), total, LACKING, "what was graded there cannot be found", lacking),
        finding("changed documents", len(changed), total, CHANGED, AMENDED, changed),
        finding("other chunks", len(others), len(whole), cut_otherwise, stored_otherwise, others),
    ], coverage


def _account(document: Document, rows: Sequence[Stored], expected: Sequence[Place]) -> Account:
    """Compare a document's chunks with its text, then by start, end and context with the expected ones."""
    doc_id, lacking, changed, other = document.doc_id, "", "", ""
    spans = [row.span for row in rows if row.span is not None]
    characters, uncovered = uncovered_of(document.text, spans)
    if not spans:
        lacking = f"{doc_id}: no chunk"
    elif uncovered:
        lacking = f"{doc_id}: {uncovered:,} of {characters:,} characters in no chunk"
    amended = next((row for row in rows if not row.is_same), None)
    if amended is not None:
        changed = f"{doc_id}: chunk {amended.chunk_id}, {_characters(amended)}"
    # Cut as the chunker cuts it: the same places, each as often.
    missing, surplus = differences(expected, rows)
    if missing or surplus:
        other = f"{doc_id}: {_difference(expected, missing, surplus)}"
    return Account(bool(spans), characters, uncovered, lacking, changed, other, len(missing), len(surplus))


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
    for start, end in sorted(spans):
        gaps.append(text[reached:start])  # "" where the span begins before the last one's end
        reached = max(reached, end)
    gaps.append(text[reached:])
    return _without_space(text), sum(map(_without_space, gaps))


def _without_space(text: str) -> int:
    return sum(map(len, text.split()))


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
