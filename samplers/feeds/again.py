"""The documents of a manifest once more: downloaded, read, and held to the digests that the manifest has of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from samplers.feeds.client import Answer, Client
from samplers.feeds.download import had, now, take_companions
from samplers.feeds.endpoints import Refused
from samplers.feeds.folder import Folder, differences, listed_item
from samplers.feeds.registry import source_feeds
from samplers.feeds.request import FetchReport, FetchRequest, Item, Located, Say, located
from samplers.registry import source_format


def fetch_again(client: Client, source: str, target: Folder, request: FetchRequest, say: Say) -> FetchReport:
    """Fetch a manifest's documents again and report what came of it.

    A file goes into the folder only if every document of the manifest in it has the manifest's digest; another
    one is set aside as NAME.changed. differences.jsonl names each document that is changed or missing.
    """
    located = _located(client, source, request)
    again = _Again(client, source, target, request)
    for number, (item, wanted) in enumerate(located.items, start=1):
        if not wanted <= again.settled:
            again.take(item, wanted)
        if number % 25 == 0 or number == len(located.items):
            say(f"checked {number:,} of {len(located.items):,} files")
    held = [item for item, _ in located.items if item.path in target.rows]
    again.notes += take_companions(client, source, target, held, say)
    return again.report(located.missing, len(located.items))


def _located(client: Client, source: str, request: FetchRequest) -> Located:
    """The files of all documents wanted: those that the manifest names, and for the others where the feed looks."""
    listed = {doc_id: file.url for doc_id, file in request.listed.items() if doc_id in request.documents}
    others = source_feeds(source).locate(client, sorted(request.documents.keys() - listed.keys()))
    named = located((doc_id, listed_item(url)) for doc_id, url in sorted(listed.items()))
    return Located((*named.items, *others.items), {**named.missing, **others.missing})


@dataclass
class _Again:
    """What is known of each document so far: the same, changed, or lost until some file has it."""

    client: Client
    source: str
    target: Folder
    request: FetchRequest
    same: set[str] = field(default_factory=set)
    changed: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_fetched: int = 0
    n_kept: int = 0
    n_bytes: int = 0
    held: set[str] = field(default_factory=set)

    @property
    def settled(self) -> set[str]:
        """Ids of documents that were found, the same or changed."""
        return self.same | self.changed.keys()

    def take(self, item: Item, wanted: frozenset[str]) -> None:
        """Fetch a file, unless it is here as recorded, and compare the documents in it that are wanted."""
        is_here = self.target.has(item)
        try:
            answer = Answer(self.target.read(item), "", "") if is_here else self._fetched(item)
            documents = source_format(self.source).read(answer.data, item.path, self.request.options).documents
        except (Refused, DocumentError) as error:
            self.failed.append((item.path, str(error)))
            self.lost |= dict.fromkeys(wanted, str(error))
            return
        digests = {document.doc_id: document.sha256 for document in documents if document.doc_id in wanted}
        self.lost |= dict.fromkeys(wanted - digests.keys(), f"not in {item.path}")
        differing = {doc_id for doc_id, digest in digests.items() if digest != self.request.documents[doc_id]}
        listed = {doc_id: self.request.listed[doc_id].sha256 for doc_id in digests if doc_id in self.request.listed}
        other = {doc_id for doc_id, digest in listed.items() if digest != sha256(answer.data)} - differing
        self.same |= digests.keys() - differing - other
        self.changed |= dict.fromkeys(differing, f"changed in {item.path}")
        self.changed |= dict.fromkeys(other, f"the same text, but {item.path} has other bytes than the manifest names")
        if differing:
            self.target.set_aside(item, answer.data)
        elif digests:
            self.n_kept += is_here
            self.n_fetched += not is_here
            self.n_bytes += len(answer.data)
            self.held |= digests.keys()
            if not is_here:
                self.target.put(item, answer, now(self.client))

    def _fetched(self, item: Item) -> Answer:
        answer = had(self.client, item, source_format(self.source).max_bytes)
        if answer.moved_to:
            self.notes.append(f"{item.path} was redirected to {answer.moved_to}.")
        recorded = self.target.rows.get(item.path)
        if recorded is not None and recorded.sha256 != sha256(answer.data):
            self.notes.append(f"{item.path} is not the file of {recorded.fetched} byte for byte; its documents decide.")
        return answer

    def report(self, unlocated: Mapping[str, str], n_files: int) -> FetchReport:
        """The account, in files and in documents; what differs is in differences.jsonl too."""
        reasons = {**self.lost, **unlocated}
        lost = sorted(self.request.documents.keys() - self.settled)
        missing = [(doc_id, reasons.get(doc_id, "no file was found that could hold it")) for doc_id in lost]
        changed = sorted(self.changed.items())
        differences(self.target.root, [*changed, *missing])
        return FetchReport(
            n_listed=len(self.request.documents),
            n_files=n_files,
            n_fetched=self.n_fetched,
            n_kept=self.n_kept,
            n_bytes=self.n_bytes,
            n_same=len(self.held),
            failed=tuple(self.failed),
            changed=tuple(changed),
            missing=tuple(missing),
            notes=tuple(self.notes),
        )
