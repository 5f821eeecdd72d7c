"""Section labels as a reader cites them, in the author's own characters."""

import re

FIRST_WORDS = 8
"""A section without heading is labelled with this many of its first words, " …" after them if it goes on."""

_SECTION_WORD = re.compile(r"^(?:section|sec\.?|§+)\s*", re.IGNORECASE)
_HEADING_END = re.compile(r"[\s.:—–-]+$")
_CITED_BY_WORD = frozenset(
    ("division", "title", "subtitle", "part", "subpart", "chapter", "subchapter", "article", "appendix")
)


def label(kind: str, num: str, heading: str, text: str) -> str:
    """The label of a part: "Division A—Health", "Sec. 3. Grants", "(a) In general", "Preamble".

    `num` and `heading` are as written in the file, `text` is the part's text. A section without heading is
    labelled with the first words of its first line; other parts without number and heading have the label "".
    """
    heading = _HEADING_END.sub("", heading if "[" in heading else heading.rstrip("] "))
    num = num.strip().lstrip("“‘\"'[").strip()
    if kind == "section":
        return _section_label(num, heading, text)
    if kind == "preamble":
        return heading or "Preamble"
    if kind in _CITED_BY_WORD:
        number = _HEADING_END.sub("", re.sub(rf"^{kind}\s*", "", num, flags=re.IGNORECASE))
        return "—".join(piece for piece in (f"{kind.capitalize()} {number}" if number else "", heading) if piece)
    return f"{num} {heading}".strip()


def _section_label(num: str, heading: str, text: str) -> str:
    number = _SECTION_WORD.sub("", num)
    sign = "§" if num.startswith("§") else "Sec."
    cited = f"{sign} {number.rstrip('. ')}." if number else ""
    if heading:
        return f"{cited} {heading}".strip()
    words = _first_line(text, num).split()
    shown = " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")
    return f"{cited} {shown}".strip()


def _first_line(text: str, num: str) -> str:
    after_num = text.removeprefix(" ".join(num.split())).strip()
    return after_num.partition("\n")[0]
