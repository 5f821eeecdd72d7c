"""Under which key a corpus's chunks lie in the store, and how many tokens they have."""

from functools import cache
from pathlib import Path

from chunkers import registry
from runner.base.canonical import digest, file_sha256
from runner.base.store import MANIFEST, Store
from runner.embed.chunk_corpus import rows_to_chunks
from runner.eval_set.version import Version

CHUNK_FORMAT = 3
"""Raised when the rows of a chunker would come out otherwise from the same documents; part of their key."""

STAGE = "chunks"
ROWS = "chunks.tsv"


def chunk_inputs(chunker: str, corpus_sha256: str) -> dict[str, str | int]:
    """What the chunks of a corpus are made from."""
    return {"format": CHUNK_FORMAT, "chunker": chunker, "chunkers": chunkers_sha256(), "corpus": corpus_sha256}


def stored_chunk_tokens(version: Version, chunker: str, limit: int) -> int | None:
    """Tokens (cl100k_base, context included) of the version's chunks; None where the store does not hold them.

    A chunk counts with `limit` tokens at most, which is where an encoder cuts it off; 0 for no limit.
    """
    folder = Store(version.cache).folder(STAGE, chunk_inputs(chunker, file_sha256(version.corpus_path)))
    if not (folder / MANIFEST).exists():
        return None
    chunks = rows_to_chunks((folder / ROWS).read_bytes())
    return sum(min(chunk.n_tokens, limit or chunk.n_tokens) for chunk in chunks)


@cache
def chunkers_sha256() -> str:
    """Digest of the chunkers' source, so that whoever changes a chunker under its old name sees its new scores."""
    sources = sorted(Path(registry.__file__).parent.glob("*.py"))
    return digest({path.name: file_sha256(path) for path in sources})
