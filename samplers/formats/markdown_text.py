"""Words of a line of Markdown without its marks, as web pages are saved in it.

Browser extensions write `_s__eabed_` for a word set in two italic runs, `shows****state` where a bold blank stood
between two words, and whole paragraphs on one line. CommonMark reads none of this as it was meant.
"""

import re

_INNER = r"\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+\)"
_BALANCED = rf"\([^()\s]*+(?:{_INNER}[^()\s]*+)*+(?:\s\"[^\"\n]*+\")?\)"
# Addresses that end in a stretch of the page's text ("#:~:text=…Section 7(j") have a parenthesis that never closes.
_TARGET = rf"(?:{_BALANCED}|\([^()\s]*+\([^()\s]*+\))"
_IMAGE = re.compile(rf"!\[[^\[\]]*+\]{_TARGET}")
_LINK = re.compile(rf"\[([^\[\]]*+(?:\[[^\[\]]*+\][^\[\]]*+)*+)\]{_TARGET}")
_NOTE = re.compile(r"\[[\d*†‡]{1,4}\]\([^()\s]*#_?(?:fn|ftn|ifn|footnote)[^()\s]*\)")
_OPEN, _SHUT = "\x02", "\x03"
_BEFORE_LINK = re.compile(rf"{_OPEN}(?<=[a-z].)(?=\w)")
_AFTER_LINK = re.compile(rf"{_SHUT}(?<=\S.)(?={_OPEN}?[\w(])(?!(?:[b-z]|es|ed|ing|ly)\b)")
_STARRED = re.compile(r"\*(?<![\w*]\*)(?=[^\W\d_])([^*\n]{1,300}+)(?<=\S)\*(?![\w*])")
_MARK = re.compile(r"\\[^A-Za-z0-9\s]|https?:/\S*[^\s_*]|www\.\S*[^\s_*]|\*\*[*_]*|\*(?=_)[*_]*|_[*_]*")
"""Each begins with a character of its own, which is searched for ten times as fast as what a group begins with."""
_OPENING = frozenset("([“‘$")


def plain(text: str) -> str:
    """Return the words of a line: links as their text, without images, marks of footnotes, emphasis and escapes.

    A blank that a mark swallowed comes back: around a link that touches another word by more than an ending such as
    the s of a plural, where a pair of marks holds nothing, and where a capital follows a small letter.
    """
    if "](" in text:
        text = _IMAGE.sub("", text) if "![" in text else text
        text = _NOTE.sub("", text) if "#" in text else text
        text = _LINK.sub(f"{_OPEN}\\1{_SHUT}", text)
        text = _AFTER_LINK.sub(" ", _BEFORE_LINK.sub(" ", text)).replace(_OPEN, "").replace(_SHUT, "")
    if "*" in text or "_" in text or "\\" in text:
        text = _without_emphasis(_STARRED.sub(r"\1", text))
    return text.strip()


def _without_emphasis(text: str) -> str:
    """Return the text without runs of ** and _, which toggle bold and italics; addresses and escaped marks stay."""
    marks = list(_MARK.finditer(text))
    # How many underscores are still to come: a lone one inside a word, with none to close it, is the word's own.
    left = sum(mark[0].count("_") for mark in marks if mark[0][0] in "*_")
    inside = {"*": False, "_": False}
    pieces: list[str] = []
    position = 0
    for mark in marks:
        pieces.append(text[position : mark.start()])
        position = mark.end()
        run = mark[0]
        if run[0] not in inside:
            pieces.append(run.removeprefix("\\"))
            continue
        left -= run.count("_")
        around = text[mark.start() - 1 : mark.start()], text[position : position + 1]
        if run == "_" and not (inside["_"] or left) and around[0].isalnum() and around[1].isalnum():
            pieces.append("_")
            continue
        toggles = {"*": (run.count("*") + 1) // 2, "_": run.count("_")}
        # A pair that holds nothing was a bold blank between two words.
        is_empty_pair = any(toggles[sign] - inside[sign] >= 2 for sign in inside)
        pieces.append(_blank(is_empty_pair, *around))
        inside = {sign: inside[sign] ^ bool(toggles[sign] % 2) for sign in inside}
    return "".join((*pieces, text[position:]))


def _blank(is_empty_pair: bool, before: str, after: str) -> str:
    if not before or before.isspace() or before in _OPENING or not (after.isalnum() or after in _OPENING):
        return ""
    return " " if is_empty_pair or (before.islower() and after.isupper()) else ""
