"""Natural breaks of running text, for sources whose structure is weak."""

from chunkers.contexts import title_context
from chunkers.narrow import Narrow
from chunkers.outline import Node
from chunkers.splitting import split_text
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span

MAX_TOKENS = 512


def recursive_v1(document: Document, most: int = 0) -> list[Chunk]:
    """Paragraphs, lines, sentences or words packed to at most 512 tokens, title included; no overlap.

    With `most`, each is then cut further until an encoder of so many tokens reads all of it (see `Narrow`).
    """
    context = title_context(document.title)
    used = count_tokens(context)
    tokens = tokenize(document.text)
    pieces = split_text(document.text, tokens, (0, len(document.text)), MAX_TOKENS - used)
    # Without sections the whole document is one node.
    if most:
        whole = Node(0, len(document.text), "", "", holds_sections=True)
        narrow = Narrow(document.text, tokens, whole, lambda _: title_context(document.title), most)
        pieces = [part for piece in pieces for part in narrow.cut(piece)]
        context = narrow.context((0, 0))
        used = count_tokens(context)
    return [
        Chunk(document.doc_id, index, Span(start, end), context, used + tokens.count(start, end))
        for index, (start, end) in enumerate(pieces)
    ]
