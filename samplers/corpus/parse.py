"""A corpus as documents, with an account of what could not be read and of what was left out."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from runner.base.errors import DocumentError, InputError
from runner.base.records import Document
from samplers.corpus.inputs import CorpusFile, corpus_files, printable
from samplers.corpus.outcome import bytes_of, outcome, within_limits
from samplers.corpus.recognise import NOT_ITS_SOURCE, named_elsewhere
from samplers.corpus.shares import outcomes
from samplers.registry import source_format
from samplers.source_format import MAX_BYTES, FileContent, SourceFormat

QUARANTINE_LIMIT = 0.02
"""Share of unreadable files above which a run stops: more than that is no accident, and biases the sample."""

N_NAMED = 10

_LOOKED_INTO = frozenset((".htm", ".html", ".xml"))
"""Suffixes of files that are not the source's and may be known by their first lines all the same."""
MAX_ID, MAX_FIELD = 150, 400
"""Characters of an id, which names files on disk, and of a title, stratum, family or address."""


_OUTSIDE = "a link out of the folder, to a file that cannot be read as one of this source"
"""The reason for every such file: others would quote its first words."""


@dataclass(frozen=True)
class Reading:
    """What a corpus held."""

    documents: tuple[Document, ...]
    """Sorted by doc_id, ids unique."""
    quarantined: tuple[tuple[str, str], ...]
    """Place and reason of each file or document that could not be taken, in the order of places."""
    n_files: int
    """Files that the source's reader was given."""
    n_empty: int
    """Those of them that hold no document and none that is out of scope."""
    n_duplicates: int
    """Documents left out because an equal one with the same id had been read."""
    ignored: Mapping[str, int]
    """Files that the source's reader was not given, by kind; links to folders or to nothing and pipes are one."""
    n_superseded: int
    """Documents of which a newer version was read, if the source keeps only the newest."""
    n_characters: int
    """Characters of the files that became text, white space not counted."""
    skipped: Mapping[str, int]
    """Documents outside the source's scope, by reason."""
    left_out: Mapping[str, int]
    """Characters of the files that became no text, by reason, white space not counted."""
    contradictions: tuple[tuple[str, str], ...] = ()
    """Place and sentence where a file or its name says two things of one document, in the order of places."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the file that a document was read from, by id."""

    @property
    def coverage(self) -> float:
        """The share of the characters of all readable files that became text; 1 if there are none."""
        total = self.n_characters + sum(self.left_out.values())
        return self.n_characters / total if total else 1.0


def read_corpus(path: Path, source: str, options: frozenset[str] = frozenset()) -> Reading:
    """Every document of a corpus, its files read in the order of their places.

    Two documents of one id: an equal one is dropped, a different one is quarantined, so the first place wins.
    InputError for a place that holds no file or no document of the source, for an option that the source does not
    have, and for more than QUARANTINE_LIMIT unreadable files.
    """
    row = source_format(source)
    _check_options(source, row, options)
    gathered = _Gathered(row)
    with corpus_files(path, source) as files:
        read, sidecars, ignored = _parted(files, row, source)
        if not read:
            kinds, others = " or ".join(row.suffixes), "".join(f"\n  - {n} x {kind}" for kind, n in _few(ignored))
            raise InputError(f"{path} holds no {kinds} file.{others}\nGive --corpus-path another place.")
        # Members of an archive and rows of a database are read by way of a handle, which one process has.
        in_turn = (outcome(source, options, file) for file in read)
        found = outcomes(source, options, read) if os.path.isdir(path) else in_turn  # noqa: PTH112  # as corpus_files asks
        for file, (content, digest) in zip(read, found, strict=True):
            gathered.take(file, content, digest)
        newest, n_superseded = _newest(gathered.in_order(), row)
        documents = gathered.enriched(newest, sidecars)
    _stop_if_many(gathered.quarantined, len(read) + len(sidecars), path)
    if not documents:
        skipped = ", ".join(f"{n} left out as {reason}" for reason, n in sorted(gathered.skipped.items()))
        raise InputError(f"{path} holds no document of {source}: {skipped or f'{gathered.n_empty} empty files'}.")
    return gathered.reading(documents, len(read), ignored, n_superseded)


def _check_options(source: str, row: SourceFormat, options: frozenset[str]) -> None:
    if unknown := sorted(options - set(row.options)):
        has = ", ".join(row.options) or "none"
        raise InputError(f"{source} has no option {unknown[0]!r}. Options: {has}. Edit `sample` in the plan.")


def _parted(
    files: Iterable[CorpusFile], row: SourceFormat, source: str
) -> tuple[list[CorpusFile], list[CorpusFile], Counter[str]]:
    """The files to read, the sidecars, and by kind how many are neither; a sidecar is one whatever its suffix."""
    read, sidecars = [], []
    ignored: Counter[str] = Counter()
    for file in files:
        if not file.is_regular:
            ignored["links and what is no file"] += 1
        elif row.sidecar and re.search(row.sidecar, file.place):
            sidecars.append(file)
        elif file.place.lower().endswith(row.suffixes):
            read.append(file)
        else:
            ignored[_kind(file, source)] += 1
    return read, sidecars, ignored


def _kind(file: CorpusFile, source: str) -> str:
    """What a file is that is not of the source: by its first lines or name if they are known, else by its suffix."""
    suffix = PurePosixPath(file.place).suffix.lower()
    data = b""
    if suffix in _LOOKED_INTO and file.size <= MAX_BYTES:
        with suppress(DocumentError):
            data = file.load()
    return named_elsewhere(data, file.place, source) or (f"{suffix} file" if 1 < len(suffix) < 9 else "other file")


