"""The terms that `bm25` looks for, and where in a text they stand: words, numbers, and citations of law.

A citation is one term however it is printed, beside the numbers in it, so that it is found as a whole and in parts:

| printed | terms |
|---|---|
| 42 U.S.C. 1983, 42 USC § 1983 | 42, usc, 1983, usc1983 |
| § 1983, section 1983, Sec. 1983 | section, 1983, §1983 |
| 5(a)(1)(B) | 5, 5a, 5a1, 5a1b |
| 78dd-1, with any dash | 78dd, 1, 78dd-1 |
| 240.10b-5 | 240, 10b, 5, 10b-5, 240.10b-5 |
| H.R. 1234, H. R. 1234, HR 1234; S. 12; H. J. Res. 5 | 1234, hr1234; 12, s12; 5, hjres5 |
| $5,000,000 | 5000000 |

What is left when an apostrophe or a period cuts a word is rare and so weighs much, though it says nothing. "don't", the
"'s" of "Act's" and "e.g." are no terms, and a letter alone is none: such letters cost up to 0.014 nDCG@10 on questions.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from runner.base.records import LANGUAGES

STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    )
)
"""Lucene's, which are those of bm25s; that library takes half a second to load."""

_NORMAL = (
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
    | dict.fromkeys("\u02bc\u2019\uff07", "'")
    | {"\u00ad": ""}  # a soft hyphen
)
_TOKEN = re.compile(
    r"""
    (?=[\w§']) (?:  # what all begin with: white space is passed over in half of the time
      (?P<plain> (?![hs](?:r|j|con|res)|sec|usc|cfr)[^\W\d_]{2,}(?![\w'-]) )
    | (?P<bill> (?<![\w'])[hs]\.?\s?(?:r|(?:j\.?\s?|con\.?\s?)?res)?\.?\s? (?<=[.\s]) (?=\d+\b) )
    | (?P<dotted> (?<![\w'.])
        (?: [a-z]\.(?:\s[a-z]\.(?!\w))+ | (?:[a-z]\.)+[a-z](?:\.|(?!\w)) | (?:usc|cfr)(?=\s?§*\s?\d) ) )
    | (?P<section> (?: (?<!§)§+ | (?<!\w)sec(?:tions?|s?\.) )\s?(?=\d) )
    | (?P<amount> \d{1,3}(?:,\d{3})+(?!\w) )
    | (?P<number> \d\w*(?:\.\d\w*)*(?:-\w+)* ) (?P<path> (?:\([0-9a-z]{1,5}\)){1,8} )?
    | (?P<clitic> (?<=\w)'(?:s|d|m|ll|re|ve)(?!\w) )
    | (?P<word> \w+(?:-(?![a-z]\.[a-z])\w+)* ) (?P<negation> (?<=n)'t(?!\w) )?
    )
    """,
    re.VERBOSE,
)
_RUN = re.compile(r"\w+(?:-\w+)*")
_DOTLESS = str.maketrans({"I": "\u0131", "\u0130": "i"})
"""Turkish has two letters i, and Unicode's lower case takes one for the other."""

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"  # kana and Chinese characters
)
"""Characters of scripts without spaces between words; Korean has spaces."""

_LATIN = frozenset({"eg", "ie"})
_SECTION = "§"


class Word(NamedTuple):
    """Characters `start` to `end` of a text, which stand for `terms`: not stemmed, stop words among them."""

    start: int
    end: int
    terms: tuple[str, ...]


def stemmed_terms(text: str) -> list[str]:
    """Return what is indexed of a text, with repetitions: its terms without stop words, stemmed."""
    return stemmed(term for word in _found(_normal(text)) for term in word.terms)


def stemmed(terms: Iterable[str]) -> list[str]:
    """Return the terms that are no stop words, stemmed as English."""
    return _stems("english")([term for term in terms if term not in STOP_WORDS])


