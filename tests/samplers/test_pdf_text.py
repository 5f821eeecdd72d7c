import os
import zlib

import pytest

from runner.base.errors import DocumentError
from samplers.formats.pdf import lines as pdf_lines
from samplers.formats.pdf.lines import pdf_pages
from samplers.formats.pdf.text import HYPHENS, RUNNING_HEADS, UNMAPPED, PageText, read_pdf, read_typed
from tests.support.small_pdf import Put, column, file_of, pdf, stream_object

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>"


def texts(pages: PageText) -> list[str]:
    return [paragraph.text for paragraph in pages.paragraphs]


def one_page(content: bytes, resources: bytes = b"") -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> "
    return file_of([CATALOG, b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>", FONT, page + resources + b">> >>", content])


def test_lines_are_joined_into_paragraphs_at_gaps_and_indents() -> None:
    lines = [
        *("The keeper of the tower lights the lamp", "every evening.", ""),
        *("The keeper of the bell rings it", "at noon."),
    ]
    data = pdf([[*column(lines), Put(120, 560, "A line set in begins a paragraph"), Put(90, 546, "and goes on.")]])
    assert texts(read_pdf(data, "x.pdf")) == [
        "The keeper of the tower lights the lamp every evening.",
        "The keeper of the bell rings it at noon.",
        "A line set in begins a paragraph and goes on.",
    ]


def test_lines_come_in_their_order_on_the_page_however_the_file_draws_them() -> None:
    data = pdf([[Put(90, 500, "third line"), Put(90, 700, "First line"), Put(90, 600, "second line")]])
    assert texts(read_pdf(data, "x.pdf")) == ["First line", "second line", "third line"]


def test_a_word_broken_at_a_hyphen_is_rejoined_only_where_it_occurs_whole() -> None:
    lines = ["The keepers of the well-being fund pay for non-", "defense lamps, and lighthouse keep-", "ers agree."]
    pages = read_pdf(pdf([column(lines)]), "x.pdf")
    assert texts(pages) == [
        "The keepers of the well-being fund pay for non-defense lamps, and lighthouse keepers agree."
    ]
    assert pages.left_out == {HYPHENS: 1}


def test_bold_lines_part_from_others_and_are_marked() -> None:
    pages = read_pdf(pdf([column(["!Direct Spending", "Oil would cost more."])]), "x.pdf")
    assert [(paragraph.text, paragraph.bold) for paragraph in pages.paragraphs] == [
        ("Direct Spending", True),
        ("Oil would cost more.", False),
    ]


def test_cells_of_a_row_are_parted_by_tabs() -> None:
    data = pdf([[Put(90, 700, "Outlays in the year"), Put(330, 700, "5"), Put(400, 700, "11")]])
    assert texts(read_pdf(data, "x.pdf")) == ["Outlays in the year\t5\t11"]


def test_running_heads_and_page_numbers_are_dropped_and_counted() -> None:
    pages = [
        [
            Put(90, 760, f"Estimate for H.R. 9001, page {n}"),
            Put(90, 600, f"Body number {word}."),
            Put(300, 30, f"- {n} -"),
        ]
        for n, word in ((1, "one"), (2, "two"), (3, "three"))
    ]
    read = read_pdf(pdf(pages), "x.pdf")
    assert texts(read) == ["Body number one.", "Body number two.", "Body number three."]
    assert read.left_out == {RUNNING_HEADS: 3 * len("EstimateforH.R.9001,page1-1-")}


def test_a_number_at_the_end_of_a_single_page_is_text() -> None:
    assert texts(read_pdf(pdf([[Put(90, 700, "The answer is"), Put(90, 500, "42")]]), "x.pdf")) == [
        "The answer is",
        "42",
    ]


def test_a_paragraph_runs_on_past_the_end_of_its_page() -> None:
    first = column(
        ["A canal carries grain and coal to the towns of the plain and its", "banks are kept by those who live"]
    )
    second = column(["along it. They are proud of it.", "", "Boats are narrow."])
    assert texts(read_pdf(pdf([first, second]), "x.pdf"))[0].endswith("those who live along it. They are proud of it.")


def test_text_beyond_the_edges_of_the_page_is_not_text() -> None:
    assert texts(read_pdf(pdf([[Put(90, 700, "Seen."), Put(900, 700, "Unseen.")]]), "x.pdf")) == ["Seen."]


def test_typed_pages_read_like_printed_ones() -> None:
    text = "   TITLE\n\n     The first words of the paragraph stand here, and the\nrest follows.\n\n"
    pages = read_typed(text + "Oil      1     2\nTar      3     4\n", "x.txt")
    assert texts(pages) == [
        "TITLE",
        "The first words of the paragraph stand here, and the rest follows.",
        "Oil\t1\t2",
        "Tar\t3\t4",
    ]
    assert pages.left_out == {}


def test_short_lines_were_ended_on_purpose() -> None:
    address = "Honorable Ruth Marsh\nChairman\nCommittee on Canals"
    text = f"{address}\n\nA long line of words that says how wide the text of this page is.\n"
    assert texts(read_typed(text, "x.txt"))[0] == address


def test_characters_without_a_meaning_are_dropped_and_counted() -> None:
    pages = read_typed("A bell\x07 and \uf0b7 a private \ue123mark.", "x.txt")
    assert texts(pages) == ["A bell and • a private mark."]
    assert pages.left_out == {UNMAPPED: 2}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "damaged or no PDF"),
        (b"%PDF-1.4\n%%EOF", "damaged or no PDF"),
        (pdf([column(["Words."])])[:400], "damaged or no PDF"),
        (pdf([[], []]), "no text on any page"),
        (pdf([column(["x"])] * 401), "401 pages, more than the limit of 400"),
        (file_of([CATALOG, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 4 >>"]), "is damaged"),
        (file_of([CATALOG, b"<< /Type /Pages /Kids [] /Count 999999999 >>"]), "PDF: "),
        (
            one_page(stream_object(b"BT /F1 1 Tf 9 9 Td " + b"(%s) Tj " % (b"a" * 1000) * 1100 + b"ET")),
            "1,000,000 characters",
        ),
        (one_page(stream_object(b"[" * 300_000)), "no text on any page"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=r"^x\.pdf: ") as failed:
        read_pdf(data, "x.pdf")
    assert reason in failed.value.reason


def test_an_encrypted_file_needs_a_password() -> None:
    encryption = b"<< /Filter /Standard /V 1 /R 2 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> /P -44 >>"
    parts = [CATALOG, b"<< /Type /Pages /Kids [] /Count 0 >>", encryption]
    with pytest.raises(DocumentError, match="needs a password"):
        read_pdf(file_of(parts, "/Root 1 0 R /Encrypt 3 0 R /ID [<00><00>]"), "x.pdf")


def test_a_larger_file_is_refused_unread() -> None:
    with pytest.raises(DocumentError, match="larger than 20 MB"):
        read_pdf(b"%PDF" + bytes(pdf_lines.MAX_BYTES), "x.pdf")


def test_a_file_that_ends_the_extractor_leaves_the_next_one_unharmed() -> None:
    words = (
        b"BT /F1 1 Tf 9 9 Td " + b"(%s) Tj " % (b"a" * 1000) * 8000 + b"ET"
    )  # 8 million: more memory than it may take
    stream = stream_object(words)
    with pytest.raises(DocumentError, match="the extractor"):
        read_pdf(one_page(stream), "x.pdf")
    assert texts(read_pdf(pdf([column(["Still here."])]), "y.pdf")) == ["Still here."]


def test_a_file_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pdf_pages(pdf([column(["Warm."])]), "warm.pdf")
    monkeypatch.setattr(pdf_lines, "SECONDS", 0.3)
    forms = []
    for number in range(6, 16):
        content = zlib.compress(b"/X Do " * 10 if number < 15 else b"BT /F1 9 Tf (ab) Tj ET")
        resources = b"/Resources << /XObject << /X %d 0 R >> /Font << /F1 3 0 R >> >>" % (number + 1)
        forms.append(
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 600 700] %s /Length %d /Filter /FlateDecode >>\nstream\n"
            b"%s\nendstream" % (resources, len(content), content)
        )
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
    page += b"/Resources << /XObject << /X 6 0 R >> >> >>"
    tree = b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>"
    with pytest.raises(DocumentError, match=r"takes more than|ends the extractor"):
        read_pdf(file_of([CATALOG, tree, FONT, page, stream_object(b"/X Do " * 10), *forms]), "x.pdf")


def test_one_process_serves_many_files_and_ends_when_it_is_closed() -> None:
    pdf_pages(pdf([column(["One."])]), "one.pdf")
    process = pdf_lines._extractor._process
    assert process is not None
    pdf_pages(pdf([column(["Two."])]), "two.pdf")
    assert pdf_lines._extractor._process is process
    pdf_lines._extractor.close()
    assert process.poll() is not None


def test_a_forked_process_starts_an_extractor_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pdf_pages(pdf([column(["One."])]), "one.pdf")
    ours, owner = pdf_lines._extractor._process, os.getpid()
    monkeypatch.setattr(pdf_lines.os, "getpid", lambda: owner + 1)
    pdf_pages(pdf([column(["Two."])]), "two.pdf")
    theirs = pdf_lines._extractor._process
    assert theirs is not ours
    pdf_lines._extractor.close()
    assert ours is not None
    assert ours.poll() is None
    ours.kill()
    ours.communicate()


@pytest.mark.parametrize("filler", [" ", "a", "\n", "a-\n", "- ", "\t", "• ", "“", "a\n\n", "   a", "a. "])
def test_monotonous_text_is_read(filler: str) -> None:
    text = filler * (60_000 // len(filler))
    assert sum(len("".join(t.split())) for t in texts(read_typed(text, "x.txt"))) <= len("".join(text.split()))


@pytest.mark.parametrize("text", ["a" * 500_001, "1\f" * 401])
def test_more_text_than_an_estimate_has_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="too many for one estimate"):
        read_typed(text, "x.txt")
