"""Claims about GPO's fixed-width pages: what a byte becomes, and which lines make one paragraph."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import DocumentError
from samplers.formats.printed.paragraphs import Paragraph, paragraphs
from samplers.formats.printed.text import GRAPHIC, RULE, decoded, read_page, removed, typographic, without_page_marks
from samplers.formats.text_writer import visible

FULL_LINE = "The keeper of the lamp walks the length of the quay each night,"


def page(body: str, title: str = "A Page") -> bytes:
    return f"<html>\n<title>{title}</title>\n<body><pre>\n{body}\n</pre></body></html>\n".encode()


def text_of(body: str) -> str:
    return read_page(page(body), "x.htm").text.strip("\n")


def joined(*lines: str, indent: int = 4) -> list[str]:
    return [paragraph.text for paragraph in paragraphs("\n".join(lines), indent, Counter())]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("R&amp;D &lt;bullet&gt; &#167;&nbsp;4", "R&D • § 4"),
        ("&amp;amp; stays once decoded", "&amp; stays once decoded"),
        ("AT&T &unknown; &", "AT&T &unknown; &"),
        ('[<a href="http://www.gpo.gov">www.gpo.gov</a>]', "[www.gpo.gov]"),
        ("CO<INF>2</INF> is 3 < 5 and 7 > 6", "CO2 is 3 < 5 and 7 > 6"),
        ("<all> <plus-minus>3 <snowflake>", " ±3"),
        ("human rights<greek-l>, deg. and law", "human rights and law"),
        ("gulls<greek-l> or \ndeg.and terns", "gulls and terns"),
        (
            "A, Iowa<greek-l>     B, Ohio\nC,           D, Utah\n   Iowa deg.   E",
            "A, Iowa     B, Ohio\n           D, Utah\n      E",
        ),
        ("<greek-l>x\n\n\nat 45 deg. north", "x\n\n\nat 45 deg. north"),
        ("\x01 first \x06 222\x1a", "• first § 222"),
        ("soft\u00adhyphen, zero\u200bwidth", "softhyphen, zerowidth"),
        ("trailing   \nline\t\r\nend", "trailing\nline\nend"),
        ("cafe\u0301", "café"),
    ],
)
def test_a_page_becomes_plain_characters(body: str, expected: str) -> None:
    assert text_of(body) == expected


def test_bytes_are_utf8_or_windows_1252_or_replaced() -> None:
    assert decoded("naïve – “x”".encode()) == "naïve – “x”"
    assert decoded("na\u00efve \u2013 x".encode("cp1252")) == "naïve – x"
    assert decoded(b"na\xc3\xafve \xff") == "naïve \ufffd"
    assert read_page(page("x", "R&amp;D\n day"), "x").title == "R&D day"


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"<?xml version='1.0'?><bill/>", b"\xff\xfe\x00"])
def test_a_file_without_a_page_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="no <pre> element"):
        read_page(data, "x")


@pytest.mark.parametrize(
    "body", ["a &lt;bullet&gt; b \x01\x1a &shy; <all> <greek-l>x deg. y", "plain", "é\u200b \x00" * 9]
)
def test_what_a_page_leaves_out_is_counted(body: str) -> None:
    read = read_page(page(body), "x")
    raw = re.sub(r"<(?!all|greek)[^<>]*>", "", page(body).decode())
    n_visible = visible(raw.replace("&lt;", "<").replace("&gt;", ">").replace("&shy;", "\u00ad"))
    assert n_visible == visible(read.text) + sum(read.left_out.values())


def test_furniture_is_removed_and_counted() -> None:
    left_out: Counter[str] = Counter()
    scans = "    [GRAPHIC] [TIFF OMITTED] T1662.001\n<GRAPHIC(S) NOT AVAILABLE IN TIFF FORMAT>"
    text = f"\none\n{scans}\n ----------\ntwo -- x\n"
    text = removed(GRAPHIC, text, left_out, "scans")
    assert removed(RULE, text, left_out, "rules") == "\none\ntwo -- x\n"
    assert +left_out == {"scans": 31 + 36, "rules": 10}


def test_quotation_marks_and_dashes_are_single_characters() -> None:
    left_out: Counter[str] = Counter()
    assert typographic("``He said `so.'''--and ----", left_out) == "“He said `so.'”—and ----"
    assert +left_out == {"second halves of doubled marks": 3}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("the plan that", "sent us", ["the plan that sent us"]),
        ("He stops.", "Then he goes.", ["He stops. Then he goes."]),
        ("He stops.", "    Mr. B. Goes.", ["He stops.", "Mr. B. Goes."]),
        ("the non-", "conforming pier", ["the non-conforming pier"]),
        ("as follows:", "               A HEADING", ["as follows:", "A HEADING"]),
    ],
)
def test_a_page_mark_never_splits_a_sentence(before: str, after: str, expected: list[str]) -> None:
    left_out: Counter[str] = Counter()
    text = without_page_marks(f"\n    {before}\n\n[[Page H6175]]\n\n{after}\n", left_out)
    assert joined(text) == expected
    assert +left_out == {"page marks": 13}


def test_a_page_mark_inside_a_quoted_paragraph_goes_on_at_its_column() -> None:
    before, after = "       On that day he\n     was in the great", "     Hall of the town.\n       Then he left."
    text = f"\n{before}\n\n[[Page S698]]\n\n{after}\n"
    assert joined(without_page_marks(text, Counter()), indent=2)[-2:] == [
        "was in the great Hall of the town.",
        "Then he left.",
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            (f"    {FULL_LINE}", "and he returns at dawn.", "    Mr. B. Yes."),
            [f"{FULL_LINE} and he returns at dawn.", "Mr. B. Yes."],
        ),
        (("    Mr. A. Yes.", "    Mr. B. No."), ["Mr. A. Yes.", "Mr. B. No."]),
        ((f"     {FULL_LINE}", "    Mr. B. No."), [FULL_LINE, "Mr. B. No."]),
        ((f"     {FULL_LINE}", "and so on.", f"    {FULL_LINE}"), [f"{FULL_LINE} and so on.", FULL_LINE]),
        (("Hon. Agnes Tidewell,", "Harbor House."), ["Hon. Agnes Tidewell,", "Harbor House."]),
        (
            (f"       {FULL_LINE}", "     Again he walks.", "       A second one."),
            [f"{FULL_LINE} Again he walks.", "A second one."],
        ),
        (
            (" STATEMENT OF ANSELM McBROOK, KEEPER OF THE NORTH LAMP, VILLAGE", "           OF SALTMARSH"),
            ["STATEMENT OF ANSELM McBROOK, KEEPER OF THE NORTH LAMP, VILLAGE OF SALTMARSH"],
        ),
        (
            ("                    PREPARED STATEMENT OF X", "           Chairman of the Committee"),
            ["PREPARED STATEMENT OF X", "Chairman of the Committee"],
        ),
        (
            (f"    {FULL_LINE[:-7]} night.", "Background", "    The lamp is old."),
            [f"{FULL_LINE[:-7]} night.", "Background", "The lamp is old."],
        ),
        (
            (
                "",
                "    STATEMENT OF ANSELM BROOK, KEEPER OF THE NORTH LAMP AND",
                "               THE SOUTH",
                "",
                "    A.",
            ),
            ["STATEMENT OF ANSELM BROOK, KEEPER OF THE NORTH LAMP AND THE SOUTH", "A."],
        ),
        (
            ("    THE NORTH LAMP, THE SOUTH LAMP AND THE LAMP ON THE QUAY, IF", "they burn, are lit.", "    THE END."),
            ["THE NORTH LAMP, THE SOUTH LAMP AND THE LAMP ON THE QUAY, IF they burn, are lit.", "THE END."],
        ),
        (("    NO OIL.", "               SALTMARSH"), ["NO OIL.", "SALTMARSH"]),
        (("Nets bought.....................       410       395", "Mended 3"), ["Nets bought\t410\t395", "Mended 3"]),
        (
            (f"{' ' * 30}Washington, DC, in the Harbor House.", "    The Committee met."),
            ["Washington, DC, in the Harbor House.", "The Committee met."],
        ),
        ((f"    {FULL_LINE[:50]} low--", "lands are wet."), [f"{FULL_LINE[:50]} low--lands are wet."]),
    ],
)
def test_wrapped_lines_are_joined_and_others_are_not(lines: tuple[str, ...], expected: list[str]) -> None:
    assert joined(*lines) == expected


@pytest.mark.parametrize(
    ("broken", "rest", "elsewhere", "expected"),
    [
        ("an inter-", "view of", "The interview was long.", "an interview of"),
        ("a pre-", "hearing brief", "no such word", "a pre-hearing brief"),
        ("the on-", "going work", "ongoing but on-going", "the on-going work"),
        ("short-", "and long-term", "no such word", "short- and long-term"),
        ("reductions-in-", "force now", "inforced", "reductions-in-force now"),
        ("page 19-", "20 of it", "no such word", "page 19-20 of it"),
        ("and/", "or not", "no such word", "and/or not"),
    ],
)
def test_a_broken_word_is_mended_only_if_the_whole_one_is_known(
    broken: str, rest: str, elsewhere: str, expected: str
) -> None:
    assert joined(f"    {FULL_LINE[:50]} {broken}", rest, "", f"    {elsewhere}")[0] == f"{FULL_LINE[:50]} {expected}"


def test_a_paragraph_knows_its_column_and_whether_it_stands_apart() -> None:
    assert paragraphs("      TITLE\n\n    One.\n    Two.\n", 4, Counter()) == [
        Paragraph(6, True, "TITLE"),
        Paragraph(4, True, "One."),
        Paragraph(4, False, "Two."),
    ]


LINES = st.lists(st.text(st.sampled_from(" aBé.-——,\t12/"), max_size=90), max_size=40)


@given(LINES, st.sampled_from([2, 4]))
def test_unwrapping_loses_nothing_but_leaders_and_hyphens(lines: list[str], indent: int) -> None:
    text = "\n".join(line.replace("\t", "").rstrip() for line in lines)
    found = paragraphs(text, indent, Counter())
    bare = re.compile(r"[\s.-]")
    assert bare.sub("", "".join(paragraph.text for paragraph in found)) == bare.sub("", text)
    assert all(paragraph.text.strip() and "\n" not in paragraph.text for paragraph in found)


@pytest.mark.parametrize(
    "unit", [" ", "\n", "a", "a-\nb", " .", "[[Page 1]]\n", "<", "&", "-", "\x01", "    A b. \n", "``", "<greek-l>x \n"]
)
def test_a_page_of_one_unit_is_read_in_linear_time(unit: str) -> None:
    text, left_out = read_page(page(unit * (200_000 // len(unit))), "x").text, Counter[str]()
    text = typographic(
        without_page_marks(removed(RULE, removed(GRAPHIC, text, left_out, ""), left_out, ""), left_out), left_out
    )
    assert isinstance(paragraphs(text, 4, Counter()), list)
