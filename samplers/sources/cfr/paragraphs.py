"""The level of each paragraph of a section, found from the sequence of its designators.

"(i)" is the ninth letter or the first numeral, and only its neighbours can say which. The rule is a search for the
cheapest reading of the whole section: a designator that continues a sequence which is still open, or opens one at its
beginning under the style that usually holds it, costs nothing; gaps, repeats and unusual nestings cost more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from samplers.sources.cfr.designators import Designator, Lead

TERM = "term"
"""The style of a paragraph that begins with an italic term: definitions follow one another in no numbered order."""

MAX_DEPTH = 12
"""Levels inside one another; the Code has six, commentaries add two or three."""

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
"""The styles that each style usually holds; "" is the section itself."""

_GAP = 2
_UNUSUAL = 2
_PLAIN = 3
_NESTED_IN_ITSELF = 4
_BACKWARDS = 5
_NOT_FIRST = 5
_BEAM = 6
_SLACK = 3

_CACHED = 4096
"""Readings that are kept: most sections have the same few sequences of designators."""

_Levels = tuple[tuple[str, float], ...]
"""The style of each open level, outermost first, with the place that was last in it."""

_Reading = tuple[_Levels, int, tuple[int, ...]]
"""One way to place a paragraph: the open levels after it, what it costs, and the levels of its designators."""


@dataclass(slots=True)
class Item:
    """A paragraph or other block as the rule sees it.

    `introduces`: it ends in a colon or a dash, so that a list should follow. `goes_on`: it ends in a semicolon or the
    like, so that it is one member of a sentence. `is_text`: it is a paragraph and not a table, note or footnote.
    """

    lead: Lead
    introduces: bool = False
    goes_on: bool = False
    is_text: bool = True


@dataclass(slots=True)
class Place:
    """Where a paragraph stands: how many levels enclose it, and the levels of its term and designators, 1 outermost.

    `levels` is () for a paragraph that only continues, and for one whose designators fit no sequence ("(2) of the
    Act …" at the beginning of a line).
    """

    inside: int
    levels: tuple[int, ...] = ()


@dataclass(slots=True)
class _State:
    """One reading of the paragraphs so far: the open levels, what it costs, and the last paragraph's levels."""

    open: _Levels
    cost: int
    levels: tuple[int, ...]
    before: "_State | None"


def places(items: Sequence[Item]) -> list[Place]:
    """The place of each paragraph, in order."""
    if not any(item.lead.designators or item.lead.term for item in items):
        return [Place(0)] * len(items)
    states = [_State((), 0, (), None)]
    introduced = True
    follows_plain = False
    for item in items:
        designators, _, term = item.lead
        if not designators and not term:
            states = [_State(state.open, state.cost, (), state) for state in states]
        elif len(states) == 1 and not term and (regular := _regular(states[0].open, designators, introduced)):
            levels, cost, reached = regular
            states = [_State(levels, states[0].cost + cost, reached, states[0])]
        elif term:
            states = _cheapest((state, _with_term(state.open, designators)) for state in states)
        else:
            states = _cheapest(
                (state, _readings(state.open, designators, introduced, follows_plain)) for state in states
            )
        introduced = item.introduces
        follows_plain = not designators
    return _placed(states[0], items)


@lru_cache(_CACHED)
def _regular(levels: _Levels, designators: tuple[Designator, ...], introduced: bool) -> _Reading | None:
    """The reading of a lone designator that can be one thing only, as four of five can; None for others.

    It is the next of the one open list of its style, or the first of a list if no such list is open.
    """
    readings = designators[0].readings
    if len(designators) > 1 or len(readings) > 1:
        return None
    style, place, last = readings[0]
    depths = [depth for depth, (open_style, _) in enumerate(levels, start=1) if open_style == style]
    if len(depths) == 1 and 0 < place - levels[depths[0] - 1][1] <= 1:
        return (*levels[: depths[0] - 1], (style, last)), int(introduced), (depths[0],)
    if not depths and place == 1 and style in _INSIDE.get(levels[-1][0] if levels else "", ()):
        return (*levels, (style, last)), int(not introduced), (len(levels) + 1,)
    return None


def _cheapest(read: Iterable[tuple[_State, Sequence[_Reading]]]) -> list[_State]:
    """The best state of each set of open levels, cheapest first, without those that are far behind."""
    best: dict[_Levels, _State] = {}
    for state, readings in read:
        for levels, more, reached in readings:
            cost = state.cost + more
            if levels not in best or cost < best[levels].cost:
                best[levels] = _State(levels, cost, reached, state)
    ranked = sorted(best.values(), key=attrgetter("cost"))[:_BEAM]
    return [state for state in ranked if state.cost <= ranked[0].cost + _SLACK]


@lru_cache(_CACHED)
def _with_term(levels: _Levels, designators: tuple[Designator, ...]) -> tuple[_Reading]:
    """A definition stands beside the last one, or inside the innermost open level."""
    deepest = MAX_DEPTH - 1 - len(designators)
    depth = next((depth for depth, (style, _) in enumerate(levels) if style == TERM), len(levels))
    return (_nested((*levels[: min(depth, deepest)], (TERM, 0)), 0, designators),)


@lru_cache(_CACHED)
def _readings(
    levels: _Levels, designators: tuple[Designator, ...], introduced: bool, follows_plain: bool
) -> tuple[_Reading, ...]:
    """Every way to place a paragraph's designators that may still be the best.

    The first continues a level or opens one, the others open one; if nothing fits well, the paragraph may have no
    designator at all.
    """
    first, *others = designators
    deepest = MAX_DEPTH - len(others)
    choices = [c for c in _first(levels, first, introduced, follows_plain) if len(c[0]) <= deepest]
    cheapest = min((cost for _, cost in choices), default=_PLAIN)
    found = [_nested(after, cost, others) for after, cost in choices if cost <= cheapest + _SLACK]
    return (*found, (levels, _PLAIN, ())) if cheapest >= _UNUSUAL else tuple(found)


def _nested(levels: _Levels, cost: int, designators: Sequence[Designator]) -> _Reading:
    """The reading of a paragraph whose further designators each open a level inside the last."""
    reached = [len(levels)]
    for designator in designators:
        levels, more = min(_opened(levels, designator), key=lambda choice: choice[1])
        reached.append(len(levels))
        cost += more
    return levels, cost, tuple(reached)


def _first(levels: _Levels, designator: Designator, introduced: bool, follows_plain: bool) -> list[tuple[_Levels, int]]:
    """The open levels after a paragraph's first designator, with the cost, the innermost continuation first."""
    choices = []
    for style, place, last in designator.readings:
        for depth in range(len(levels) - 1, -1, -1):
            if levels[depth][0] == style:
                cost = _step(place - levels[depth][1], place == 1 and follows_plain)
                choices.append(((*levels[:depth], (style, last)), cost + introduced))
    choices += [(opened, cost + (not introduced)) for opened, cost in _opened(levels, designator)]
    return choices


def _opened(levels: _Levels, designator: Designator) -> list[tuple[_Levels, int]]:
    """The open levels with one more, for each reading of the designator that opens it."""
    outer = levels[-1][0] if levels else ""
    opened = []
    for style, place, last in designator.readings:
        if outer == TERM or style in _INSIDE.get(outer, ()):
            cost = 0
        else:
            cost = _NESTED_IN_ITSELF if any(style == open_style for open_style, _ in levels) else _UNUSUAL
        opened.append(((*levels, (style, last)), cost + (0 if place == 1 else _NOT_FIRST)))
    return opened


def _step(difference: float, is_new_list: bool) -> int:
    """The cost of going on in a sequence by so many places."""
    if 0 < difference <= 1:
        return 0
    if difference >= 0 or is_new_list:
        return _GAP
    return _BACKWARDS


def _placed(last: _State, items: Sequence[Item]) -> list[Place]:
    """Places from the chain of states.

    Text that only continues belongs to the innermost open level, with two exceptions. Where that level's list makes
    up one sentence ("(1) …; and (2) …."), no member has a second paragraph: the text belongs to what holds the list.
    If a list begins anew after it, it introduces that list and stands beside the old one.
    """
    chain: list[_State] = []
    while last.before is not None:
        chain.append(last)
        last = last.before
    chain.reverse()
    differences = [_difference(state.before.open, state) if state.levels and state.before else 0 for state in chain]
    least = _least_depths(chain, differences)
    result: list[Place] = []
    is_sentence: list[bool] = []  # of each open level's list, outermost first
    for index, (state, item) in enumerate(zip(chain, items, strict=True)):
        if levels := state.levels:
            inside = levels[0] - 1
            goes_on = differences[index] > 0 and (any(is_sentence[inside : inside + 1]) or items[index - 1].goes_on)
            is_sentence = [*is_sentence[:inside], goes_on]
            is_sentence += [False] * (levels[-1] - len(is_sentence))
            result.append(Place(inside, levels))
            continue
        depth, begins_anew = least[index]
        while not begins_anew and depth < len(is_sentence) and not (item.is_text and all(is_sentence[depth:])):
            depth += 1
        result.append(Place(depth))
        is_sentence = is_sentence[:depth] if item.is_text else is_sentence
    return result


def _least_depths(chain: Sequence[_State], differences: Sequence[float]) -> list[tuple[int, bool]]:
    """For each paragraph the depth that the next designator leaves open, and whether a list begins anew there."""
    following = (0, False)
    result = []
    for state, difference in zip(reversed(chain), reversed(differences), strict=True):
        result.append(following)
        if state.levels:
            following = (state.levels[0] - 1, difference <= 0)
    return result[::-1]


def _difference(before: _Levels, state: _State) -> float:
    """How far a paragraph's first designator is after the one that was open on its level; 1 if none was."""
    inside = state.levels[0] - 1
    if len(before) <= inside:
        return 1
    (style, last), (open_style, place) = before[inside], state.open[inside]
    return 1 if style != open_style or style == TERM else place - last
