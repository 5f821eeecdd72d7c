"""What is embedded before a chunk: the document's title, or the path of headings that leads to it."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from chunkers.tokens import count_tokens, tokenize

PATH_TOKENS = 96
"""Most tokens of a whole path."""

TITLE_TOKENS = PATH_TOKENS // 2
"""Most tokens of a title, the whole context of chunkers without structure."""

LABEL_TOKENS = PATH_TOKENS * 5 // 12
"""Most tokens of one heading in a path."""

LONGEST_TOKEN = 128
"""Characters of cl100k_base's longest token: a text of so many times more characters need not be encoded to count."""

SEPARATOR = " > "
ELLIPSIS = "…"

_DESIGNATION = re.compile(r"(?:(?:§+|[^\W\d]+\.?)\s+)?(?:\d[\w–-]*(?:\.\d[\w–-]*)*|[IVXLCDM]+\b|[A-Z]\b|\([^\s()]+\))")


@lru_cache(maxsize=4096)
def shortened(text: str, max_tokens: int) -> str:
    """Return the text on one line, cut at a word with "…" if it has more than `max_tokens` tokens.

    A first word that is too long by itself is cut inside.
    """
    line = _on_one_line(text)
    if count_tokens(line) <= max_tokens:
        return line
    tokens = tokenize(line)
    # From the longest beginning down, since a cut at a word can change the count of tokens.
    for kept in range(max_tokens - 1, 0, -1):
        head = line[: tokens.floor[kept]]
        whole_words = head if line.startswith(" ", len(head)) else head.rpartition(" ")[0] or head
        candidate = whole_words.rstrip(" ,;:–—") + ELLIPSIS
        if count_tokens(candidate) <= max_tokens:
            return candidate
    return ELLIPSIS


def title_context(title: str) -> str:
    """Return the context of a chunker that knows no structure: the title within TITLE_TOKENS."""
    return shortened(title, TITLE_TOKENS)


@lru_cache(maxsize=4096)
def path_context(title: str, labels: tuple[str, ...], most: int = PATH_TOKENS) -> str:
    """Return the title and the headings from the outermost to the innermost, within `most` tokens.

    Empty headings and those that repeat the one before are left out.

    If the path is too long, the title keeps its first tokens, half of `most` (48), every heading its first, five
    twelfths (40), and the headings between the title and the innermost one are replaced by "…", outermost first, as
    many as needed.
    """
    # A heading that repeats the one above it says nothing.
    parts = [part for part, _ in groupby(filter(None, map(_on_one_line, (title, *labels))))]
    # A heading of megabytes is met once per section in it: it must not be copied each time.
    is_countable = sum(map(len, parts)) <= most * LONGEST_TOKEN
    if is_countable and count_tokens(whole := SEPARATOR.join(parts)) <= most:
        return whole
    # Too long: title and headings are shortened first, then the outer headings go.
    head = shortened(parts[0], most // 2)
    rest = [shortened(part, most * 5 // 12) for part in parts[1:]]
    path = SEPARATOR.join((head, *rest))
    while count_tokens(path) > most and len(rest) > 1:
        rest = rest[1:]
        path = SEPARATOR.join((head, ELLIPSIS, *rest))
    return path


@lru_cache(maxsize=4096)
def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def label_range(labels: Sequence[str]) -> str:
    """Return what names several neighbours at once: "Sec. 3 – Sec. 5", the label itself if only one has any, or ""."""
    # From both ends, since the label of a chunk that grows by one section after another is asked for each time.
    first = next((n for n, label in enumerate(labels) if label.strip()), -1)
    last = next((n for n in range(len(labels) - 1, first, -1) if labels[n].strip()), first)
    if first == last:
        return labels[first] if first >= 0 else ""
    return f"{designation(labels[first])} – {designation(labels[last])}"


def designation(label: str) -> str:
    """Return the number of a heading without its words ("Sec. 3" of "Sec. 3. Grants"); the label if it has none."""
    found = _DESIGNATION.match(label.strip())
    return found[0] if found else label.strip()
