import string
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from runner.base.records import Document
from samplers.formats import safe_xml
from samplers.formats.text_writer import INVISIBLE
from samplers.formats.uslm.names import NOTES, QUOTED
from samplers.formats.uslm.walk import Walk, walk
from samplers.sources.bills import ROOTS
from tests.support.corpora import real_files

FIXTURES = Path(__file__).parents[1] / "data" / "bills"
LAWS = ROOTS | {"uscDoc", "pLaw"}
SUPPLIED = set("“”‘’.")


def visible(text: str) -> str:
    return "".join(text.translate(INVISIBLE).split())


def source_characters(data: bytes) -> str:
    parser = etree.XMLParser(load_dtd=False, no_network=True, resolve_entities=False, remove_comments=True)
    return "".join(str(etree.fromstring(data, parser).xpath("string()")).split())


def assert_accounted(data: bytes, walked: Walk) -> None:
    """Every character of the file is text or dropped for a reason, and the text holds nothing else but marks."""
    source = source_characters(data)
    text = visible(walked.text)
    n_composed = len(source) - len(unicodedata.normalize("NFC", source))
    assert len(source) - n_composed == sum(walked.dropped.values()) + len(text) - walked.supplied
    foreign = Counter(text) - Counter(unicodedata.normalize("NFC", source))
    assert set(foreign) <= SUPPLIED
    assert foreign.total() <= walked.supplied


def n_sections(data: bytes) -> int:
    """Section elements neither quoted nor struck nor in a note, of more than contents, counted without the walker."""

    has_words = etree.XPath("boolean(.//text()[normalize-space()][not(ancestor::*[local-name() = 'toc'])])")

    def counts(element: etree._Element) -> bool:
        chain = [element, *element.iterancestors()]
        names = {safe_xml.local_name(ancestor) for ancestor in chain[1:]}
        return (
            has_words(element)
            and not names & (QUOTED | NOTES)
            and all(ancestor.get("changed") != "deleted" for ancestor in chain)
        )

    root = safe_xml.parse(data, "x")
    return sum(safe_xml.local_name(element) == "section" and counts(element) for element in root.iter())


def assert_walked(path: Path, roots: frozenset[str]) -> Walk:
    """The walk of a file of which every character is accounted for and every section is found."""
    data = path.read_bytes()
    walked = walk(data, path.name, roots)
    if path.name != "BILLS-112hr9003enr.xml":  # its undeclared references have no characters of their own to count
        assert_accounted(data, walked)
    assert sum(section.kind == "section" for section in walked.sections) == n_sections(data), path.name
    return walked


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.xml")), ids=lambda path: path.stem)
def test_every_character_of_a_fixture_is_text_or_dropped_for_a_reason(path: Path) -> None:
    assert_walked(path, LAWS)


@pytest.mark.shared
def test_real_bills_are_accounted_for_to_the_character(shared: Path) -> None:
    for path in real_files(shared, "bills"):
        assert_walked(path, ROOTS)


@pytest.mark.shared
def test_public_laws_and_the_code_walk_without_new_walls(shared: Path) -> None:
    for path in (*real_files(shared, "public_laws")[:4], *real_files(shared, "us_code", "usc0[19]-*")):
        walked = assert_walked(path, LAWS)
        assert all(section.label for section in walked.sections if section.kind == "section"), path.name


WORDS = st.text(alphabet=string.ascii_letters + " é\u0301\u00ad\u00a0“–", min_size=1, max_size=12)
LEVELS = st.sampled_from(
    ["title", "section", "subsection", "paragraph", "appropriations-major", "appropriations-small"]
)
INLINES = st.sampled_from(["term", "quote", "external-xref", "italic", "inline"])


@st.composite
def trees(draw: st.DrawFn, depth: int = 0) -> etree._Element:
    tag = draw(st.one_of(LEVELS, st.sampled_from(["text", "quoted-block", "table", "toc", "continuation-text"])))
    element = etree.Element(tag)
    if draw(st.booleans()):
        etree.SubElement(element, "enum").text = draw(WORDS)
    if draw(st.booleans()):
        etree.SubElement(element, "header").text = draw(WORDS)
    for _ in range(draw(st.integers(0, 3)) if depth < 3 else 0):
        element.append(draw(trees(depth + 1)))
        element[-1].tail = draw(st.one_of(st.none(), WORDS))
    leaf = etree.SubElement(element, "text")
    leaf.text = draw(WORDS)
    inline = etree.SubElement(leaf, draw(INLINES))
    inline.text, inline.tail = draw(WORDS), draw(WORDS)
    return element


@given(st.lists(trees(), min_size=1, max_size=3), WORDS)
def test_any_tree_gives_all_its_text_once_with_exact_sections(bodies: list[etree._Element], title: str) -> None:
    root = etree.Element("bill")
    etree.SubElement(etree.SubElement(root, "form"), "official-title").text = title
    body = etree.SubElement(root, "legis-body")
    body.extend(bodies)
    etree.SubElement(body, "text").text = "end"
    data = etree.tostring(root, encoding="utf-8")
    walked = walk(data, "x", ROOTS)
    # Document holds sections to be nested or disjoint, in order, within the text, and the text to be NFC.
    document = Document("x", walked.text, "t", "s", "f", "", walked.sections)
    for section in document.sections:
        part = document.text[section.span.start : section.span.end]
        assert part == part.strip()
    assert not any(gap in walked.text for gap in ("  ", " \n", "\n ", "\n\n\n", "\t\n"))
    source, text = (Counter(visible(unicodedata.normalize("NFD", t))) for t in (_without_tocs(root), walked.text))
    assert not source - text
    assert set(text - source) <= SUPPLIED
    assert (text - source).total() == walked.supplied


def _without_tocs(root: etree._Element) -> str:
    copy = etree.fromstring(etree.tostring(root))
    for toc in list(copy.iter("toc")):
        toc.clear(keep_tail=True)
    return "".join(copy.itertext())
