"""Checks of the archived documents in the substrate: their texts, and each chunk of the decided chunker once."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runner.base.given_files import printable
from runner.base.records import Chunk, Document
from runner.substrate.database import Substrate, json_array
from runner.substrate.shapes import EXAMPLES, CoverageResult, FindingResult, finding, note


@dataclass(frozen=True)
class Texts:
    """What the substrate holds of the documents: the spans of their chunks, and the first chunk that differs."""

    spans: dict[str, list[tuple[int, int]]]
    changed: dict[str, str]


def read_texts(substrate: Substrate, documents: Sequence[Document]) -> Texts:
    """Every chunk of the documents, read once; only its place is kept."""
    ids = substrate.ids_of([document.doc_id for document in documents])
    by_id = {ids[document.doc_id]: document for document in documents}
    texts = Texts(defaultdict(list), {})
    rows = substrate.rows(
        "SELECT chunk_id, document_id, char_start, char_end, text FROM {chunks} "
        "WHERE document_id COLLATE BINARY IN (SELECT value FROM json_each(?)) ORDER BY chunk_id",
        (json_array(by_id),),
    )
    for chunk_id, document_id, start, end, text in rows:
        document = by_id[document_id]
        sound = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(document.text)
        if sound:
            texts.spans[document.doc_id].append((start, end))
        if not sound or text != document.text[start:end]:
            place = f"characters {start} to {end}" if sound else "characters that it does not have"
            texts.changed.setdefault(document.doc_id, f"{document.doc_id}: chunk {chunk_id}, {place}")
    return texts


def coverage(texts: Texts, documents: Sequence[Document]) -> tuple[CoverageResult, dict[str, str]]:
    """The coverage over all documents, and by id an example for each that has no chunk or misses characters."""
    lacking: dict[str, str] = {}
    characters, covered = 0, 0
    for document in documents:
        spans = sorted(texts.spans.get(document.doc_id, ()))
        missing = _without_space(_gaps(document.text, spans))
        all_of_it = _without_space([document.text])
        characters += all_of_it
        covered += all_of_it - missing
        if not spans:
            lacking[document.doc_id] = f"{document.doc_id}: no chunk"
        elif missing:
            lacking[document.doc_id] = f"{document.doc_id}: {missing:,} of {all_of_it:,} characters in no chunk"
    with_chunks = sum(1 for document in documents if texts.spans.get(document.doc_id))
    n_documents = len(documents)
    found = CoverageResult(documents=n_documents, with_chunks=with_chunks, characters=characters, covered=covered)
    return found, lacking


def text_findings(texts: Texts, lacking: Mapping[str, str], documents: Sequence[Document]) -> Iterator[FindingResult]:
    """Whether the documents are there whole, and as they were archived."""
    yield finding(
        "missing chunks",
        list(lacking.values()),
        len(documents),
        "documents of the manifest have no chunk, or characters that no chunk covers",
        "what was graded there cannot be found",
    )
    yield finding(
        "changed documents",
        list(texts.changed.values()),
        len(documents),
        "documents of the manifest have a chunk whose text is not the archived one",
        "the document, or how it is read, has changed since, and its grades may no longer hold",
    )


def outside_finding(substrate: Substrate, documents: Sequence[Document]) -> FindingResult:
    """A note of the documents that the substrate holds beside the manifest's."""
    ids = substrate.ids_of([document.doc_id for document in documents])
    (of,) = next(substrate.rows("SELECT count(DISTINCT document_id) FROM {chunks}"))
    outside = "FROM {chunks} WHERE document_id NOT IN (SELECT value FROM json_each(?))"
    bindings = (json_array(ids.values()),)
    (count,) = next(substrate.rows(f"SELECT count(DISTINCT document_id) {outside}", bindings))
    few = substrate.rows(f"SELECT DISTINCT document_id {outside} ORDER BY 1 LIMIT {EXAMPLES}", bindings)
    sentence = f"{count:,} of {of:,} documents of the substrate are not in the manifest; they were not sampled."
    return note("documents not in the manifest", count, of, sentence, [str(document_id) for (document_id,) in few])


