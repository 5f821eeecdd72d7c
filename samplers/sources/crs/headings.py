"""Which lines of a CRS product are headings: the saved page has them as plain lines, like paragraphs."""

import re
from collections.abc import Collection

from samplers.formats.headings import is_title
from samplers.formats.markdown_text import Block
from samplers.formats.text_writer import on_one_line

LONGEST = 150
"""Characters of a heading that the contents list does not name; the longest listed one has 112."""

_CAPTION = re.compile(r"(?:Table|Figure|Box) (?:[A-Z]-?)?\d{1,3}[.:](?:\s|$)")
_NOTE = re.compile(r"(?:Sources?|Notes?)\s*:|(?:Sources?|Notes?) and |[a-z]{1,2}\.\s|\*")
_NO_HEADING = re.compile(
    r"[a-z(*$=]|According to |CRS (?:Reports?|In Focus|Insights?|Legal Sidebars?|Infographics?|Video)\b|https?:"
)
_SENTENCES = re.compile(r"[.!](?<=[a-z]{3}.)(?<!Appendix.) [A-Z]")
_BEFORE_MORE = re.compile(
    r" (?:that|includes?|including|to|as|an?|the|of|and|or|by|for|with|noted|said|stated|announced|remarked|following)$"
)
_SENTENCE_ENDS = tuple('.;:,"”=')


def is_caption(block: Block) -> bool:
    """Whether a line names a table or figure: a paragraph by itself, or the first cell of a frame around a picture."""
    by_itself = block.alone if block.kind == "paragraph" else block.kind == "row" and len(block.cells) == 1
    return by_itself and len(block.text) <= 3 * LONGEST and _CAPTION.match(block.text) is not None


def is_note(block: Block) -> bool:
    """Whether a paragraph below a table belongs to it: its sources, its notes, or a note to one of its letters."""
    return _NOTE.match(block.text) is not None


def is_heading(block: Block, below: Block | None, entries: Collection[str]) -> bool:
    """Whether a plain line is a heading.

    All that the contents list names are. Others stand between blank lines above further text that is no table, end
    like no sentence, and are set as titles, asked as questions, or have at most four words.
    """
    if block.kind != "paragraph" or not block.alone:
        return False
    text = on_one_line(block.text)
    if text in entries or text == "Summary":
        return True
    if below is None or below.kind in ("row", "rule") or len(text) > LONGEST or not text:
        return False
    is_text = text.endswith(_SENTENCE_ENDS) or _BEFORE_MORE.search(text) or _SENTENCES.search(text)
    if is_text or _NO_HEADING.match(text) or " = " in text:
        return False
    return text.endswith("?") or is_title(text) or (len(text.split()) <= 4 and below.kind == "paragraph")
