"""The level of each paragraph of a text whose hierarchy stands in its designators alone: "(a)", "(1)", "(i)", "(A)".

`lead` reads the designators that a paragraph begins with. "(i)" is the ninth letter or the first numeral, and only its
neighbours can say which, so `places` looks for the cheapest reading of all paragraphs together: a designator that
continues a list which is still open, or opens one at its beginning inside the style that usually holds it, costs
nothing; gaps, repeats and unusual nestings cost more. What is open is a stack of styles.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import NamedTuple

ITALIC, ROMAN = "\x01", "\x02"
"""Marks around an italic run: characters that XML does not allow, so that no file holds them."""

MOST = 6
"""Designators of one paragraph that are read, as many as the Code of Federal Regulations has levels."""

MAX_DEPTH = 12
"""Levels inside one another; that Code has six, commentaries add two or three."""

TERM = "term"
"""The style of a paragraph that begins with an italic term: definitions follow one another in no numbered order."""

_INSIDE: dict[str, frozenset[str]] = {
    "": frozenset(("letter", "digit", "digit.", "upper letter.", "upper roman.", "letter.", "roman.")),
    "letter": frozenset(("digit",)),
    "digit": frozenset(("roman",)),
    "roman": frozenset(("upper letter",)),
    "upper letter": frozenset(("digit", "italic digit")),
    "italic digit": frozenset(("roman", "italic roman")),
    "upper roman.": frozenset(("upper letter.",)),
    "upper letter.": frozenset(("digit.", "italic digit.")),
    "digit.": frozenset(("letter.", "roman.", "letter")),
    "letter.": frozenset(("roman.", "digit")),
    "roman.": frozenset(("upper letter.", "letter.")),
}
"""The styles that each style usually holds; "" is the section itself, a full stop the style of appendices."""

_GAP, _UNUSUAL, _PLAIN, _NESTED_IN_ITSELF, _BACKWARDS, _NOT_FIRST = 2, 2, 3, 4, 5, 5
_BEAM, _SLACK = 6, 3
"""Readings of all paragraphs so far that are kept, and how much more than the cheapest each may cost."""

_WORD = r"[a-z]{1,6}(?:-\d{1,2})?|[A-Z]{1,6}(?:-\d{1,2})?|\d{1,3}(?:-\d{1,2})?"
_ONE = rf"(\x01)?\( ?(\x01)? ?({_WORD}) ?\x02? ?\)(?(%d)\x02)"
_IN_PARENTHESES = re.compile(rf" ?(?:(?:—|–|-) ?)?{_ONE % 1}(?: ?(?:-|–|—|through|to|and|,) ?{_ONE % 4}(?= ?\[))?")
_WITH_FULL_STOP = re.compile(r" ?(\x01?)(\d{1,3}|[A-Za-z]|[ivx]{2,6}|[IVX]{2,6})\.(\x02?)(?=[\s\x01])")
_RUN = re.compile(r" ?\x01([^\x01\x02]{1,300})\x02")
_ANOTHER = ("(", " (", "—", "–", "-")
_INTRODUCES = (":", "—", "–", "-")
_GOES_ON = (";", ",", "; and", "; or", ", and", ", or")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_TENS = ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx")
_NUMERALS = {tens + ones: 10 * t + n for t, tens in enumerate(_TENS) for n, ones in enumerate(_ONES) if t or n}


class Reading(NamedTuple):
    """What a designator can be: "(i)" is place 1 of the style "roman" or 9 of "letter", "(b)–(d)" letters 2 to 4."""

    style: str
    place: float
    last: float


class Designator(NamedTuple):
    """One designator as it is printed, "(a)", "(b)–(d)" or "1.", and all that it can be; () for a word."""

    label: str
    readings: tuple[Reading, ...]


class Lead(NamedTuple):
    """How a paragraph begins: its designators, outermost first, and the italic run after each, "" for none.

    A paragraph that begins with an italic run, as definitions do, has that run as `term`.
    """

    designators: tuple[Designator, ...] = ()
    headings: tuple[str, ...] = ()
    term: str = ""


NO_LEAD = Lead()


class Place(NamedTuple):
    """Where a paragraph stands: how many levels enclose it, and the levels of its term and designators, 1 outermost.

    `levels` is () for a paragraph that only continues, and for one whose designators fit no list ("(2) of the Act …"
    at the beginning of a line).
    """

    inside: int
    levels: tuple[int, ...] = ()


_Levels = tuple[tuple[str, float], ...]
"""The stack: the style of each open level, outermost first, with the place that was last in it."""


class _State(NamedTuple):
    """One reading of the paragraphs so far: the open levels, what it costs, and the last paragraph's levels."""

    open: _Levels
    cost: int = 0
    levels: tuple[int, ...] = ()
    before: "_State | None" = None