def _gaps(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """What no span covers; spans ascend."""
    reached = 0
    for start, end in spans:
        if start > reached:
            yield text[reached:start]
        reached = max(reached, end)
    yield text[reached:]


def _without_space(texts: Iterable[str]) -> int:
    return sum(len(part) for text in texts for part in text.split())


Place = tuple[object, object, object]
"""Start, end and context; of a chunk in the substrate whatever is stored there."""


class Stored(NamedTuple):
    """A chunk of the substrate; `doc_id` is the eval set's."""

    doc_id: str
    chunk_id: int
    place: Place


@dataclass(frozen=True)
class Cut:
    """A chunker's name and the chunks that it makes of the documents."""

    chunker: str
    chunks: Sequence[Chunk]


@dataclass(frozen=True)
class Others:
    """By document, as multisets: the places of expected chunks that are not stored, and stored chunks not expected."""

    missing: Mapping[str, Sequence[Place]]
    surplus: Mapping[str, Sequence[Stored]]


def others(expected: Iterable[Chunk], stored: Iterable[Stored]) -> Others:
    """The differences, documents and chunks in the order given; a document without any is in neither."""
    left: defaultdict[str, Counter[Place]] = defaultdict(Counter)
    for chunk in expected:
        left[chunk.doc_id][_place(chunk)] += 1
    surplus: defaultdict[str, list[Stored]] = defaultdict(list)
    for row in stored:
        if left[row.doc_id][row.place] > 0:
            left[row.doc_id][row.place] -= 1
        else:
            surplus[row.doc_id].append(row)
    return Others({doc_id: gone for doc_id, places in left.items() if (gone := list(places.elements()))}, surplus)


def chunks_finding(
    substrate: Substrate, documents: Sequence[Document], cut: Cut, *, left_out: Collection[str]
) -> FindingResult:
    """Whether the documents' chunks are those of the cut, by start, end and context; NULL is no context.

    `left_out` are documents whose chunks differ of necessity, since they are amended or not there whole.
    """
    compared = [document.doc_id for document in documents if document.doc_id not in left_out]
    expected: dict[str, list[Chunk]] = {doc_id: [] for doc_id in compared}
    for chunk in cut.chunks:
        if chunk.doc_id in expected:
            expected[chunk.doc_id].append(chunk)
    found = others((chunk for chunks in expected.values() for chunk in chunks), _stored(substrate, compared))
    wrong = [doc_id for doc_id in compared if doc_id in found.missing or doc_id in found.surplus]
    n_missing, n_surplus = (sum(map(len, side.values())) for side in (found.missing, found.surplus))
    return finding(
        "other chunks",
        [_example(doc_id, expected[doc_id], found) for doc_id in wrong],
        len(compared),
        f"documents that are there whole and unchanged are not cut as {cut.chunker} cuts them",
        f"{n_missing:,} of its chunks are missing, and {n_surplus:,} stored ones are not its own or are stored again, "
        "so what was decided is not what was embedded",
    )


def _stored(substrate: Substrate, doc_ids: Sequence[str]) -> Iterable[Stored]:
    """Every chunk of the documents, by chunk_id."""
    owners = {document_id: doc_id for doc_id, document_id in substrate.ids_of(doc_ids).items()}
    rows = substrate.rows(
        "SELECT chunk_id, document_id, char_start, char_end, context FROM {chunks} "
        "WHERE document_id COLLATE BINARY IN (SELECT value FROM json_each(?)) ORDER BY chunk_id",
        (json_array(owners),),
    )
    for chunk_id, document_id, start, end, context in rows:
        yield Stored(owners[document_id], chunk_id, (start, end, "" if context is None else context))


def _example(doc_id: str, expected: Sequence[Chunk], found: Others) -> str:
    """The document, how many chunks differ, and the first that does, by id and characters."""
    missing, surplus = found.missing.get(doc_id, ()), found.surplus.get(doc_id, ())
    if not surplus:
        start, end, _ = missing[0]
        return f"{doc_id}: {len(missing):,} missing, first characters {start} to {end}"
    chunk_id, (start, end, context) = surplus[0][1:]
    why = "not its own"
    if (start, end) in {(chunk.span.start, chunk.span.end) for chunk in expected}:
        again = (start, end, context) in {_place(chunk) for chunk in expected}
        why = "stored again" if again else "with another context"
    place = printable(f"characters {start} to {end}")
    return f"{doc_id}: {len(missing):,} missing, {len(surplus):,} too many, first chunk {chunk_id}, {place}, {why}"


def _place(chunk: Chunk) -> Place:
    return chunk.span.start, chunk.span.end, chunk.context
