"""What every chunker promises, as a check; and chunks from spans, for a chunker that only knows where it cuts."""

from collections.abc import Iterable, Sequence

import numpy as np

from chunkers.contexts import title_context
from chunkers.tokens import count_tokens, tokenize
from runner.base.errors import InputError
from runner.base.plug_ins import PlugIn
from runner.base.records import Chunk, Document, Span


def from_spans(document: Document, spans: Iterable[tuple[int, int]]) -> list[Chunk]:
    """Return the document's chunks at those spans (start included, end excluded), each with the title as its context.

    In text order; a span of white space alone, or one that is there already, is left out.
    """
    context = title_context(document.title)
    used, tokens = count_tokens(context), tokenize(document.text)
    kept = [Span(start, end) for start, end in sorted(set(spans)) if document.text[start:end].strip()]
    return [
        Chunk(document.doc_id, index, span, context, used + tokens.count(span.start, span.end))
        for index, span in enumerate(kept)
    ]


def chunk_fault(document: Document, chunks: Sequence[Chunk], limit: int) -> str:
    """Return what is wrong with a document's chunks, "" if nothing is; none may exceed `limit` tokens (0: any number).

    Chunks are in text order with indices from 0 and no span twice. Each lies within the text and holds more than white
    space, its context is one line, its tokens are counted right. Together they hold every character that is not white
    space.
    """
    if wrong := next((chunk for chunk in chunks if not isinstance(chunk, Chunk)), None):
        return f"{wrong!r:.80} is no Chunk"
    if {chunk.doc_id for chunk in chunks} - {document.doc_id}:
        return "a chunk is of another document"
    if [chunk.index for chunk in chunks] != list(range(len(chunks))):
        return "indices do not count from 0 without a gap"
    spans = [chunk.span for chunk in chunks]
    if spans != sorted(set(spans)):
        return "spans are not in text order, each once"
    tokens = tokenize(document.text)
    # Every chunk marks its characters; what is left unmarked must be white space.
    covered = np.zeros(len(document.text), dtype=bool)
    for chunk in chunks:
        start, end = chunk.span.start, chunk.span.end
        if end > len(document.text) or not document.text[start:end].strip():
            return f"chunk {chunk.index} lies past the text or holds white space alone"
        if chunk.context != " ".join(chunk.context.split()):
            return f"the context of chunk {chunk.index} is not one line of words with single spaces"
        counted = count_tokens(chunk.context) + tokens.count(start, end)
        if chunk.n_tokens != counted or (limit and counted > limit):
            of = f", and at most {limit} were promised" if limit else ""
            return f"chunk {chunk.index} says it has {chunk.n_tokens} tokens; {counted} are counted{of}"
        covered[start:end] = True
    missed = [place for place in np.flatnonzero(~covered).tolist() if not document.text[place].isspace()]
    return f"{len(missed)} characters are in no chunk, the first at {missed[0]}" if missed else ""


def held_to_contract(document: Document, *, of: PlugIn, cut: object, limit: int) -> list[Chunk]:
    """Return a plug-in's chunks of a document; InputError if it fails, breaks the contract, or cuts otherwise again."""
    try:
        chunks, again = (list(cut(document)) for _ in range(2))  # type: ignore[operator]  # whatever it is, it is told
    except Exception as error:
        raise _broken(of, document, f"{type(error).__name__}: {error}") from error
    if fault := chunk_fault(document, chunks, limit):
        raise _broken(of, document, fault)
    if chunks != again:
        raise _broken(of, document, "the same document is cut in two ways, one after the other")
    return chunks


def _broken(of: PlugIn, document: Document, said: str) -> InputError:
    return InputError(
        f"The chunker {of.entry.name} of {of.origin}, at {document.doc_id}: {said}. Mend the plug-in, or name another "
        "chunker."
    )
