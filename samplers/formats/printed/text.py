r"""GPO's fixed-width pages (hearings, the Record, committee reports): the `<pre>` of a file and its typesetting.

A reader calls `read_page`, `removed` for each kind of furniture, `without_page_marks`, `typographic`, and last
`paragraphs` beside it. Each step is a pass over the whole text, which begins and ends with "\n" and in which
white space is " " and "\n" only. A pattern for a line is written `\n…(?=\n)`: as `^…$` it takes six times as long.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from runner.base.errors import DocumentError
from samplers.formats.text_writer import INVISIBLE, visible

GRAPHIC = re.compile(
    r"\n *+(?:[<\[]GRAPHIC(?:S|\(S\))? NOT AVAILABLE[^\]>\n]{0,60}[\]>]|\[GRAPHIC\] ?\[TIFF OMITTED\][^\n]{0,40})(?=\n)"
)
"""A line that stands for a scanned page."""

RULE = re.compile(r"\n *+(?:[-_=*][-_=* ]{3,}|[-_])(?=\n)")
"""A line that is only a rule, or what is left of one."""

END_MARK = re.compile(r"\n *+\[all\](?=\n)")
"""The end of a publication; elsewhere it is `<all>`, which `read_page` leaves out."""

_TAG = re.compile(
    r"</?(?:html|head|title|meta|body|pre|a|b|i|u|p|br|hr|em|strong|font|span|div|sup|sub|inf)(?:\s[^<>]{0,400})?/?>",
    re.I,
)
_TITLE = re.compile(r"<title>([^<]{0,2000})</title>", re.I)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_CHARACTER_NAME = re.compile(r"</?([A-Za-z][A-Za-z-]{0,24})>")
_CHARACTERS = {"bullet": "•", "plus-minus": "±"}
_STRUCK = re.compile(r"<greek-l>(?:[^<\n]{0,80}\n){0,2}[^<\n]{0,80}?(?<=[ \n])deg\.")
_BESIDE = re.compile(r" {3,}[^ \n][^\n]*")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\xa0\xad\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]")
_GLYPHS = {"\x01": "•", "\x06": "§"} | dict.fromkeys(map(chr, INVISIBLE), "")
_PAGE_MARK = re.compile(r"\[\[Page [^\[\]\n]{1,16}\]\]\n+( *)")
_DASH = re.compile(r"--(?!-)(?<!---)")
_SENTENCE_ENDS = tuple(".?!:”\"'")
_CENTRED = 9

Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class PrintedPage:
    r"""A file's `<pre>` in NFC: no markup, no entity, no white space but " " and "\n", no space at a line's end."""

    title: str
    """The file's `<title>` on one line."""
    text: str
    left_out: Counter[str]
    """Characters of the file that are not in `text`, by reason; a reader goes on counting in it."""


def read_page(data: bytes, name: str) -> PrintedPage:
    """Return the text from `<pre>` to the last `</pre>`; DocumentError for a file that has none.

    GPO's character names become characters if there is one (`<bullet>` is "•"), and vanish otherwise, as does what
    an editor struck out (`<greek-l>, deg.`). Of the control characters that stand for a glyph two are known.
    """
    source = decoded(data)
    start = source.find("<pre>")
    if start < 0:
        beginning = "".join(c for c in " ".join(source[:80].split()) if c.isprintable())[:40]
        raise DocumentError(name, f"no <pre> element, which this source's pages have; the file begins '{beginning}'")
    # A page that quotes markup has several ends: the last one counts.
    end = source.rfind("</pre>")
    end = end if end > start else len(source)
    title = " ".join(_CONTROL.sub(" ", _unmarked("".join(_TITLE.findall(source, 0, start)[:1]))).split())
    around = visible(_unmarked(source[:start])) + visible(_unmarked(source[end:]))
    left_out = Counter({"outside the page": around})
    source = source[start:end]
    text = _unmarked(source)
    del source  # One copy less while the lines are stripped: the peak is 6 times the file, not 8.
    # What is left in angle brackets is GPO's own: text struck out by an editor, names of characters.
    if "<" in text:
        text = removed(_STRUCK, text, left_out, "struck out by an editor", _beside)
        text = removed(
            _CHARACTER_NAME, text, left_out, "names of characters", lambda name: _CHARACTERS.get(name[1].lower(), "")
        )
    text = _without_controls(text, left_out)
    text = unicodedata.normalize("NFC", text)
    return PrintedPage(title, "\n".join(("", *map(str.rstrip, text.split("\n")), "")), left_out)


