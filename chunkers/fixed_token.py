"""Windows of a fixed number of tokens, blind to structure."""

import numpy as np

from chunkers.contexts import title_context
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span


def fixed_token(document: Document, size: int, overlap: int) -> list[Chunk]:
    """Return windows of at most `size` tokens, with title and line break; each begins `overlap` before the last's end.

    A window begins and ends between characters, at most three bytes inside its tokens. The last one may be shorter;
    none lies wholly in the one before it, and windows of white space are left out.
    """
    context = title_context(document.title)
    used = count_tokens(context)
    tokens = tokenize(document.text)
    # The title takes its share of every window, and so does the line break behind it, which n_tokens leaves out.
    step = size - overlap - (count_tokens(f"{context}\n") if context else 0)
    # No window begins within the last overlap, which the one before it holds already.
    begins = np.arange(0, max(tokens.n_tokens - overlap, 1), step)
    starts = tokens.ceil[begins]
    ends = tokens.floor[np.minimum(begins + step + overlap, tokens.n_tokens)]
    sizes = used + tokens.through(ends) - tokens.before(starts)
    chunks: list[Chunk] = []
    for start, end, n_tokens in zip(starts.tolist(), ends.tolist(), sizes.tolist(), strict=True):
        if not document.text[start:end].isspace():
            chunks.append(Chunk(document.doc_id, len(chunks), Span(start, end), context, n_tokens))
    return chunks
