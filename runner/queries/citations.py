"""Whether a query names what it looks for, as people cite: by a number with its series, a date, or a name."""

import re
from collections.abc import Iterator
from itertools import pairwise

from runner.base.records import Document
from runner.queries.wording import longest_run, reading, stems, words

TITLE_WORDS = 4
"""Words in a row of a title that name it; all of a shorter one."""

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)
_SERIES = (
    # A bill, a resolution, a report or an amendment of either chamber.
    r"(?:h|s)\.?\s?(?:r|j|con|amdt|rept|rpt|hrg|doc)?\.?\s?(?:res)?\.?\s?(?:no\.?\s?)?\d+",
    r"(?:house|senate|treaty|conference|committee|executive)\s(?:joint\s|concurrent\s)?"
    r"(?:bill|resolution|report|document|amendment|order|calendar)\s(?:no\.?\s?)?\d+",
    r"(?:amendment|bill|resolution|docket|order|proclamation|calendar)s?\s(?:no\.?\s?|number\s)?[a-z]{0,8}-?\d+",
    # A place in a law, a code or a register.
    r"(?:section|sec\.|part|subpart|chapter|subchapter|title|subtitle|article|paragraph|division)s?\s\d+",
    r"\u00a7{1,2}\s?\d+",
    r"\d+\s(?:u\.?\s?s\.?\s?c|c\.?\s?f\.?\s?r|f\.?\s?r|fed\.?\sreg|stat|cong\.?\srec)\b",
    r"(?:public|private)\slaw\s(?:no\.?\s)?\d+",
    r"(?:pub\.?\s?l|pvt\.?\s?l|p\.?\s?l)\.?\s?(?:no\.?\s?)?\d+",
    # A number that is one by its own form: RIN 1234-AB12, GAO-99-12345, EPA-HQ-OAR-2019-0001, R99999, IF12345.
    r"[a-z]{2,}(?:-[a-z]+)*-\d{2,4}-\d+",
    r"\d{4}-[a-z]{2}\d{2}\b",
    r"(?:r|rl|rs|if|in|lsb)\d{4,}",
)
_OCCASION = re.compile(r"\b(?:hearing|debate|record|committee|testimony|remarks|statement|floor)s?\b", re.IGNORECASE)
_DAY = re.compile(rf"\b(?:\d{{1,2}}\s(?:{_MONTHS})|(?:{_MONTHS})\.?\s\d{{1,2}})\b", re.IGNORECASE)
_NUMBERED = re.compile(rf"(?<![\w'\u2019])(?:{'|'.join(_SERIES)})", re.IGNORECASE)
_NAMED = frozenset({"act", "acts", "code", "resolution", "amendments", "treaty", "convention", "amendment"})


def cites(text: str, document: Document) -> bool:
    """Whether a query cites: a number of a known series, an occasion and its day, a name as the document has it, or
    its title.
    """
    if _NUMBERED.search(text) or (_OCCASION.search(text) and _DAY.search(text)):
        return True
    title = words(document.title)
    run = longest_run(text, document.title)
    if title and run >= min(TITLE_WORDS, len(title)) and _says_enough(text, document.title, run):
        return True
    return any(_stands_as_name(name, document) for name in _names(text))


def _says_enough(text: str, title: str, run: int) -> bool:
    """Whether a run of the title has three words with content, or all that the title has."""
    shared = len(stems(text) & stems(title))
    return shared >= 3 or (run == len(words(title)) and shared > 0)


def _names(text: str) -> Iterator[list[str]]:
    """A word with content and the word for an instrument that follows it, as in "clean air act": [air, act]."""
    asked = words(text)
    for before, noun in pairwise(asked):
        if noun in _NAMED and stems(before):
            yield [before, noun]


def _stands_as_name(name: list[str], document: Document) -> bool:
    """Whether a document writes these words together and each with a capital."""
    as_name = r"\s+".join(f"(?:{re.escape(word.capitalize())}|{re.escape(word.upper())})" for word in name)
    return re.search(rf"\b{as_name}\b", reading(document)) is not None
