import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from chunkers.registry import chunker
from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.markdown_text import blocks, plain
from samplers.source_format import FileContent
from samplers.sources.crs.page import read_page, with_ordinals
from samplers.sources.crs.reader import FORMAT, MARKUP
from tests.support.corpora import real_files

FIXTURES = Path(__file__).parents[1] / "data" / "crs_reports"


def read(data: bytes | str, name: str = "R99000.md") -> FileContent:
    return FORMAT.read(data if isinstance(data, bytes) else data.encode(), name, frozenset())


def product(body: str, number: str = "R99000") -> Document:
    page = f"# A Title\n\n**Product Type:** Reports\n**Report No.:** {number}\n**Version:** 3\n\n---\n\n{body}"
    return read(page).documents[0]


def sections(document: Document, kind: str = "heading") -> list[tuple[int, str]]:
    return [(section.level, section.label) for section in document.sections if section.kind == kind]


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("**Source****s****: **EPA", "Sources: EPA"),
        ("(see ******************Figure 1******). This", "(see Figure 1). This"),
        ("******************Table 1**********lists awards", "Table 1 lists awards"),
        ("a rule****.******If a bed", "a rule. If a bed"),
        ("as in**********************Figure 2******, the", "as in Figure 2, the"),
        ("**Table 4**********shows****state data", "Table 4 shows state data"),
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
        ("an [exemption](https://a.example/x#:~:text=-Section%207(j) from it", "an exemption from it"),
        ("a tower.[1](https://crs.example/R1#fn1)[2](#_ftn2) Next", "a tower. Next"),
        ("![A lock](lock_1.png) text", "text"),
        ("[![A lock](lock.png)](https://a.example) text", "text"),
        ("5 U.S.C. \\_\\_ and a\\*b", "5 U.S.C. __ and a*b"),
        ("at *9 and 0.5* of *2", "at *9 and 0.5* of *2"),
        ("*slow* and __heavy__", "slow and heavy"),
        ("R&D; and AT&amp;T where p<0.05", "R&D; and AT&amp;T where p<0.05"),
    ],
)
def test_marks_go_and_words_are_neither_glued_nor_split(marked: str, words: str) -> None:
    assert plain(marked) == words


@pytest.mark.parametrize(
    "filler", ["[", "](", "[x](", "[[a]", "*a", "_ ", "_a", "**", "\\*", "www.", "https:/", "|", "![", "- ", "| - "]
)
def test_monotonous_marks_are_read(filler: str) -> None:
    assert len(plain(filler * 100_000)) <= len(filler) * 100_000
    assert len(list(blocks([filler * 100_000]))) == 1


@pytest.mark.parametrize("row", ["|---|---|", "| :-- | --: |", "|-", "| - - |", "|:-::-:|"])
def test_a_row_of_dashes_parts_heads_from_rows(row: str) -> None:
    assert [block.kind for block in blocks([row])] == ["rule"]


@pytest.mark.parametrize("row", ["|", "||", "| |-|", "|:|", "|--|a", "|::-|", "|-||-|", "| -:: |", "| --- :|"])
def test_a_row_with_more_than_dashes_is_one(row: str) -> None:
    assert [block.kind for block in blocks([row])] == ["row"]


def test_one_long_line_takes_little_more_memory_than_its_text() -> None:
    data = f"# A page\n\n{'A. ' * 200_000}\n\nThe end of it.\n".encode()
    tracemalloc.start()
    try:
        assert len(read(data).documents[0].text) > 600_000
        assert tracemalloc.get_traced_memory()[1] < 14 * len(data)
    finally:
        tracemalloc.stop()


def test_the_file_name_fills_what_the_page_leaves_open() -> None:
    document = read("Some words.", "folder/IF12345v9-some-words.md").documents[0]
    assert (document.doc_id, document.family) == ("IF12345v9", "IF12345")
    assert read("**Report No.:** R44444\n\n---\nSome words.", "R55555v2.md").documents[0].doc_id == "R44444"


@pytest.mark.parametrize("version", ["²", "9" * 5000, "x", "-1"])
def test_a_version_that_is_no_number_is_none(version: str) -> None:
    assert read(f"**Report No.:** R12345\n**Version:** {version}\n\n---\n\nWords.").documents[0].doc_id == "R12345"


def test_the_newest_version_of_a_product_is_the_greatest() -> None:
    assert FORMAT.newest is not None
    versions = [read("Words.", f"R12345{suffix}.md").documents[0] for suffix in ("v9", "", "v10")]
    assert [document.doc_id for document in sorted(versions, key=FORMAT.newest)] == ["R12345", "R12345v9", "R12345v10"]
    old = read("Words.", "98-905v2.md").documents[0]
    assert FORMAT.newest(old) == (2,)


def test_a_heading_with_nothing_of_its_own_holds_the_next_one() -> None:
    found = sections(product("First Part\n\nInner Part\n\nWords here.\n\nSecond Part\n\nMore words."))
    assert found == [(1, "First Part"), (2, "Inner Part"), (1, "Second Part")]


