"""Chunkers that follow a source's structure: one named row each, over shared algorithms."""

from chunkers.sections import SectionRules, by_section
from runner.base.records import Chunk, Document

_APPROPRIATIONS = ("appropriations-major", "appropriations-intermediate", "appropriations-small")

BILLS = SectionRules(
    containers=frozenset(
        (
            *("division", "title", "subtitle", "part", "subpart", "chapter", "subchapter"),
            *("article", "constitution-article", "appendix"),
        )
    ),
    sections=frozenset(("section", "level", "preamble", *_APPROPRIATIONS)),
)

REGULATIONS = SectionRules(
    containers=frozenset(("regtext", "chapter", "part", "subpart")),
    sections=frozenset(
        (
            *("agency", "action", "summary", "dates", "addresses", "contact", "preamhd", "supplementary", "subjects"),
            *("hed", "hd1", "hd2", "hd3", "hd4", "hd5", "hd6"),
            *("amdpar", "section", "appendix", "signature"),
        )
    ),
)

MARKDOWN = SectionRules(containers=frozenset(), sections=frozenset(("heading", "summary", "footnotes")))

CODE = SectionRules(
    containers=BILLS.containers | {"compiledAct", "courtRules", "reorganizationPlan", "reorganizationPlans", "notes"},
    sections=BILLS.sections | {"courtRule", "note"},
)

REPORTS = SectionRules(
    containers=frozenset(("title",)),
    sections=frozenset(("introduction", "heading", "existing law", "cost estimate")),
)


def section_aware_bills_v1(document: Document) -> list[Chunk]:
    """Bills and resolutions, whatever their XML: one section a chunk, small siblings merged, long ones split."""
    return by_section(document, BILLS)


def section_aware_fr_v1(document: Document) -> list[Chunk]:
    """Federal Register and CFR: one headed section a chunk, small siblings merged, long ones split at their parts."""
    return by_section(document, REGULATIONS)


def markdown_header_v1(document: Document) -> list[Chunk]:
    """Reports with headings alone: one heading's section a chunk, small siblings merged, long ones split."""
    return by_section(document, MARKDOWN)


def usc_uslm_section_v1(document: Document) -> list[Chunk]:
    """Sections of the U.S. Code and of public laws: statute and notes apart, long ones split at their parts."""
    return by_section(document, CODE)


def section_aware_committee_v1(document: Document) -> list[Chunk]:
    """Committee reports: one headed section a chunk, small siblings merged, long ones split at items and tables."""
    return by_section(document, REPORTS)
