"""A decision carried out: every document of a source, cut and embedded as the decided cell has it, in an index.

Documents are read once and wait on the disk. Their buckets are looked through for what is new, changed or gone, and
changed a window at a time: what is embedded is in the index before the next window begins.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, tee
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chunkers.registry import chunker
from runner.base.canonical import file_sha256
from runner.base.errors import BackendError, InputError
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.processes import in_processes
from runner.base.progress import bars, say
from runner.base.records import WITHOUT_VECTORS, Chunk, Document, OwnCell, parse_cell
from runner.base.store import Store, exclusive
from runner.decide.roster import locked_decision
from runner.embed.backends import Backend, Work
from runner.embed.cost.estimate import Corpus, planned_tokens
from runner.embed.embed_chunks import Embeddable
from runner.embed.encoder import Encoder
from runner.embed.vectors import described, gathered
from runner.eval_set.corpus import sample_to_draw
from runner.eval_set.version import Version, load_corpus
from runner.substrate.index import (
    BUCKETS,
    MOST_CHUNKS,
    Change,
    Embedded,
    Fingerprint,
    bucket_of,
    document_key,
    fingerprint_of,
    probed,
    refuse_other,
)
from runner.substrate.open_index import Index, index_at, no_index
from samplers.corpus.parse import Reading, read_corpus
from samplers.source_format import Card

WINDOW_TEXTS = 4096
"""A window ends with the bucket that reaches this; where containers work at once, MANY times as many."""
MANY = 4

CUT_AT_ONCE = 16
"""Documents that are handed to a process at once."""


class _Due(NamedTuple):
    """What a bucket needs: cards of new and changed documents, marks of vanished, ids to remove."""

    bucket: int
    cards: Sequence[Card]
    vanished: dict[str, bool]
    removed: Sequence[str]


class Written(NamedTuple):
    """What a run did: documents written and their chunks, documents left alone, and ones that are gone."""

    documents: int
    chunks: int
    kept: int
    gone: int


def embed_source(version: Version, corpus_path: Path, to: Path, backend: Backend, *, prune: bool = False) -> str:
    """Return what was done, once the index at `to` holds the corpus as the version's decision has it.

    InputError without a decision, else as `bring_up` has it.
    """
    decision, cell, encoder = _decided(version, backend)
    with exclusive(to.with_name(f"{to.name}.lock"), f"another run to write {display(to)}"):
        index = index_at(to, version.source.name)
        now = fingerprint_of(version.source.name, version.number, decision, cell, encoder)
        refuse_other(index.fingerprint() or now, now, to)  # before the corpus is read
        header = load_corpus(version.corpus_path)[0] if version.corpus_path.exists() else None
        sample = header.sample if header else sample_to_draw(version)
        reading = read_corpus(corpus_path, version.source.reader, sample.told)
        if prune and reading.quarantined:
            raise InputError(
                f"--prune: {len(reading.quarantined)} files could not be read, first {reading.quarantined[0][0]}, and "
                "their documents would be removed. Mend them, or leave --prune out, which only marks documents."
            )
        done = bring_up(index, to, now, reading, encoder, backend, Store(version.cache), prune=prune)
    what, gone = "chunks and their vectors" if encoder else "chunks", "removed" if prune else "marked as vanished"
    return (
        f"{version.name}: {display(to)} holds {cell}: {done.documents:,} documents written with {done.chunks:,} "
        f"{what}, {done.kept:,} left alone, {done.gone:,} {gone}"
    )


def bring_up(
    index: Index,
    to: Path,
    now: Fingerprint,
    reading: Reading,
    encoder: Encoder | None,
    backend: Backend,
    store: Store,
    *,
    prune: bool,
) -> Written:
    """Make the index hold the documents that were read, and return what that took.

    Documents that it holds by their digest are left alone. IntegrityError, which names what differs, for an index of
    another maker. What a failing backend or disk finished is kept for the next run.
    """
    made = index.fingerprint()
    refuse_other(made or now, now, to)
    due = list(_due(index if made else None, reading, prune=prune))
    cards = [card for each in due for card in each.cards]
    gone = sum(sum(each.vanished.values()) + len(each.removed) for each in due)
    say(f"{len(reading.cards):,} documents read, {len(cards):,} new or changed, {gone:,} gone; {now.cell}")
    if encoder is not None and cards:
        backend.prepare([_work(encoder, now.chunker, cards)])
        now = probed(now, encoder)
        refuse_other(made or now, now, to)
    if made is None:
        index.begin(now)
    most = WINDOW_TEXTS * (MANY if backend.concurrent else 1)
    windows = _windows(due, reading, now.chunker, most, beside=backend.concurrent)
    n_chunks = _carry_out(index, made or now, windows, encoder, backend, store, len(cards))
    return Written(len(cards), n_chunks, len(reading.cards) - len(cards), gone)


def check_index(version: Version, to: Path, backend: Backend) -> str:
    """Return that the index is the decision's and the backend's; IntegrityError names what differs.

    The probe's few texts are embedded, and nothing is written.
    """
    decision, cell, encoder = _decided(version, backend)
    made = index_at(to, version.source.name).fingerprint()
    if made is None:
        raise no_index(to, version.source.name, version.flags)
    now = fingerprint_of(version.source.name, version.number, decision, cell, encoder)
    refuse_other(made, now, to)
    if encoder is not None:
        backend.prepare([Work(encoder.spec.name, 9, 9 * encoder.spec.max_tokens, "the probe's texts")])
        refuse_other(made, probed(now, encoder), to)
    return f"{version.name}: {display(to)} was made by {cell} as it is decided, and the encoder here is the same"


def _decided(version: Version, backend: Backend) -> tuple[str, OwnCell, Encoder | None]:
    """Return the digest of the locked decision, its cell and the encoder, None for a cell without vectors.

    InputError without such a decision, or if the catalog has moved on since.
    """
    decision = locked_decision(version)
    if decision is None:
        raise InputError(
            f"{version.name} is not decided and locked yet, so there is nothing to carry out. Run: {DRIVER} run "
            f"{version.viewed}"
        )
    cell, encoder = parse_cell(decision.chosen.cell), None
    if not isinstance(cell, WITHOUT_VECTORS):
        encoder = backend.encoder(cell.encoder)
        now, then = encoder.spec.revision, decision.chosen.encoder_revision
        if now != then:
            raise InputError(
                f"{cell.encoder} is catalogued at revision {now or 'none'}, and was decided for at {then or 'none'}. "
                "Embed with the release that decided, or open the next version."
            )
    return file_sha256(version.record / "decision.json"), cell, encoder


def _due(index: Index | None, reading: Reading, *, prune: bool) -> Iterator[_Due]:
    """Yield what each bucket needs, in their order; InputError for two ids that one key would stand for."""
    buckets: dict[int, list[tuple[int, Card]]] = {}
    for card in reading.cards.values():
        key = document_key(card.doc_id)
        buckets.setdefault(bucket_of(key), []).append((key, card))
    for bucket in range(BUCKETS):
        rows = sorted(buckets.pop(bucket, ()), key=lambda row: row[0])
        keys = {key: card.doc_id for key, card in rows}
        if twice := next((card for key, card in rows if keys[key] != card.doc_id), None):
            raise InputError(f"{twice.doc_id} and another document have ids of one hash. Rename one of them.")
        held = dict(index.held(bucket)) if index else {}
        cards = [card for _, card in rows if card.doc_id not in held]
        vanished, removed = {}, []
        for _, card in rows:
            if (known := held.pop(card.doc_id, None)) is not None:
                if known.sha256 != reading.shelf.document(card).sha256:
                    cards.append(card)
                elif known.vanished:
                    vanished[card.doc_id] = False
        if prune:
            removed = sorted(held)
        else:
            vanished |= {doc_id: True for doc_id, known in sorted(held.items()) if not known.vanished}
        if cards or vanished or removed:
            yield _Due(bucket, cards, vanished, removed)


def _work(encoder: Encoder, chunker_name: str, cards: Sequence[Card]) -> Work:
    """Return what is to be embedded, from characters: chunks are cut as they are needed."""
    corpus = Corpus([card.n_characters for card in cards], 0, lambda *_: None)
    spec = encoder.spec
    (count,) = planned_tokens([f"{spec.name} x {chunker_name}"], "", corpus, (), {spec.name: spec}).values()
    return Work(spec.name, len(cards), count.tokens, count.source)


_Cut = tuple[Document, Sequence[Chunk]]
_Window = list[tuple[_Due, list[_Cut]]]


def _windows(due: Sequence[_Due], reading: Reading, chunker_name: str, most: int, *, beside: bool) -> Iterator[_Window]:
    """Yield what is due with its documents cut, as many buckets at once as reach `most` chunks.

    `beside` cuts in processes of their own, since an encoder that runs elsewhere would wait for them.
    """
    read, again = tee(reading.shelf.document(card) for each in due for card in each.cards)
    cut = partial(_cut, chunker_name)
    parts = iter(lambda: list(islice(again, CUT_AT_ONCE)), [])
    done = zip(read, chain.from_iterable(in_processes(cut, parts) if beside else map(cut, parts)), strict=True)
    window: _Window = []
    n_chunks = 0
    for each in due:
        documents: list[_Cut] = list(islice(done, len(each.cards)))
        for document, chunks in documents:
            n_chunks += len(chunks)
            if len(chunks) > MOST_CHUNKS:
                raise InputError(f"{document.doc_id} has {len(chunks):,} chunks, more than {MOST_CHUNKS:,}. Divide it.")
        window.append((each, documents))
        if n_chunks >= most:
            yield window
            window, n_chunks = [], 0
    if window:
        yield window


def _cut(chunker_name: str, documents: Sequence[Document]) -> list[Sequence[Chunk]]:
    return list(map(chunker(chunker_name), documents))


def _carry_out(
    index: Index,
    made: Fingerprint,
    windows: Iterator[_Window],
    encoder: Encoder | None,
    backend: Backend,
    store: Store,
    n_documents: int,
) -> int:
    """Return how many chunks were written, each window's once it is embedded; `n_documents` are to be written."""
    facts: Mapping[str, str] | None = None
    total = done = 0
    for window in windows:
        cut = [pair for _, documents in window for pair in documents]
        texts = [chunk.reading(document) for document, chunks in cut for chunk in chunks]
        done += len(cut)
        work = rows = None
        if encoder is not None and texts:
            work = Embeddable(store, encoder, texts, "document", parts=[len(chunks) for _, chunks in cut])
            label = f"to document {done:,} of {n_documents:,}:"
            with bars() as bar:
                vectors = work.vectors(bar(label, partial(backend.dollars, encoder.spec.name)))
            facts = facts or vectors.facts
            if facts != vectors.facts:
                raise BackendError(
                    f"The backend changed while it embedded: {described(facts)} at first, {described(vectors.facts)} "
                    "now. Run again: what was finished is kept."
                )
            rows = made.stored(gathered(vectors.rows, np.arange(len(texts))))
        ends = iter(np.cumsum([len(chunks) for _, chunks in cut]).tolist())
        changes = []
        for due, documents in window:
            written = []
            for document, chunks in documents:
                end = next(ends)
                own = None if rows is None else rows[end - len(chunks) : end]
                written.append(Embedded(document, chunks, own))
            changes.append(Change(due.bucket, written, due.vanished, due.removed))
        index.write(changes)
        if work is not None:
            work.forget()
        total += len(texts)
    return total
