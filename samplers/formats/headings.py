"""Titles: which lines are set as one, and how long a document's may be."""

import re

TITLE_CASE = 0.6
"""Share of words of four letters and more that begin with a capital, from which on a line is set as a title."""

TITLE_LENGTH = 200
"""Characters of a title, which every chunk carries as context."""

_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_SMALL = frozenset(
    ("about", "after", "before", "between", "during", "from", "into", "over", "through", "under", "upon", "with")
)


def is_title(text: str) -> bool:
    """Whether most long words of a line begin with a capital, and the last word too."""
    words = [word for word in _LONG_WORD.findall(text) if word not in _SMALL]
    last = text.split()[-1].lstrip("([“\"'‘")
    ends_high = not last[:1].islower()
    return bool(words) and ends_high and sum(word[0].isupper() for word in words) >= TITLE_CASE * len(words)


def cut(text: str, length: int = TITLE_LENGTH, ends: str = ",;: ") -> str:
    """The text within a length, cut at a word and before marks that lead on, with " …" after it, if it is longer."""
    if len(text) <= length:
        return text
    return text[: length - 2].rpartition(" ")[0].rstrip(ends) + " …"
