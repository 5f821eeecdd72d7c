"""The documents of a manifest once more: downloaded, read, and held to the digests that the manifest has of them."""

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from samplers.feeds.client import Answer, Client
from samplers.feeds.download import had, now, take_companions
from samplers.feeds.endpoints import Refused
from samplers.feeds.folder import Folder, listed_item
from samplers.feeds.request import FetchReport, FetchRequest, Item, Say
from samplers.feeds.table import source_feeds
from samplers.registry import source_format


def fetch_again(client: Client, source: str, target: Folder, request: FetchRequest, say: Say) -> FetchReport:
    """Fetch a manifest's documents again and report what came of it.

    A file goes into the folder only if every document of the manifest in it has the manifest's digest; another
    one is set aside as NAME.changed. differences.jsonl names each document that is changed or missing.
    """
    again = _Again(client, source, target, request)
    files = again.located()
    for number, (item, wanted) in enumerate(files.items(), start=1):
        if not wanted <= again.found.keys():
            again.take(item, wanted)
        if number % 25 == 0 or number == len(files):
            say(f"checked {number:,} of {len(files):,} files")
    held = [item for item in files if item.path in target.rows]
    again.notes += take_companions(client, source, target, held, say)
    return again.report(len(files))


class _Again:
    """What is known of each document so far: `found` with how it differs, "" if not at all, or lost for a reason."""

    def __init__(self, client: Client, source: str, target: Folder, request: FetchRequest) -> None:
        self._client = client
        self._source = source
        self._format = source_format(source)
        self._target = target
        self._request = request
        self.found: dict[str, str] = {}
        self.notes: list[str] = []
        self._lost: dict[str, str] = {}
        self._failed: list[tuple[str, str]] = []
        self._n_fetched = self._n_kept = self._n_bytes = 0
        self._held: set[str] = set()

    def located(self) -> dict[Item, set[str]]:
        """Return the files that may hold the documents wanted, in the order in which each comes first.

        A document comes from the file that the manifest names, else from where the feed looks.
        """
        listed = {
            doc_id: file.url for doc_id, file in self._request.listed.items() if doc_id in self._request.documents
        }
        named = [(doc_id, listed_item(url)) for doc_id, url in sorted(listed.items())]
        others = sorted(self._request.documents.keys() - listed.keys())
        files: dict[Item, set[str]] = {}
        for doc_id, item in (*named, *source_feeds(self._source).locate(self._client, others)):
            if isinstance(item, str):
                self._lost[doc_id] = item
            else:
                files.setdefault(item, set()).add(doc_id)
        return files

    def take(self, item: Item, wanted: set[str]) -> None:
        """Fetch a file, unless it is here as recorded, and compare the documents in it that are wanted."""
        here = self._target.read(item)
        try:
            answer = self._fetched(item) if here is None else Answer(here)
            documents = self._format.read(answer.data, item.path, self._request.options).documents
        except (Refused, DocumentError) as error:
            self._failed.append((item.path, str(error)))
            self._lost |= dict.fromkeys(wanted, str(error))
            return
        digests = {document.doc_id: document.sha256 for document in documents if document.doc_id in wanted}
        self._lost |= dict.fromkeys(wanted - digests.keys(), f"not in {item.path}")
        differing = {doc_id for doc_id, digest in digests.items() if digest != self._request.documents[doc_id]}
        for doc_id in digests:
            listed = self._request.listed.get(doc_id)
            is_other = listed is not None and listed.sha256 != sha256(answer.data)
            other = f"the same text, but {item.path} has other bytes than the manifest names" if is_other else ""
            how = f"changed in {item.path}" if doc_id in differing else other
            self.found[doc_id] = how or self.found.get(doc_id, "")
        if differing:
            self._target.set_aside(item, answer.data)
        elif digests:
            self._n_kept += here is not None
            self._n_fetched += here is None
            self._n_bytes += len(answer.data)
            self._held |= digests.keys()
            if here is None:
                self._target.put(item, answer, now(self._client))

    def _fetched(self, item: Item) -> Answer:
        """Return a file from its publisher; note where it comes from another place or is not the one recorded."""
        answer = had(self._client, item, self._format.max_bytes)
        if answer.moved_to:
            self.notes.append(f"{item.path} was redirected to {answer.moved_to}.")
        recorded = self._target.rows.get(item.path)
        if recorded is not None and recorded.sha256 != sha256(answer.data):
            self.notes.append(f"{item.path} is not the file of {recorded.fetched} byte for byte; its documents decide.")
        return answer

    def report(self, n_files: int) -> FetchReport:
        """Return the account, in files and in documents; write what differs into the folder too."""
        lost = sorted(self._request.documents.keys() - self.found.keys())
        missing = [(doc_id, self._lost.get(doc_id, "no file was found that could hold it")) for doc_id in lost]
        changed = sorted((doc_id, how) for doc_id, how in self.found.items() if how)
        self._target.differ([*changed, *missing])
        return FetchReport(
            n_listed=len(self._request.documents),
            n_files=n_files,
            n_fetched=self._n_fetched,
            n_kept=self._n_kept,
            n_bytes=self._n_bytes,
            n_same=len(self._held),
            failed=tuple(self._failed),
            changed=tuple(changed),
            missing=tuple(missing),
            notes=tuple(self.notes),
        )