def test_no_heading_of_the_contents_list_nests_in_another_one() -> None:
    entries = ("Towers", "Lamps", "Oil", "Bells")
    listed = "# Contents\n\n" + "".join(f"- [{entry}](x#_Toc1)\n" for entry in entries)
    body = "Towers\n\nLamps\n\nWords.\n\nOil\n\nWords.\n\n## Wicks\n\nWords.\n\n### Bells\n\nWords."
    found = sections(product(f"{listed}\n\n{body}"))
    assert found == [(1, "Towers"), (1, "Lamps"), (1, "Oil"), (2, "Wicks"), (1, "Bells")]


@pytest.mark.parametrize(
    ("saved", "whole"),
    [
        ("In the 119 Congress, H.R. 11", "In the 119th Congress, H.R. 11"),
        ("(79-104 Congresses)", "(79th-104th Congresses)"),
        ("the 112 through 113 Congresses", "the 112th through 113th Congresses"),
        ("the 21 century and the 250 anniversary", "the 21st century and the 250th anniversary"),
        ("the 2027 Congress, P.L. 119-4 Congress, 1 session", "the 2027 Congress, P.L. 119-4 Congress, 1 session"),
        ("$5 Amendment, Section 2 Amendment, 117 Congress.gov", "$5 Amendment, Section 2 Amendment, 117 Congress.gov"),
    ],
)
def test_ordinals_that_the_saved_page_lost_come_back_and_are_counted(saved: str, whole: str) -> None:
    content = read(f"**Report No.:** R99000\n\n---\n\nWords: {saved}")
    assert content.documents[0].text == f"Words: {whole}"
    assert content.supplied == len(whole) - len(saved)


@pytest.mark.parametrize(
    "line",
    [
        "According to the Army",
        "The Army noted that",
        "The Committee on Harbors describes the Lamp Fund as a",
        "On June 26, 2023, the Army announced",
        "CRS Report R99002, Some Other Report, by Ida M. Heron",
        "(in millions of dollars)",
        "and",
        "R = tK/(1-t)",
        'Tower Bulletin, "A Lamp\'s Story"',
        "A whole sentence stands here.",
        "Bells Are Not Wanted. According to the Office",
    ],
)
def test_other_short_lines_are_no_headings(line: str) -> None:
    assert sections(product(f"Words before.\n\n{line}\n\nWords that follow.")) == []


@pytest.mark.parametrize(
    "line",
    [
        "Lessons Learned from the War in the Harbor",
        "How are lamps being used today?",
        "Recent legislative activities",
        '"Shrinking" the Lamp Fund',
        "Funding for States, Territories, and DC",
        "_Gull v. Heron_: Procedural History",
    ],
)
def test_titles_questions_and_short_lines_above_text_are_headings(line: str) -> None:
    assert sections(product(f"Words before.\n\n{line}\n\nWords that follow.")) == [(1, plain(line))]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ((FIXTURES / "119-hr-9007.md").read_bytes(), "names no CRS product"),
        (b"", "names no CRS product"),
        (b"\x00\x01", "binary"),
        (b"**Report No.:** R12345\n\n\xff", "not UTF-8"),
        (b"**Report No.:** R12345\n\n---\n\n", "no text below"),
        (b"**Report No.:** R12345\n\n---\n\n\xc2\xad **** [](x)", "no text below"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "some.md")


@pytest.mark.shared
def test_real_products_keep_their_headings_and_no_marks(shared: Path) -> None:
    paths = real_files(shared, "crs_reports")
    n_entries = 0
    left_out: Counter[str] = Counter()
    for path in paths:
        data = path.read_text(encoding="utf-8")
        content = read(data, path.name)
        (document,) = content.documents
        left_out.update(content.left_out)
        assert "**" not in document.text, path.name
        assert "](" not in document.text, path.name
        assert "Disclaimer" not in document.text, path.name
        page = read_page(with_ordinals(data)[0], path.stem)
        assert page is not None
        labels = [section.label for section in document.sections]
        n_entries += len(page.entries)
        assert set(page.entries) <= set(labels), path.name
        top = {section.label for section in document.sections if section.level == 1}
        assert set(page.entries) <= top, path.name
        assert labels or document.doc_id == "IN12680v1", path.name
    assert n_entries >= 302
    assert left_out[MARKUP] < 250_000


@pytest.mark.shared
def test_real_products_chunk_into_sections_of_a_fair_size(shared: Path) -> None:
    cut = chunker("markdown_header_v1")
    sizes = []
    for path in real_files(shared, "crs_reports"):
        (document,) = read(path.read_bytes(), path.name).documents
        chunks = cut(document)
        sizes += [chunk.n_tokens for chunk in chunks]
        assert len({document.text[chunk.span.start : chunk.span.end] for chunk in chunks}) == len(chunks), path.name
    assert max(sizes) <= 512
    assert 250 < sum(sizes) / len(sizes) < 450