def _few(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The most frequent first, N_NAMED of them."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:N_NAMED]


class _Gathered:
    """What the files read so far held."""

    def __init__(self, row: SourceFormat) -> None:
        self.quarantined: list[tuple[str, str]] = []
        self.contradictions: list[tuple[str, str]] = []
        self.skipped: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.n_empty = self.n_duplicates = self.n_characters = 0
        self._row = row
        self._documents: dict[str, tuple[Document, str]] = {}
        self._files: dict[str, str] = {}

    def take(self, file: CorpusFile, content: FileContent | str, digest: str) -> None:
        """Add the documents of a file with this digest, or its place and the reason why there are none."""
        if isinstance(content, str):
            self.quarantined.append((file.place, _OUTSIDE if file.leads_out else content))
            return
        self.n_empty += not content.documents and not content.skipped
        self.n_characters -= content.supplied
        self.skipped.update(content.skipped)
        self.left_out.update(content.left_out)
        self.contradictions += [(file.place, said[:MAX_FIELD]) for said in content.contradictions]
        for document in content.documents:
            self._add(document, file.place, digest)

    def reading(
        self, documents: Sequence[Document], n_files: int, ignored: Mapping[str, int], n_superseded: int
    ) -> Reading:
        """The account of all that was read, with the documents that stay."""
        return Reading(
            documents=tuple(documents),
            quarantined=tuple(sorted(self.quarantined)),
            n_files=n_files,
            n_empty=self.n_empty,
            n_duplicates=self.n_duplicates,
            ignored=ignored,
            n_superseded=n_superseded,
            n_characters=self.n_characters,
            skipped=self.skipped,
            left_out=self.left_out,
            contradictions=tuple(sorted(self.contradictions)),
            files=self._files,
        )

    def in_order(self) -> list[Document]:
        """The documents by id."""
        return [self._documents[doc_id][0] for doc_id in sorted(self._documents)]

    def enriched(self, documents: Sequence[Document], sidecars: Iterable[CorpusFile]) -> Sequence[Document]:
        """The documents with what the sidecars add; a sidecar that cannot be used is quarantined."""
        enrich = self._row.enrich
        if enrich is None:
            return documents
        usable: dict[str, bytes] = {}
        for file in sidecars:
            try:
                data = bytes_of(file, self._row.max_bytes)
                # Each is tried alone: in one reading of all of them, one damaged file would take the others with it.
                within_limits(file.place, enrich, (), {file.place: data})
                if usable.setdefault(file.place, data) != data:
                    raise DocumentError(file.place, "another file of this path has other bytes")
            except DocumentError as error:
                self.quarantined.append((file.place, _OUTSIDE if file.leads_out else error.reason))
        added = enrich(documents, usable)
        return [old if fault(new) else new for old, new in zip(documents, added, strict=True)]

    def _add(self, document: Document, place: str, digest: str) -> None:
        self.n_characters += sum(map(len, document.text.split()))
        if reason := fault(document):
            self.quarantined.append((place, reason))
            return
        known, first_place = self._documents.setdefault(document.doc_id, (document, place))
        if known is document:
            self._files[document.doc_id] = digest
            return
        if known.sha256 == document.sha256:
            self.n_duplicates += 1
            return
        self.quarantined.append((place, f"its id has another text ({document.doc_id} was read from {first_place})"))


def fault(document: Document) -> str:
    """Why a document cannot be taken, "" for one that can: a damaged file may state an id of a thousand digits."""
    if len(document.doc_id) > MAX_ID or "/" in document.doc_id or not document.doc_id.isprintable():
        return f"its id is no file name ({printable(document.doc_id[:40])})"
    fields = {"title": document.title, "stratum": document.stratum, "family": document.family, "url": document.url}
    long = next((name for name, value in fields.items() if len(value) > MAX_FIELD or "\n" in value), "")
    return f"its {long} is longer than {MAX_FIELD} characters or a line" if long else ""


def _newest(documents: list[Document], row: SourceFormat) -> tuple[list[Document], int]:
    """The documents without older versions of a family, and how many those were; the smaller id wins a tie."""
    if row.newest is None:
        return documents, 0
    best: dict[str, Document] = {}
    for document in documents:
        known = best.setdefault(document.family, document)
        if row.newest(document) > row.newest(known):
            best[document.family] = document
    kept = [document for document in documents if best[document.family] is document]
    return kept, len(documents) - len(kept)


def _stop_if_many(quarantined: Sequence[tuple[str, str]], n_files: int, path: Path) -> None:
    n_places = len({place for place, _ in quarantined})
    if n_places <= QUARANTINE_LIMIT * n_files:
        return
    others = Counter(found[1] for _, reason in quarantined if (found := NOT_ITS_SOURCE.match(reason)))
    if others and sum(others.values()) > n_places / 2:
        source, n_of_it = others.most_common(1)[0]
        raise InputError(
            f"{n_of_it} of {n_files} files in {path} are {source}. Did you mean the source {source}? "
            "Else give the folder that holds the source's own files."
        )
    reasons = Counter(reason for _, reason in quarantined)
    first = {reason: place for place, reason in reversed(quarantined)}
    named = "".join(f"\n  - {n} x {reason} (first {first[reason]})" for reason, n in _few(reasons))
    more = f"\n  and {len(reasons) - N_NAMED} more reasons" if len(reasons) > N_NAMED else ""
    raise InputError(
        f"{n_places} of {n_files} files in {path} cannot be read, more than {QUARANTINE_LIMIT:.0%}:"
        f"{named}{more}\nRepair or remove them and run the command again."
    )
