"""Inline marks of GPO's SGML-like XML (Federal Register, CFR, eCFR) as text of the block that they stand in.

`settle` rewrites a parsed file in place, before anything is read from it. Afterwards emphasis, fractions, index
figures, page marks and footnote marks are no elements any more: the text of a paragraph is `text_of(p.text)` unless
it has blocks inside. What `settle` leaves in the strings are joints, places where an element began or ended;
`text_of` decides there whether a space stands between the two neighbours, and takes the joints out.

Neither "" nor " " is right at a joint. Until about 2016 federalregister.gov dropped the white space around inline
elements ("the<E T="04">Federal Register</E>announcing", "(a)<E T="03">General.</E>The rule"); the later sample files
of GPO put line breaks there, also before punctuation and index figures ("SO <E T="52">2</E> ,"). The rules:

- emphasis (E T="01" to "09", I, B) and page marks: a space between words, after ".,;:!?)]", closing quotation marks and
  the apostrophe of a plural ("members'"),
  and before "(", "[", "§", opening quotation marks and "*"; none after opening marks, dashes and slashes, and none
  before punctuation, which also takes away a space that the file has there, nor before a dash on a line of its own;
- a single emphasised letter after a digit ("78l;", "78m(a)") belongs to the number;
- index figures (other E, such as T="52" in SO2) are joined to the word before them, superscripts (SU, E T="51" and
  T="8145") only to a unit of one or two letters (km2) and where they are the sign of a trade mark: after anything else
  they are marks and stand apart;
- fractions (FR) stand apart from a digit (8 1/2) and are joined to a letter (NW1/4);
- after an index figure or a fraction, capitals are joined to it (NW1/4NE1/4, N2O) and a word stands apart.

Superscripts that lead to a footnote (followed by FTREF) are left out of the sentence; the footnote itself keeps its
number.
"""

import re
import unicodedata
from collections import Counter

from lxml import etree

from runner.base.errors import DocumentError
from samplers.formats.safe_xml import MAX_DEPTH, entity_text, plain_text
from samplers.formats.text_writer import on_one_line, visible

_JOINT = "\ufdd0"
"""A noncharacter, so that no text holds it; a letter after it says what begins or ends."""

_WORD, _INDEX, _MARK, _FRACTION, _FIGURE_END = (_JOINT + letter for letter in "wimfe")
_JOINTS = re.compile(rf"{_JOINT} ?[wimfe](?:{_JOINT} ?[wimfe])* ?")
"""The blank before a joint is moved inside first, so that the expression begins with a rare character."""
_CUTS = re.compile(rf"{_JOINT}[wimfe]")
_UNIT = re.compile(r"(?:^|[\s\d/])[a-z]{1,2}$")
_LETTER_OF_NUMBER = re.compile(rf"\d{_JOINT}w[A-Za-z]")
_LETTER = re.compile(rf"[A-Za-z][.,;:]?{_JOINT}")

_INLINE = ("E", "I", "B", "SU", "FR", "LI", "PRTPAGE", "FTREF")
MAX_MARKS = 5_000
"""Inline elements of one paragraph. Real ones have up to 30; lxml takes the square of their number to join the text."""

_SUPERIORS = frozenset(("51", "8145"))
_FIGURE = (_INDEX, _FIGURE_END)
_FACES = {
    **dict.fromkeys((f"0{n}" for n in range(10)), (_WORD, _WORD)),
    **dict.fromkeys(_SUPERIORS, (_MARK, _WORD)),
}
"""What begins and ends at an E, by its T; index figures have any other."""
_ENDS = {
    **dict.fromkeys("IB", (_WORD, _WORD)),
    "SU": (_MARK, _WORD),
    "FR": (_FRACTION, _FIGURE_END),
    "LI": (" ", " "),
}
"""The same by tag, for other elements."""
_TRADE_MARKS = frozenset(("TM", "SM"))
_NOTE_MARK = "FTMARK"

_CLOSING = frozenset(".,;:!?)]}”’")
_OPENING = frozenset("([{“‘")
_ENDS_WORD = _CLOSING | frozenset("%…*•°″′™®")
_BEGINS_WORD = _OPENING | frozenset("§¶*$•#■†")

