"""One walk over bill DTD, USLM 1.0 and USLM 2.x, by local name: text, sections, facts.

What becomes text: the official title, then the body in document order. Number, heading and first text of a level
share a line, joined by spaces; headings of sections, notes and larger levels end theirs; every further block is a
line; a blank line stands around sections and larger levels. Cells of a table row are separated by a tab.

What does not, counted by reason in `Walk.dropped`: metadata and form (both become `Walk.facts`), the enacting formula,
tables of contents, struck text (`changed="deleted"` and the like; what is inserted stays, so a reported bill reads as
reported), marginal and foot notes, page marks, attestation and running marks, soft hyphens and zero-width characters.

Quoted blocks, the text that a bill puts into another law, are text of the section around them: no sections are
recorded inside. The inside of a note of the U.S. Code is treated alike.

Dashes and quotation marks stay as the author wrote them ("78dd–1" and "78dd-1" differ here; making them match is a
matter of retrieval). The bill DTD leaves some marks to its stylesheet, so they are supplied here: “ ” and ‘ ’ around
`quote` and `quoted-block`, and the full stop between a run-in heading and its text.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from runner.base.errors import DocumentError
from runner.base.records import Section, Span
from samplers.formats.safe_xml import local_name, parse
from samplers.formats.text_writer import Part
from samplers.formats.uslm.elements import Place
from samplers.formats.uslm.facts import facts
from samplers.formats.uslm.labels import label
from samplers.formats.uslm.marks import resolve
from samplers.formats.uslm.names import RANKS, SECTION_RANK, SMALLEST_RANK
from samplers.formats.uslm.walker import Rules, Walker, exceptions

LABEL_REACH = 1_000
"""Characters of a section or account in which the words are looked for that label one without heading."""


@dataclass(frozen=True)
class Walk:
    """What a file holds: text in NFC, its sections, its facts and an account of what was left out.

    `facts` is described at `facts.facts`. `dropped` counts characters that are not white space by reason;
    `supplied` those of the text that stand in no file. Counted in NFC,
    characters of the file = dropped + characters of the text - supplied.
    """

    text: str
    sections: tuple[Section, ...]
    facts: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, int]
    supplied: int


def walk(data: bytes, name: str, roots: frozenset[str]) -> Walk:
    """Return the text, sections and facts of a file whose root element is one of `roots`; DocumentError otherwise.

    Sections are in text order and nested or disjoint; a part that holds no text is not recorded.
    """
    root = parse(data, name)
    if local_name(root) not in roots:
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    walker = Walker(name, Rules(bool(exceptions(root))))
    walker.children(root, 0, Place())
    if not walker.has_body():
        raise DocumentError(name, "no text in the body")
    known = facts(root)
    del root  # the tree takes four times the bytes of the file, and resolving as much again
    return walked(walker, known)


def walked(walker: Walker, known: Mapping[str, tuple[str, ...]] | None = None) -> Walk:
    """Return text and sections of what a walker has written, with the facts of its file where they are given."""
    resolved = resolve(walker.pieces, walker.parts)
    text = resolved.text
    sections = tuple(_section(part, text) for part in walker.parts if part.start >= 0)
    walker.dropped["soft hyphens and zero-width characters"] += resolved.n_invisible
    return Walk(text, sections, known or {}, walker.dropped, resolved.supplied)


def _section(part: Part, text: str) -> Section:
    start, end = part.start, part.end
    opening = ""
    if not part.heading and RANKS.get(part.kind, SMALLEST_RANK) <= SECTION_RANK:
        # A label shows a few words: copying the whole of every part would copy the text once a level.
        opening = text[start : min(end, start + LABEL_REACH)]
    return Section(Span(start, end), part.level, part.kind, label(part.kind, part.num, part.heading, opening))
