"""Indexes of fictional bills by an encoder without weights, and what is in them; processes fill them, to be killed."""

import os
import resource
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from runner.base.errors import EvalError
from runner.base.records import Document, OwnCell, parse_cell
from runner.base.store import Store
from runner.embed.backends import Backend, LocalBackend
from runner.embed.encoder import Encoder
from runner.evening import embed
from runner.evening.embed import Written, bring_up
from runner.substrate.index import Fingerprint, fingerprint_of
from runner.substrate.open_index import index_at
from samplers.corpus.parse import Reading
from tests.support.small_set import SmallEncoder
from tests.support.substrate_builder import fictional, writing_connection

CELL = "minilm-l6-v2 x fixed_token_256_25"
SOURCE = "bills"


class Counting(SmallEncoder):
    """Counts the texts that it embeds as documents."""

    n_texts = 0

    def encode(self, texts, side):
        self.n_texts += len(texts)
        return super().encode(texts, side)


def bills(n: int, words: int = 400) -> list[Document]:
    """Documents of a few chunks each."""
    return fictional(n, words=words)[0]


def changed(document: Document) -> Document:
    return replace(document, text=f"{document.text} as amended")


def reading_of(documents: Iterable[Document]) -> Reading:
    reading = Reading()
    reading.cards = {document.doc_id: reading.shelf.put(document, "0" * 64) for document in documents}
    return reading


def made_by(cell: str | OwnCell, encoder: Encoder | None, decision: str = "0" * 64) -> Fingerprint:
    parsed = parse_cell(str(cell))
    return fingerprint_of(SOURCE, 1, decision, parsed, encoder)


def fill(
    to: Path,
    documents: Iterable[Document],
    cell: str = CELL,
    encoder: Encoder | None = None,
    backend: Backend | None = None,
    *,
    prune: bool = False,
) -> Written:
    """Bring an index up to the documents; without an encoder by the small one, if the cell has any."""
    name = getattr(parse_cell(cell), "encoder", "")
    encoder = encoder or (SmallEncoder(name) if name else None)
    now, reading = made_by(cell, encoder), reading_of(documents)
    store = Store(to.parent / ".cache")
    backend = backend or LocalBackend()
    return bring_up(index_at(to, SOURCE), to, now, reading, encoder, backend, store, prune=prune)


def content(to: Path) -> object:
    """All that an index holds, but for the day of `embedded_at` and a database's ids of chunks, which are of its own.

    Full-text tables are held to their content.
    """
    if to.is_dir():
        return {path.name: path.read_bytes() for path in to.iterdir() if path.is_file()}
    connection = writing_connection(to)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {}
    chunk = dict(connection.execute(f"SELECT chunk_id, document_id || chunk_index FROM {SOURCE}_chunks"))
    for name in tables:
        if name.endswith("_fts"):
            connection.execute(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")
        if name.startswith("sqlite_") or any(part in name for part in ("_vec0_", "_fts")):
            continue  # the modules' own tables, whose layout depends on the order of writing
        rows = [row[:9] if name == f"{SOURCE}_chunks" else row for row in connection.execute(f"SELECT * FROM {name}")]
        if name.startswith(f"{SOURCE}_chunks"):
            rows = [(chunk[number], *row) for number, *row in rows]
        found[name] = sorted(rows, key=repr)
    connection.close()
    return found


def in_process(to: Path, n: int, window: int, largest_file: int = 0) -> None:
    """`fill`, a few texts at a time, as a process of its own does; with a limit no file may be larger."""
    embed.WINDOW_TEXTS = window
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        fill(to, bills(n))
    except EvalError as error:
        os._exit(error.exit_code)
