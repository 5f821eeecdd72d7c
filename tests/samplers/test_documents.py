"""The reader of documents of any kind, and the rows of it that the sources of weak structure are."""

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.documents import CONTENTS, ERROR_PAGE, FURNITURE, MARKUP, METADATA, NO_TEXT, Layout, reader
from samplers.formats.headings import cut
from samplers.formats.markdown_text import plain
from samplers.registry import source_format
from samplers.source_format import FileContent
from tests.support.corpora import n_visible
from tests.support.small_pdf import Put, column, pdf

ANY = reader(Layout())
TITLED = reader(Layout(titles=True))
WORDS = "The keeper of the tower lights the lamp every evening of the year."


def read(data: bytes | str, name: str) -> Document:
    """What the default layout makes of a file."""
    (document,) = ANY(data if isinstance(data, bytes) else data.encode(), name, frozenset()).documents
    return document


def of(source: str, data: bytes | str, name: str) -> FileContent:
    return source_format(source).read(data if isinstance(data, bytes) else data.encode(), name, frozenset())


def headings(document: Document) -> list[tuple[int, str]]:
    return [(section.level, section.label) for section in document.sections if section.kind == "heading"]


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("**Source****s****: **EPA", "Sources: EPA"),
        ("(see ******************Figure 1******). This", "(see Figure 1). This"),
        ("******************Table 1**********lists awards", "Table 1 lists awards"),
        ("a rule****.******If a bed", "a rule. If a bed"),
        ("_s__eabed mining_, a", "seabed mining, a"),
        ("In _Gull__ v. Heron_, decided", "In Gull v. Heron, decided"),
        ("_v__iva__ voce_", "viva voce"),
        ("_over_counted", "overcounted"),
        ("in the_Bay Plan_, which", "in the Bay Plan, which"),
        ("snake_case stays", "snake_case stays"),
        ("see https://a.example/b_c_d_.", "see https://a.example/b_c_d_."),
        ("[jointly asked](https://a.example/x_(1).pdf)[Ruth](https://b.example/)", "jointly asked Ruth"),
        ("two [bill](https://a.example)s, [sue](x)d", "two bills, sued"),
        (
            "[courts](https://a.example)thus far, in[part](x)of [it](y), [§4 (a)](z)permits",
            "courts thus far, in part of it, §4 (a) permits",
        ),
        ("**Lamp****Fund** and _**From**__****_**sp****ace****.** x", "Lamp Fund and From space. x"),
        ("[Foo [bar]](https://a.example/view?req=(t:1)%20OR%20(g:2)&f=x)", "Foo [bar]"),
        ("a tower.[1](https://crs.example/R1#fn1)[2](#_ftn2) Next", "a tower. Next"),
        ("![A lock](lock_1.png) text", "text"),
        ("[![A lock](lock.png)](https://a.example) text", "text"),
        ("5 U.S.C. \\_\\_ and a\\*b", "5 U.S.C. __ and a*b"),
        ("at *9 and 0.5* of *2", "at *9 and 0.5* of *2"),
        ("*slow* and __heavy__", "slow and heavy"),
    ],
)
def test_marks_go_and_words_are_neither_glued_nor_split(marked: str, words: str) -> None:
    assert plain(marked) == words


@pytest.mark.parametrize(
    "filler",
    [
        *("[", "](", "[x](", "[[a]", "![", "*a", "_ ", "_a", "**", "\\*", "www.", "https:/"),
        *("|", "- ", "| - ", "|-", "<", "a-\n", "\n", "1. ", "<p>", "&#27;"),
    ],
)
def test_monotonous_marks_are_read_or_refused_in_time(filler: str) -> None:
    text = filler * 100_000
    assert len(plain(text)) <= len(text)
    for name in ("x.md", "x.txt", "x.html"):
        with suppress(DocumentError):
            ANY(text.encode(), name, frozenset())


MANY = " ".join(f"a{number}" for number in range(64_000))


@pytest.mark.parametrize(
    "page",
    [
        *(f"<p {MANY}>x", f"<p < {MANY}>x", f"<p '{MANY}", f"<p/{MANY.replace(' ', '/')}>x", f"<script {MANY}>x"),
        f"<p a='<script>'><b {MANY}>x</script>",
    ],
)
def test_a_tag_of_many_attributes_is_refused_before_they_are_compared(page: str) -> None:
    with pytest.raises(DocumentError, match="more than 256 attributes"):
        read(f"<html>{page}", "x.html")


@pytest.mark.parametrize(
    "page", ["a < b " + "c " * 500, f"<script>a<b;{'c=d;' * 500}</script>x", f"<p style='{MANY}'>x"]
)
def test_what_only_looks_like_attributes_is_read(page: str) -> None:
    assert read(f"<html>{page}", "x.html").text


