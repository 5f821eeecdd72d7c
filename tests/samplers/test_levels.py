from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samplers.formats.levels import ITALIC, MAX_DEPTH, MOST, ROMAN, Place, lead, places

ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")


def marked(text: str) -> str:
    """Underscores stand for the marks around an italic run."""
    parts = text.split("_")
    return "".join(part + (ITALIC if n % 2 == 0 else ROMAN) for n, part in enumerate(parts[:-1])) + parts[-1]


def placed(*lines: str, full_stops: bool = False) -> list[Place]:
    return places([lead(marked(line), full_stops) for line in lines], lines)


def levels(*lines: str, full_stops: bool = False) -> list[tuple[int, ...]]:
    return [place.levels for place in placed(*lines, full_stops=full_stops)]


@pytest.mark.parametrize(
    ("text", "designators", "headings", "term"),
    [
        ("(a) Boats are led.", ["(a)"], [""], ""),
        ("(a)(1)(i) Boats.", ["(a)", "(1)", "(i)"], ["", "", ""], ""),
        ("(a) (1) Boats.", ["(a)", "(1)"], ["", ""], ""),
        ("(c) _Boats._ (1) Any boat.", ["(c)", "(1)"], ["Boats.", ""], ""),
        ("(b) _Fees_ —(1) _In general._ One.", ["(b)", "(1)"], ["Fees", "In general."], ""),
        ("(b) _Fee_ (1) The term means:", ["(b)", "(1)"], ["Fee", ""], ""),
        ("(b) _Fee_ (2) of the Act.", ["(b)"], ["Fee"], ""),
        ("(_1_) Boats.", ["(1)"], [""], ""),
        ("_(1)_ Boats.", ["(1)"], [""], ""),
        ("( _1_ ) Boats.", ["(1)"], [""], ""),
        ("(b)-(d) [Reserved]", ["(b)–(d)"], [""], ""),
        ("(b) through (d) [Reserved]", ["(b)–(d)"], [""], ""),
        ("(c-1) Boats.", ["(c-1)"], [""], ""),
        ("_Barge_ means a boat.", [], [], "Barge"),
        ("_Toll_—(1) _In general._ Toll means", ["(1)"], ["In general."], "Toll"),
        ("_All in italics._", [], [], ""),
        ("(see paragraph (a))", [], [], ""),
        ("(or a boat)", [], [], ""),
        ("(2012) Boats.", [], [], ""),
        ("Boats (a) and (b).", [], [], ""),
        ("1. Boats.", [], [], ""),
        ("", [], [], ""),
    ],
)
def test_a_paragraph_begins_with_designators_headings_and_terms(text, designators, headings, term):
    found = lead(marked(text), full_stops=False)
    assert [designator.label for designator in found.designators] == designators
    assert list(found.headings) == headings
    assert found.term == term


@pytest.mark.parametrize(
    ("text", "designators"),
    [
        ("1. Boats.", ["1."]),
        ("1._Status._ None.", ["1."]),
        ("2. _Rafts._ i. A raft.", ["2.", "i."]),
        ("iv. Boats.", ["iv."]),
        ("A. Boats.", ["A."]),
        ("U.S. boats.", []),
        ("1.5 ells.", []),
    ],
)
def test_appendices_have_designators_with_a_full_stop(text, designators):
    assert [designator.label for designator in lead(marked(text), full_stops=True).designators] == designators


def test_six_levels_are_told_apart_the_last_two_by_their_italics():
    lines = (
        *("(a) A:", "(1) B:", "(i) C:", "(A) D:", "(_1_) E:", "(_i_) F.", "(_ii_) G.", "(_2_) H."),
        *("(B) I.", "(ii) J."),
    )
    assert levels(*lines) == [(1,), (2,), (3,), (4,), (5,), (6,), (6,), (5,), (4,), (3,)]


def test_the_letter_i_follows_h_and_the_numeral_i_opens_a_list():
    def after_g(*lines: str) -> list[tuple[int, ...]]:
        return levels("(a)-(g) [Reserved]", *lines)[1:]

    assert after_g("(h) A:", "(1) B.", "(2) C.", "(i) D.", "(j) E.") == [(1,), (2,), (2,), (1,), (1,)]
    assert after_g("(h) A.", "(1) B.", "(2) C.", "(i) D.", "(ii) E.") == [(1,), (2,), (2,), (3,), (3,)]
    assert after_g("(h) A:", "(1) B:", "(i) C.") == [(1,), (2,), (3,)]
    assert after_g("(h) A.", "(1) B.", "(i) C.") == [(1,), (2,), (1,)]


