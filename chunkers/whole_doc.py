"""The document in one piece."""

from chunkers.contexts import title_context
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span


def whole_doc(document: Document) -> list[Chunk]:
    """Return one chunk, the whole text; encoders read as much of it as their maximum allows."""
    context = title_context(document.title)
    n_tokens = count_tokens(context) + tokenize(document.text).n_tokens
    return [Chunk(document.doc_id, 0, Span(0, len(document.text)), context, n_tokens)]
