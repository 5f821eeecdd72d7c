"""One document of the Federal Register as text with sections.

Kinds: the blocks of the preamble by name (agency, action, summary, dates, addresses, contact, ...), `supplementary`
up to the list of subjects or the regulatory text, in it and elsewhere `hd1`, `hd2`, ..., `subjects`, `regtext` (label
"12 CFR part 1026") or, in proposed rules, the headings of `part` and `subpart` alone; in them `amdpar`, an amendatory
instruction with the heading that announces it ("§ 39.13 [Amended]") and what it puts into the CFR, up to the next one,
`section` (§), `appendix`; `table`, `footnote`, `signature`. Executive orders number their sections in running text
("Sec. 2. Policy."): they are `section` too.
"""

import re
from collections.abc import Mapping

from lxml import etree

from runner.base.records import Section
from samplers.formats.gpo.inline import line_of, runs_of, text_of
from samplers.formats.gpo.text import GpoText, Handler, lead_of

PREAMBLE: Mapping[str, str] = {
    "AGY": "agency",
    "ACT": "action",
    "SUM": "summary",
    "DATES": "dates",
    "EFFDATE": "dates",
    "ADD": "addresses",
    "FURINF": "contact",
    "PREAMHD": "preamhd",
}
"""Blocks of a preamble by element, with the kind of their section."""

ORDERS = frozenset(("EXECORD", "PROCLA", "PRNOTICE", "DETERM", "PRMEMO"))
"""Kinds of presidential documents by element."""

ANNOUNCED = "ANNOUNCED"
"""A SECTION of nothing but a heading that announces the AMDPAR right after it ("§ 39.13 [Amended]")."""

_CHAPTER = 1
_PART = 2
_REGTEXT = 3
_SUBPART = 4
_INSTRUCTION = 5
_SUPPLEMENTARY = 6
_NEW_SUBPART = 7
_ORDER_SECTION = 20
"""Ranks of parts that are flat siblings like HD, whose ranks are 10 to 19; smaller ranks hold larger ones."""

_FLAT: Mapping[str, int] = {"CHAPTER": _CHAPTER, "PART": _PART, "SUBPART": _SUBPART}
_HOLDERS = frozenset(("SECTION", "SUBPART", "APPENDIX", "SUBJGRP", "AMDPAR"))
_NUMBERED = re.compile(r"(?:■\s*)?(\d+)[a-z]?\.")
_SECTION_NUMBER = r"\d+\w{0,2}\.\d+[\w–-]{0,12}"
_AMENDED = re.compile(
    rf"(?:§+ ?|\bSections? )(?P<section>{_SECTION_NUMBER})"
    rf"(?P<more>(?:(?:, | and |, and | through )(?:§ ?)?{_SECTION_NUMBER}){{1,5}})?"
    r"|\b(?P<other>(?:Appendix|Supplement|Subpart) [A-Z\d]{1,4}\b(?: (?:to|of) (?:sub)?part \w{1,6})?)"
    r"|\b(?P<authority>Authority citation)",
    re.I,
)
"""What an instruction is about, in its first words: "Amend § 12.4", "In Supplement I to part 1026", ..."""
_INSTRUCTION_HEAD = 300
_ORDER_NUMBER = re.compile(r"\s*((?:Section|Sec\.?)\s\d+[A-Za-z]?)\s?\.(?=\s|$)")


