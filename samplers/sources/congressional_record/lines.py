"""A page of the Congressional Record as lines, each with what it is: a heading, the beginning of a turn, other text."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from samplers.formats.printed.layout import is_heading, with_headings
from samplers.formats.printed.paragraphs import Paragraph, paragraphs
from samplers.formats.printed.text import RULE, removed, typographic, without_page_marks

BULLET = "•"
"""Opens and closes a statement that nobody made on the floor."""

_SPOKEN = 2
"""The column where a spoken paragraph begins. What is set from column 5 on was printed, or read, into the Record."""

_FAR = 20
"""The column from which a line that is centred was centred on purpose."""

_HELD, _PARTING = "\x1f", "\x1e"
"""Begins a heading; stands for a rule, so that what it parts stays apart. No text that was read holds these."""

_CLOCK = re.compile(r"^ *\{time\} *\d{1,2}:?\d{2}$", re.M)
_FIRST_MARK = re.compile(r"\A\n*\[\[Page [^\[\]\n]{1,16}\]\]\n")
_PRINTED_AFTER_PRINTED = re.compile(r"(\n {7}(?! )[^\n]*)(?=\n {7}(?! ))")
_HANGING = re.compile(r"\n( {6}| {9}| {11})(?=[^ \n][^\n]*\n\1  [^ \n])")
_MASTHEAD = re.compile(r"(?:\n {1,2}(?=[^ \n])[^\n]*){3,}")
_SMALL_LETTER = re.compile(r"\n {1,2}(?=[a-z])")
"""No paragraph begins so: where a line does, all lines about it are set in by a column or two, as a masthead is."""
_NOMINEE = re.compile(r"(, 0000) (?=\S)")
_DIGEST_HEADING = re.compile(r"(?=.{0,80}[A-Z]{3})[A-Z][A-Z0-9 ,.:;&()'’“”/—-]{3,90}")
_TITLE_LENGTH = 60
"""Characters below which the first line of a page of the Digest is its title: it stands at the margin."""

_DIGEST_PAGES = re.compile(r"Pages? [A-Z]{1,2}\d")
_MEMBER = re.compile(
    r"(?:speech of|HON\. .{1,60}|of [a-z ]{1,40}|in the (?:house of representatives|senate of the united states)"
    r"|[A-Z][a-z]{5,8}, [A-Z][a-z]{2,8} \d{1,2}, \d{4})"
)
"""The lines under a title in Extensions of Remarks: who speaks, where and when."""

_NAME = r"(?:[A-Z]\.(?:[A-Z]\.)?|(?:de|du|la|van|von)(?= )|[A-Z][\w'’-]{0,30})"
_GUEST = r"Prime Minister|President|Chancellor|King|Queen|Pope|Secretary General|Taoiseach"
"""Titles of those who address both Houses."""

_MEMBER_NAME = (
    rf"(?:(?i:Mr|Ms|Mrs|Miss|Dr)|Senator|Representative|{_GUEST})\.? (?:Manager |Counsel )?"
    rf"(?P<name>{_NAME}(?: {_NAME}){{0,3}}?)"
    r"(?: of (?:the )?[A-Z]\w{1,20}(?: [A-Z]\w{1,20}){0,2})?"
)
_OFFICER = (
    r"(?P<officer>(?i:The (?:Acting )?(?:PRESIDING OFFICER|(?:VICE )?PRESIDENT|SPEAKER|CHAIR(?:MAN|WOMAN)?"
    r"|CHIEF JUSTICE|CLERK|CHAPLAIN|SECRETARY|SERGEANT AT ARMS)(?: pro tempore)?))"
    r"(?: (?:\([A-Z][^()]{1,60}\)|\[[A-Z][^\[\]]{1,60}\]))?"
)
_ADDRESS = r"(?:Mr|Madam|Ms|Mrs)\.? (?:(?:Acting|Deputy|Vice) )?(?:Speaker|President|Chair(?:man|woman)?)\b"
_TURN = re.compile(
    rf"(?P<speaker>{_MEMBER_NAME}|{_OFFICER})(?: \([^()]{{1,60}}\)| \[[^\[\]]{{1,60}}\])?"
    rf"(?:\.(?= |$)|[,;:]?(?= {_ADDRESS}))"
)
"""A full stop ends the name, or what was printed for it before "Mr. Speaker"."""
_INITIALS = frozenset("MDSRTPCKQ")
_INTRODUCES = re.compile(
    rf"By (?:Mr|Ms|Mrs|Miss|Dr)\.? {_NAME}(?: {_NAME}){{0,3}}(?: of [A-Z][\w ]{{1,40}})?(?: \((?:for|by) |:)"
)
"""Who brings in the bill that follows; it belongs to no speech before it."""
_CAPITALS = re.compile(r"[^\W\d_a-z]{2}")


class Line(NamedTuple):
    """A paragraph on one line.

    `kind` is "heading", "turn" (of `speaker`), "member" (who speaks, where and when, below a title), "spoken",
    "printed", "flush" (at the margin, as lists are) or "rule", which has no text.
    """

    kind: str
    text: str
    indent: int
    is_apart: bool
    speaker: str = ""


def lines_of(text: str, is_digest: bool, left_out: Counter[str]) -> list[Line]:
    """Return the lines of a page without its header; page marks, clock marks and rules are counted in `left_out`."""
    text = removed(_CLOCK, text, left_out, "clock marks")
    # Furniture goes; a rule leaves a sign, since it ends what was printed inside a turn.
    text = removed(_FIRST_MARK, text, left_out, "page marks")
    text = removed(RULE, text, left_out, "rules", f"\n\n{_PARTING}\n")
    text = with_headings(typographic(without_page_marks(text, left_out), left_out), _HELD, takes_notes=True)
    # Lists that hang and paragraphs set in by seven columns would run into one another.
    text = _HANGING.sub(r"\n\1    ", _PRINTED_AFTER_PRINTED.sub(r"\1\n", text))
    # A masthead is set in by a column or two: at the margin its lines are one paragraph.
    text = _MASTHEAD.sub(_at_margin, text)
    # A list of nominees has two columns of names: each stands alone.
    text = _NOMINEE.sub(r"\1\n", text)
    return list(_joined(paragraphs(text, _SPOKEN, left_out), is_digest))


def _at_margin(match: re.Match[str]) -> str:
    lines = match[0]
    return lines.replace("\n  ", "\n").replace("\n ", "\n") if _SMALL_LETTER.search(lines, 1) else lines


def _joined(running: list[Paragraph], is_digest: bool) -> Iterator[Line]:
    """Yield the paragraphs as lines; pages in the Digest follow what they are of, and a day its heading."""
    held: Line | None = None
    for index, line in enumerate(_line(paragraph, is_digest) for paragraph in running):
        is_title = is_digest and index == 0 and len(line.text) < _TITLE_LENGTH and not line.text.endswith(".")
        if is_title and not _MEMBER.fullmatch(line.text):
            line = line._replace(kind="heading")
        # A heading that ends in a comma or "FOR" goes on in the next one.
        if held and held.kind == line.kind == "heading" and held.text.endswith((",", " FOR")):
            held = held._replace(text=f"{held.text} {line.text}")
        elif held and is_digest and held.kind != "heading" and _DIGEST_PAGES.match(line.text):
            held = held._replace(text=f"{held.text}\t{line.text}")
        else:
            if held:
                yield held
            held = line
    if held:
        yield held


def _line(paragraph: Paragraph, is_digest: bool) -> Line:
    indent, is_apart, text = paragraph
    if text == _PARTING:
        return Line("rule", "", indent, is_apart)
    is_held = text[:1] == _HELD
    text = text[is_held:]
    # A bullet before the name opens a statement that nobody made on the floor.
    if indent <= _SPOKEN and (stated := speaker(text.removeprefix(BULLET).lstrip())):
        return Line("turn", text, indent, is_apart, stated)
    if _MEMBER.fullmatch(text):
        return Line("member", text, 0, is_apart)
    # "JULY 22" above a list is a heading although no blank line follows.
    is_headline = not is_held and indent >= _FAR and is_heading(" " * indent + text, takes_notes=False)
    if is_held or is_headline or (is_digest and indent == 0 and _DIGEST_HEADING.fullmatch(text)):
        return Line("heading", text, indent, is_apart)
    return Line("flush" if indent == 0 else "spoken" if indent <= _SPOKEN else "printed", text, indent, is_apart)


def speaker(paragraph: str) -> str:
    """Return the speaker as printed ("Mr. BROWN of Ohio") of a paragraph that begins a turn; "" for any other.

    "Mr. CONYERS, Mr. Speaker, I rise" is a turn with a misprint. A member's last name is in capitals, of which the
    first may be followed by small letters (McCAIN); what is said of a member in small letters ("Mr. Lewis of Kentucky
    asked") begins nothing. An officer in small letters ("The Acting Chairman.") begins a turn if words follow in the
    paragraph. An aside such as "(during the reading)" is no part of the name.
    """
    turn = _TURN.match(paragraph) if paragraph[:1] in _INITIALS else None
    if not turn or (turn["name"] and not _CAPITALS.search(turn["name"].rpartition(" ")[2])):
        return ""
    is_plain = turn["officer"] and not _CAPITALS.search(turn["officer"])
    return "" if is_plain and not paragraph.startswith(". ", turn.end("speaker")) else turn["speaker"]


def introduces(paragraph: str) -> bool:
    """Return whether a paragraph says who brings in the bill after it ("By Mr. BIDEN (for himself and Mr. Hale):")."""
    return _INTRODUCES.match(paragraph) is not None
