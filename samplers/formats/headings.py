"""Titles: which lines are set as one, and how long a document's may be."""

import re
import unicodedata

TITLE_CASE = 0.6
"""Share of words of four letters and more that begin with a capital, from which on a line is set as a title."""

TITLE_LENGTH = 200
"""Characters of a title, which every chunk carries as context."""

_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_SMALL = frozenset(
    ("about", "after", "before", "between", "during", "from", "into", "over", "through", "under", "upon", "with")
)


def is_title(text: str) -> bool:
    """Return whether most long words of a line begin with a capital, and the last word too."""
    words = [word for word in _LONG_WORD.findall(text) if word not in _SMALL]
    last = text.split()[-1].lstrip("([“\"'‘")
    ends_high = not last[:1].islower()
    return bool(words) and ends_high and sum(word[0].isupper() for word in words) >= TITLE_CASE * len(words)


def cut(text: str, length: int = TITLE_LENGTH, ends: str = ",;: ") -> str:
    """Return the text in NFC within a length: cut at a word, before marks that lead on, with " …" after it."""
    return shortened(text, length - 2, ends) if len(text := unicodedata.normalize("NFC", text)) > length else text


def shortened(text: str, length: int, ends: str = ",;: ") -> str:
    """Return the text in NFC; of a longer one the words within a length, with " …" after them."""
    text = unicodedata.normalize("NFC", text)
    return text if len(text) <= length else text[:length].rpartition(" ")[0].rstrip(ends) + " …"
