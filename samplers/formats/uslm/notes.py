"""Notes of the U.S. Code under the headings that stand between them."""

from collections.abc import Sequence
from dataclasses import replace

from runner.base.records import Section, Span


def grouped(sections: Sequence[Section], text: str) -> list[Section]:
    """The sections, where a note that is only a heading spans the notes after it, up to the next such one.

    "Editorial Notes" and the like are siblings of what they head.
    """
    result = list(sections)
    head = -1
    for index, section in enumerate(sections):
        if section.kind == "notes":
            head = -1
        elif (
            section.kind == "note"
            and section.label
            and section.label == text[section.span.start : section.span.end].rstrip(".:— ")
        ):
            head = index
        elif head >= 0:
            start, end = result[head].span.start, max(result[head].span.end, section.span.end)
            result[head] = replace(result[head], span=Span(start, end))
            result[index] = replace(section, level=section.level + 1)
    return result