def lead(marked: str, full_stops: bool) -> Lead:
    """Return what a paragraph begins with, on one line and with italic runs between ITALIC and ROMAN.

    `full_stops` admits "1." and "iv." as well, as appendices have them.
    """
    upcoming = _next(marked, 0, full_stops)
    run, term = None, ""
    if not upcoming and (run := _RUN.match(marked)):
        if not marked[run.end() :].strip():
            return NO_LEAD
        term, upcoming = " ".join(run[1].split()), _next(marked, run.end(), full_stops)
    designators: list[Designator] = []
    headings: list[str] = []
    while upcoming and len(designators) < MOST:
        designator, position = upcoming
        # Behind a heading only the beginning of a list is a designator: "(b) Fee (2) of the Act" has one.
        if run and all(reading.place != 1 for reading in designator.readings):
            break
        run = _RUN.match(marked, position)
        designators.append(designator)
        headings.append(" ".join(run[1].split()) if run else "")
        if not run and not marked.startswith(_ANOTHER, position):
            break
        upcoming = _next(marked, run.end() if run else position, full_stops and run is not None)
    return Lead(tuple(designators), tuple(headings), term) if designators or term else NO_LEAD


def _next(marked: str, position: int, full_stops: bool) -> tuple[Designator, int] | None:
    """Return the designator at a position and where it ends; None if there is none."""
    if match := _IN_PARENTHESES.match(marked, position):
        outer, inner, token, last_outer, last_inner, last = match.groups()
        ends = dict(_readings_of(last, bool(last_outer or last_inner))) if last else {}
        readings = tuple(
            Reading(style, place, max(place, ends.get(style, place)))
            for style, place in _readings_of(token, bool(outer or inner))
        )
        if readings:
            return Designator(f"({token})" + (f"–({last})" if last else ""), readings), match.end()
    if full_stops and (match := _WITH_FULL_STOP.match(marked, position)):
        readings = tuple(Reading(f"{style}.", n, n) for style, n in _readings_of(match[2], bool(match[1] and match[3])))
        return Designator(f"{match[2]}.", readings), match.end()
    return None


@lru_cache(maxsize=4096)
def _readings_of(token: str, is_italic: bool) -> tuple[tuple[str, float], ...]:
    """Return the styles that a token can have, with its place in each. Letters run a to z, aa, bb; numerals to 89."""
    body, _, part = token.partition("-")
    step = int(part) / 100 if part else 0.0
    if body.isdigit():
        return (("italic digit" if is_italic else "digit", int(body) + step),)
    small = body.lower()
    case = "italic " if is_italic else "" if body.islower() else "upper "
    roman = ((f"{case}roman", _NUMERALS[small] + step),) if small in _NUMERALS else ()
    is_letter = small == small[0] * len(small)
    letter = ((f"{case}letter", ord(small[0]) - 96 + 26 * (len(small) - 1) + step),) if is_letter else ()
    return roman + letter


def places(leads: Sequence[Lead], texts: Sequence[str]) -> list[Place]:
    """Return the place of each block, given how it begins and its text, "" for what is no paragraph (a table, a note).

    A text that ends in a colon or a dash introduces a list, one that ends in a semicolon is a member of a sentence.
    """
    states = [_State(())]
    introduced, follows_plain = True, False
    for (designators, _, term), text in zip(leads, texts, strict=True):
        # The cheapest way to each stack, and of those the few that are not far behind.
        best: dict[_Levels, _State] = {}
        for state in states:
            for levels, more, reached in _choices(state.open, designators, bool(term), introduced, follows_plain):
                cost = state.cost + more
                if levels not in best or cost < best[levels].cost:
                    best[levels] = _State(levels, cost, reached, state)
        ranked = sorted(best.values(), key=attrgetter("cost"))[:_BEAM]
        states = [state for state in ranked if state.cost <= ranked[0].cost + _SLACK]
        introduced = text.endswith(_INTRODUCES) if text else introduced
        follows_plain = not designators
    chain = [states[0]]
    while (before := chain[-1].before) is not None:
        chain.append(before)
    return list(_placed(chain[-2::-1], texts))


