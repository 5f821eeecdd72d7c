"""Bills in the markdown that is derived from Congress.gov: title, policy area, summary, full text of each version.

Text begins under the heading "Full Bill Text": what stands before it, the summary above all, was written by others
about the bill and is left out, as is the timeline behind it. Each version under that heading ("### IH") is a document
that begins with its official title. Inside, "#### 2. Findings" is a section and "##### (a) In general" or
"**(1) Fees**" a level of it, whose rank follows from its designator and from what is open; what a resolution resolves
("That the House ...") is a section without number. This format has lost the quotation marks of bills.
"""

import re
from collections import Counter

from runner.base.errors import DocumentError
from samplers.formats.text_writer import Part, visible
from samplers.formats.uslm.marks import BLOCK, LEAD, LINE, PARAGRAPH, PART_END, PART_START, SPACE, STOP
from samplers.formats.uslm.names import RANKS
from samplers.formats.uslm.walk import Walk, written

FORM_LINES = 40
"""Lines in which the words that open a bill's text are looked for: sponsors and referrals take up to fifteen."""

_FULL_TEXT = re.compile(r"^## Full Bill Text[ \t]*$", re.M)
_AFTER = re.compile(r"^## ", re.M)
_VERSION = re.compile(r"^### (?P<stage>[^\n]{1,60})\n", re.M)
_SOURCE = re.compile(r"- Source: [^\n]{0,200}/BILLS-(\w{4,30})\.xml")
_TITLE = re.compile(r"\s*# ([^\n]{1,2000})")
_FACT = re.compile(r"^- (Congress|Policy area): ([^\n]{1,100})$", re.M)
_OPENING = re.compile(r"A BILL|AN ACT|(?:JOINT |CONCURRENT )?RESOLUTION")
_MARKUP = (("#### ", ""), ("##### ", ""), ("**", "**"))
"""What stands around the number and heading of a section, of a level with a heading, and of any other level."""
_RESOLVED = re.compile(r"That,? \S")
_DESIGNATED = re.compile(r"(\(\w{1,5}\)|\d{1,5}[A-Za-z]{0,3}\.)?\s*(.*)")
_ROMAN = re.compile(r"[ivx]+", re.I)
_KINDS = {
    RANKS[kind]: kind
    for kind in ("section", "subsection", "paragraph", "subparagraph", "clause", "subclause", "item", "subitem")
}
_CONTROL = dict.fromkeys((n for n in range(32) if chr(n) not in "\t\n"), "\ufffd")


def read_versions(data: bytes, name: str) -> tuple[list[Walk], str, dict[str, int]]:
    """The versions of the bill in a file, its policy area or "", and by reason the characters in no version."""
    text = _decoded(data, name)
    begin = _FULL_TEXT.search(text)
    if not begin:
        raise DocumentError(name, 'the heading "## Full Bill Text" is missing')
    end = _AFTER.search(text, begin.end())
    body = text[begin.end() : end.start() if end else len(text)]
    front = text[: begin.start()]
    known = dict(_FACT.findall(front))
    title = _TITLE.match(front)
    facts = {"title": title[1].strip() if title else "", "congress": known.get("Congress", "")}
    headings = list(_VERSION.finditer(body))
    ends = [*(heading.start() for heading in headings), len(body)][1:]
    walks = [
        _walk(body[heading.end() : stop], facts | {"stage": heading["stage"].strip()})
        for heading, stop in zip(headings, ends, strict=True)
    ]
    versions = [walk for walk in walks if walk.text]
    if not versions:
        raise DocumentError(name, "no version of the bill under its heading")
    left_out = Counter[str]()
    for version in versions:
        left_out.update(version.dropped)
    n_read = sum(visible(version.text) - version.supplied for version in versions) + left_out.total()
    area = known.get("Policy area", "").strip()
    return versions, area, {**left_out, "metadata": left_out["metadata"] + visible(text) - n_read}


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(name, f"not UTF-8 (byte {error.start})") from error
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROL)


def _walk(text: str, facts: dict[str, str]) -> Walk:
    """One version; without text if it has none but its form."""
    source = _SOURCE.search(text)
    stated = facts | {"citable": source[1] if source else ""}
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith(("- Date: ", "- Source: "))]
    opening = next((n for n, line in enumerate(lines[:FORM_LINES]) if _OPENING.fullmatch(line.strip())), -1)
    body = _Body()
    for line in lines[opening + 1 :]:
        body.line(line)
    body.end()
    dropped = Counter({"form": visible("".join(lines[: opening + 1])), "markup": body.n_markup})
    return written(body.pieces, body.parts, dropped, {fact: (value,) for fact, value in stated.items() if value})


class _Body:
    """The lines of a version as pieces of text and marks."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.parts: list[Part] = []
        self.n_markup = 0
        self._open: list[Part] = []

    def line(self, line: str) -> None:
        """Write a line: a heading or designator opens a part, anything else is a block of it."""
        line = line.strip()
        before, after = next((m for m in _MARKUP if line.startswith(m[0]) and line.endswith(m[1])), ("", ""))
        words = line.removeprefix(before).removesuffix(after)
        if not before or (after and not words.startswith("(")):
            if not self.parts and _RESOLVED.match(line):
                self._begin(Part("section", RANKS["section"]), PARAGRAPH)
            self.pieces += (BLOCK, line, LINE)
            return
        self.n_markup += visible(before + after)
        designated = _DESIGNATED.fullmatch(words)
        num, heading = (designated[1] or "", designated[2]) if designated else ("", words)
        rank = RANKS["section"] if before == "#### " else self._rank(num, is_heading=not after)
        self._close(rank)
        self._begin(Part(_KINDS[rank], rank, num, heading), PARAGRAPH if rank == RANKS["section"] else LINE)
        ending = LINE if rank == RANKS["section"] else STOP if heading else ""
        self.pieces += (f"{num} {heading}", ending + SPACE + LEAD)

    def end(self) -> None:
        self._close(0)

    def _begin(self, part: Part, separator: str) -> None:
        self.parts.append(part)
        self._open.append(part)
        self.pieces.append(separator + PART_START)

    def _close(self, rank: int) -> None:
        while self._open and self._open[-1].level >= rank:
            self.pieces.append(PART_END + (PARAGRAPH if self._open.pop().kind == "section" else LINE))

    def _rank(self, num: str, *, is_heading: bool) -> int:
        """The rank of a designator; a letter that may be a roman number counts on from the last such letter."""
        mark = num.strip("()")
        ranks = {part.level: part.num.strip("()") for part in self._open}
        if is_heading:
            return RANKS["subsection"]
        if mark.isdecimal():
            return RANKS["paragraph"]
        letter, roman = ("subsection", "clause") if mark.islower() else ("subparagraph", "subclause")
        goes_on = len(mark) == 1 and ord(mark) - 1 == ord(ranks.get(RANKS[letter], "\0")[:1] or "\0")
        if len(set(mark)) == 1 and len(mark) == 2 and mark.lower() not in ("ii", "xx"):
            return RANKS["item" if mark.islower() else "subitem"]
        inside = RANKS[roman] - 1 in ranks
        return RANKS[roman] if _ROMAN.fullmatch(mark) and (inside or not goes_on) else RANKS[letter]
