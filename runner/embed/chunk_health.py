"""Whether a chunker's chunks are fit to embed: sizes, repeats and coverage."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from runner.base.canonical import sha256
from runner.base.records import Chunk, Document, Span, Vectors, merged
from runner.eval_set.shapes.cell import ChunkHealth
from samplers.formats.text_writer import visible

MAX_DUPLICATES = 0.05
"""Share of repeated chunks above which a chunker's output is called degenerate."""


def chunk_health(chunks: Sequence[Chunk], documents: Sequence[Document], limit: int) -> ChunkHealth:
    """Return counts and shares of one chunker's chunks over these documents; everything is 0 without chunks.

    Percentiles are nearest-rank: token counts of real chunks. `duplicate_share` counts chunks whose context and text
    repeat an earlier chunk's, `coverage` is the share of the characters other than white space in some chunk.
    `degenerate` says what should stop a bulk embedding; `limit` is the chunker's size in tokens, 0 without one.
    """
    if not chunks:
        zeros = dict.fromkeys(ChunkHealth.model_fields, 0)
        return ChunkHealth.model_validate({**zeros, "degenerate": []})
    chunks_of: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        chunks_of[chunk.doc_id].append(chunk)
    sizes = np.array([chunk.n_tokens for chunk in chunks])
    # Counts that chunks have, so no interpolation between two of them.
    median, high = np.percentile(sizes, [50, 95], method="inverted_cdf").tolist()
    n_characters = sum(visible(document.text) for document in documents)
    missed = sum(_missed(document.text, sorted(c.span for c in chunks_of[document.doc_id])) for document in documents)
    placed = [(chunk, document) for document in documents for chunk in chunks_of[document.doc_id]]
    # As encoders read them, context included: one text under two headings is no repeat.
    repeats = len(chunks) - len({sha256(chunk.reading(document)) for chunk, document in placed})
    empty = sum(not document.text[chunk.span.start : chunk.span.end].strip() for chunk, document in placed)
    return ChunkHealth(
        count=len(chunks),
        tokens_p50=int(median),
        tokens_p95=int(high),
        tokens_max=int(sizes.max()),
        duplicate_share=repeats / len(chunks),
        coverage=1 - missed / n_characters,
        chunks_per_document_max=max(map(len, chunks_of.values())),
        degenerate=_degenerate(int(high), limit, repeats, len(chunks), empty, missed),
    )


def unread_spans(chunks: Sequence[Chunk], vectors: Vectors) -> dict[str, list[list[int]]]:
    """Return by document the characters that its encoder read in no chunk; a document that was read whole is left out.

    Of a chunk that was cut, as large a part of its end counts as unread as of its tokens: tokens are not of one length.
    """
    read: defaultdict[str, list[Span]] = defaultdict(list)
    for chunk, tokens, lost in zip(chunks, vectors.n_tokens.tolist(), vectors.n_lost.tolist(), strict=True):
        context = len(chunk.context) + 1 if chunk.context else 0
        length = context + chunk.span.end - chunk.span.start
        if (end := chunk.span.end - round(length * lost / max(tokens, 1))) > chunk.span.start:
            read[chunk.doc_id].append(Span(chunk.span.start, end))
    whole: defaultdict[str, list[Span]] = defaultdict(list)
    for chunk in chunks:
        whole[chunk.doc_id].append(chunk.span)
    return {doc_id: gaps for doc_id, spans in sorted(whole.items()) if (gaps := _gaps(spans, read[doc_id]))}


def _gaps(spans: Iterable[Span], read: Iterable[Span]) -> list[list[int]]:
    """Return what of the spans is not in `read`, in text order; what is read lies in the spans."""
    gaps: list[list[int]] = []
    known, place = merged(read), 0
    for span in merged(spans):
        start = span.start
        while place < len(known) and known[place].start < span.end:
            if known[place].start > start:
                gaps.append([start, known[place].start])
            start, place = known[place].end, place + 1
        if start < span.end:
            gaps.append([start, span.end])
    return gaps


def _degenerate(high: int, limit: int, repeats: int, count: int, empty: int, missed: int) -> list[str]:
    defects = []
    if limit and high > limit:
        defects.append(f"95 % of the chunks have up to {high} tokens, above the chunker's limit of {limit}")
    if repeats > MAX_DUPLICATES * count:
        defects.append(f"{repeats / count:.1%} of the chunks repeat an earlier one, more than {MAX_DUPLICATES:.0%}")
    if empty:
        defects.append(f"{empty} chunks are empty")
    if missed:
        defects.append(f"{missed:,} characters other than white space are in no chunk")
    return defects


def _missed(text: str, spans: Iterable[Span]) -> int:
    """Return characters other than white space that lie in none of the spans, which are sorted by start."""
    missed = reach = 0
    for span in spans:
        # Overlapping spans reach back: only what lies past the farthest end so far is a gap.
        missed += visible(text[reach : max(reach, span.start)])
        reach = max(reach, span.end)
    return missed + visible(text[reach:])
