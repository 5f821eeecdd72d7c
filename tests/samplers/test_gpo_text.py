import re

import pytest
from lxml import etree

from runner.base.errors import DocumentError
from samplers.formats.gpo.inline import line_of, settle
from samplers.formats.gpo.text import GpoText
from samplers.formats.safe_xml import MAX_DEPTH, parse

JOINT = "\ufdd0"


def settled(body: str) -> etree._Element:
    root = parse(f"<BODY>{body}</BODY>".encode(), "x.xml")
    settle(root, "x.xml")
    return root


def line(body: str) -> str:
    return line_of(settled(f"<P>{body}</P>"))


def written(body: str) -> tuple[str, list[tuple[int, str, str, str]], GpoText]:
    """The text, its sections as (level, kind, label, text), and the writer."""
    gpo = GpoText()
    gpo.inside(settled(body), 0)
    text, sections = gpo.finish()
    return text, [(s.level, s.kind, s.label, text[s.span.start : s.span.end]) for s in sections], gpo


LINES = {
    "emphasis without white space around it neither glues nor splits": (
        ('the<E T="04">Lamp Register</E>of 2031', "the Lamp Register of 2031"),
        ('in the<E T="04">Lamp Register</E>.<E T="03">See</E>5 CFR 1', "in the Lamp Register. See 5 CFR 1"),
        ('(a)<E T="03">General.</E>The rule', "(a) General. The rule"),
        ('3801<E T="03">et seq.</E>) is', "3801 et seq.) is"),
        ('a lamp (<E T="03">i.e.,</E>a light)', "a lamp (i.e., a light)"),
        ('at<E T="03">www.lamps.example.</E>Ask', "at www.lamps.example. Ask"),
        ('“<E T="03">Spirit</E>”, paragraph 2', "“Spirit”, paragraph 2"),
        ('•<E T="03">Post:</E>12 Quay', "• Post: 12 Quay"),
        ('to <E T="03">prohibit</E>[] it', "to prohibit[] it"),
        ('this<E T="03">section</E>[93 U.S.C. 1]', "this section [93 U.S.C. 1]"),
        ('<E T="03">Purpose.”</E>—This section', "Purpose.”—This section"),
        ('the form<E T="03">and</E><E T="04">the book</E>are', "the form and the book are"),
        ("the<I>lamp</I>and the<B>wick</B>", "the lamp and the wick"),
        ('<E T="03">Note</E>* * *', "Note * * *"),
    ),
    "a single emphasised letter belongs to its number": (
        ('78c; 78<E T="03">l;</E>78m', "78c; 78l; 78m"),
        ('§ 12.17(<E T="03">l</E>)(4)', "§ 12.17(l)(4)"),
        ('78<E T="03">m</E>(a)', "78m(a)"),
        ('(ii)(A)(<E T="03">1</E>) or', "(ii)(A)(1) or"),
    ),
    "white space that printing put before punctuation is taken away": (
        ('at\n   <E T="03">air@harbor.example</E>\n   . Then', "at air@harbor.example. Then"),
        ('(\n   <E T="03">see</E>\n   1 CFR 2)', "(see 1 CFR 2)"),
        ('1\n <E T="03">et seq.</E>\n ), as', "1 et seq.), as"),
        ('it said <E T="03">so</E> . . . and', "it said so . . . and"),
        ('the <E T="03">Register</E> .example', "the Register .example"),
        ('of <E T="03">lamps</E> — and', "of lamps — and"),
        ('(a)\n <E T="03">Lamps</E>\n —(1)\n <E T="03">Scope</E>', "(a) Lamps—(1) Scope"),
        ('of <E T="03">lamps</E>\n — and', "of lamps — and"),
    ),
    "index figures belong to their word and marks stand apart": (
        ('SO<E T="52">2</E> and', "SO2 and"),
        ('SO\n  <E T="52">2</E>\n  , PM\n  <E T="0732">2.5</E>\n  .', "SO2, PM2.5."),
        ('N<E T="52">2</E>O', "N2O"),
        ('CO<E T="52">2</E>emissions', "CO2 emissions"),
        ('B<E T="52">12</E>-rich', "B12-rich"),
        ('Mail<E T="51">TM</E>.', "MailTM."),
        ('25 km<E T="51">2</E> of', "25 km2 of"),
        ('Oil Lamps<E T="51">d e</E>', "Oil Lamps d e"),
        ("25 km<SU>2</SU> of", "25 km2 of"),
        ("ug/m<SU>3</SU>.", "ug/m3."),
        ("Total<SU>g</SU>", "Total g"),
        ("<SU>a</SU>1,200", "a 1,200"),
        ('Cost\n<E T="8145">1</E>', "Cost 1"),
    ),
    "fractions stand apart from digits and not from letters": (
        ("8<FR>1/2</FR>inches", "8 1/2 inches"),
        ("8 <FR>1/2</FR> inches", "8 1/2 inches"),
        ("(<FR>1/6</FR>) of", "(1/6) of"),
        ("NW<FR>1/4</FR>NE<FR>1/4</FR>, lot", "NW1/4NE1/4, lot"),
    ),
    "a page mark never splits a sentence or glues its words": (
        ('the keeper<PRTPAGE P="7"/>lights it', "the keeper lights it"),
        ('the keeper <PRTPAGE P="7"/>lights it', "the keeper lights it"),
        ('the keeper<PRTPAGE P="7"/>\n lights it', "the keeper lights it"),
        ('self-<PRTPAGE P="7"/>lit lamps', "self-lit lamps"),
        ('<E T="03">See<PRTPAGE P="7"/>also</E> it', "See also it"),
        ('in 2004<PRTPAGE P="7"/>lamps', "in 2004 lamps"),
        ('ER18-<PRTPAGE P="7"/>\n   2066', "ER18-2066"),
        ('DC 20375-\n   <PRTPAGE P="7"/>5320', "DC 20375-5320"),
        ('short- <PRTPAGE P="7"/>and long', "short- and long"),
    ),
}


