"""Documents to chunks: their rows on disk, their key in the store, and how many tokens they have."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from chunkers import registry
from chunkers.registry import chunker
from runner.base.canonical import digest, file_sha256
from runner.base.errors import InputError
from runner.base.records import Chunk, Document, Span
from runner.base.store import MANIFEST, Store
from runner.eval_set.version import Version

STAGE, ROWS = "chunks", "chunks.tsv"
"""A chunker's place in the store, and the file there."""

CHUNK_FORMAT = 3
"""Raised when a chunker's rows would differ for the same documents; part of their key."""

HEADER = "doc_id\tindex\tstart\tend\tn_tokens\tcontext"


def chunk_corpus(documents: Sequence[Document], chunker_name: str) -> list[Chunk]:
    """Return all chunks, by document in the order given, then in text order; an InputError for an unknown chunker."""
    chunks_of = chunker(chunker_name)
    return [chunk for document in documents for chunk in chunks_of(document)]


def chunks_to_rows(chunks: Iterable[Chunk]) -> bytes:
    """Return tab-separated UTF-8 rows under HEADER, in the order given; the text itself is not in them."""
    rows = (f"{c.doc_id}\t{c.index}\t{c.span.start}\t{c.span.end}\t{c.n_tokens}\t{c.context}\n" for c in chunks)
    return (HEADER + "\n" + "".join(rows)).encode()


def rows_to_chunks(content: bytes) -> list[Chunk]:
    """Return the chunks that `chunks_to_rows` wrote; an InputError names a damaged row."""
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


def chunk_inputs(chunker: str, corpus_sha256: str) -> dict[str, str | int]:
    """Return what the chunks of a corpus are made from."""
    return {"format": CHUNK_FORMAT, "chunker": chunker, "chunkers": chunkers_sha256(chunker), "corpus": corpus_sha256}


def stored_chunk_tokens(version: Version, chunker: str, limit: int) -> int | None:
    """Return the tokens (cl100k_base, context included) of the version's chunks; None if the store does not hold them.

    Each chunk is cut at `limit` if it is not 0.
    """
    # Asked for an estimate, which must neither chunk nor wait: what is not there yet is guessed from characters.
    folder = Store(version.cache).folder(STAGE, chunk_inputs(chunker, file_sha256(version.corpus_path)))
    if not (folder / MANIFEST).exists():
        return None
    chunks = rows_to_chunks((folder / ROWS).read_bytes())
    return sum(min(chunk.n_tokens, limit or chunk.n_tokens) for chunk in chunks)


def chunkers_sha256(chunker: str) -> str:
    """Return the digest of the source that cuts under a name: a chunker that is changed gets new scores."""
    plug_in = registry.plugged(chunker)
    return digest([_own_sha256(), plug_in.state]) if plug_in else _own_sha256()


@cache
def _own_sha256() -> str:
    sources = sorted(Path(registry.__file__).parent.glob("*.py"))
    return digest({path.name: file_sha256(path) for path in sources})
