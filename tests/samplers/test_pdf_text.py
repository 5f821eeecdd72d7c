import zlib

import pytest

from runner.base.errors import DocumentError
from samplers.formats.pdf import text as pdf_text
from samplers.formats.pdf.text import pdf_pages
from tests.support.small_pdf import Put, column, file_of, pdf, stream_object

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>"


def one_page(content: bytes, resources: bytes = b"") -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> "
    return file_of([CATALOG, b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>", FONT, page + resources + b">> >>", content])


def test_a_page_is_the_lines_within_its_edges_with_broken_words_on_two() -> None:
    page = [*column(["The keepers pay for non-", "defense lamps.", "", "Bells"]), Put(900, 700, "Unseen.")]
    first, second = pdf_pages(pdf([page, column(["Next page."])]), "x.pdf")
    assert first.split() == ["The", "keepers", "pay", "for", "non-", "defense", "lamps.", "Bells"]
    assert "non-\ndefense" in first
    assert second.strip() == "Next page."


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
        pdf_pages(data, "x.pdf")
    assert reason in failed.value.reason


def test_an_encrypted_file_needs_a_password() -> None:
    encryption = b"<< /Filter /Standard /V 1 /R 2 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> /P -44 >>"
    parts = [CATALOG, b"<< /Type /Pages /Kids [] /Count 0 >>", encryption]
    with pytest.raises(DocumentError, match="needs a password"):
        pdf_pages(file_of(parts, "/Root 1 0 R /Encrypt 3 0 R /ID [<00><00>]"), "x.pdf")


def test_a_file_that_ends_the_extractor_is_refused() -> None:
    # 8 million characters: more memory than it may take.
    words = b"BT /F1 1 Tf 9 9 Td " + b"(%s) Tj " % (b"a" * 1000) * 8000 + b"ET"
    with pytest.raises(DocumentError, match="the extractor"):
        pdf_pages(one_page(stream_object(words)), "x.pdf")


def test_a_file_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "SECONDS", 0.4)
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
    with pytest.raises(DocumentError, match="takes more than"):
        pdf_pages(file_of([CATALOG, tree, FONT, page, stream_object(b"/X Do " * 10), *forms]), "x.pdf")