def decoded(data: bytes) -> str:
    """Return the file as text: UTF-8 with bad bytes replaced, or Windows-1252 if no high byte is part of UTF-8.

    None of 228 files measured has a bad byte; what is published as U+FFFD stays.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        n_high = len(data) - len(data.translate(None, bytes(range(128, 256))))
        return data.decode("cp1252", errors="replace") if text.count("\ufffd") == n_high else text


def removed(
    pattern: re.Pattern[str], text: str, left_out: Counter[str], reason: str, replacement: Replacement = ""
) -> str:
    """Return the text with every match replaced; the visible characters that this costs are counted."""
    lost = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal lost
        new = replacement if isinstance(replacement, str) else replacement(match)
        lost += visible(match[0]) - visible(new)
        return new

    result = pattern.sub(replace, text)
    left_out[reason] += lost
    return result


def without_page_marks(text: str, left_out: Counter[str]) -> str:
    """Return the text without `[[Page H6175]]` and the blank lines around it; a sentence goes on over it.

    What follows joins the line before where its indent says that it belongs to it, and stands apart where it is
    centred.
    """
    pieces: list[str] = []
    position = 0
    for mark in _PAGE_MARK.finditer(text):
        before = text[position : mark.start()]
        body = before.rstrip(" \n")
        if "\n" in before[len(body) :] and body:
            pieces += (body, _over_page(body, mark))
            left_out["page marks"] += visible(mark[0])
            position = mark.end()
    return "".join((*pieces, text[position:]))


def typographic(text: str, left_out: Counter[str]) -> str:
    """Return the text with ``…'' as “…” and two hyphens as a dash; longer runs of hyphens stay."""
    result = text.replace("``", "“") if "`" in text else text
    if "''" in text:
        result = result.replace("'''", "'”").replace("''", "”")
    if "--" in text:
        result = _DASH.sub("—", result)
    left_out["second halves of doubled marks"] += len(text) - len(result)
    return result


def _over_page(body: str, mark: re.Match[str]) -> str:
    """Return what stands between a page's last line and the next page's first one."""
    line = body[body.rfind("\n") + 1 :]
    indent, before = len(mark[1]), len(line) - len(line.lstrip(" "))
    following = mark.string[mark.end() : mark.end() + 1]
    # A sentence goes on over the page if no mark ends it or small letters follow.
    is_open = following.islower() or not line.endswith(_SENTENCE_ENDS)
    if not line.endswith("-") and (indent == 0 or (indent <= min(before, _CENTRED) and is_open)):
        return "\n\n" if line[-1] < " " else " "  # A mark that a reader set in place of a rule stands alone.
    return ("\n\n" if indent > _CENTRED else "\n") + mark[1]


def _beside(match: re.Match[str]) -> str:
    """Return what stands in the next column beside what an editor struck out; lines of running text become one."""
    *lines, last = match[0].split("\n")
    columns = [beside[0] if (beside := _BESIDE.search(line)) else "" for line in lines]
    if any(columns):
        return "\n".join((*columns, " " * (len(last) - len(last.lstrip(" ")))))
    return " " if lines else ""


def _without_controls(text: str, left_out: Counter[str]) -> str:
    """Return the text with control characters as their glyphs or as spaces."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    for character in sorted(set(text)):
        if _CONTROL.match(character):
            glyph = _GLYPHS.get(character, " ")
            left_out["control characters"] += text.count(character) * (visible(character) - visible(glyph))
            text = text.replace(character, glyph)
    return text


def _unmarked(source: str) -> str:
    """Return the text without tags, entities decoded once; a name that html does not know stays."""
    text = _TAG.sub("", source)
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text
