"""Cutting a stretch of text at its natural breaks, and packing the pieces.

Everything works on spans of the document; nothing is copied and searched for again.
"""

import re
from itertools import chain

import numpy as np

from chunkers.tokens import Offsets, Tokenized

Piece = tuple[int, int]
"""Characters start (included) to end (excluded); inside this package only, records carry Span."""

_ABBREVIATIONS = "".join(rf"(?<!\b{word}\.)" for word in ("[A-Z]", "No", "Sec", "sec", "Dr", "Mr", "Mrs", "Ms", "St"))

_BREAKS = (
    re.compile(r"\n[^\S\n]*\n\s*"),  # paragraphs
    re.compile(r"\n\s*"),  # lines
    # Sentences and the clauses of an enumeration; "Sec. 3", "No. 4" and "U.S. Code" end nothing.
    re.compile(
        rf"(?:(?<=[!?;:])|(?<=[.;:!?][”\"’')\]])|(?<=\.){_ABBREVIATIONS})\s+(?=[“\"‘'(\[—]?[A-Z0-9(])",
    ),
    re.compile(r"\s+"),  # words
)


def trimmed(text: str, piece: Piece) -> Piece | None:
    """Return the piece without white space at its ends; None for white space alone."""
    start, end = piece
    if start < end and not text[start].isspace() and not text[end - 1].isspace():
        return piece
    stretch = text[start:end]
    body = stretch.strip()
    if not body:
        return None
    start += len(stretch) - len(stretch.lstrip())
    return start, start + len(body)


def packed(tokens: Tokenized, parts: Offsets, budget: int) -> list[Piece]:
    """Return neighbouring parts joined, first come first served, while the joined one has at most `budget` tokens.

    `parts` has a row of start and end for each. One that is too long by itself stays alone.
    """
    used = tokens.through(parts[:, 1])
    result: list[Piece] = []
    index = 0
    while index < len(parts):
        start = int(parts[index, 0])
        # The last part that still ends within the budget; a part that is too long by itself is taken alone.
        last = int(np.searchsorted(used, int(tokens.before(start)) + budget, side="right")) - 1
        last = max(last, index)
        result.append((start, int(parts[last, 1])))
        index = last + 1
    return result


def split_text(text: str, tokens: Tokenized, piece: Piece, budget: int) -> list[Piece]:
    """Return the piece in parts of at most `budget` tokens, without white space at their ends.

    It is cut at paragraphs, then lines, sentences, words and tokens, each only if the parts of the level above
    are still too long, and neighbouring parts are packed again. Every character but white space is in one part.
    """
    whole = trimmed(text, piece)
    return _split(text, tokens, whole, budget, 0) if whole else []


def _split(text: str, tokens: Tokenized, piece: Piece, budget: int, level: int) -> list[Piece]:
    if tokens.count(*piece) <= budget:
        return [piece]
    if level == len(_BREAKS):
        return _windows(tokens, piece, budget)
    # In arrays: of a row of single letters every second character is a part, and as a tuple each takes 120 bytes.
    breaks = chain.from_iterable(found.span() for found in _BREAKS[level].finditer(text, *piece))
    parts = np.fromiter(chain(piece[:1], breaks, piece[1:]), dtype=np.int64).reshape(-1, 2)
    # A break at either end leaves an empty part.
    parts = parts[parts[:, 0] < parts[:, 1]]
    long = np.flatnonzero(tokens.through(parts[:, 1]) - tokens.before(parts[:, 0]) > budget).tolist()
    if not long:
        return packed(tokens, parts, budget)
    # Only parts that are too long go down a level; what lies between them stays as it is.
    pieces: list[Offsets] = []
    for index, before in zip(long, [-1, *long], strict=False):
        cut = _split(text, tokens, (int(parts[index, 0]), int(parts[index, 1])), budget, level + 1)
        pieces += [parts[before + 1 : index], np.array(cut, dtype=np.int64)]
    return packed(tokens, np.concatenate((*pieces, parts[long[-1] + 1 :])), budget)


def _windows(tokens: Tokenized, piece: Piece, budget: int) -> list[Piece]:
    """Return a word of more than `budget` tokens cut at every `budget`-th of them."""
    result: list[Piece] = []
    start, end = piece
    while start < end:
        # The cut lies between characters, so that a window can hold a token less.
        reach = min(int(tokens.before(start)) + budget, tokens.n_tokens)
        cut = min(int(tokens.floor[reach]), end)
        result.append((start, cut))
        start = cut
    return result
