"""What documents of several sources state alike: days, Congresses, types of measures, and the lengths of a stratum."""

import re
from collections.abc import Sequence
from datetime import date, datetime

MEASURE_TYPE = r"[HS]\. ?(?:(?:J|Con)\. ?)?Res\.?|H\. ?R\.|S\."
"""Types of measures as letters to Congress print them."""

DATE = r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December) ?\d{1,2}, ?\d{4}\b"
"""A day in words; a PDF's kerning may have swallowed its blanks."""

LENGTH_BUCKETS = ((4_000, "short"), (20_000, "medium"), (100_000, "long"))
"""Characters of text below which a document is short, medium or long; from the last on it is very-long."""


def stem_of(name: str) -> str:
    """Return a file's name without folders and suffix, and with hyphens for blanks; "unnamed" for none."""
    return re.sub(r"\s+", "-", name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]) or "unnamed"


def bucket(n: int, limits: Sequence[tuple[int, str]] = LENGTH_BUCKETS, last: str = "very-long") -> str:
    """Return the word of the first limit that `n` is below."""
    return next((word for limit, word in limits if n < limit), last)


def day_of(text: str) -> date | None:
    """Return a day in words ("May 4, 2031"), white space aside; None if it is none."""
    try:
        return datetime.strptime("".join(text.split()), "%B%d,%Y").date()  # noqa: DTZ007  # a day, in no time zone
    except ValueError:
        return None


def ordinal(number: str) -> str:
    """Return a number of digits as in "103rd"; "" for ""."""
    if not number:
        return ""
    n = int(number)
    ending = "th" if 10 < n % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