FORMATS = {
    "md": f"# Lamps\n\n{WORDS}\n\n## Oil\n\n- Whale\n- Rape\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "html": f"<html><head><title>Lamps</title><style>p {{}}</style></head><body><h1>Lamps</h1><p>{WORDS}"
    "<h2><b>Oil</b></h2><ul><li>Whale<li>Rape</ul><table><tr><th>a<th>b<tr><td>1<td>2</table><script>x</script>",
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_headings_lists_and_tables_of_markdown_and_html_read_alike(suffix: str) -> None:
    document = read(FORMATS[suffix], f"folder/lamps.{suffix}")
    assert document.text.replace("\n\n", "\n") == f"Lamps\n{WORDS}\nOil\nWhale\nRape\na\tb\n1\t2"
    assert headings(document) == [(1, "Lamps"), (2, "Oil")]
    assert (document.doc_id, document.title, document.stratum) == ("folder-lamps", "Lamps", "folder")


def test_underlined_headings_are_some_and_what_looks_like_one_in_code_is_not() -> None:
    document = read(
        f"Lamps\n=====\n{WORDS}\n\nOil\n---\n\n```sh\n# light\nmake lamp\n```\n\nA rule\nabove\n---\n", "x.md"
    )
    assert headings(document) == [(1, "Lamps"), (2, "Oil")]
    assert document.text == f"Lamps\n\n{WORDS}\n\nOil\n\n# light\nmake lamp\n\nA rule above"


def test_a_page_of_html_is_one_whatever_its_name_and_what_is_not_shown_is_left_out() -> None:
    content = ANY(FORMATS["html"].encode(), "x.txt", frozenset())
    assert headings(content.documents[0])[0] == (1, "Lamps")
    assert content.left_out == {MARKUP: len("Lampsp{}x")}


@pytest.mark.parametrize("is_pdf", [False, True])
def test_numbered_headings_of_text_and_pdf_are_sections_by_their_numbers(is_pdf: bool) -> None:
    lines = ["Before.", "", "1. Lamps", WORDS, WORDS, "", "1.1 Oil", WORDS, "", "2. Bells", WORDS, WORDS]
    document = read(pdf([column(lines)]), "x.pdf") if is_pdf else read("\n".join(lines), "x.txt")
    assert headings(document) == [(1, "1. Lamps"), (2, "1.1 Oil"), (1, "2. Bells")]
    assert f"1. Lamps\n\n{WORDS} {WORDS}\n\n1.1 Oil" in document.text


def test_a_list_of_numbers_is_no_row_of_headings() -> None:
    assert headings(read(f"1. Lamps\n2. Oil\n3. Bells\n\n{WORDS}", "x.txt")) == []


def test_lines_of_text_are_joined_but_short_ones_were_ended_on_purpose() -> None:
    text = f"Ruth Marsh\nChairman\n\n{WORDS}\n{WORDS} and the keep-\ners.\n"
    assert read(text, "x.txt").text == f"Ruth Marsh\nChairman\n\n{WORDS} {WORDS} and the keep-ers."


def test_heads_and_numbers_of_pages_are_dropped_and_a_paragraph_runs_on_past_its_page() -> None:
    bodies = [(f"{word}: {WORDS}", f"lit {word}.") for word in ("One", "Two", "Three")]
    pages = [
        [Put(90, 760, f"Estimate for H.R. 9001, page {n}"), *column(body, top=600), Put(300, 30, f"- {n} -")]
        for n, body in enumerate(bodies, 1)
    ]
    content = ANY(pdf(pages), "x.pdf", frozenset())
    assert content.documents[0].text == "\n\n".join(f"{word}: {WORDS} lit {word}." for word in ("One", "Two", "Three"))
    assert content.left_out == {MARKUP: 3 * len("EstimateforH.R.9001,page1-1-")}


def test_fields_of_a_record_are_facts() -> None:
    layout = Layout(text_field="body", doc_id=("{number}",), stratum="{kind}/{length}", url=("{link}", "{other}"))
    record = {"body": "One.\n\nTwo.", "number": 7, "kind": ["a", "b"], "other": "https://x.example"}
    (document,) = reader(layout)(json.dumps(record).encode(), "r.json", frozenset()).documents
    assert (document.doc_id, document.text, document.stratum) == ("7", "One.\n\nTwo.", "a-b/short")
    assert document.url == "https://x.example"


def test_what_is_the_page_s_own_is_left_out_by_name_and_the_lists_of_contents_name_headings() -> None:
    layout = Layout(starts="^Begin", ends="^End", drops="^Share", contents="Contents", facts=("^Begin (?P<title>.*)",))
    page = (
        "Menu\n\nBegin Lamps\n\n# Contents\n\n- [oil and tar](x)\n\nShare this\n\noil and tar\n\nWords.\n\nEnd\n\nLegal"
    )
    content = reader(layout)(page.encode(), "x.md", frozenset())
    assert headings(content.documents[0]) == [(1, "oil and tar")]
    assert content.documents[0].text == "oil and tar\n\nWords."
    assert content.documents[0].title == "Lamps"
    assert content.left_out == {FURNITURE: 31, CONTENTS: 17, MARKUP: 7}


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("Lessons Learned from the War in the Harbor", 1),
        ("How are lamps being used today?", 1),
        ('"Shrinking" the Lamp Fund', 1),
        ("_Gull v. Heron_: Procedural History", 1),
        ("According to the Army", 0),
        ("The Army noted that", 0),
        ("The Committee on Harbors describes the Lamp Fund as a", 0),
        ("On June 26, 2023, the Army announced", 0),
        ("CRS Report R99002, Some Other Report, by Ida M. Heron", 0),
        ("(in millions of dollars)", 0),
        ("June 26, 2023", 0),
        ("A whole sentence stands here.", 0),
        ("Bells Are Not Wanted. According to the Office", 0),
    ],
)
def test_lines_set_as_titles_are_headings_where_a_layout_says_so(line: str, level: int) -> None:
    page = f"Words before.\n\n{line}\n\n{WORDS}".encode()
    (document,) = TITLED(page, "x.md", frozenset()).documents
    assert headings(document) == [(1, plain(line))] * level
    assert headings(read(page, "x.md")) == []


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two …"),
        ("one two three", 10, "one two …"),
        ("one two three", 9, "one …"),
        ("one two, three", 11, "one two …"),
    ],
)
def test_a_long_title_is_cut_at_a_word_and_before_marks_that_lead_on(text: str, length: int, shown: str) -> None:
    assert cut(text, length) == shown


