"""Two chunkers that per-source-eval finds by the entry points in pyproject.toml."""

import re

from chunkers.contract import from_spans
from chunkers.registry import Row
from runner.base.records import Chunk, Document


def paragraphs(document: Document) -> list[Chunk]:
    """Each paragraph: what stands between blank lines."""
    return from_spans(
        document, (found.span() for found in re.finditer(r"\S.*?(?=\n\s*\n|\Z)", document.text, re.DOTALL))
    )


def chonkie_recursive(document: Document) -> list[Chunk]:
    """What chonkie's RecursiveChunker cuts, at most 2,048 characters each: at blank lines, lines, sentences, words."""
    from chonkie import RecursiveChunker

    cut = RecursiveChunker(tokenizer="character", chunk_size=2048).chunk(document.text)
    return from_spans(document, ((part.start_index, part.end_index) for part in cut))


PARAGRAPHS = Row(paragraphs, limit=0)
CHONKIE_RECURSIVE = Row(chonkie_recursive, limit=0)
