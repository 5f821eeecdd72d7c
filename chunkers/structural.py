"""Chunkers that follow a source's structure: one named row each, over shared algorithms."""

from chunkers.sections import SectionRules, by_section
from runner.records import Chunk, Document

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


def section_aware_bills_v1(document: Document) -> list[Chunk]:
    """Bills and resolutions, whatever their XML: one section a chunk, small siblings merged, long ones split."""
    return by_section(document, BILLS)
