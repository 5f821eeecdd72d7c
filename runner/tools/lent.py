"""Chunkers and encoders that a program gives as functions, made into parts that cells can name.

A function is asked for all that an evaluation needs of it before anything is searched. So a wrong answer ends it at
once, the parts are known by the digest of what they made, and what one function made is never taken for another's.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np

from chunkers.contract import from_spans
from chunkers.registry import BARE, BUILT_IN, Row
from chunkers.tokens import count_tokens
from runner.base.canonical import digest, sha256
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.plug_ins import Group, Lent
from runner.base.progress import say
from runner.base.records import Chunk, Document, Ints, PromptSide, Span, parse_cell
from runner.embed.chunk_corpus import chunks_to_rows
from runner.embed.chunk_health import chunk_health
from runner.embed.encoder import Matrix, PlugInEncoder
from runner.embed.vectors import unit
from runner.eval_set.catalog import ENCODERS, EncoderSpec

Cut = Callable[[Any], Iterable[Any]]
"""From a document, if the parameter is called `document`, or else from its text, to spans, chunks or pieces of text."""

Encode = Callable[[list[str]], Any]
"""From texts to an array with a row per text."""

TEXTS_AT_ONCE = 1024

MISSED = 0.01
"""Share of the text in no chunk from which on it is said."""

Texts = Mapping[PromptSide, Sequence[str]]


def lent_chunker(name: str, cut: Cut, documents: Collection[Document]) -> Lent:
    """Return a chunker that cuts these documents as `cut` does; InputError names what cannot be a chunk.

    How much of the text is in no chunk is said.
    """
    where = _named("chunkers", name, cut)
    chunks = {document.doc_id: _chunks(document, cut, where) for document in documents}
    every = [chunk for own in chunks.values() for chunk in own]
    missed = 1 - chunk_health(every, [*documents], 0).coverage
    if missed >= MISSED:
        say(f"warning: {where}: {100 * missed:.0f} % of the text is in no chunk, so that nothing finds it")
    made = chunks_to_rows(every)
    row = Row(lambda document: chunks[document.doc_id], limit=0)
    return Lent(EntryPoint(name, "a function", "chunkers"), row, sha256(made))


def lent_encoder(name: str, encode: Encode | tuple[Encode, Encode], texts: Texts) -> Lent:
    """Return an encoder with the vectors of these texts; InputError names what cannot be one.

    Of a pair of functions the first is for queries and the second for documents.
    """
    for_queries, for_documents = encode if isinstance(encode, tuple) and len(encode) == 2 else (encode, encode)
    where = _named("encoders", name, for_queries, for_documents)
    asked: dict[PromptSide, Any] = {"query": for_queries, "document": for_documents}
    vectors = {side: _vectors(asked[side], [*dict.fromkeys(texts[side])], f"{where}, {side}") for side in asked}
    widths = {side: len(next(iter(own.values()))) for side, own in vectors.items()}
    if len(set(widths.values())) > 1:
        raise InputError(f"{where}: {widths['query']} dimensions for queries and {widths['document']} for documents.")
    spec = EncoderSpec(name=name, model=f"function:{name}", dim=widths["query"], max_tokens=0)
    part = type("LentEncoder", (_LentEncoder,), {"row": spec, "vectors": vectors})
    made = digest({side: [[*own], sha256(b"".join(map(bytes, own.values())))] for side, own in vectors.items()})
    return Lent(EntryPoint(name, "a function", "encoders"), part, made)


class _LentEncoder(PlugInEncoder):
    """Looks up what a function made."""

    probes = False
    method = "a function of the program that evaluated"
    vectors: ClassVar[dict[PromptSide, dict[str, Matrix]]] = {}

    def encode(self, texts: Sequence[str], side: PromptSide) -> Matrix:
        return np.array([self.vectors[side][text] for text in texts])

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> Ints:
        return np.array([count_tokens(text) for text in texts], np.int64)


def _named(group: Group, name: str, *functions: object) -> str:
    """Return what messages call a part; InputError unless it can be a cell's, and is made by functions."""
    one, known = group.removesuffix("s"), {"chunkers": BUILT_IN, "encoders": ENCODERS}[group]
    where = f"{one} {printable(str(name), 40)}"
    try:
        cell = parse_cell(f"bm25 x {name}" if group == "chunkers" else f"{name} x whole_doc")
        fits = getattr(cell, one, "") == name
    except InputError:
        fits = False
    if not fits or name in known or name.endswith(BARE):
        raise InputError(
            f"{where}: give it another name, of small letters, digits, '.', '_' and '-', that no {one} has."
        )
    if wrong := [each for each in functions if not callable(each)]:
        raise InputError(f"{where} is {printable(repr(wrong[0]), 60)}, not a function.")
    return where


