"""What the cover of a hearing says: congress, chamber, committee, number, title."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from runner.base.errors import DocumentError
from samplers.formats.headings import cut
from samplers.formats.stated import ordinal

ABBREVIATION = 5
"""Letters of the longest word that may be an abbreviation."""

COVER_LENGTH = 8_000
"""Characters of a page among which the jacket number stands."""

_CHAMBERS = {"h": "house", "s": "senate", "j": "joint"}
_HEADER = re.compile(r"\n\[(?P<chamber>House|Senate|Joint)\b[^\[\]\n]{0,40} Hearing,? (?P<congress>\d{2,3})\b")
_HEARING = re.compile(r"(?:JOINT |FIELD |OVERSIGHT |BUSINESS )*(?:HEARINGS?|MEETING)(?: [A-Z ]{2,30})?", re.I)
_JACKET = re.compile(r"\n *(\d{2,3})-(\d{3})(?: ?[A-Za-z]{2,3})?(?= {3}|\n)")
_NAMED = re.compile(r"CHRG-(?P<congress>\d{2,3})(?P<chamber>[hsj])hrg\d{3,6}[\w-]*", re.I)
_BEFORE = re.compile(r"\bBEFORE THE\b", re.I)
_COMMITTEE = re.compile(
    r"\b(?<!SUB)(?:COMMITTEE|COMMISSION) ON (?:THE )?(?P<on>.{3,90}?)"
    r"(?= (?:U\.? ?S\.?|UNITED STATES)\b| HOUSE OF| SENATE\b| CONGRESS OF| ONE HUNDRED\b| AND THE (?:SUB|COMM)"
    r"| OF THE\b|$)",
    re.I,
)
_JOINT_COMMITTEE = re.compile(r"\bJOINT (?P<on>[A-Z]{4,20}) COMMITTEE\b", re.I)
_SMALL_WORDS = frozenset(("a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
_WORD = re.compile(r"(?:(?<=[\w.])(?P<possessive>['’]S)|[A-Z]{2,}|(?<= )A(?= ))\b")


@dataclass(frozen=True)
class Facts:
    """The facts of one hearing; a part that nothing states is ""."""

    name: str
    congress: str
    chamber: str
    committee: str
    jacket: str
    headline: str

    @property
    def doc_id(self) -> str:
        """Govinfo's package id, or the file's own name if no jacket number is printed."""
        named = _NAMED.search(self.name)
        stated = f"CHRG-{self.congress}{self.chamber[:1]}hrg{self.jacket}"
        if not (self.congress and self.chamber and self.jacket):
            return named[0] if named else re.sub(r"[^\w.-]+", "-", self.name.rpartition("/")[2].rpartition(".")[0])
        return named[0] if named and named[0].lower().startswith(stated.lower()) else stated

    @property
    def url(self) -> str:
        """The official page; "" if the id is not govinfo's."""
        return f"https://www.govinfo.gov/app/details/{self.doc_id}" if _NAMED.fullmatch(self.doc_id) else ""

    def title(self, words: "Words") -> str:
        """What every chunk carries: congress, chamber and committee, then the title as `words` are spelt."""
        chamber, committee = self.chamber.capitalize(), recased(self.committee, words)
        where = committee if committee.startswith(chamber) else " ".join(filter(None, (chamber, committee)))
        held = ", ".join(filter(None, (f"{ordinal(self.congress)} Congress" if self.congress else "", where)))
        head = f"Hearing ({held})" if held else "Hearing"
        return cut(unicodedata.normalize("NFC", f"{head}: {recased(self.headline, words)}" if self.headline else head))


def facts_of(title: str, opening: str, name: str, cover: Sequence[str]) -> Facts:
    """The facts in a page's `<title>`, its first COVER_LENGTH characters and the paragraphs of its cover.

    `name` fills what they leave open. DocumentError for a page that is no hearing.
    """
    header, named = _HEADER.search(opening), _NAMED.search(name)
    if not header and not named and not any(map(_HEARING.fullmatch, cover)):
        raise DocumentError(name, f"no hearing: the page begins {opening.strip()[:60]!r}")
    jacket = _JACKET.search(opening)
    chamber = header["chamber"].lower() if header else _CHAMBERS[named["chamber"].lower()] if named else ""
    congress = header["congress"] if header else named["congress"] if named else ""
    lines = _BEFORE.split(" ".join(cover), maxsplit=1)[-1]
    committee = _COMMITTEE.search(lines) or _JOINT_COMMITTEE.search(lines)
    return Facts(
        name=name,
        congress=congress.lstrip("0"),
        chamber=chamber,
        committee=re.sub(r",(?=\w)", ", ", committee["on"].strip(" ,.")) if committee else "",
        jacket=jacket[1] + jacket[2] if jacket else "",
        headline=title.strip(" -"),
    )


class Words:
    """The words of a text, each looked for once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, bool] = {}

    def __contains__(self, word: str) -> bool:
        """Whether the text has a word, with no letter directly before or after it."""
        if word not in self._known:
            self._known[word] = _has(self._text, word)
        return self._known[word]


def recased(title: str, words: Words) -> str:
    """A title in capitals as one would write it: words that a text spells in small letters get them.

    A word of up to ABBREVIATION letters that occurs nowhere in small letters stays in capitals.
    """
    if any(any(map(str.islower, word)) for word in title.split() if word not in _SMALL_WORDS):
        return title
    return _WORD.sub(lambda match: _recased_word(match, words), title)


def _recased_word(match: re.Match[str], words: Words) -> str:
    word, lower, before = match[0], match[0].lower(), match.string[: match.start()]
    is_small = lower in _SMALL_WORDS and before.endswith((" ", "("))
    if match["possessive"] or is_small or before[-1:].isdigit():
        return lower
    spellings = (word.capitalize(), lower, lower.removesuffix("s"))
    return word.capitalize() if len(word) > ABBREVIATION or any(one in words for one in spellings) else word


def _has(text: str, word: str) -> bool:
    at = text.find(word)
    while at >= 0:
        if not text[at - 1 : at].isalpha() and not text[at + len(word) : at + len(word) + 1].isalpha():
            return True
        at = text.find(word, at + 1)
    return False
