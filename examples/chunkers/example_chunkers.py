"""Two chunkers that per-source-eval finds by the entry points in pyproject.toml."""

import re

from chunkers.contract import from_spans
from chunkers.outline import heading_path, outline
from chunkers.registry import Row
from chunkers.structural import BILLS
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span


def paragraphs(document: Document) -> list[Chunk]:
    """Each paragraph: what stands between blank lines."""
    return from_spans(
        document, (found.span() for found in re.finditer(r"\S.*?(?=\n\s*\n|\Z)", document.text, re.DOTALL))
    )


def lines_with_headings(document: Document) -> list[Chunk]:
    """Each line of a bill, with the title and the headings of the parts around it as its context."""
    parts, tokens = outline(document, BILLS.containers, BILLS.sections), tokenize(document.text)
    chunks = []
    for found in re.finditer(r"\S.*", document.text):
        piece = found.span()
        context = heading_path(parts, document.title, piece)
        n_tokens = count_tokens(context) + tokens.count(*piece)
        chunks.append(Chunk(document.doc_id, len(chunks), Span(*piece), context, n_tokens))
    return chunks


PARAGRAPHS = Row(paragraphs, limit=0)
LINES_WITH_HEADINGS = Row(lines_with_headings, limit=0)
