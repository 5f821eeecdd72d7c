"""A source's documents from its publisher into a folder: a new draw, or exactly those of a manifest.

Each file is asked for once, recorded as it comes, and counted. What is fetched again is read, and held to the digests
that the manifest has of its documents.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.base.errors import BackendError, DocumentError, InputError
from runner.base.store import disk_errors, exclusive
from samplers.feeds.client import Client, Clock
from samplers.feeds.endpoints import Refused
from samplers.feeds.folder import LOCK, Folder
from samplers.feeds.olrc import unzipped
from samplers.feeds.request import FetchReport, FetchRequest, Item, Say, drawn
from samplers.feeds.table import Feed, feed_of
from samplers.registry import source_format

LOST_SHARE = 0.2
"""This share of a draw may be lost: it is about what is drawn beyond the number wanted. With more lost the feed is not
what it was, the rest would not stand for the draw, and asking on is rude."""

SAID_EVERY = 25
"""Files between two lines of progress."""


def fetch(source: str, folder: Path, request: FetchRequest, say: Say, clock: Clock | None = None) -> FetchReport:
    """Return what was fetched into `folder`; a run that was stopped is finished by the next one, with the same files.

    Raise an InputError for a source without a feed, flags that it does not take, a missing key and a folder with
    other files; a BackendError for a server, a network or a disk that gave out, and if too much cannot be had.
    """
    feed = feed_of(source, request)
    if request.size < 1 or request.max_mb < 1 or request.seed < 0:
        raise InputError("--size and --max-mb are at least 1, --seed is at least 0.")
    if request.since and request.until and request.since > request.until:
        raise InputError(f"--since {request.since} is later than --until {request.until}.")
    # All that can be wrong with the flags is said before the folder is touched.
    known = source_format(source).options
    if unknown := sorted(request.options - known.keys()):
        raise InputError(f"{source} has no option {unknown[0]!r}. Its options: {', '.join(known) or 'none'}.")
    with disk_errors(folder):
        # The nearest place that is there already decides whether the folder can be made.
        there = next(path for path in (folder, *folder.parents, Path()) if os.path.lexists(path))
        if not there.is_dir():
            raise InputError(f"{there} is not a folder. Give a new folder with --to.")
        with exclusive(folder / LOCK, "another fetch into this folder"), Client(clock or Clock(), say) as client:
            files = Downloads(client, source, feed, Folder(folder, request.max_mb), say)
            if request.documents:
                files.again(request)
            else:
                files.fill(request)
    return files.report


class Downloads:
    """Files of a source into its folder, with an account of what became of them."""

    def __init__(self, client: Client, source: str, feed: Feed, target: Folder, say: Say) -> None:
        self.client = client
        self.source = source
        self.feed = feed
        self.target = target
        self.say = say
        self.format = source_format(source)
        self.report = FetchReport()

    def had(self, item: Item) -> bytes:
        """Return the file; raise Refused for what cannot be had."""
        limit = self.format.max_bytes
        data = self.client.file(item.url, item.kind, limit)
        return unzipped(data, item.path, limit) if item.kind == "zip" else data

    def fill(self, request: FetchRequest) -> None:
        """Put every missing file of a draw into the folder; raise a BackendError if too many cannot be had."""
        report, items = self.report, self._draw(request)
        report.n_files = len(items)
        for number, item in enumerate(items, start=1):
            try:
                if self.target.read(item) is None:
                    self._put(item, self.had(item))
                else:
                    report.n_kept += 1
            except Refused as error:
                report.failed.append((item.path, str(error)))
                self.say(str(error))
                self._stop_if_lost(len(items))
            if number % SAID_EVERY == 0 or number == len(items):
                self.say(f"{number:,} of {len(items):,} files")
        report.n_bytes = sum(row.bytes for item in items if (row := self.target.rows.get(item.path)))

    def _draw(self, request: FetchRequest) -> Sequence[Item]:
        """Return the draw that was begun in the folder, or a new one, which is kept there."""
        header = {
            "source": self.source,
            "size": request.size,
            "seed": request.seed,
            "since": str(request.since or ""),
            "until": str(request.until or ""),
            "congresses": sorted(request.congresses),
            "options": sorted(request.options),
        }
        # A run that was stopped goes on with the draw that it began, whatever is listed by now.
        draw = self.target.selection(header)
        if draw is None:
            frame = self.feed.listed(self.client, request, self.say)
            draw = drawn(frame, request.files_wanted(self.feed.per_file), request.seed)
            if not draw.items:
                raise BackendError(f"The feed of {self.source} lists nothing for these flags. Widen them.")
            self.target.select(header, draw)
            self.say(f"drew {len(draw.items):,} of {draw.n_listed:,} files")
        self.report.n_listed = draw.n_listed
        return draw.items

    def _put(self, item: Item, data: bytes) -> None:
        self.target.put(item, data, f"{self.client.clock.utc():%Y-%m-%dT%H:%M:%SZ}")
        self.report.n_fetched += 1

    def _stop_if_lost(self, n_files: int) -> None:
        failed = self.report.failed
        if len(failed) > LOST_SHARE * n_files:
            raise BackendError(
                f"{len(failed)} of {n_files} files cannot be had, more than {LOST_SHARE:.0%}, the first one since "
                f"{failed[0][1]} What was fetched is kept. Run the command again, or another draw with --seed and a "
                "new folder."
            )

    def again(self, request: FetchRequest) -> None:
        """Fetch a manifest's documents again and report what came of it.

        A file goes into the folder only if every document of the manifest in it has the manifest's digest; another
        one is set aside as NAME.changed. differences.jsonl names each document that is changed or missing.
        """
        report = self.report
        items: dict[Item, dict[str, str]] = {}
        for doc_id, digest in sorted(request.documents.items()):
            try:
                item = self.feed.found(self.client, doc_id) if self.feed.found else self.feed.file_of(doc_id)
            except Refused as error:
                report.missing.append((doc_id, str(error)))
                continue
            if item:
                items.setdefault(item, {})[doc_id] = digest
            else:
                report.missing.append((doc_id, "its id leads to no file of the publisher"))
        for number, (item, wanted) in enumerate(items.items(), start=1):
            self._compare(item, wanted, request.options)
            if number % SAID_EVERY == 0 or number == len(items):
                self.say(f"checked {number:,} of {len(items):,} files")
        report.n_listed, report.n_files = len(request.documents), len(items)
        report.changed.sort()
        report.missing.sort()
        self.target.differ([*report.changed, *report.missing])

    def _compare(self, item: Item, wanted: Mapping[str, str], options: frozenset[str]) -> None:
        """Fetch a file, unless it is here as recorded, and compare the documents in it that are wanted."""
        report, here = self.report, self.target.read(item)
        try:
            data = self.had(item) if here is None else here
            documents = self.format.read(data, item.path, options).documents
        except (Refused, DocumentError) as error:
            report.failed.append((item.path, str(error)))
            report.missing += [(doc_id, str(error)) for doc_id in wanted]
            return
        digests = {document.doc_id: document.sha256 for document in documents if document.doc_id in wanted}
        changed = [doc_id for doc_id, digest in digests.items() if digest != wanted[doc_id]]
        report.missing += [(doc_id, f"not in {item.path}") for doc_id in wanted.keys() - digests.keys()]
        report.changed += [(doc_id, f"changed in {item.path}") for doc_id in changed]
        # One document that differs makes the file another edition: none of it may pass for the old one.
        if changed:
            self.target.set_aside(item, data)
        elif digests:
            if here is None:
                self._put(item, data)
            else:
                report.n_kept += 1
            report.n_bytes += len(data)
            report.same |= digests.keys()
