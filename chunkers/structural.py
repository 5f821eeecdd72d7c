"""The rules of chunkers that follow a source's structure: a section a chunk, small ones merged, long ones split."""

from chunkers.sections import SectionRules

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
"""Bills and resolutions, whatever their XML."""

REGULATIONS = SectionRules(
    containers=frozenset(("regtext", "chapter", "part", "subpart")),
    sections=frozenset(
        (
            *("agency", "action", "summary", "dates", "addresses", "contact", "preamhd", "supplementary", "subjects"),
            *("hed", "hd1", "hd2", "hd3", "hd4", "hd5", "hd6"),
            *("amdpar", "section", "appendix", "signature"),
        )
    ),
    repeats=False,
)
"""Federal Register and CFR."""

MARKDOWN = SectionRules(containers=frozenset(), sections=frozenset(("heading", "summary", "footnotes")), repeats=False)
"""Reports with headings alone, and documents of one's own."""

CODE = SectionRules(
    containers=BILLS.containers | {"compiledAct", "courtRules", "reorganizationPlan", "reorganizationPlans", "notes"},
    sections=BILLS.sections | {"courtRule", "note"},
)
"""Sections of the U.S. Code and of public laws, statute and notes apart."""

REPORTS = SectionRules(
    containers=frozenset(("title",)),
    sections=frozenset(("introduction", "heading", "existing law", "cost estimate")),
)
"""Committee reports; long sections are split at items and tables."""
