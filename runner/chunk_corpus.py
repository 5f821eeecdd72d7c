"""Documents -> chunks, their rows on disk, and what a reader of the results should know about them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from chunkers.registry import chunker
from runner.canonical import sha256
from runner.errors import InputError
from runner.records import Chunk, Document, Span
from runner.schemas import ChunkHealth

HEADER = "doc_id\tindex\tstart\tend\tn_tokens\tcontext"


def chunk_corpus(documents: Sequence[Document], chunker_name: str) -> list[Chunk]:
    """Every document's chunks: documents in the order given, chunks in text order.

    Raises InputError for an unknown chunker, before anything is chunked.
    """
    chunks_of = chunker(chunker_name)
    return [chunk for document in documents for chunk in chunks_of(document)]


def chunks_to_rows(chunks: Iterable[Chunk]) -> bytes:
    """Tab-separated UTF-8 rows under HEADER, in the order given; the text itself is not in them."""
    rows = (f"{c.doc_id}\t{c.index}\t{c.span.start}\t{c.span.end}\t{c.n_tokens}\t{c.context}\n" for c in chunks)
    return (HEADER + "\n" + "".join(rows)).encode()


def rows_to_chunks(content: bytes) -> list[Chunk]:
    """The chunks that `chunks_to_rows` wrote; an InputError names the row that it cannot have written."""
    # Split on newlines alone: str.splitlines would also break at separators that a context may hold.
    header, *rows = content.decode().removesuffix("\n").split("\n")
    if header != HEADER:
        raise InputError(f"These are no chunk rows: they begin with {header[:60]!r}, expected {HEADER!r}.")
    return [_chunk(row, number) for number, row in enumerate(rows, start=2)]


def _chunk(row: str, number: int) -> Chunk:
    try:
        doc_id, index, start, end, n_tokens, context = row.split("\t")
        return Chunk(doc_id, int(index), Span(int(start), int(end)), context, int(n_tokens))
    except ValueError as error:
        raise InputError(f"Chunk row {number} is damaged ({error}): {row[:80]!r}. Make the chunks again.") from error


def chunk_health(chunks: Sequence[Chunk], documents: Sequence[Document]) -> ChunkHealth:
    """Counts and shares for the results page.

    `tokens_p50` and `tokens_p95` are nearest-rank percentiles, so they are token counts of real chunks.
    `duplicate_share` is the share of chunks whose context and text repeat an earlier chunk's, `coverage` the share of
    the documents' characters, white space aside, that lie in a chunk. Everything is 0 without chunks.
    """
    chunks_of: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        chunks_of[chunk.doc_id].append(chunk)
    sizes = np.array([chunk.n_tokens for chunk in chunks] or [0])
    median, high = np.percentile(sizes, [50, 95], method="inverted_cdf").tolist()
    n_characters = sum(_visible(document.text) for document in documents)
    n_missed = sum(_missed(document, chunks_of[document.doc_id]) for document in documents)
    readings = {sha256(c.reading(document)) for document in documents for c in chunks_of[document.doc_id]}
    return ChunkHealth(
        count=len(chunks),
        tokens_p50=int(median),
        tokens_p95=int(high),
        tokens_max=int(sizes.max()),
        duplicate_share=1 - len(readings) / len(chunks) if chunks else 0.0,
        coverage=1 - n_missed / n_characters if chunks else 0.0,
        chunks_per_document_max=max((len(of_document) for of_document in chunks_of.values()), default=0),
    )


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _missed(document: Document, chunks: Sequence[Chunk]) -> int:
    """Characters other than white space that lie in no chunk."""
    missed = reach = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.span):
        missed += _visible(document.text[reach : max(reach, chunk.span.start)])
        reach = max(reach, chunk.span.end)
    return missed + _visible(document.text[reach:])
