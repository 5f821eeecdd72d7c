"""Windows of a fixed number of tokens under the path of headings, which an encoder of so many tokens reads whole."""

from chunkers.contexts import PATH_TOKENS
from chunkers.narrow import Narrow, readable
from chunkers.outline import heading_path, outline
from chunkers.splitting import Piece, trimmed
from chunkers.tokens import count_tokens, tokenize
from chunkers.word_pieces import SPECIAL, count_word_pieces
from runner.base.records import Chunk, Document, Span


class _Windows:
    """A document on its way into windows of `size` tokens, in cl100k_base and in WordPiece, path included."""

    def __init__(self, document: Document, size: int, overlap: int) -> None:
        self.text = document.text
        self.title = document.title
        self.size = size
        self.overlap = overlap
        self.tokens = tokenize(document.text)
        self.root = outline(document, frozenset(), frozenset())
        self.narrow = Narrow(document.text, self.tokens, self.root, self.path, size)

    def path(self, piece: Piece) -> str:
        """Return the title and the headings that lead to a window, in a third of its tokens at most."""
        third, stretch = self.size // 3, trimmed(self.text, piece) or piece
        most, most_pieces = min(third, PATH_TOKENS), third - SPECIAL
        path = heading_path(self.root, self.title, stretch, most=most)
        # Outer headings go before the innermost one: the path is made shorter once more before it is cut.
        if (found := count_word_pieces(path)) > most_pieces:
            path = heading_path(self.root, self.title, stretch, most=most * most_pieces // found)
        return readable(path, most_pieces)

    def window(self, start: int) -> Piece:
        """Return the longest stretch from a character on, of those tried, that fits under its own path."""
        first = int(self.tokens.before(start))
        kept = self.size
        while True:
            last = min(first + kept, self.tokens.n_tokens)
            # A character of several tokens is taken whole.
            end = max(int(self.tokens.floor[last]), start + 1)
            room = self.narrow.room((start, end))
            if room >= 1 or kept == 1:
                return start, end
            # A shorter stretch can have a longer path: its room is asked for again.
            kept = max(1, min(last - first - 1, int((last - first) * room)))

    def pieces(self) -> list[Piece]:
        """Return windows in text order; each begins `overlap` tokens before the end of the one before it."""
        found: list[Piece] = []
        end = 0
        while end < len(self.text):
            shared = max(0, int(self.tokens.before(end)) - self.overlap)
            piece = self.window(int(self.tokens.ceil[shared])) if end else self.window(0)
            # So few tokens may fit that they end no later: then nothing is shared.
            found.append(piece if piece[1] > end else self.window(end))
            end = found[-1][1]
        return found


def fixed_path(document: Document, size: int, overlap: int) -> list[Chunk]:
    """Return windows of at most `size` tokens in either count, path of headings included (the title where none is).

    Neighbours share `overlap` tokens of text. Windows of white space are left out.
    """
    windows = _Windows(document, size, overlap)
    chunks: list[Chunk] = []
    for piece in windows.pieces():
        if not document.text[slice(*piece)].isspace():
            context = windows.narrow.context(piece)
            n_tokens = count_tokens(context) + windows.tokens.count(*piece)
            chunks.append(Chunk(document.doc_id, len(chunks), Span(*piece), context, n_tokens))
    return chunks
