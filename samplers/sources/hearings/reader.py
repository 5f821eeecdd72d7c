"""Transcripts of congressional hearings, as govinfo publishes them in htm, as documents."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from runner.base.errors import DocumentError
from runner.base.records import Document, Section, Span
from samplers.formats.printed.layout import n_marks
from samplers.formats.printed.paragraphs import Paragraph, paragraphs
from samplers.formats.printed.text import END_MARK, GRAPHIC, RULE, read_page, removed, typographic, without_page_marks
from samplers.formats.stated import bucket
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.hearings.affiliations import affiliated
from samplers.sources.hearings.facts import COVER_LENGTH, Facts, Words, facts_of
from samplers.sources.hearings.front import RUNNING, Front, announced, contents_at, front
from samplers.sources.hearings.parts import PARTING, Part, parts, titles_at_end
from samplers.sources.hearings.speakers import speakers

LENGTH_BUCKETS = ((100_000, "short"), (250_000, "medium"))
"""Characters of text below which a hearing is short or medium: the quarters of the live collection are about these."""

TURN_BUCKETS = ((1, "no-turns"), (120, "few-turns"))
"""Turns below which a hearing has none or few: the median is 166."""

SHORT_RULE = 16
"""Characters of a rule that parts two items; longer ones go across the page, under a title or over a footnote."""

_SPACED = re.compile(r"[A-Z](?: [A-Z]){4,}")
"""A word set with a space between its letters."""


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    title, opening, found, left_out = _printed(data, name)
    contents = contents_at(found)
    openings = {i: p.text for i, p in enumerate(found) if p.indent == RUNNING and i > contents and "\t" not in p.text}
    turns = speakers(openings, announced(found, contents))
    before = front(found, contents, min(turns, default=len(found)))
    titles = titles_at_end(found, max(turns, default=len(found)))
    left_out["titles of scanned pages"] += sum(_visible(p.text) for p in found[titles:])
    del found[titles:]
    for i, reason in before.left_out.items():
        left_out[reason] += _visible(found[i].text)
    facts = facts_of(title, opening, name, [p.text for p in found[: before.roster] if p.text != PARTING])
    turns = {i: speaker for i, speaker in turns.items() if i >= before.start}
    return FileContent((_document(facts, found, before, turns),), left_out)


def _printed(data: bytes, name: str) -> tuple[str, str, list[Paragraph], Counter[str]]:
    """A page's title, its first characters as printed, its paragraphs without furniture, and what was left out."""
    page = read_page(data, name)
    title, opening, text, left_out = page.title, page.text[:COVER_LENGTH], page.text, page.left_out
    del page  # The page's text would stay beside each later one: 8 times the file at the peak, not 6.
    if "GRAPHIC" in text:
        text = removed(GRAPHIC, text, left_out, "places of scanned pages")
    if "[all]" in text:
        text = removed(END_MARK, text, left_out, "end marks")
    text = removed(RULE, text, left_out, "rules", _rule)
    text = without_page_marks(text, left_out)
    found = paragraphs(text, RUNNING)
    kept = n_marks("\n".join([paragraph.text for paragraph in found]))
    left_out["leaders and hyphens at line ends"] += n_marks(text) - kept
    for i, (indent, is_apart, words) in enumerate(found):
        if ("-" in words and "--" in words) or "`" in words or ("'" in words and "''" in words):
            found[i] = Paragraph(indent, is_apart, typographic(words, left_out))
        elif indent > RUNNING and _SPACED.fullmatch(words):
            found[i] = Paragraph(indent, is_apart, words.replace(" ", ""))
    return title, opening, found, left_out


FORMAT = SourceFormat(_read, suffixes=(".htm", ".html"))


def _document(facts: Facts, found: Sequence[Paragraph], before: Front, turns: Mapping[int, str]) -> Document:
    outline = [
        Part(0, before.start, 1, "front matter", ""),
        Part(0, before.roster, 2, "cover", ""),
        Part(before.roster, before.contents, 2, "roster", "Members and staff"),
        Part(before.contents, before.start, 2, "contents", "Contents"),
        *parts(found, before.start, turns),
    ]
    kept = [i for i, p in enumerate(found) if i not in before.left_out and p.text != PARTING]
    text, ends = _composed(found, kept, outline)
    words = Words(text)
    named = affiliated(found[before.start :], set(turns.values()), words)
    if not text:
        raise DocumentError(facts.name, "a hearing without text")
    length, n_turns = bucket(len(text), LENGTH_BUCKETS, "long"), bucket(len(turns), TURN_BUCKETS, "many-turns")
    return Document(
        doc_id=facts.doc_id,
        text=text,
        title=facts.title(words),
        stratum=f"{facts.congress or 'unknown'}/{facts.chamber or 'unknown'}/{length}/{n_turns}",
        family=facts.doc_id,
        url=facts.url,
        sections=tuple(_sections(outline, kept, ends, named)),
        status="" if turns else "no speech",
    )


def _composed(found: Sequence[Paragraph], kept: Sequence[int], outline: Sequence[Part]) -> tuple[str, list[int]]:
    """The text of the paragraphs that are kept, and where each and the break before it ends, in turn.

    A blank line stands before a section and where one is printed, a line break before other paragraphs.
    """
    begins = {kept[at] for at in (bisect_left(kept, part.first) for part in outline) if at < len(kept)}
    pieces: list[str] = []
    for i in kept:
        _, is_apart, text = found[i]
        pieces += ("\n\n" if is_apart or i in begins else "\n", text)
    pieces[:1] = [""] * len(pieces[:1])
    return "".join(pieces), list(accumulate(map(len, pieces)))


def _sections(
    outline: Sequence[Part], kept: Sequence[int], ends: Sequence[int], named: Mapping[str, str]
) -> Iterator[Section]:
    for start, stop, level, kind, label in outline:
        first, end = bisect_left(kept, start), bisect_left(kept, stop)
        if first < end:
            yield Section(Span(ends[2 * first], ends[2 * end - 1]), level, kind, named.get(label, label))


def _rule(match: re.Match[str]) -> str:
    rule = match[0].strip()
    return f"\n\n{PARTING}\n" if rule[0] == "_" and len(rule) <= SHORT_RULE else "\n"


def _visible(text: str) -> int:
    """Characters of a printed text that are not white space, of which it has three."""
    return len(text) - text.count(" ") - text.count("\n") - text.count("\t") - text.count(PARTING)
