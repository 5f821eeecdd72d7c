"""Element names of bill DTD, USLM 1.0 and USLM 2.x, by what the walk does with them."""

from collections.abc import Mapping

from lxml import etree

from samplers.formats.safe_xml import local_name

RANKS: Mapping[str, int] = {
    "division": 1,
    "title": 2,
    "appendix": 2,
    "compiledAct": 2,
    "courtRules": 2,
    "reorganizationPlans": 2,
    "subtitle": 3,
    "reorganizationPlan": 3,
    "part": 4,
    "subpart": 5,
    "chapter": 6,
    "subchapter": 7,
    "article": 7,
    "constitution-article": 7,
    "appropriations-major": 8,
    "appropriations-intermediate": 9,
    "appropriations-small": 10,
    "section": 11,
    "level": 11,
    "courtRule": 11,
    "preamble": 11,
    "subsection": 12,
    "recital": 12,
    "whereas": 12,
    "notes": 12,
    "sourceCredit": 12,
    "paragraph": 13,
    "committee-appointment-paragraph": 13,
    "rules-clause": 13,
    "note": 13,
    "subparagraph": 14,
    "clause": 15,
    "subclause": 16,
    "item": 17,
    "subitem": 18,
    "subsubitem": 19,
}
"""Every kind of section and its level, outermost 1."""

SECTION_RANK = RANKS["section"]
"""Headings of this rank and above stand on a line of their own."""

SMALLEST_RANK = max(RANKS.values())

APPROPRIATIONS = frozenset(
    ("appropriations", "appropriations-major", "appropriations-intermediate", "appropriations-small")
)
NUMBERS = frozenset(("enum", "num"))
HEADINGS = frozenset(("header", "heading", "subheading"))
QUOTED = frozenset(("quoted-block", "quotedContent"))
NOTES = frozenset(("notes", "note"))
BREAKS = frozenset(("pagebreak", "linebreak", "br"))
CELLS = frozenset(("entry", "td", "th"))
OFFICIAL_TITLES = frozenset(("official-title", "officialTitle"))
SHORT_TITLES = frozenset(("short-title", "shortTitle"))

BLOCKS = frozenset(
    (
        *OFFICIAL_TITLES,
        *("text", "content", "chapeau", "continuation", "continuation-text", "quoted-block-continuation-text", "p"),
        *("amendment", "amendmentInstruction", "amendment-instruction", "amendmentContent", "amendment-block"),
        *("official-title-amendment", "block", "list", "list-item", "listItem", "li", "formula", "figure"),
        *("docTitle", "table", "row", "tr", "ttitle", "tdesc", "caption"),
    )
)
"""Elements that begin and end a line; all others run on."""

METADATA = frozenset(("metadata", "meta", "amendMeta"))
FORMS = frozenset(("form", "preface", "amendPreface", "resolution-form", "engrossed-amendment-form", "amendment-form"))

DROPPED: Mapping[str, str] = {
    **dict.fromkeys(METADATA, "metadata"),
    **dict.fromkeys((*FORMS, "legis-type"), "form"),
    **dict.fromkeys(("enactingFormula", "resolvingClause", "enacting-clause", "resolving-clause"), "enacting formula"),
    **dict.fromkeys(("toc", "tableOfContents"), "table of contents"),
    **dict.fromkeys(("deletedText", "deleted-phrase", "del", "strike"), "struck text"),
    **dict.fromkeys(("attestation", "signatures", "signature", "endorsement", "endMarker"), "attestation"),
    **dict.fromkeys(("slugLine", "distribution-code", "distributionCode"), "running marks"),
    "sidenote": "sidenotes",
    "page": "page marks",
    **dict.fromkeys(("footnote", "footnote-ref", "footnoteRef"), "footnotes"),
    "legislativeHistory": "legislative history",
}
"""Elements that are no text of the document, with the reason they are counted under."""


def kind_of(element: etree._Element) -> str:
    """Return the local name; an `appropriations` element of USLM gets its level's name in the bill DTD."""
    name = local_name(element)
    return f"appropriations-{element.get('level', 'small')}" if name == "appropriations" else name
