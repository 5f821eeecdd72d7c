"""Files of publishers into a folder: each asked for once, recorded as it comes, and counted."""

import re
from collections.abc import Sequence

from runner.base.errors import BackendError
from samplers.feeds.client import Answer, Client
from samplers.feeds.endpoints import Refused
from samplers.feeds.folder import Folder
from samplers.feeds.names import STATUS
from samplers.feeds.olrc import unzipped
from samplers.feeds.request import FetchReport, Item, Say
from samplers.registry import source_format

FAILURES = 10
FAILURE_SHARE = 0.1
"""So many files, and this share of a draw, may fail; with more the feed is not what it was, and asking on is rude."""

LOST_SHARE = 0.2
"""This share of a draw, however small it is, may be lost: it is about what is drawn beyond the number wanted."""

SAID_EVERY = 25
"""Files between two lines of progress."""


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
        """Return the file and the validators of its answer; raise Refused for what cannot be had."""
        limit = self.format.max_bytes
        answer = self.client.file(item.url, item.kind, limit)
        return answer._replace(data=unzipped(answer.data, item.path, limit)) if item.kind == "zip" else answer

    def put(self, item: Item, answer: Answer) -> None:
        """Put a file into the folder and count it."""
        self.target.put(item, answer, f"{self.client.clock.utc():%Y-%m-%dT%H:%M:%SZ}")
        self.report.n_fetched += 1

    def take(self, items: Sequence[Item], what: str = "files") -> None:
        """Put every missing file into the folder; raise a BackendError if too many cannot be had."""
        failed = self.report.failed
        for number, item in enumerate(items, start=1):
            try:
                if self.target.read(item) is None:
                    self.put(item, self.had(item))
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

    def fill(self, items: Sequence[Item]) -> None:
        """Put a draw into the folder; raise a BackendError if it lost too much to stand for it."""
        self.take(items)
        failed = self.report.failed
        if len(failed) > LOST_SHARE * len(items):
            raise BackendError(
                f"{len(failed)} of {len(items)} files cannot be had, more than {LOST_SHARE:.0%}, the first one since "
                f"{failed[0][1]} The other {len(items) - len(failed)} are kept in {self.target.root}. Run the command "
                "again, or another draw with --seed and a new folder."
            )

    def take_companions(self, items: Sequence[Item]) -> None:
        """Fetch what the source's reader reads beside these files, the status of each bill; note what fails.

        Nothing is lost without them but the policy area of a stratum, so none of them ends a run.
        """
        if self.source != "bills" or not self.format.sidecar:
            return
        found = [STATUS.item(item.path.removesuffix(".xml")) for item in items]
        statuses = {item.path: item for item in found if item and re.search(self.format.sidecar, item.path)}
        files = Downloads(self.client, self.source, self.target, self.say)
        try:
            files.take([statuses[path] for path in sorted(statuses)], "files of bill status")
        except BackendError as error:
            self.report.notes.append(f"The bills are there, the files of their status are not all: {error}")
        else:
            if lost := files.report.failed:
                self.report.notes.append(f"{len(lost)} files of bill status could not be had.")