@pytest.mark.parametrize(
    ("claim", "body", "expected"), [(claim, *row) for claim, rows in LINES.items() for row in rows]
)
def test_inline_marks_read_as_printed(claim, body, expected):
    assert line(body) == expected, claim


@pytest.mark.parametrize(
    ("body", "expected", "n_marks"),
    [
        ("the rule.<SU>12</SU>\n<FTREF/>Two keepers", "the rule. Two keepers", 2),
        ("the rule,<SU>1</SU><FTREF/> and", "the rule, and", 1),
        ("in 1984 <SU>7</SU><FTREF/>, when", "in 1984, when", 1),
        ('oil.<SU>3</SU> <SU>4</SU><PRTPAGE P="2"/><FTREF/> More', "oil. More", 2),
        ("oil<FTREF/> burns", "oil burns", 0),
        ('oil.\n<E T="51">13 14</E>\n<FTREF/>', "oil.", 4),
        ('CO<E T="52">2</E><FTREF/>', "CO2", 0),
    ],
)
def test_marks_of_footnotes_leave_the_sentence_and_are_counted(body, expected, n_marks):
    root = parse(f"<P>{body}</P>".encode(), "x.xml")
    left_out = settle(root, "x.xml")
    assert line_of(root) == expected
    assert left_out["footnote marks"] == n_marks


def test_no_joint_is_left_in_a_text_and_none_of_its_letters_is_lost():
    body = '<E T="03">a</E><E T="52">b</E><SU>c</SU><FR>1/2</FR><PRTPAGE P="1"/><I><B>d</B></I> <E T="03"/> w i m f e'
    text, _, _ = written(f"<P>{body}</P><HD>x<E>y</E></HD><SPAN>{body}</SPAN>{body}")
    assert JOINT not in text
    assert re.sub(r"\s", "", text) == "abc1/2dwimfe" + "xy" + "abc1/2dwimfe" * 2


def test_a_paragraph_of_thousands_of_marks_is_read_and_one_of_more_is_refused():
    body = '<E T="03"/> ' * 2_000 + "x<E>y</E>" * 2_000 + "<SU>1</SU>" * 900 + "<FTREF/>"
    text, _, _ = written(f"<P>{body}</P>")
    assert text == "x y " * 1_999 + "x y"
    with pytest.raises(DocumentError, match="more than 5000 marks"):
        settled(f"<P>{'<E><I/></E>' * 2_501}</P>")
    many = "<P>x<E>y</E></P>" * 6_000
    assert written(many)[0].count("x y") == 6_000


def test_undeclared_entities_of_html_are_characters_and_others_are_refused():
    def text_after(reference: str) -> str:
        data = f'<!DOCTYPE P SYSTEM "none.dtd"><P>a&{reference};b<E>c</E>&{reference};</P>'.encode()
        root = parse(data, "x.xml")
        settle(root, "x.xml")
        return line_of(root)

    assert text_after("mdash") == "a—b c—"
    with pytest.raises(DocumentError, match="unknown entity"):
        text_after("lighthouse")


def test_a_file_nested_too_deep_is_refused():
    with pytest.raises(DocumentError, match=f"more than {MAX_DEPTH}"):
        settled("<NOTE>" * MAX_DEPTH + "</NOTE>" * MAX_DEPTH)
    settled("<NOTE>" * (MAX_DEPTH - 1) + "</NOTE>" * (MAX_DEPTH - 1))