@lru_cache(maxsize=4096)
def _choices(
    levels: _Levels, designators: tuple[Designator, ...], has_term: bool, introduced: bool, follows_plain: bool
) -> tuple[tuple[_Levels, int, tuple[int, ...]], ...]:
    """Return the ways to place a paragraph that may still be the best: the stack after it, the cost, its levels."""
    if not designators and not has_term:
        return ((levels, 0, ()),)
    if has_term:
        # A definition stands beside the last one, or inside the innermost open level.
        depth = next((depth for depth, (style, _) in enumerate(levels) if style == TERM), len(levels))
        stack = *levels[: min(depth, MAX_DEPTH - 1 - len(designators))], (TERM, 0.0)
        return (_nested(stack, 0, designators),)
    first, *others = designators
    firsts = [
        choice
        for choice in _first(levels, first, introduced, follows_plain)
        if len(choice[0]) <= MAX_DEPTH - len(others)
    ]
    cheapest = min((cost for _, cost in firsts), default=_PLAIN)
    nested = tuple(_nested(stack, cost, others) for stack, cost in firsts if cost <= cheapest + _SLACK)
    # If nothing fits well, the paragraph may have no designator at all.
    return (*nested, (levels, _PLAIN, ())) if cheapest >= _UNUSUAL else nested


def _first(
    levels: _Levels, designator: Designator, introduced: bool, follows_plain: bool
) -> Iterator[tuple[_Levels, int]]:
    """Yield the stacks after a paragraph's first designator, with the cost, the innermost continuation first."""
    for style, place, last in designator.readings:
        for depth in range(len(levels) - 1, -1, -1):
            if levels[depth][0] == style:
                step = place - levels[depth][1]
                is_anew = step >= 0 or (place == 1 and follows_plain)
                cost = 0 if 0 < step <= 1 else _GAP if is_anew else _BACKWARDS
                yield (*levels[:depth], (style, last)), cost + introduced
    for stack, cost in _opened(levels, designator):
        yield stack, cost + (not introduced)


def _opened(levels: _Levels, designator: Designator) -> Iterator[tuple[_Levels, int]]:
    """Yield the stack with one more level, for each reading of the designator that opens it."""
    outer = levels[-1][0] if levels else ""
    for style, place, last in designator.readings:
        is_usual = outer == TERM or style in _INSIDE.get(outer, ())
        unusual = _NESTED_IN_ITSELF if any(style == open_style for open_style, _ in levels) else _UNUSUAL
        yield (*levels, (style, last)), (0 if is_usual else unusual) + (0 if place == 1 else _NOT_FIRST)


def _nested(levels: _Levels, cost: int, designators: Sequence[Designator]) -> tuple[_Levels, int, tuple[int, ...]]:
    """Return the reading of a paragraph whose further designators each open a level inside the last."""
    reached = [len(levels)]
    for designator in designators:
        levels, more = min(_opened(levels, designator), key=itemgetter(1))
        reached.append(len(levels))
        cost += more
    return levels, cost, tuple(reached)


def _placed(chain: Sequence[_State], texts: Sequence[str]) -> Iterator[Place]:
    """Yield places from the chain of states.

    Text that only continues belongs to the innermost open level, with two exceptions. Where that level's list makes
    up one sentence ("(1) …; and (2) …."), no member has a second paragraph: the text belongs to what holds the list.
    If a list begins anew after it, it introduces that list and stands beside the old one.
    """
    steps = [_step(state) for state in chain]
    # For each paragraph the depth that the next designator leaves open, and whether a list begins anew there.
    least = [(0, False)] * (len(chain) + 1)
    for index in range(len(chain) - 1, -1, -1):
        levels = chain[index].levels
        least[index] = (levels[0] - 1, steps[index] <= 0) if levels else least[index + 1]
    is_sentence: list[bool] = []  # of each open level's list, outermost first
    for index, (state, text) in enumerate(zip(chain, texts, strict=True)):
        if levels := state.levels:
            inside = levels[0] - 1
            follows = any(is_sentence[inside : inside + 1]) or (index > 0 and texts[index - 1].endswith(_GOES_ON))
            is_sentence = [*is_sentence[:inside], steps[index] > 0 and follows]
            is_sentence += [False] * (levels[-1] - len(is_sentence))
            yield Place(inside, levels)
            continue
        depth, begins_anew = least[index + 1]
        while not begins_anew and depth < len(is_sentence) and not (text and all(is_sentence[depth:])):
            depth += 1
        is_sentence = is_sentence[:depth] if text else is_sentence
        yield Place(depth)


def _step(state: _State) -> float:
    """Return how far a paragraph's first designator is after the one that was open on its level; 1 if none was."""
    before, inside = state.before.open if state.before else (), state.levels[0] - 1 if state.levels else 0
    if not state.levels or len(before) <= inside:
        return 1
    (style, last), (open_style, place) = before[inside], state.open[inside]
    return 1 if style != open_style or style == TERM else place - last
