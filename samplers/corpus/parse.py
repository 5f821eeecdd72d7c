"""A corpus as documents, with an account of what could not be read and of what was left out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from runner.base.errors import DocumentError, InputError
from runner.base.progress import watched
from runner.base.records import Document
from samplers.corpus.inputs import CorpusFile, corpus_files, printable
from samplers.corpus.outcome import Outcome, outcomes
from samplers.corpus.recognise import NOT_ITS_SOURCE, named_elsewhere
from samplers.corpus.shelf import Shelf, Texts
from samplers.registry import DOCUMENTS, SOURCES, source_format
from samplers.source import Unit
from samplers.source_format import MAX_BYTES, Card, SourceFormat

QUARANTINE_LIMIT = 0.02
"""Share of unreadable files above which a run stops: more than that is no accident, and biases the sample."""

N_NAMED, N_UNREAD = 10, 50
"""Kinds of files, and files that cannot be read, that a message names."""

_LOOKED_INTO = frozenset((".htm", ".html", ".xml"))
"""Suffixes of files that are not the source's and may be known by their first lines all the same."""

MAX_ID, MAX_FIELD = 150, 400
"""Characters of an id, which names files on disk, and of a title, stratum, family or address."""

_OUTSIDE = "a link out of the folder, to a file that cannot be read as one of this source"
"""The reason for every such file: others would quote its first words."""


@dataclass(kw_only=True)
class Reading:
    """Documents of a corpus, with an account of its files.

    `cards` are by the ids of their documents, in the order of these; the documents themselves lie on the shelf.
    `quarantined` has place and reason of each file or document that could not be taken, in the order of places.
    Characters are counted without white space: `n_characters` became text, `left_out` has the others by reason.
    """

    cards: dict[str, Card] = field(default_factory=dict)
    shelf: Shelf = field(default_factory=Shelf)
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    swallowing: dict[str, str] = field(default_factory=dict)
    """Documents that may hold others, by id: the number of the first other one, "" if only the length tells."""
    n_files: int = 0
    """Files that the source's reader was given."""
    n_empty: int = 0
    """Those of them that hold no document and none that is out of scope."""
    n_duplicates: int = 0
    """Documents left out because an equal one with the same id had been read."""
    n_superseded: int = 0
    """Documents of which a newer version was read, if the source keeps only the newest."""
    n_characters: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    """Files that the source's reader was not given, by kind; links to folders or to nothing and pipes are one."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Documents outside the source's scope, by reason."""
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def documents(self) -> tuple[Document, ...]:
        """All documents, read from the shelf at once."""
        return tuple(map(self.shelf.document, self.cards.values()))

    @property
    def texts(self) -> Texts:
        """The texts by id, each read from the shelf when it is wanted."""
        return Texts(self.shelf, self.cards)

    @property
    def coverage(self) -> float:
        """Share of the characters of all readable files that became text; 1 if there are none."""
        total = self.n_characters + self.left_out.total()
        return self.n_characters / total if total else 1.0


def read_corpus(path: Path, source: str, options: frozenset[str] = frozenset(), *, whole: bool = True) -> Reading:
    """Return every document of a corpus, its files read in the order of their places.

    Two documents of one id: an equal one is dropped, a different one is quarantined, so the first place wins. Raise an
    InputError for a place that holds no file or no document of the source, for an option that the source does not have,
    and, unless the rest need not stand for the `whole`, for more than QUARANTINE_LIMIT unreadable files.
    """
    row = source_format(source)
    named = {name: value for name, _, value in (option.partition("=") for option in options)}
    if unknown := sorted(named.keys() - row.options.keys()):
        has = ", ".join(row.options) or "none"
        raise InputError(f"{source} has no option {unknown[0]!r}. Options: {has}. Edit `sample` in the plan.")
    is_own = source == DOCUMENTS.name
    with corpus_files(path, named.get("table", "") if is_own else f"{source}_documents", records=is_own) as files:
        reading = Reading()
        read = []
        for file in files:
            if file.is_regular and file.place.lower().endswith(row.suffixes):
                read.append(file)
            else:
                reading.ignored[_kind(file, source) if file.is_regular else "links and what is no file"] += 1
        if not read:
            kinds = " or ".join(row.suffixes)
            others = "".join(f"\n  - {n} x {kind}" for kind, n in _few(reading.ignored))
            raise InputError(f"{path} holds no {kinds} file.{others}\nGive another place.")
        reading.n_files = len(read)
        # Of two files with one id the first place wins, so they are taken in order, whoever read them.
        places: dict[str, str] = {}
        unit = SOURCES.get(source, DOCUMENTS).unit
        held = zip(read, outcomes(source, options, read), strict=True)
        for file, outcome in watched(held, len(read), "reading", "files"):
            _take(reading, places, unit, file, outcome)
        cards = _newest([card for _, card in sorted(reading.cards.items())], row)
        reading.n_superseded = len(places) - len(cards)
        reading.cards = {card.doc_id: card for card in cards}
        reading.swallowing = {name: reading.swallowing[name] for name in reading.cards if name in reading.swallowing}
    reading.quarantined.sort()
    if whole or not cards:
        _stop_if_many(reading.quarantined, len(read), path)
    if not cards:
        skipped = ", ".join(f"{n} left out as {reason}" for reason, n in sorted(reading.skipped.items()))
        raise InputError(f"{path} holds no document of {source}: {skipped or f'{reading.n_empty} empty files'}.")
    return reading


