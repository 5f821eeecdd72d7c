"""Section labels as a reader cites them, in the author's own characters."""

import re

FIRST_WORDS = 8
"""A section without heading is labelled with this many of its first words, " …" after them if it goes on."""

_SECTION_WORD = re.compile(r"^(?:section|sec\.?|§+)\s*", re.IGNORECASE)
_HEADING_END = " .:—–-"
_CITED_BY_WORD = frozenset(
    (
        *("division", "subdivision", "title", "subtitle", "part", "subpart"),
        *("chapter", "subchapter", "article", "appendix"),
    )
)


def label(kind: str, num: str, heading: str, text: str) -> str:
    """Return the label of a part: "Division A—Health", "Sec. 3. Grants", "(a) In general", "Preamble".

    `num` and `heading` are as written in the file, `text` is the part's text. A section or an account without heading
    is labelled with the first words of its first line; other parts without number and heading have the label "".
    """
    if heading:
        heading = (heading if "[" in heading else heading.rstrip("] ")).rstrip(_HEADING_END)
    # A quoted law's number stands behind an opening mark.
    num = num.strip().lstrip("“‘\"'[").strip()
    if kind == "section":
        return _section_label(num, heading, text)
    if kind == "preamble":
        return heading or "Preamble"
    if kind in _CITED_BY_WORD:
        number = re.sub(rf"^{kind}\s*", "", num, flags=re.IGNORECASE).rstrip(_HEADING_END)
        return "—".join(piece for piece in (f"{kind.capitalize()} {number}" if number else "", heading) if piece)
    if kind.startswith("appropriations") and not num and not heading:
        return first_words(text, "")
    return f"{num} {heading}".strip()


def _section_label(num: str, heading: str, text: str) -> str:
    number = _SECTION_WORD.sub("", num)
    sign = "§" if num.startswith("§") else "Sec."
    cited = f"{sign} {number.rstrip('. ')}." if number else ""
    if heading:
        return f"{cited} {heading}".strip()
    return f"{cited} {first_words(text, num)}".strip()


def first_words(text: str, num: str) -> str:
    """Return the FIRST_WORDS of a text's first line after its number."""
    words = text.removeprefix(" ".join(num.split())).strip().partition("\n")[0].split()
    return " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")
