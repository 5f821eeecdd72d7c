"""Checks of the chunks' texts against the eval set's archived documents."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.base.records import Document
from runner.substrate.database import Substrate, json_array
from runner.substrate.findings import EXAMPLES, Finding, finding


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the manifest's documents the substrate's chunks hold; characters are those that are not space."""

    documents: int
    with_chunks: int
    characters: int
    covered: int


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


def coverage(texts: Texts, documents: Sequence[Document]) -> tuple[Coverage, dict[str, str]]:
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
    return Coverage(len(documents), with_chunks, characters, covered), lacking


def text_findings(texts: Texts, lacking: Mapping[str, str], documents: Sequence[Document]) -> Iterator[Finding]:
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


def outside_finding(substrate: Substrate, documents: Sequence[Document]) -> Finding:
    """A note of the documents that the substrate holds beside the manifest's."""
    ids = substrate.ids_of([document.doc_id for document in documents])
    (of,) = next(substrate.rows("SELECT count(DISTINCT document_id) FROM {chunks}"))
    outside = "FROM {chunks} WHERE document_id NOT IN (SELECT value FROM json_each(?))"
    bindings = (json_array(ids.values()),)
    (count,) = next(substrate.rows(f"SELECT count(DISTINCT document_id) {outside}", bindings))
    few = substrate.rows(f"SELECT DISTINCT document_id {outside} ORDER BY 1 LIMIT {EXAMPLES}", bindings)
    return Finding(
        "documents not in the manifest",
        fault=False,
        count=count,
        of=of,
        sentence=f"{count:,} of {of:,} documents of the substrate are not in the manifest; they were not sampled.",
        examples=tuple(str(document_id) for (document_id,) in few),
    )


def _gaps(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """What no span covers; spans ascend."""
    reached = 0
    for start, end in spans:
        if start > reached:
            yield text[reached:start]
        reached = max(reached, end)
    yield text[reached:]


def _without_space(texts: Iterator[str] | Sequence[str]) -> int:
    return sum(len(part) for text in texts for part in text.split())