def test_the_letters_v_and_x_are_told_from_numerals_by_what_follows():
    before = ("(a)-(t) [Reserved]", "(u) A.", "(1) A:", "(i) B;", "(ii) C;", "(iii) D;", "(iv) E;")
    assert levels(*before, "(v) F.", "(vi) G.")[-2:] == [(3,), (3,)]
    assert levels(*before, "(v) F.", "(w) G.")[-2:] == [(1,), (1,)]
    assert levels("(a)-(v) [Reserved]", "(w) A.", "(x) B.", "(y) C.") == [(1,), (1,), (1,), (1,)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("(1) A:", "(i) B.", "(ii) C.", "(2) D."), [(1,), (2,), (2,), (1,)]),
        (
            ("(a)(1) A:", "(i) B.", "(2) C.", "(b)(1)(i) D.", "(ii) E.", "(2) F."),
            [(1, 2), (3,), (2,), (1, 2, 3), (3,), (2,)],
        ),
        (("(a) A.", "(b)-(h) [Reserved]", "(i) B.", "(j) C."), [(1,), (1,), (1,), (1,)]),
        (("(a) A.", "(c) B.", "(d) C."), [(1,), (1,), (1,)]),
        (("(a) A:", "(1) B.", "(2) C.", "(2) D.", "(3) E."), [(1,), (2,), (2,), (2,), (2,)]),
        (("(a)-(y) [Reserved]", "(z) B.", "(aa) C.", "(1) D.", "(bb) E."), [(1,), (1,), (1,), (2,), (1,)]),
    ],
    ids=["numbers first", "several at once", "reserved range", "gap", "repeated", "after z"],
)
def test_a_list_goes_on_at_its_level(lines, expected):
    assert levels(*lines) == expected


def test_a_designator_that_fits_nowhere_is_text():
    assert placed("(a) A.", "(b) B.", "(2) of the Canal Act.", "(c) C.") == [
        Place(0, (1,)),
        Place(0, (1,)),
        Place(1),
        Place(0, (1,)),
    ]


def test_definitions_follow_one_another_each_with_its_own_list():
    lines = ("Terms:", "_Barge_ means:", "(1) A.", "(2) B.", "_Lock_ means:", "(1) A.")
    assert levels(*lines) == [(), (1,), (2,), (2,), (1,), (2,)]
    assert levels("(a) _Terms._ Here:", "_Barge_ means:", "(1) A.", "_Lock_ means water.", "(b) B.") == [
        (1,),
        (2,),
        (3,),
        (2,),
        (1,),
    ]


def test_text_belongs_to_the_paragraph_before_it():
    assert placed("(a) A.", "(1) B.", "More of B.", "(2) C.")[2] == Place(2)


def test_text_after_a_list_that_is_one_sentence_belongs_to_what_holds_the_list():
    lines = ("(a) A:", "(1) B;", "(2) C; and", "(3) D.", "Flush with (a).", "(b) E.")
    assert placed(*lines)[4] == Place(1)
    assert placed(*lines[:5])[4] == Place(1)
    assert placed("(a) A:", "(1) B; and", "(2) C.", "Within the list.", "(3) D.")[3] == Place(1)


def test_text_before_a_list_that_begins_anew_stands_beside_the_old_list():
    assert placed("A:", "(1) B.", "(2) C.", "D:", "(1) E.")[3:] == [Place(0), Place(0, (1,))]


def test_commentaries_count_with_full_stops():
    lines = (
        *("1. _Examples._ These:", "i. A boat:", "A. Red; or", "B. Blue.", "ii. A raft."),
        *("2. _Rafts._ i. Large.", "ii. Small."),
    )
    assert levels(*lines, full_stops=True) == [(1,), (2,), (3,), (3,), (2,), (1, 2), (2,)]


def test_levels_have_an_end():
    deep = "(a)(1)(i)(A)(1)(i)(A)(1) A:"
    found = placed(*[deep] * 9, "_Barge_ means:", *[deep] * 9)
    assert max(level for place in found for level in place.levels) <= MAX_DEPTH
    assert len(lead("(a)" * 100_000, full_stops=False).designators) == MOST


@st.composite
def trees(draw) -> list[tuple[int, str]]:
    """Lines of a section whose lists are unambiguous, each with its level."""
    styles = (
        "abcdefgh",
        "123456789",
        ROMANS,
        "ABCDEFGH",
        tuple(f"_{n}_" for n in range(1, 9)),
        [f"_{r}_" for r in ROMANS],
    )

    def members(depth: int) -> Iterator[tuple[int, str]]:
        count = draw(st.integers(1, 4)) if depth < len(styles) else 0
        for token in styles[depth][:count] if count else ():
            inside = list(members(depth + 1)) if draw(st.booleans()) else []
            yield depth + 1, f"({token}) Words{':' if inside else '.'}"
            yield from inside

    return list(members(0))


@given(trees())
def test_every_regular_section_is_read_as_it_was_written(tree):
    assert [place.levels for place in placed(*(line for _, line in tree))] == [(level,) for level, _ in tree]


TOKENS = st.sampled_from(
    ["(a)", "(b)", "(h)", "(i)", "(ii)", "(v)", "(1)", "(2)", "(_1_)", "(A)", "(I)", "(aa)", "(a)(1)", "_T_"]
)
LINES = st.lists(st.tuples(TOKENS, st.sampled_from(["x.", "x:", "x;", ""])), max_size=40)


@given(LINES, st.booleans())
def test_whatever_the_order_levels_nest(lines, full_stops):
    found = placed(*(f"{token} {words}" for token, words in lines), full_stops=full_stops)
    assert len(found) == len(lines)
    depth = 0
    for place in found:
        assert 0 <= place.inside <= depth
        if place.levels:
            assert place.levels[0] == place.inside + 1
            assert all(inner == outer + 1 for outer, inner in pairwise(place.levels))
            depth = place.levels[-1]