def test_headings_nest_by_source_although_they_are_siblings():
    body = (
        '<HD SOURCE="HD1">I. One</HD><P>a</P><HD SOURCE="HD2">A. Two</HD><P>b</P><HD SOURCE="HD3">1. Three</HD><P>c</P>'
        '<HD SOURCE="HD2">B. Four</HD><P>d</P><HD SOURCE="HD1">II. Five</HD><P>e</P>'
    )
    text, sections, _ = written(body)
    assert sections == [
        (1, "hd1", "I. One", "I. One\na\n\nA. Two\nb\n\n1. Three\nc\n\nB. Four\nd"),
        (2, "hd2", "A. Two", "A. Two\nb\n\n1. Three\nc"),
        (3, "hd3", "1. Three", "1. Three\nc"),
        (2, "hd2", "B. Four", "B. Four\nd"),
        (1, "hd1", "II. Five", "II. Five\ne"),
    ]
    assert text.startswith("I. One\na\n\nA. Two")


def test_footnotes_wait_for_the_end_of_the_text_under_their_heading():
    note = "<FTNT><P><SU>{0}</SU>See {0}.</P><P>And more.</P></FTNT>"
    body = (
        f'<HD SOURCE="HD1">I</HD><P>a</P>{note.format(1)}<P>b</P>{note.format(2)}<HD SOURCE="HD2">A</HD>'
        f"<P>c{note.format(3)} d</P><P>e</P>"
    )
    text, sections, _ = written(body)
    assert text == ("I\na\nb\n1 See 1.\nAnd more.\n2 See 2.\nAnd more.\n\nA\nc d\ne\n3 See 3.\nAnd more.")
    assert [(level, label, words) for level, kind, label, words in sections if kind == "footnote"] == [
        (2, "", "1 See 1.\nAnd more."),
        (2, "", "2 See 2.\nAnd more."),
        (3, "", "3 See 3.\nAnd more."),
    ]


def test_a_table_has_its_title_its_heads_by_rank_and_a_line_a_row():
    body = (
        "<GPOTABLE><TTITLE>Table 1—Oil</TTITLE><TDESC>[In casks]</TDESC><BOXHD>"
        '<CHED H="1">Tower<LI>(name)</LI></CHED><CHED H="1">Oil</CHED><CHED H="2">Old</CHED><CHED H="2">New</CHED>'
        '</BOXHD><ROW><PRTPAGE P="3"/><ENT I="01">Far Point</ENT><ENT>4</ENT><ENT>6<SU>1</SU></ENT></ROW>'
        "<ROW><ENT>Near</ENT><ENT/><ENT>2</ENT></ROW><TNOTE><SU>1</SU>Guessed.</TNOTE></GPOTABLE>"
    )
    text, sections, _ = written(f"<P>a</P>{body}<P>b</P>")
    table = "Table 1—Oil\n[In casks]\nTower (name)\tOil\nOld\tNew\nFar Point\t4\t6 1\nNear\t2\n1 Guessed."
    assert text == f"a\n\n{table}\n\nb"
    assert sections == [(1, "table", "Table 1—Oil", table)]


def test_headings_of_notes_run_into_their_first_paragraph():
    body = (
        '<AUTH><HD SOURCE="HED">Authority:</HD><P>93 U.S.C. 1.</P><P>b</P></AUTH>'
        '<AUTH><HD SOURCE="HED">Authority</HD><P>: 93 U.S.C. 2.</P></AUTH>'
        '<NOTE><HD SOURCE="HED">Note:</HD> A cask.</NOTE><NOTE><P>No heading.</P></NOTE>'
    )
    text, sections, _ = written(body)
    assert text.split("\n") == [
        *("Authority: 93 U.S.C. 1.", "b", "Authority: 93 U.S.C. 2.", "Note: A cask.", "No heading."),
    ]
    assert sections == []


def test_stars_are_printed_and_counted_as_supplied():
    text, _, gpo = written("<P>a</P><STARS/><P>b</P>")
    assert text == "a\n* * * * *\nb"
    assert gpo.writer.supplied == 5


def test_unknown_elements_are_lines_among_blocks_and_words_inside_a_line():
    assert written("<X>a</X><Y><X>b</X><X>c</X></Y><P>d<X>e</X>f</P>stray<P>g</P>")[0] == "a\nb\nc\nd e f\nstray\ng"


def test_nothing_that_is_not_left_out_is_lost():
    body = (
        "stray<Q>a<P>b</P>c</Q><GPOTABLE>x<BOXHD>y<CHED>z</CHED>w</BOXHD><ROW>v<ENT>u<P>t</P></ENT>s</ROW></GPOTABLE>"
        "<AUTH>r<HD>q</HD>p<E>o</E></AUTH><FTNT>n<P>m</P>l</FTNT><HD>k<P>j</P></HD><FTNT>i<FTNT>h</FTNT></FTNT>g"
    )
    text, _, gpo = written(body)
    kept = re.sub(r"\s", "", text)
    assert sorted(kept) == sorted(re.sub(r"<[^>]*>", "", body))
    assert not gpo.left_out
