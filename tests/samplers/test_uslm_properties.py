import string
import unicodedata
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from runner.base.records import Document
from samplers.formats.text_writer import INVISIBLE
from samplers.formats.uslm.walk import walk
from samplers.sources.bills import ROOTS

SUPPLIED = set("“”‘’.")


def visible(text: str) -> str:
    return "".join(text.translate(INVISIBLE).split())


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
