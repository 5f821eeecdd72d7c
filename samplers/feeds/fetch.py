"""A source's documents from its publisher into a folder: a new draw, or exactly those of a manifest.

Each file is asked for once, recorded as it comes, and counted. What is fetched again is read, and held to the digests
that the manifest has of its documents.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import sha256
from runner.base.errors import BackendError, DocumentError, InputError
from runner.base.store import disk_errors, exclusive
from samplers.corpus.recognise import named_elsewhere
from samplers.feeds.client import Answer, Client, Clock
from samplers.feeds.endpoints import Endpoints, Refused
from samplers.feeds.folder import LOCK, Folder, listed_item
from samplers.feeds.names import STATUS
from samplers.feeds.olrc import unzipped
from samplers.feeds.request import Draw, FetchReport, FetchRequest, Item, Say
from samplers.feeds.table import Feed, feed_of, source_feeds
from samplers.registry import source_format

FAILURES = 10
FAILURE_SHARE = 0.1
"""So many files, and this share of a draw, may fail; with more the feed is not what it was, and asking on is rude."""

LOST_SHARE = 0.2
"""This share of a draw, however small it is, may be lost: it is about what is drawn beyond the number wanted."""

SAID_EVERY = 25
"""Files between two lines of progress."""


def fetch(source: str, folder: Path, request: FetchRequest, say: Say, clock: Clock | None = None) -> FetchReport:
    """Return what was fetched into `folder`; a run that was stopped is finished by the next one, with the same files.

    Raise an InputError for a source without a feed, flags that it does not take, a missing key and a folder with
    other files; a BackendError for a server, a network or a disk that gave out, and if too much cannot be had.
    """
    name, feed = feed_of(source, request)
    if request.size < 1 or request.max_mb < 1 or request.seed < 0:
        raise InputError("--size and --max-mb are at least 1, --seed is at least 0.")
    if request.since and request.until and request.since > request.until:
        raise InputError(f"--since {request.since} is later than --until {request.until}.")
    # All that can be wrong with the flags is said before the folder is touched.
    known = source_format(source).options
    if unknown := sorted(request.options - known.keys()):
        raise InputError(f"{source} has no option {unknown[0]!r}. Its options: {', '.join(known) or 'none'}.")
    endpoints = Endpoints(request.endpoints)
    with disk_errors(folder):
        # The nearest place that is there already decides whether the folder can be made.
        there = next(path for path in (folder, *folder.parents, Path()) if os.path.lexists(path))
        if not there.is_dir():
            raise InputError(f"{there} is not a folder. Give a new folder with --to.")
        with (
            exclusive(folder / LOCK, "another fetch into this folder"),
            Client(endpoints, clock or Clock(), say) as client,
        ):
            files = Downloads(client, source, Folder(folder, request.max_mb), say)
            if request.documents:
                files.again(request)
            else:
                files.fill(_drawn(files, name, feed, request))
    return files.report


def _drawn(files: "Downloads", name: str, feed: Feed, request: FetchRequest) -> Draw:
    """Return the draw that was begun in the folder, or a new one, which is kept there."""
    header = {
        "source": files.source,
        "feed": name,
        "size": request.size,
        "seed": request.seed,
        "since": str(request.since or ""),
        "until": str(request.until or ""),
        "congresses": sorted(request.congresses),
        "options": sorted(request.options),
    }
    # A run that was stopped goes on with the draw that it began, whatever is listed by now.
    draw = files.target.selection(header)
    if draw is None:
        draw = feed.draw(files.client, request, files.say)
        if not draw.items:
            raise BackendError(f"The feed {name} of {files.source} lists nothing for these flags. Widen them.")
        files.target.select(header, draw)
        files.say(f"drew {len(draw.items):,} of {draw.n_listed:,} files")
    return draw


class Downloads:
    """Files of a source into its folder, with an account of what became of them."""

    def __init__(self, client: Client, source: str, target: Folder, say: Say) -> None:
        self.client = client
        self.source = source
        self.target = target
        self.say = say
        self.format = source_format(source)
        self.report = FetchReport()

    def had(self, item: Item) -> Answer:
        """Return the file; raise Refused for what cannot be had."""
        limit = self.format.max_bytes
        answer = self.client.file(item.url, item.kind, limit)
        return answer._replace(data=unzipped(answer.data, item.path, limit)) if item.kind == "zip" else answer

    def fill(self, draw: Draw) -> None:
        """Put a draw and what goes with it into the folder; raise a BackendError if it lost too much to stand for it.

        Say first if the source's reader does not take such files.
        """
        report, suffixes, items = self.report, self.format.suffixes, draw.items
        report.n_listed, report.n_files = draw.n_listed, len(items)
        if unread := sorted({Path(item.path).suffix for item in items} - set(suffixes)):
            named = {named_elsewhere(b"", item.path, self.source) for item in items} - {""}
            taken = f"the reader of {self.source} reads {', '.join(suffixes)} alone."
            report.notes += [f"The feed serves {', '.join(unread)}; {taken}", *sorted(named)]
            for note in report.notes:
                self.say(note)
        self._take(items)
        # What was lost may not be lost by chance, and the rest would not stand for the draw.
        if len(report.failed) > LOST_SHARE * len(items):
            raise BackendError(
                f"{len(report.failed)} of {len(items)} files cannot be had, more than {LOST_SHARE:.0%}, the first one "
                f"since {report.failed[0][1]} The other {len(items) - len(report.failed)} are kept in "
                f"{self.target.root}. Run the command again, or another draw with --seed and a new folder."
            )
        report.n_bytes = sum(row.bytes for item in items if (row := self.target.rows.get(item.path)))
        self._take_statuses(items)

    def _put(self, item: Item, answer: Answer) -> None:
        self.target.put(item, answer.data, f"{self.client.clock.utc():%Y-%m-%dT%H:%M:%SZ}")
        self.report.n_fetched += 1

    def _take(self, items: Sequence[Item], what: str = "files") -> None:
        """Put every missing file into the folder; raise a BackendError if too many cannot be had."""
        failed = self.report.failed
        for number, item in enumerate(items, start=1):
            try:
                if self.target.read(item) is None:
                    self._put(item, self.had(item))
                else:
                    self.report.n_kept += 1
            except Refused as error:
                failed.append((item.path, str(error)))
                self.say(str(error))
                if len(failed) > max(FAILURES, FAILURE_SHARE * len(items)):
                    raise BackendError(
                        f"{len(failed)} of {len(items)} files cannot be had, the first one since {failed[0][1]} The "
                        "feed is not what this tool knows; what was fetched is kept."
                    ) from error
            if number % SAID_EVERY == 0 or number == len(items):
                self.say(f"{number:,} of {len(items):,} {what}")

    def _take_statuses(self, items: Sequence[Item]) -> None:
        """Fetch the status of each bill, which the reader takes beside it; note what fails.

        Nothing is lost without them but the policy area of a stratum, so none of them ends a run.
        """
        if self.source != "bills" or not self.format.sidecar:
            return
        companions = [STATUS.item(item.path.removesuffix(".xml")) for item in items]
        statuses = {item.path: item for item in companions if item and re.search(self.format.sidecar, item.path)}
        files = Downloads(self.client, self.source, self.target, self.say)
        try:
            files._take([statuses[path] for path in sorted(statuses)], "files of bill status")
        except BackendError as error:
            self.report.notes.append(f"The bills are there, the files of their status are not all: {error}")
        else:
            if lost := files.report.failed:
                self.report.notes.append(f"{len(lost)} files of bill status could not be had.")

    def again(self, request: FetchRequest) -> None:
        """Fetch a manifest's documents again and report what came of it.

        A file goes into the folder only if every document of the manifest in it has the manifest's digest; another
        one is set aside as NAME.changed. differences.jsonl names each document that is changed or missing.
        """
        report, documents = self.report, request.documents
        # Documents come from the file that the manifest names, else from where the feed looks.
        listed = {doc_id: file.url for doc_id, file in request.listed.items() if doc_id in documents}
        named = [(doc_id, listed_item(url)) for doc_id, url in sorted(listed.items())]
        others = source_feeds(self.source).locate(self.client, sorted(documents.keys() - listed.keys()))
        lost = dict.fromkeys(documents, "no file was found that could hold it")
        items: dict[Item, set[str]] = {}
        for doc_id, item in (*named, *others):
            if isinstance(item, str):
                lost[doc_id] = item
            else:
                items.setdefault(item, set()).add(doc_id)
        differences: dict[str, str] = {}  # how each document differs, "" if not at all
        for number, (item, wanted) in enumerate(items.items(), start=1):
            # Of several files that may hold a document, those after the one that did are not asked for.
            if not wanted <= differences.keys():
                self._compare(item, wanted, request, differences, lost)
            if number % SAID_EVERY == 0 or number == len(items):
                self.say(f"checked {number:,} of {len(items):,} files")
        self._take_statuses([item for item in items if item.path in self.target.rows])
        report.n_listed, report.n_files = len(documents), len(items)
        report.changed = sorted((doc_id, how) for doc_id, how in differences.items() if how)
        report.missing = [(name, lost[name]) for name in sorted(documents.keys() - differences.keys())]
        self.target.differ([*report.changed, *report.missing])

    def _compare(
        self, item: Item, wanted: set[str], request: FetchRequest, differences: dict[str, str], lost: dict[str, str]
    ) -> None:
        """Fetch a file, unless it is here as recorded, and compare the documents in it that are wanted."""
        report, here = self.report, self.target.read(item)
        try:
            answer = self.had(item) if here is None else Answer(here)
            documents = self.format.read(answer.data, item.path, request.options).documents
        except (Refused, DocumentError) as error:
            report.failed.append((item.path, str(error)))
            lost |= dict.fromkeys(wanted, str(error))
            return
        if answer.moved_to:
            report.notes.append(f"{item.path} was redirected to {answer.moved_to}.")
        # A document differs by its own digest, or by that of its file where the manifest names one.
        digests = {document.doc_id: document.sha256 for document in documents if document.doc_id in wanted}
        lost |= dict.fromkeys(wanted - digests.keys(), f"not in {item.path}")
        differing = {doc_id for doc_id, digest in digests.items() if digest != request.documents[doc_id]}
        for doc_id in digests:
            listed = request.listed.get(doc_id)
            how = ""
            if doc_id in differing:
                how = f"changed in {item.path}"
            elif listed is not None and listed.sha256 != sha256(answer.data):
                how = f"the same text, but {item.path} has other bytes than the manifest names"
            # Of a document that is in two volumes, a difference in either counts.
            differences[doc_id] = how or differences.get(doc_id, "")
        # One document that differs makes the file another edition: none of it may pass for the old one.
        if differing:
            self.target.set_aside(item, answer.data)
        elif digests:
            if here is None:
                self._put(item, answer)
            else:
                report.n_kept += 1
            report.n_bytes += len(answer.data)
            report.same |= digests.keys()
