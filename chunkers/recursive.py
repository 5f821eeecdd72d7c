"""Natural breaks of running text, for sources whose structure is weak."""

from chunkers.contexts import title_context
from chunkers.splitting import split_text
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span

MAX_TOKENS = 512


def recursive_v1(document: Document) -> list[Chunk]:
    """Paragraphs, lines, sentences or words packed to at most 512 tokens, title included; no overlap."""
    context = title_context(document.title)
    used = count_tokens(context)
    tokens = tokenize(document.text)
    pieces = split_text(document.text, tokens, (0, len(document.text)), MAX_TOKENS - used)
    return [
        Chunk(document.doc_id, index, Span(start, end), context, used + tokens.count(start, end))
        for index, (start, end) in enumerate(pieces)
    ]