_too_deep = etree.XPath("boolean(" + "/*" * (MAX_DEPTH + 1) + ")")
_has_joint = etree.XPath(f"contains(string(), '{_JOINT}')")


def settle(root: etree._Element, name: str) -> Counter[str]:
    """Make inline elements text of their blocks, in place; return the characters left out by reason.

    DocumentError for a file that is nested too deep, refers to an unknown entity or has too many marks in one place.
    """
    if _too_deep(root):
        raise DocumentError(name, f"nested more than {MAX_DEPTH} elements deep")
    if _has_joint(root):
        raise DocumentError(name, "holds U+FDD0, which is no character")
    marks = list(root.iter(etree.Entity, *_INLINE))
    if len(marks) > MAX_MARKS and max(Counter(map(_block_of, marks)).values()) > MAX_MARKS:
        raise DocumentError(name, f"more than {MAX_MARKS} marks in one paragraph")
    # In file order: a reference to a footnote renames the marks before it, which are noted by then.
    for element in marks:
        if element.tag is etree.Entity:
            element.tail = entity_text(element, name) + (element.tail or "")
            take_out(element)
        elif element.tag == "FTREF":
            _mark_note_marks(element)
        elif element.tag == "PRTPAGE":
            _settle_page_mark(element)
        else:
            _settle_inline(element)
    note_marks = (mark for mark in root.iter(_NOTE_MARK) if next(mark.iterancestors(_NOTE_MARK), None) is None)
    left_out = Counter({"footnote marks": sum(map(n_visible, note_marks))})
    # Now all that is inline is text and joints of the block around it.
    etree.strip_elements(root, _NOTE_MARK, with_tail=False)
    etree.strip_tags(root, *_INLINE)
    return left_out


def text_of(raw: str | None) -> str:
    """Return a string of a settled file without its joints; white space is kept or collapsed, at the ends too."""
    if not raw:
        return ""
    if _JOINT not in raw:
        return raw
    return f"{' ' if raw[0].isspace() else ''}{_joined_line(raw)}{' ' if raw[-1].isspace() else ''}"


def one_line(raw: str | None) -> str:
    """Return a string of a settled file without its joints, on one line without white space at its ends."""
    if not raw:
        return ""
    line = raw.strip()
    return on_one_line(line) if _JOINT not in line else _joined_line(line).strip()


def _joined_line(raw: str) -> str:
    """Return text on one line, where a space that a joint asks for is the only one that may stand at an end."""
    return _JOINTS.sub(_joined, on_one_line(raw).replace(f" {_JOINT}", f"{_JOINT} "))


def runs_of(raw: str | None) -> list[str]:
    """Return a string of a settled file cut at its joints: emphasis and what stands around it, in turn."""
    return _CUTS.split(raw or "")


def line_of(element: etree._Element) -> str:
    """Return all text inside an element of a settled file, on one line without white space at its ends."""
    return one_line(plain_text(element) if len(element) else element.text)


def n_visible(element: etree._Element) -> int:
    """Return characters inside an element that are not white space, joints not counted."""
    text = "".join(map(str, element.itertext()))
    # Parts are counted one by one where a character might compose with one of the next part.
    parts = (text,) if text.isascii() or unicodedata.is_normalized("NFC", text) else map(str, element.itertext())
    return sum(map(visible, parts)) - len(_WORD) * text.count(_JOINT)


def take_out(node: etree._Element) -> None:
    """Remove a node from its parent and leave its tail where it was."""
    parent, before = node.getparent(), node.getprevious()
    if parent is None:
        return
    if before is None:
        parent.text = (parent.text or "") + (node.tail or "")
    else:
        before.tail = (before.tail or "") + (node.tail or "")
    node.tail = None
    parent.remove(node)


def _block_of(element: etree._Element) -> etree._Element:
    """Return the block around an inline element, the root at the most."""
    block = element
    while (parent := block.getparent()) is not None:
        block = parent
        if block.tag not in _INLINE:
            break
    return block


