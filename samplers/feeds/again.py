"""The documents of a manifest once more: downloaded, read, and held to the digests that the manifest has of them."""

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from samplers.feeds.client import Answer
from samplers.feeds.download import SAID_EVERY, Downloads
from samplers.feeds.endpoints import Refused
from samplers.feeds.folder import listed_item
from samplers.feeds.request import FetchRequest, Item
from samplers.feeds.table import source_feeds


def fetch_again(files: Downloads, request: FetchRequest) -> None:
    """Fetch a manifest's documents again and report what came of it.

    A file goes into the folder only if every document of the manifest in it has the manifest's digest; another
    one is set aside as NAME.changed. differences.jsonl names each document that is changed or missing.
    """
    again = _Again(files, request)
    located = again.located()
    for number, (item, wanted) in enumerate(located.items(), start=1):
        if not wanted <= again.found.keys():
            again.take(item, wanted)
        if number % SAID_EVERY == 0 or number == len(located):
            files.say(f"checked {number:,} of {len(located):,} files")
    files.take_companions([item for item in located if item.path in files.target.rows])
    again.conclude(len(located))


class _Again:
    """What is known of each document so far: `found` with how it differs, "" if not at all, or lost for a reason."""

    def __init__(self, files: Downloads, request: FetchRequest) -> None:
        self.found: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._held: set[str] = set()
        self._files = files
        self._request = request

    def located(self) -> dict[Item, set[str]]:
        """Return the files that may hold the documents wanted, in the order in which each comes first.

        A document comes from the file that the manifest names, else from where the feed looks.
        """
        documents = self._request.documents
        listed = {doc_id: file.url for doc_id, file in self._request.listed.items() if doc_id in documents}
        named = [(doc_id, listed_item(url)) for doc_id, url in sorted(listed.items())]
        feeds, others = source_feeds(self._files.source), sorted(documents.keys() - listed.keys())
        items: dict[Item, set[str]] = {}
        for doc_id, item in (*named, *feeds.locate(self._files.client, others)):
            if isinstance(item, str):
                self._lost[doc_id] = item
            else:
                items.setdefault(item, set()).add(doc_id)
        return items

    def take(self, item: Item, wanted: set[str]) -> None:
        """Fetch a file, unless it is here as recorded, and compare the documents in it that are wanted."""
        files, report = self._files, self._files.report
        here = files.target.read(item)
        try:
            answer = self._fetched(item) if here is None else Answer(here)
            documents = files.format.read(answer.data, item.path, self._request.options).documents
        except (Refused, DocumentError) as error:
            report.failed.append((item.path, str(error)))
            self._lost |= dict.fromkeys(wanted, str(error))
            return
        digests = {document.doc_id: document.sha256 for document in documents if document.doc_id in wanted}
        self._lost |= dict.fromkeys(wanted - digests.keys(), f"not in {item.path}")
        differing = {doc_id for doc_id, digest in digests.items() if digest != self._request.documents[doc_id]}
        for doc_id in digests:
            listed = self._request.listed.get(doc_id)
            how = ""
            if doc_id in differing:
                how = f"changed in {item.path}"
            elif listed is not None and listed.sha256 != sha256(answer.data):
                how = f"the same text, but {item.path} has other bytes than the manifest names"
            # Of a document that is in two volumes, a difference in either counts.
            self.found[doc_id] = how or self.found.get(doc_id, "")
        if differing:
            files.target.set_aside(item, answer.data)
        elif digests:
            if here is None:
                files.put(item, answer)
            else:
                report.n_kept += 1
            report.n_bytes += len(answer.data)
            self._held |= digests.keys()

    def _fetched(self, item: Item) -> Answer:
        """Return a file from its publisher; note where it comes from another place or is not the one recorded."""
        answer, notes = self._files.had(item), self._files.report.notes
        if answer.moved_to:
            notes.append(f"{item.path} was redirected to {answer.moved_to}.")
        recorded = self._files.target.rows.get(item.path)
        if recorded is not None and recorded.sha256 != sha256(answer.data):
            notes.append(f"{item.path} is not the file of {recorded.fetched} byte for byte; its documents decide.")
        return answer

    def conclude(self, n_files: int) -> None:
        """Complete the account, in files and in documents; write what differs into the folder too."""
        report, documents = self._files.report, self._request.documents
        lost = sorted(documents.keys() - self.found.keys())
        report.n_listed, report.n_files, report.n_same = len(documents), n_files, len(self._held)
        report.changed = sorted((doc_id, how) for doc_id, how in self.found.items() if how)
        report.missing = [(name, self._lost.get(name, "no file was found that could hold it")) for name in lost]
        self._files.target.differ([*report.changed, *report.missing])
