"""Documents -> chunks, and their rows on disk."""

from collections.abc import Iterable, Sequence

from chunkers.registry import chunker
from runner.base.errors import InputError
from runner.base.records import Chunk, Document, Span

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