def _chunks(document: Document, cut: Cut, where: str) -> list[Chunk]:
    where = f"{where}, document {printable(document.doc_id)}"
    try:
        takes_document = "document" in inspect.signature(cut).parameters
    except (TypeError, ValueError):  # of a function written in C nothing is known
        takes_document = False
    try:
        answer = cut(document if takes_document else document.text)
        # A string is iterable too: its letters would pass for pieces. A set has no order to look for them in.
        pieces = None if isinstance(answer, str | bytes | Mapping | Set) else list(answer)
    except Exception as error:
        raise InputError(f"{where}: it failed: {type(error).__name__}: {error}") from error
    if not pieces:
        said = "no chunk" if pieces == [] else printable(repr(answer), 60)
        raise InputError(f"{where}: {said} returned. Return spans (start, end), or pieces of the text as it stands.")
    spans: list[tuple[int, int]] = []
    contexts: dict[tuple[int, int], str] = {}
    reached = 0
    for number, piece in enumerate(pieces, start=1):
        # Pieces may overlap, so that each is looked for behind the first character of the one before.
        if isinstance(piece, str):
            if not piece.strip():
                continue  # as splitting at line breaks leaves
            start = document.text.find(piece, reached)
            start = document.text.find(piece) if start < 0 else start
            span = (start, start + len(piece))
            reached = start + 1
        else:
            at = piece.span if isinstance(piece, Chunk) else piece
            span = (at.start, at.end) if isinstance(at, Span) else tuple(at) if isinstance(at, tuple | list) else ()
        is_span = len(span) == 2 and all(isinstance(end, int | np.integer) for end in span)
        if not is_span or not 0 <= span[0] < span[1] <= len(document.text):
            raise InputError(
                f"{where}: chunk {number}, {printable(repr(piece), 60)}, is not in the text of {len(document.text):,} "
                "characters. Return spans (start, end) of it, or pieces of it as they stand."
            )
        spans.append((int(span[0]), int(span[1])))
        if isinstance(piece, Chunk):
            contexts[spans[-1]] = " ".join(piece.context.split())
    made = from_spans(document, spans)
    if not made:
        raise InputError(f"{where}: white space alone returned.")
    return [_under(chunk, contexts.get((chunk.span.start, chunk.span.end))) for chunk in made]


def _under(chunk: Chunk, context: str | None) -> Chunk:
    """Return the chunk under the context that its function gave it, if it gave one."""
    if context is None:
        return chunk
    n_tokens = chunk.n_tokens - count_tokens(chunk.context) + count_tokens(context)
    return Chunk(chunk.doc_id, chunk.index, chunk.span, context, n_tokens)


def _vectors(encode: Encode, texts: list[str], where: str) -> dict[str, Matrix]:
    """Return a unit row by text."""
    parts: list[Matrix] = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        sent = texts[start : start + TEXTS_AT_ONCE]
        try:
            rows = np.asarray(encode(list(sent)), dtype=np.float32)
        except Exception as error:
            raise InputError(f"{where}: it failed: {type(error).__name__}: {error}") from error
        if rows.ndim != 2 or len(rows) != len(sent) or rows.shape[1:] != (parts or [rows])[0].shape[1:]:
            due = f" of {parts[0].shape[1]} numbers each, as before" if parts else ""
            raise InputError(f"{where}: an array of {rows.shape} for {len(sent)} texts. Return one row per text{due}.")
        bad = ~np.isfinite(rows).all(axis=1) | ~rows.any(axis=1)
        if bad.any():
            text = sent[int(bad.argmax())]
            raise InputError(
                f"{where}: the vector of {printable(text, 60)!r} has a NaN or an infinite number, or only zeros."
            )
        parts.append(unit(rows))
    return dict(zip(texts, np.concatenate(parts), strict=True))
