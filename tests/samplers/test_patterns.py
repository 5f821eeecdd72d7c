"""No pattern of a reader or a chunker takes much more than quadratic time, whatever a file repeats."""

import pkgutil
import re
import signal
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import count
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import chunkers
import samplers

TIMES = 400
"""Repeats of what a pattern repeats: quadratic time is milliseconds, cubic one seconds, exponential one for ever."""

SECONDS = 0.3
REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)
CATEGORIES = {
    code.CATEGORY_DIGIT: r"\d",
    code.CATEGORY_NOT_DIGIT: r"\D",
    code.CATEGORY_SPACE: r"\s",
    code.CATEGORY_NOT_SPACE: r"\S",
    code.CATEGORY_WORD: r"\w",
    code.CATEGORY_NOT_WORD: r"\W",
}
CANDIDATES = "a1A .-\n_,()\t;:“§—/&<|”"


def patterns() -> Iterator[re.Pattern[str]]:
    """The module-level patterns of both packages."""
    for package in (samplers, chunkers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            values = vars(import_module(module.name)).values()
            yield from (one for one in values if isinstance(one, re.Pattern) and isinstance(one.pattern, str))


def pumped(pattern: str, flags: int) -> Iterator[str]:
    """Texts near to what a pattern matches, one for each of its long repeats, with that one repeated TIMES."""
    tree = parser.parse(pattern, flags)
    for place in count():
        places = count()
        yield _sample(tree, place, places)
        if next(places) <= place + 1:
            return


def _sample(tree: Sequence[Any], place: int, places: "count[int]") -> str:
    text = ""
    for kind, value in tree:
        if kind is code.LITERAL:
            text += chr(value)
        elif kind is code.IN:
            text += next(filter(re.compile(_class(value)).match, CANDIDATES), "a")
        elif kind in (code.ANY, code.NOT_LITERAL):
            text += "a"
        elif kind in REPEATS:
            least, most, body = value
            is_here = most >= 20 and next(places) == place
            inner = _sample(body, place, places)
            text += inner * (TIMES if is_here else max(least, len(inner) >= TIMES))
        elif kind is code.SUBPATTERN:
            text += _sample(value[3], place, places)
        elif kind is code.ATOMIC_GROUP:
            text += _sample(value, place, places)
        elif kind is code.BRANCH:
            text += max((_sample(branch, place, places) for branch in value[1]), key=len)
    return text


def _class(members: Sequence[Any]) -> str:
    """The class of characters in brackets that the parser took apart."""
    text = ""
    for kind, value in members:
        if kind is code.NEGATE:
            text += "^"
        elif kind is code.LITERAL:
            text += re.escape(chr(value))
        elif kind is code.RANGE:
            text += "-".join(re.escape(chr(end)) for end in value)
        else:
            text += CATEGORIES[value]
    return f"[{text}]"


def is_slow(pattern: re.Pattern[str]) -> bool:
    """Whether a text near to what the pattern matches takes more than SECONDS of this process's time."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        for text in pumped(pattern.pattern, pattern.flags):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            for end in ("", "\0", "\n\0"):
                pattern.match(text + end)
                pattern.fullmatch(text + end)
    except TimeoutError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return False


def test_no_pattern_takes_cubic_or_exponential_time() -> None:
    found = list(patterns())
    assert len(found) > 150
    assert [pattern.pattern for pattern in found if is_slow(pattern)] == []


@pytest.mark.parametrize(
    "pattern", [r"\|(?:\s*:?-+:?\s*\|?)+", r"(?:(?:[A-Z]\.)+ ?){0,9}[A-Z]\w+", r"(a+)+b", r"(?:\w+\s?)+;"]
)
def test_a_pattern_that_does_is_found(pattern: str) -> None:
    assert is_slow(re.compile(pattern))