def test_control_characters_and_halves_of_pairs_are_no_text() -> None:
    assert read("A b\x07ell\x1b rings", "x.txt").text == "A bell rings"
    assert read(b'{"text": "half \\ud83d of it \\u0000"}', "x.json").text == "half of it"


@pytest.mark.parametrize(
    ("source", "name", "data", "reason"),
    [
        ("crs_reports", "some.md", b"", "which document"),
        ("crs_reports", "R12345.md", b"**Topics:** x\n\n\xff", "not UTF-8"),
        ("crs_reports", "R12345.md", b"**Report No.:** R12345\n\n---\n\n\xc2\xad **** [](x)", "no text"),
        ("gao_reports", "x.json", b"[]", "not an object"),
        ("gao_reports", "x.json", b'{"gao_id": "GAO-1-1", "gao_id": "GAO-1-2"}', "occurs twice"),
        ("gao_reports", "x.json", b"[" * 100_000 + b"]" * 100_000, "not JSON"),
        ("gao_reports", "x.json", b'{"gao_id": "../../etc", "summary": "x"}', "which document"),
        ("gao_reports", "x.json", b'{"gao_id": "GAO-1-1", "summary": ["x"]}', "summary is not text"),
        ("cbo_cost_estimates", "x.txt", b"Harbor News", "what every document"),
        ("cbo_cost_estimates", "x.txt", b"CONGRESSIONAL BUDGET OFFICE\nCOST ESTIMATE\n", "no text"),
        ("statements_of_administration_policy", "x.pdf", b"\x1f\x8bbroken", "packed with gzip"),
        ("statements_of_administration_policy", "x.pdf", gzip.compress(b"<html>Lamps" + bytes(10**7)), "binary"),
        ("statements_of_administration_policy", "x.pdf", pdf([column(["Menu of the House"])]), "what every document"),
        ("statements_of_administration_policy", "x.pdf", b" " * 20_000_001, "larger than 20 MB"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(source: str, name: str, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        of(source, data, name)


def test_a_product_of_crs_is_named_by_its_page_and_then_by_its_file() -> None:
    document = of("crs_reports", "Some words.", "folder/IF12345v9-some-words.md").documents[0]
    assert (document.doc_id, document.family) == ("IF12345v9", "IF12345")
    page = "**Report No.:** R44444\n**Version:** 3\n\n---\nSome words."
    assert of("crs_reports", page, "R55555v2.md").documents[0].doc_id == "R44444v3"
    assert of("crs_reports", page, "x.md").documents[0].doc_id == "R44444v3"


def test_the_newest_version_of_a_product_is_the_greatest() -> None:
    newest = source_format("crs_reports").newest
    assert newest is not None
    versions = [of("crs_reports", "Words.", f"R12345{suffix}.md").documents[0] for suffix in ("v9", "", "v10")]
    assert [document.doc_id for document in sorted(versions, key=newest)] == ["R12345", "R12345v9", "R12345v10"]


def record(**fields: Any) -> Document:
    known = {"gao_id": "GAO-20-9001", "title": "Harbor Lamps", "summary": "We looked at lamps. " * 25, "topics": []}
    return of("gao_reports", json.dumps({**known, **fields}), "x.json").documents[0]


def test_a_product_of_gao_has_its_year_its_broad_topic_and_its_own_page() -> None:
    assert record(topics=["Health care", "Health Care"], published="2021-03-01T05:00:00Z").stratum == "2021/health-care"
    assert record(topics=["Lamps"], published="soon").stratum == "unknown/unknown"
    assert record(url="https://example.org/x").url == "https://www.gao.gov/products/GAO-20-9001"
    pages = [f"https://www.gao.gov/products/b-958766-{n}" for n in (15, 16)]
    assert [record(gao_id="B-958766", url=page).doc_id for page in pages] == ["B-958766-15", "B-958766-16"]
    assert [record(summary="x" * n).status for n in (399, 400)] == ["short", ""]


@pytest.mark.parametrize("summary", ["", " \n", None, "\u00ad"])
def test_a_record_without_a_summary_is_counted_and_no_document(summary: str | None) -> None:
    content = of("gao_reports", json.dumps({"gao_id": "GAO-99-9", "summary": summary}), "x.json")
    assert (content.documents, content.skipped, set(content.left_out)) == ((), {NO_TEXT: 1}, {MARKUP})


@pytest.mark.parametrize(
    ("sentence", "position"),
    [
        ("The Administration strongly supports House passage of H.R. 9001.", "supports"),
        ("The Administration strongly opposes H.R. 9001.", "opposes"),
        ("The Administration opposes H.R. 9001. If it came to the President, he would veto it.", "veto"),
        ("The Administration urges swift passage of H.R. 9001.", "unknown"),
    ],
)
def test_a_statement_has_the_president_and_the_position_on_the_measure(sentence: str, position: str) -> None:
    lines = ["STATEMENT OF ADMINISTRATION POLICY", "", "June 3, 2024", "", "H.R. 9001 – Lamp Act", "", sentence]
    for name in ("46-Biden-118-2024-06-03_hr9001.pdf", "statements/46-Biden/118/2024-06-03_hr9001.pdf"):
        (document,) = of("statements_of_administration_policy", pdf([column(lines)]), name).documents
        assert (document.doc_id, document.stratum) == ("SAP-118-2024-06-03-hr9001", f"46-biden/{position}")
        assert document.title.endswith("(2024-06-03): H.R. 9001 – Lamp Act")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("title", [b"404", b"Page\nNot Found"])
def test_an_error_page_in_place_of_a_document_is_counted_and_no_document(
    pack: Callable[[bytes], bytes], title: bytes
) -> None:
    content = of("statements_of_administration_policy", pack(b"<html><title>%s</title></html>" % title), "x.pdf")
    assert (content.documents, content.skipped, set(content.left_out)) == ((), {ERROR_PAGE: 1}, {ERROR_PAGE})


@pytest.mark.parametrize("source", ["crs_reports", ""])
def test_metadata_beside_a_document_are_passed_over_and_counted(source: str) -> None:
    words = "# Metadata\n\n- Title: To light lamps\n- Bill type: HR\n"
    read_as = source_format(source).read if source else ANY
    content = read_as(words.encode(), "HR_1_To_light_lamps/metadata.md", frozenset())
    assert (content.documents, content.skipped, content.left_out) == ((), {METADATA: 1}, {METADATA: n_visible(words)})
    # A document of that name, and one that speaks of metadata, are read.
    assert ANY(b"# Lamps\n\nWords.", "lamps/metadata.md", frozenset()).documents
    assert ANY(words.encode(), "lamps/on-metadata.md", frozenset()).documents


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("STATEMENT OF TATEMENT OF LAMP POLICY OLICY", "STATEMENT OF LAMP POLICY Some"),
        ("STATEMENT OF TATEMENT OF ILLUMINATION LLUMINATION LAWS", "STATEMENT OF ILLUMINATION LAWS"),
        ("THE HE LAMP AMP", "THE HE LAMP AMP"),
        ("LANTERN LANTERN", "LANTERN LANTERN"),
    ],
)
def test_small_capitals_that_are_printed_twice_are_read_once(line: str, expected: str) -> None:
    assert read(pdf([column([line, "Some words of a lamp."])]), "x.pdf").text.startswith(expected)
