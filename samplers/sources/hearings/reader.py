"""Transcripts of congressional hearings, as govinfo publishes them in htm, as documents."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from runner.base.errors import DocumentError
from runner.base.records import Document, Section, Span
from samplers.formats.headings import cut
from samplers.formats.printed.paragraphs import Paragraph, paragraphs
from samplers.formats.printed.text import END_MARK, GRAPHIC, RULE, read_page, removed, typographic, without_page_marks
from samplers.formats.stated import bucket, ordinal
from samplers.formats.text_writer import visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.hearings.front import RUNNING, announced, contents_at, front
from samplers.sources.hearings.parts import PARTING, Part, parts, titles_at_end
from samplers.sources.hearings.people import HasWord, affiliated, recased, speakers, word_finder

LENGTH_BUCKETS = ((100_000, "short"), (250_000, "medium"))
"""Characters of text below which a hearing is short or medium: the quarters of the live collection are about these."""

TURN_BUCKETS = ((1, "no-turns"), (120, "few-turns"))
"""Turns below which a hearing has none or few: the median is 166."""

SHORT_RULE = 16
"""Characters of a rule that parts two items; longer ones go across the page, under a title or over a footnote."""

COVER_LENGTH = 8_000
"""Characters of a page among which the jacket number stands."""

_SPACED = re.compile(r"[A-Z](?: [A-Z]){4,}")
"""A word set with a space between its letters."""

_CHAMBERS = {"h": "house", "s": "senate", "j": "joint"}
_HEADER = re.compile(r"\n\[(?P<chamber>House|Senate|Joint)\b[^\[\]\n]{0,40} Hearing,? (?P<congress>\d{2,3})\b")
_HEARING = re.compile(r"(?:JOINT |FIELD |OVERSIGHT |BUSINESS )*(?:HEARINGS?|MEETING)(?: [A-Z ]{2,30})?", re.I)
_JACKET = re.compile(r"\n *(\d{2,3})-(\d{3})(?: ?[A-Za-z]{2,3})?(?= {3}|\n)")
_PACKAGE = re.compile(r"CHRG-(?P<congress>\d{2,3})(?P<chamber>[hsj])hrg\d{3,6}[\w-]*", re.I)
_BEFORE = re.compile(r"\bBEFORE THE\b", re.I)
_COMMITTEE = re.compile(
    r"\b(?<!SUB)(?:COMMITTEE|COMMISSION) ON (?:THE )?(?P<on>.{3,90}?)"
    r"(?= (?:U\.? ?S\.?|UNITED STATES)\b| HOUSE OF| SENATE\b| CONGRESS OF| ONE HUNDRED\b| AND THE (?:SUB|COMM)"
    r"| OF THE\b|$)",
    re.I,
)
_JOINT_COMMITTEE = re.compile(r"\bJOINT (?P<on>[A-Z]{4,20}) COMMITTEE\b", re.I)


class _Facts(NamedTuple):
    """What the cover of a hearing says; a part that nothing states is ""."""

    doc_id: str
    congress: str
    chamber: str
    committee: str
    headline: str


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    title, opening, page, left_out = _printed(data, name)
    # Who speaks is known by the whole page, so it comes before what is front matter.
    contents = contents_at(page)
    openings = {i: p.text for i, p in enumerate(page) if p.indent == RUNNING and i > contents and "\t" not in p.text}
    turns = speakers(openings, announced(page))
    before = front(page, contents, min(turns, default=len(page)))
    end = titles_at_end(page, max(turns, default=len(page)))
    left_out["titles of scanned pages"] += sum(visible(p.text) for p in page[end:])
    del page[end:]
    for i, reason in before.left_out.items():
        left_out[reason] += visible(page[i].text)
    facts = _facts(title, opening, name, [p.text for p in page[: before.roster] if p.text != PARTING])
    turns = {i: speaker for i, speaker in turns.items() if i >= before.start}
    # Sections by paragraph, then the text of the paragraphs that are kept, then both by character.
    outline = [
        Part(0, before.start, 1, "front matter", ""),
        Part(0, before.roster, 2, "cover", ""),
        Part(before.roster, before.contents, 2, "roster", "Members and staff"),
        Part(before.contents, before.start, 2, "contents", "Contents"),
        *parts(page, before.start, turns),
    ]
    kept = [i for i, p in enumerate(page) if i not in before.left_out and p.text != PARTING]
    text, ends = _composed(page, kept, outline)
    if not text:
        raise DocumentError(name, "a hearing without text")
    # Titles are in capitals: the text itself says how their words are spelt.
    has_word = word_finder(text)
    named = affiliated(page[before.start :], set(turns.values()), has_word)
    length, n_turns = bucket(len(text), LENGTH_BUCKETS, "long"), bucket(len(turns), TURN_BUCKETS, "many-turns")
    is_official = _PACKAGE.fullmatch(facts.doc_id)
    document = Document(
        doc_id=facts.doc_id,
        text=text,
        title=_title(facts, has_word),
        stratum=f"{facts.congress or 'unknown'}/{facts.chamber or 'unknown'}/{length}/{n_turns}",
        family=facts.doc_id,
        url=f"https://www.govinfo.gov/app/details/{facts.doc_id}" if is_official else "",
        sections=tuple(_sections(outline, kept, ends, named)),
        status="" if turns else "no speech",
    )
    return FileContent((document,), left_out)


FORMAT = SourceFormat(_read, suffixes=(".htm", ".html"))


def _printed(data: bytes, name: str) -> tuple[str, str, list[Paragraph], Counter[str]]:
    """Return a page's title, its first characters as printed, its paragraphs without furniture, what was left out."""
    source = read_page(data, name)
    title, opening, text, left_out = source.title, source.text[:COVER_LENGTH], source.text, source.left_out
    del source  # The page's text would stay beside each later one: 8 times the file at the peak, not 6.
    text = removed(GRAPHIC, text, left_out, "places of scanned pages")
    text = removed(END_MARK, text, left_out, "end marks")
    text = removed(RULE, text, left_out, "rules", _rule)
    text = without_page_marks(text, left_out)
    page = paragraphs(text, RUNNING, left_out)
    for i, (indent, is_apart, words) in enumerate(page):
        is_spaced = indent > RUNNING and _SPACED.fullmatch(words)
        page[i] = Paragraph(indent, is_apart, words.replace(" ", "") if is_spaced else typographic(words, left_out))
    return title, opening, page, left_out