def terms_in(code: str, text: str) -> list[str]:
    """Return the terms of a text in the language of a code of LANGUAGES, without stop words, stemmed, with repetitions.

    A term is a run of word characters in lower case. Letters alone count for nothing (l'homme is homme), a hyphenated
    word counts in parts, and whole too if it has a digit or a letter alone. Compounds stay whole.
    """
    language = LANGUAGES[code]
    normal = _normal(unicodedata.normalize("NFC", text).translate(_DOTLESS if code == "tr" else {}))
    terms = (term for run in _RUN.findall(normal) for term in _parts(run))
    stop = _stop_words(language)
    return _stems(language)([term for term in terms if term not in stop])


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text that stand for a term, in text order."""
    normal = _normal(text)
    # Lower case can take more characters (İ): then places are looked up one by one.
    if len(normal) == len(text):
        yield from _found(normal)
        return
    places = [place for place, character in enumerate(text) for _ in _normal(character)]
    for start, end, terms in _found(normal):
        yield Word(places[start], places[end - 1] + 1, terms)


def unspaced(texts: Iterable[str]) -> bool:
    """Return whether most texts are mostly in a script without spaces between words, where a phrase is one term."""
    found = [2 * len(_UNSPACED.findall(text)) > sum(map(str.isalnum, text)) for text in texts]
    return 2 * sum(found) > len(found)


@cache
def _stems(language: str) -> Callable[[list[str]], list[str]]:
    import Stemmer

    stems: Callable[[list[str]], list[str]] = Stemmer.Stemmer(language).stemWords
    return stems


@cache
def _stop_words(language: str) -> frozenset[str]:
    from bm25s import stopwords

    return frozenset(getattr(stopwords, f"STOPWORDS_{language.upper()}"))


def _normal(text: str) -> str:
    normal = text.lower()
    if not normal.isascii():
        for printed, plain in _NORMAL.items():  # a third of the time that str.translate takes
            normal = normal.replace(printed, plain)
    return normal


def _found(text: str) -> Iterator[Word]:
    """Yield words of a text in lower case; a number also stands for itself behind what is printed right before it."""
    prefix, prefix_end = "", -1
    for match in _TOKEN.finditer(text):
        kind, token, (start, end) = match.lastgroup, match[0], match.span()
        if kind == "plain":  # four words in five; the others are looked at
            prefix = ""
            yield Word(start, end, (token,))
            continue
        # What is printed right before a number belongs to it: "42 U.S.C. 1983", "§ 5".
        adjacent = prefix if start - prefix_end < 2 and not text[prefix_end:start].strip() else ""
        prefix = ""
        if kind == "word":
            terms = tuple(_parts(token))
        elif kind in {"number", "path", "amount"}:
            terms = _number_terms(match, adjacent)
        elif kind in {"bill", "dotted"}:
            prefix, prefix_end = re.sub(r"[.\s]", "", token), end
            terms = (prefix,) if kind == "dotted" and prefix not in _LATIN else ()
        elif kind == "section":
            prefix, prefix_end = adjacent or _SECTION, end
            terms = ("section",)
        else:
            continue
        if terms:
            yield Word(start, end, terms)


def _number_terms(match: re.Match[str], prefix: str) -> tuple[str, ...]:
    head = match["number"] or match["amount"].replace(",", "")
    # The number in parts, then whole, then behind its prefix, then with its path.
    terms = [part for piece in head.split(".") for part in _parts(piece)]
    if "." in head:
        terms.append(head)
    if prefix:
        terms.append(prefix + head)
    return (*terms, *_path_terms(head, match["path"] or ""))


def _parts(token: str) -> Iterable[str]:
    """Return a hyphenated token in parts, and whole too if it has a digit or a part that is no term alone ("x-ray")."""
    if "-" not in token:
        return (token,) if _counts(token) else ()
    parts = token.split("-")
    # A letter alone is no term, but the whole word then is ("x-ray").
    terms = [part for part in parts if _counts(part)]
    return (*terms, token) if len(terms) < len(parts) or any(map(str.isdigit, token)) else terms


def _counts(part: str) -> bool:
    return len(part) > 1 or part.isdigit()


def _path_terms(head: str, path: str) -> Iterator[str]:
    """Yield a section's number with each longer part of its path: "401(k)" is typed 401k, and 1(1) is not 11."""
    steps = path[1:-1].split(")(") if path else []
    # "401(k)" closes up to 401k; "1(1)" must not become 11.
    close = head.isdigit() and bool(steps) and not steps[0][0].isdigit()
    for step in steps:
        head += step if close else f"({step})"
        yield head
