from pathlib import Path

import pytest

from runner.base.records import Document
from samplers.sources.bills import FORMAT
from tests.support.small_bills import bill

FIXTURES = Path(__file__).parents[1] / "data" / "bills"
BILLS = sorted(FIXTURES.glob("BILLS-*.xml"))


def read_bill(data: bytes, name: str) -> Document:
    return FORMAT.read(data, name, frozenset()).documents[0]


def read(name: str, as_name: str = "") -> Document:
    return read_bill((FIXTURES / name).read_bytes(), as_name or name)


@pytest.mark.parametrize("path", BILLS, ids=[path.name for path in BILLS])
def test_a_bill_is_identified_by_what_it_says_of_itself(path: Path) -> None:
    document = read(path.name, as_name="download.xml")
    assert document == read(path.name)
    assert document.doc_id == path.stem
    assert document.url == f"https://www.govinfo.gov/app/details/{path.stem}"


@pytest.mark.parametrize(
    ("title", "form", "name", "doc_id"),
    [
        # The form decides, whatever the catalogue title says; so do form and name together if the form has no Congress.
        ("111 HR 9 RH", "113th CONGRESS", "BILLS-113hr9rh.xml", "BILLS-113hr9rh"),
        ("104 HR 9 IH: T", "", "BILLS-117hr9ih.xml", "BILLS-117hr9ih"),
        ("113 HR 9 RH: T", "113th CONGRESS", "BILLS-113hr9rh.xml", "BILLS-113hr9rh"),
        ("112 HR 9 IH: T", "112th CONGRESS", "BILLS-113hr9ih.xml", "BILLS-112hr9ih"),
        ("116 HR 9 IH: T", "", "download.xml", "BILLS-116hr9ih"),
        ("116 HR 8 IH: T", "", "BILLS-117hr9ih.xml", "BILLS-117hr9ih"),
        ("112 HR 9 EH", "112th CONGRESS", "BILLS-112hr9ih.xml", "BILLS-112hr9ih"),
    ],
)
def test_form_and_name_decide_which_bill_it_is_before_the_catalogue(
    title: str, form: str, name: str, doc_id: str
) -> None:
    stated = f"<congress>{form}</congress>" if form else ""
    data = bill("x", title, f"{stated}<legis-num>H. R. 9</legis-num>")
    assert FORMAT.read(data, name, frozenset()).documents[0].doc_id == doc_id


def test_a_suffix_of_the_file_name_keeps_two_renderings_of_one_version_apart() -> None:
    draft = read("BILLS-117hr9001ih.xml", "BILLS-117hr9001ih-draft.xml")
    assert draft.doc_id == "BILLS-117hr9001ih-draft"
    assert draft.family == "117-hr-9001"
    assert draft.url.endswith("/BILLS-117hr9001ih")


def test_the_file_name_fills_what_the_document_leaves_open() -> None:
    document = read_bill(bill("x", title="HR 5: Title."), "BILLS-115hr5rh.xml")
    assert document.doc_id == "BILLS-115hr5rh"
    assert document.title == "H.R. 5 (115th, reported in House): Title"


def test_a_document_that_states_nothing_is_named_after_its_file() -> None:
    document = read_bill(bill("x"), "some folder/my bill.xml")
    assert (document.doc_id, document.family) == ("my-bill", "my-bill")
    assert document.stratum == "unknown/unknown/other/short"
    assert (document.title, document.url) == ("my-bill: x", "")


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("That the bill (H.R. 5) entitled “An Act to paint the pier”, do pass with an", "An Act to paint the pier"),
        ("That the bill (H.R. 5) do pass with an", "That the bill (H.R. 5) do pass with an"),
    ],
)
def test_a_title_is_never_only_number_and_stage(words: str, title: str) -> None:
    document = read_bill(bill(words, "AMENDMENTS to 115 HR 5"), "BILLS-115hr5eas.xml")
    assert document.title == f"H.R. 5 (115th, engrossed amendment Senate): {title}"


@pytest.mark.parametrize(
    ("congress", "number"),
    [
        ("117th CONGRESS", "117"),
        ("One Hundred Third Congress of the United States of America", "103"),
        ("One Hundred Twelfth Congress", "112"),
        ("One Hundred Twentieth Congress", "120"),
        ("One Hundred and Twenty-First Congress", "121"),
        ("Ninety-Ninth Congress", "99"),
    ],
)
def test_the_congress_is_read_from_figures_and_words(congress: str, number: str) -> None:
    form = f"<congress>{congress}</congress><legis-num>S. J. Res. 7</legis-num>"
    document = read_bill(bill("x", form=form, stage="Introduced-in-Senate"), "x.xml")
    assert document.doc_id == f"BILLS-{number}sjres7is"


@pytest.mark.parametrize("catalogue", ["To amend title 98, United States Code, to", "To amend title 98"])
def test_a_catalogue_title_that_ends_with_a_printed_line_gives_way_to_the_whole_one(catalogue: str) -> None:
    whole = "To amend title 98, United States Code, to\n  light lamps, and for other purposes."
    form = f"<official-title>{whole}</official-title>"
    document = read_bill(bill("x", title=f"110 HR 1 IH: {catalogue}", form=form), "x.xml")
    assert document.title.endswith("to light lamps, and for other purposes")
