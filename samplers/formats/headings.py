"""Lines that are set as titles."""

import re

TITLE_CASE = 0.6
"""Share of words of four letters and more that begin with a capital, from which on a line is set as a title."""

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