def _kind(file: CorpusFile, source: str) -> str:
    """Return what a file not of the source is: by its first lines or name if they are known, else by its suffix."""
    suffix = PurePosixPath(file.place).suffix.lower()
    data = b""
    if suffix in _LOOKED_INTO and file.size <= MAX_BYTES:
        with suppress(DocumentError):
            data = file.load()
    return named_elsewhere(data, file.place, source) or (f"{suffix} file" if 1 < len(suffix) < 9 else "other file")


def _few(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent first, N_NAMED of them."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:N_NAMED]


def _take(reading: Reading, places: dict[str, str], unit: Unit, file: CorpusFile, outcome: Outcome) -> None:
    """Add to the reading what a file holds; `places` has the file of each document that was taken so far."""
    content = outcome.content
    if isinstance(content, str):
        reading.quarantined.append((file.place, _OUTSIDE if file.leads_out else content))
        return
    reading.n_empty += not content.documents and not content.skipped
    reading.n_characters -= content.supplied
    reading.skipped.update(content.skipped)
    reading.left_out.update(content.left_out)
    for document in content.documents:
        reading.n_characters += sum(map(len, document.text.split()))
        if reason := fault(document):
            reading.quarantined.append((file.place, reason))
            continue
        known = reading.cards.get(document.doc_id)
        if known is None:
            reading.cards[document.doc_id] = reading.shelf.put(document, outcome.digest)
            places[document.doc_id] = file.place
            if (other := swallowed(document, unit)) is not None:
                reading.swallowing[document.doc_id] = other
        elif reading.shelf.document(known).sha256 == document.sha256:
            reading.n_duplicates += 1
        else:
            reason = f"its id has another text ({document.doc_id} was read from {places[document.doc_id]})"
            reading.quarantined.append((file.place, reason))


def fault(document: Document) -> str:
    """Return why a document cannot be taken, "" if it can: a damaged file may state an id of a thousand digits."""
    if len(document.doc_id) > MAX_ID or "/" in document.doc_id or not document.doc_id.isprintable():
        return f"its id is no file name ({printable(document.doc_id[:40])})"
    fields = {"title": document.title, "stratum": document.stratum, "family": document.family, "url": document.url}
    long = next((name for name, value in fields.items() if _is_long(value)), "")
    return f"its {long} is longer than {MAX_FIELD} characters or a line" if long else ""


def swallowed(document: Document, unit: Unit) -> str | None:
    """Return the number of the first other document in one, "" if only its length tells; None within what bounds it."""
    own = f"{document.title} {document.doc_id}"
    # A search for a newline takes a fiftieth of one that tries `^` at every character.
    begun = re.finditer(rf"\n{unit.number}", document.text, re.M) if unit.number else ()
    for number in (match[1].rstrip(".") for match in begun):
        if not re.search(rf"(?<![\w.]){re.escape(number)}(?!\w)", own):
            return number
    return "" if 0 < unit.longest < len(document.text) else None


def _is_long(value: str) -> bool:
    return len(value) > MAX_FIELD or "\n" in value


def _newest(documents: list[Card], row: SourceFormat) -> list[Card]:
    """Return the documents without older versions of a family; the smaller id wins a tie."""
    if row.newest is None:
        return documents
    best: dict[str, Card] = {}
    for document in documents:
        known = best.setdefault(document.family, document)
        if row.newest(document) > row.newest(known):
            best[document.family] = document
    return [document for document in documents if best[document.family] is document]


def _stop_if_many(quarantined: Sequence[tuple[str, str]], n_files: int, path: Path) -> None:
    # A file may have several faults, but it is one file of the share.
    n_places = len({place for place, _ in quarantined})
    if n_places <= QUARANTINE_LIMIT * n_files:
        return
    # If most are of one other source, that is the mistake, and ten reasons would hide it.
    others = Counter(match[1] for _, reason in quarantined if (match := NOT_ITS_SOURCE.match(reason)))
    if others and others.total() > n_places / 2:
        source, n_of_it = others.most_common(1)[0]
        raise InputError(
            f"{n_of_it} of {n_files} files in {path} are {source}. Did you mean the source {source}? "
            "Else give the folder that holds the source's own files."
        )
    named = "".join(f"\n  - {line}" for line in unread_lines(quarantined))
    raise InputError(
        f"{n_places} of {n_files} files in {path} cannot be read, more than {QUARANTINE_LIMIT:.0%}:"
        f"{named}\nRepair them, or take them out, and run the command again."
    )


def unread_lines(quarantined: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line a reason with its files, N_UNREAD of them in all, and how many more there are."""
    places: dict[str, list[str]] = {}
    for place, reason in quarantined:
        places.setdefault(reason, []).append(place)
    lines, left = [], N_UNREAD
    for reason, of_reason in sorted(places.items(), key=lambda item: (-len(item[1]), item[0])):
        if left:
            named = of_reason[:left]
            left -= len(named)
            lines.append(f"{len(of_reason)} x {reason}: {', '.join(named)}{', ...' * (len(named) < len(of_reason))}")
    if len(quarantined) > N_UNREAD:
        lines.append(f"{len(quarantined) - N_UNREAD} more, which are named once these are mended")
    return lines