def _settle_inline(element: etree._Element) -> None:
    """Note at an element's ends what begins and ends there."""
    tag, tail = element.tag, element.tail or ""
    begin, end = _FACES.get(element.get("T", "03"), _FIGURE) if tag == "E" else _ENDS[tag]
    element.text = begin + (element.text or "")
    element.tail = end + (tail.lstrip() if "—" in tail and _is_dash_on_next_line(tail) else tail)


def _is_superior(element: etree._Element) -> bool:
    return element.tag == "SU" or (element.tag == "E" and element.get("T") in _SUPERIORS)


def _is_dash_on_next_line(tail: str) -> bool:
    """Return whether a dash that a word follows stands behind a line break, which is printing's."""
    rest = tail.lstrip()
    return rest[:1] == "—" and not rest[1:2].isspace() and "\n" in tail[: len(tail) - len(rest)]


def _settle_page_mark(mark: etree._Element) -> None:
    """Join what a page mark separates.

    Between "20375-" and "5320" stands nothing, not even where printing put a line break; elsewhere it is a joint.
    """
    before, parent, tail = mark.getprevious(), mark.getparent(), mark.tail or ""
    text = (before.tail if before is not None else parent.text if parent is not None else "") or ""
    line = text.rstrip()
    if not line.endswith(("-", "/")) or (line != text and "\n" not in text[len(line) :]):
        mark.tail = tail if tail[:1].isspace() else _WORD + tail
        return
    mark.tail = tail.lstrip()
    if before is not None:
        before.tail = line
    elif parent is not None:
        parent.text = line


def _mark_note_marks(reference: etree._Element) -> None:
    """Rename the marks before a reference to a footnote, to be taken out together."""
    reference.tail = _WORD + (reference.tail or "")
    mark = reference.getprevious()
    while mark is not None and (_is_superior(mark) or mark.tag == "PRTPAGE") and not text_of(mark.tail).strip():
        if mark.tag != "PRTPAGE":
            mark.tag = _NOTE_MARK
        mark = mark.getprevious()


def _joined(joints: re.Match[str]) -> str:
    """Return what stands at a joint: a space or nothing."""
    text, marks, start, end = joints.string, joints[0], joints.start(), joints.end()
    left, right = text[start - 1 : start], text[end : end + 2]
    blank = " " if " " in marks else ""
    if not left or not right:
        return blank
    if right[0] in _CLOSING and not _begins_more(text, end):
        return ""
    if left in _OPENING:
        return ""
    # Index figures belong to the word before them, superscripts only to units and trade marks.
    if "i" in marks:
        return "" if left.isalnum() or left == ")" else blank
    if "m" in marks:
        is_joined = right in _TRADE_MARKS or (right[0].isdigit() and _ends_with_unit(text, start))
        return "" if is_joined else " "
    return blank or (" " if _stand_apart(left, right, joints) else "")


def _stand_apart(left: str, right: str, joints: re.Match[str]) -> bool:
    """Return whether a space is missing between two neighbours that the file does not separate."""
    marks, text, start = joints[0], joints.string, joints.start()
    ends_word = left.isalnum() or left in _ENDS_WORD or text[start - 2 : start] == "s'"
    if not ends_word or not (right[0].isalnum() or right[0] in _BEGINS_WORD):
        return False
    if "f" in marks:
        return not left.isalpha()
    if "e" in marks and right[0].isupper():
        return right[1:].islower()
    if left.isdigit() and _LETTER.match(text, joints.end()):
        return False
    return right != "[]" and not (right[0] == "(" and _LETTER_OF_NUMBER.match(text, start - 4, start))


def _begins_more(text: str, end: int) -> bool:
    """Return whether the full stop at `end` is the first of several or begins a word or a number."""
    return text[end] == "." and (text[end + 1 : end + 2].isalnum() or text[end + 1 : end + 3] in (" .", ".."))


def _ends_with_unit(text: str, end: int) -> bool:
    """Return whether the text before `end` is a unit of one or two small letters, such as km or the m of ug/m."""
    return bool(_UNIT.search(text[max(end - 3, 0) : end]))
