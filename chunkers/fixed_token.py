"""Windows of a fixed number of tokens, blind to structure."""

import numpy as np

from chunkers.contexts import title_context
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span


def fixed_token(document: Document, size: int, overlap: int) -> list[Chunk]:
    """Windows of at most `size` tokens, title included; each begins `overlap` tokens before the last one's end.

    A window begins and ends between characters, at most three bytes inside its tokens. The last one may be shorter;
    none lies wholly in the one before it, and windows of white space are left out.
    """
    context = title_context(document.title)
    used = count_tokens(context)
    tokens = tokenize(document.text)
    step = size - used - overlap
    begins = np.arange(0, max(tokens.n_tokens - overlap, 1), step)
    starts = tokens.ceil[begins]
    ends = tokens.floor[np.minimum(begins + step + overlap, tokens.n_tokens)]
    sizes = used + tokens.through(ends) - tokens.before(starts)
    chunks: list[Chunk] = []
    for start, end, n_tokens in zip(starts.tolist(), ends.tolist(), sizes.tolist(), strict=True):
        if not document.text[start:end].isspace():
            chunks.append(Chunk(document.doc_id, len(chunks), Span(start, end), context, n_tokens))
    return chunks


def fixed_token_256_25(document: Document) -> list[Chunk]:
    """256 tokens, overlap 25."""
    return fixed_token(document, 256, 25)


def fixed_token_512_50(document: Document) -> list[Chunk]:
    """512 tokens, overlap 50: the production baseline's chunker."""
    return fixed_token(document, 512, 50)


def fixed_token_1024_100(document: Document) -> list[Chunk]:
    """1,024 tokens, overlap 100."""
    return fixed_token(document, 1024, 100)
