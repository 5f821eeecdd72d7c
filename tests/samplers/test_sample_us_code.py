from pathlib import Path

import pytest

from runner.base.records import Document
from samplers.formats.uslm.units import SHORT
from samplers.sources.us_code import FORMAT, age

FIXTURES = Path(__file__).parents[1] / "data" / "us_code"


def code(body: str, meta: str = "<docNumber>9</docNumber>") -> bytes:
    return f'<uscDoc identifier="/us/usc/t9"><meta>{meta}</meta><main><title>{body}</title></main></uscDoc>'.encode()


def section(heading: str = "Tolls", body: str = "x", attributes: str = "") -> str:
    named = f'<num value="1">§ 1.</num><heading> {heading}</heading><content>{body}</content>'
    return f'<section identifier="/us/usc/t9/s1" {attributes}>{named}</section>'


def read_one(data: bytes, name: str = "usc09.xml") -> Document:
    (found,) = FORMAT.read(data, name, frozenset()).documents
    return found


def test_the_notes_of_a_title_are_a_document_of_their_own_and_no_section_loses_its_id() -> None:
    note = "<notes><note><p>Enacted May 5.</p></note></notes>"
    chapter = f'<chapter identifier="/us/usc/t9/ch1"><num>CHAPTER 1—</num>{note}{section(body="word " * 30)}</chapter>'
    one_of_title = section(body="word " * 30).replace("1", "9")
    numbered = '<num value="9">Title 9—</num><heading>TOLLS</heading>'
    read = FORMAT.read(code(numbered + note + one_of_title + chapter), "usc09.xml", frozenset())
    assert [(each.doc_id, each.status) for each in read.documents] == [
        ("usc:9-title", "notes"),
        ("usc:9-9", ""),
        ("usc:9-ch1", "notes"),
        ("usc:9-1", ""),
    ]
    assert [each.text.count("Enacted May 5.") for each in read.documents] == [1, 0, 1, 0]
    assert read.left_out == {"metadata": 1}


@pytest.mark.parametrize(
    ("title", "stated", "is_positive_law"),
    [
        ("9", "", "positive"),
        ("42", "", "non-positive"),
        ("54", "", "positive"),
        ("55", "", "unknown"),
        ("28a", "", "unknown"),
        ("9", "no", "non-positive"),
        ("42", "yes", "positive"),
    ],
)
def test_whether_a_title_is_positive_law_is_what_it_says_or_else_known(
    title: str, stated: str, is_positive_law: str
) -> None:
    said = f'<property role="is-positive-law">{stated}</property>' if stated else ""
    data = code(section(), f"<docNumber>{title}</docNumber>{said}").replace(b"/t9", f"/t{title}".encode())
    assert read_one(data, "x.xml").stratum == f"{title}/{is_positive_law}/short"


def test_footnotes_leave_the_sentence_whole() -> None:
    odd = code(section(body='pay <ref class="footnoteRef">1</ref><note type="footnote">1 So.</note>; or'))
    assert read_one(odd).text.endswith("pay; or")


@pytest.mark.parametrize(
    ("heading", "status"),
    [
        ("Repealed. July 1, 1944", "repealed"),
        ("[Repealed]", "repealed"),
        ("Vacant]", "reserved"),
        ("Redesignated as section 9", "transferred"),
        ("Transferred or omitted", "transferred"),
        ("Reserved powers", ""),
        ("Omitted income", ""),
        ("Repealer", ""),
    ],
)
def test_a_heading_that_only_begins_like_a_status_is_none(heading: str, status: str) -> None:
    assert read_one(code(section(heading, "word " * SHORT))).status == status


def test_short_counts_the_statute_alone() -> None:
    credit = f"<sourceCredit>({'history ' * 40})</sourceCredit>"
    long_credit = code(section(body="Two words.").replace("</section>", f"{credit}</section>"))
    assert read_one(long_credit).status == "short"
    assert read_one(code(section(body="x" * SHORT))).status == ""


def test_a_slice_without_meta_has_no_release_point_but_that_of_its_name() -> None:
    data = (FIXTURES / "usc93-ch3-after117-58.xml").read_bytes()
    assert read_one(data, "chapter.xml").doc_id == "usc:93-301"


def test_release_points_are_ordered_and_one_that_leaves_laws_out_is_older() -> None:
    ids = ["usc:9-1", "usc:9-1@113-31", "usc:9-1@2023-06-29", "usc:9-1@118-3", "usc:9-1@119-9not5", "usc:9-1@119-9"]
    documents = [Document(doc_id, "x", "", "", "usc:9-1", "") for doc_id in [*ids, "usc:9-1@119-73not60not61"]]
    ages = [age(each) for each in documents]
    assert ages == sorted(set(ages))