class FederalRegisterText(GpoText):
    """The text of one RULE, PRORULE, NOTICE or PRESDOCU on its way."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers.update(
            {
                **{tag: self._preamble_block(kind) for tag, kind in PREAMBLE.items()},
                **dict.fromkeys(_FLAT, self._division),
                **dict.fromkeys(("FRDOC", "FILED"), self.leave_out("filing lines")),
                "SIG": lambda element, _: self._whole("signature", element, ""),
                "BILCOD": self.leave_out("billing codes"),
                "TITLE3": self.leave_out("running heads"),
                "PRES": self._president,
                "LSTSUB": lambda element, _: self._whole("subjects", element, _label_of(element)),
                "REGTEXT": self._regulatory_text,
                "AMDPAR": self._instruction,
                ANNOUNCED: self._announced,
                "SECTION": self._section,
                "SECTNO": self._section_number,
                "SUBJECT": self._section_subject,
                "APPENDIX": self._appendix,
            }
        )

    def written(self, element: etree._Element) -> tuple[str, tuple[Section, ...]]:
        """Return the text and the sections of a document."""
        if element.tag == "PRESDOCU":
            # Its sections are numbered in running text.
            self.handlers.update(dict.fromkeys(("FP", "P"), self._order_paragraph))
            self.handlers["PSIG"] = self._order_signature
        self.inside(element, 0)
        return self.finish()

    def heading(self, element: etree._Element, level: int) -> None:
        """Open the part of an HD.

        The first of a presidential document is its title; the first in SUPLINF is the whole's, and an HD1 there ends
        regulatory text before it.
        """
        parent, source = element.getparent(), element.get("SOURCE")
        if parent is not None and parent.tag in ORDERS and next(parent.iter("HD")) is element:
            self.line(element, level)
            return
        if parent is not None and parent.tag == "SUPLINF":
            if source == "HED" and element is lead_of(parent):
                self.open_heading("supplementary", _SUPPLEMENTARY, _name(element))
                self.line(element, level)
                return
            if source == "HD1" and 0 < self.outermost_rank < _SUPPLEMENTARY:
                self.close_headings()
        super().heading(element, level)

    def _preamble_block(self, kind: str) -> Handler:
        def handler(element: etree._Element, level: int) -> None:
            heading = lead_of(element)
            with self.part(kind, level + 1, "" if heading is None else _name(heading)):
                self.inside(element, level + 1, lead=" ")

        return handler

    def _whole(self, kind: str, element: etree._Element, label: str) -> None:
        """Write an element that ends all headings before it as one part."""
        level = self.close_headings() + 1
        with self.part(kind, level, label):
            self.inside(element, level, lead="\n")

    def _regulatory_text(self, element: etree._Element, _: int) -> None:
        """Write amendments of a part of the CFR; those of one part that follow each other are one part of the text."""
        title, number = element.get("TITLE", ""), element.get("PART", "")
        label = f"{title} CFR part {number}" if title and number else ""
        if label and self.open_label(_REGTEXT) == label:
            level = self.close_headings(_REGTEXT + 1)
        else:
            if number not in self.open_label(_PART):
                self.close_headings()
            level = self.open_heading("regtext", _REGTEXT, label)
        self.inside(element, level)

    def _division(self, element: etree._Element, level: int) -> None:
        """Write a chapter, part or subpart of the CFR: a container, or a heading for the siblings after it.

        What REGTEXT is about needs no part of its own; a subpart right after an instruction is what that adds.
        """
        kind, label = element.tag.lower(), _label_of(element)
        before, parent = element.getprevious(), element.getparent()
        # A container of what stands in it, a line of what REGTEXT is about, or a heading of what follows.
        if any(child.tag in _HOLDERS for child in element):
            with self.part(kind, level + 1, label):
                self.inside(element, level + 1, lead="\n")
        elif kind != "subpart" and parent is not None and parent.tag == "REGTEXT":
            self.inside(element, level, lead="\n")
        else:
            is_added = kind == "subpart" and before is not None and before.tag == "AMDPAR"
            rank = _NEW_SUBPART if is_added else _FLAT[element.tag]
            self.inside(element, self.open_heading(kind, rank, label), lead="\n")

    def _instruction(self, element: etree._Element, level: int) -> None:
        """Open the part of an amendatory instruction, with the heading that announces what it amends.

        Its label is what it amends, or its number if it does not say. One with neither number nor heading goes on
        with the one before.
        """
        before, number = element.getprevious(), _NUMBERED.match(line_of(element))
        heading = before if before is not None and before.tag == ANNOUNCED else None
        if number or heading is not None:
            label = _citation_of(heading) if heading is not None else _amended_by(element)
            label = label or f"Instruction {number[1] if number else ''}".rstrip()
            level = self.open_heading("amdpar", _INSTRUCTION, label)
        else:
            self.close_headings(_INSTRUCTION + 1)
        if heading is not None:
            self.inside(heading, level)
        self.line(element, level)

    def _announced(self, element: etree._Element, level: int) -> None:
        """Leave the heading to the instruction right after it; a file's own element of that name has none."""
        following = element.getnext()
        if following is None or following.tag != "AMDPAR":
            self.inside(element, level)

    def _section(self, element: etree._Element, level: int) -> None:
        with self.part("section", level + 1, _citation_of(element)):
            self.inside(element, level + 1)

    def _section_number(self, element: etree._Element, level: int) -> None:
        self.line(element, level)
        following = element.getnext()
        if following is not None and following.tag == "SUBJECT":
            self.writer.glue()
            self.writer.separate(" ")

    def _section_subject(self, element: etree._Element, level: int) -> None:
        self.writer.separate(" ")
        self.words(element, level)
        self.writer.separate("\n")

    def _appendix(self, element: etree._Element, level: int) -> None:
        with self.part("appendix", level + 1, _label_of(element)):
            self.inside(element, level + 1, lead="\n")

    def _president(self, element: etree._Element, level: int) -> None:
        if line_of(element) == "The President":
            self.handlers["TITLE3"](element, level)
        else:
            self.line(element, level)

    def _order_signature(self, element: etree._Element, _: int) -> None:
        self.close_headings()
        self.inside(element, self.open_heading("signature", _CHAPTER, ""))

    def _order_paragraph(self, element: etree._Element, level: int) -> None:
        """Write a paragraph of a presidential document; one that begins with a section's number opens that."""
        runs = runs_of(element.text)
        number = _ORDER_NUMBER.match(text_of(element.text))
        if number:
            emphasised = [run.strip(" .") for run in runs[1::2]]
            heading = emphasised[1] if len(emphasised) > 1 and runs[2].strip(" .") == "" else ""
            level = self.open_heading("section", _ORDER_SECTION, ". ".join(filter(None, (number[1], heading))))
        self.line(element, level)


def _name(heading: etree._Element) -> str:
    return line_of(heading).rstrip(": ")


def _citation_of(section: etree._Element) -> str:
    return " ".join(filter(None, (line_of(child) for child in section if child.tag in ("SECTNO", "SUBJECT"))))


def _amended_by(instruction: etree._Element) -> str:
    """Return what an instruction amends; a section's heading with it if only that one follows."""
    sections = []
    # The sections that the instruction puts in stand between it and the next one.
    for following in instruction.itersiblings():
        if following.tag == "AMDPAR":
            break
        if following.tag == "SECTION":
            sections.append(_citation_of(following))
    cited = _AMENDED.search(line_of(instruction)[:_INSTRUCTION_HEAD])
    if cited is None:
        return sections[0] if sections else ""
    # An authority, an appendix or a subpart goes by its own words, sections by their numbers.
    if not (number := cited["section"]):
        other = cited["authority"] or cited["other"]
        return other[0].upper() + other[1:]
    if cited["more"]:
        return f"§§ {number}{cited['more'].replace('§ ', '').replace('§', '')}"
    whole = len(sections) == 1 and re.match(rf"§ ?{re.escape(number)}(?![\w–-])", sections[0])
    return sections[0] if whole else f"§ {number}"


def _label_of(element: etree._Element) -> str:
    heading = lead_of(element)
    return "" if heading is None else line_of(heading)