def _rule(match: re.Match[str]) -> str:
    rule = match[0].strip()
    return f"\n\n{PARTING}\n" if rule[0] == "_" and len(rule) <= SHORT_RULE else "\n"


def _facts(title: str, opening: str, name: str, cover: Sequence[str]) -> _Facts:
    """Return the facts in a page's `<title>`, its first characters and the paragraphs of its cover.

    `name` fills what they leave open, and gives the id. DocumentError for a page that is no hearing.
    """
    header, named = _HEADER.search(opening), _PACKAGE.search(name)
    if not header and not named and not any(map(_HEARING.fullmatch, cover)):
        raise DocumentError(name, f"no hearing: the page begins {opening.strip()[:60]!r}")
    jacket = _JACKET.search(opening)
    chamber = header["chamber"].lower() if header else _CHAMBERS[named["chamber"].lower()] if named else ""
    congress = (header or named or {"congress": ""})["congress"].lstrip("0")
    lines = _BEFORE.split(" ".join(cover), maxsplit=1)[-1]
    committee = _COMMITTEE.search(lines) or _JOINT_COMMITTEE.search(lines)
    # Govinfo's package id is the file's name. The jacket number may be misprinted: it counts if the name is another.
    printed = (
        f"CHRG-{congress}{chamber[:1]}hrg{''.join(jacket.groups()) if jacket else ''}" if congress and chamber else ""
    )
    if named:
        doc_id = named[0]
    else:
        doc_id = printed if jacket and printed else re.sub(r"[^\w.-]+", "-", name.rpartition("/")[2].rpartition(".")[0])
    return _Facts(
        doc_id=doc_id,
        congress=congress,
        chamber=chamber,
        committee=re.sub(r",(?=\w)", ", ", committee["on"].strip(" ,.")) if committee else "",
        headline=title.strip(" -"),
    )


def _title(facts: _Facts, has_word: HasWord) -> str:
    """Return what every chunk carries: congress, chamber and committee, then the title as its words are spelt."""
    chamber, committee = facts.chamber.capitalize(), recased(facts.committee, has_word)
    where = committee if committee.startswith(chamber) else " ".join(filter(None, (chamber, committee)))
    held = ", ".join(filter(None, (f"{ordinal(facts.congress)} Congress" if facts.congress else "", where)))
    head = f"Hearing ({held})" if held else "Hearing"
    return cut(f"{head}: {recased(facts.headline, has_word)}" if facts.headline else head)


def _composed(page: Sequence[Paragraph], kept: Sequence[int], outline: Sequence[Part]) -> tuple[str, list[int]]:
    """Return the text of the paragraphs that are kept, and where each and the break before it ends, in turn.

    A blank line stands before a section and where one is printed, a line break before other paragraphs.
    """
    begins = {kept[at] for at in (bisect_left(kept, part.first) for part in outline) if at < len(kept)}
    pieces: list[str] = []
    for i in kept:
        pieces += ("\n\n" if page[i].is_apart or i in begins else "\n", page[i].text)
    pieces[:1] = [""] * len(pieces[:1])
    return "".join(pieces), list(accumulate(map(len, pieces)))


def _sections(
    outline: Sequence[Part], kept: Sequence[int], ends: Sequence[int], named: Mapping[str, str]
) -> Iterator[Section]:
    for start, stop, level, kind, label in outline:
        first, end = bisect_left(kept, start), bisect_left(kept, stop)
        if first < end:
            yield Section(Span(ends[2 * first], ends[2 * end - 1]), level, kind, named.get(label, label))
