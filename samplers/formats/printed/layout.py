"""The layout of GPO's fixed-width pages: which lines are centred."""

import re

WIDTH = 72
"""Columns of a page."""

_LONGEST = 480
"""Characters of a block above which it is no heading; the longest of 3,900 measured has 437, spaces included."""

_TOLERANCE = 2
_OPEN_ENDED = (".", ";", ":", "—", "--")
_ABBREVIATION = re.compile(r"(?:(?<![a-z])\.[A-Z]|, ETC)\.\Z")
"""What a heading in capitals may end with although it is a full stop: "PH.D.", "U.S.", "ETC."."""

_GAP = "   "
_SMALL = re.compile(r"[a-z]{3}")
_PAGES = re.compile(r"(?:[A-Z]\d{1,5}(?:, |$))+")


def with_headings(text: str, mark: str, takes_notes: bool) -> str:
    """Return the text with each heading on one line that begins with `mark`.

    `takes_notes` tells whether a block in brackets, such as "(By a Staff Writer)", is one.
    """
    blocks = text.split("\n\n")
    for index, block in enumerate(blocks):
        if len(block) < _LONGEST and is_heading(block, takes_notes):
            # A heading is one line, and a word that it breaks at a hyphen stays whole.
            words = " ".join(block.split()).replace("- ", "-").replace("— ", "—")
            blocks[index] = f"\n{mark}{words}"
    return "\n\n".join(blocks)


def is_heading(block: str, takes_notes: bool) -> bool:
    """Return whether a block is set as a heading: each line centred and no table's row, no sentence's end, no pages."""
    body = block.strip()
    opens = "“`\"'*([" if takes_notes else "“`\"'*"
    if not body or not (body[0].isalnum() or body[0] in opens) or _is_open_ended(body):
        return False
    # A heading in capitals may break after a comma, a sentence in small letters goes on.
    if body.endswith(",") and _SMALL.search(body):
        return False
    lines = block.strip("\n").split("\n")
    is_set = all(is_centred(line) and _GAP not in line.strip() for line in lines)
    return is_set and any(map(str.isalpha, body)) and not _PAGES.match(body)


def _is_open_ended(body: str) -> bool:
    return body.endswith(_OPEN_ENDED) and not (_ABBREVIATION.search(body) and not _SMALL.search(body))


def is_centred(line: str) -> bool:
    """Return whether what stands on a line is as far from the one margin as from the other."""
    body = line.strip()
    return abs(len(line) - len(line.lstrip()) - (WIDTH - len(body)) / 2) <= _TOLERANCE
