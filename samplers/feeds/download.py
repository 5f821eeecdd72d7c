"""Files of a draw into its folder, and the files that go with them."""

import re
from collections.abc import Sequence

from runner.base.errors import BackendError
from samplers.feeds.client import Answer, Client
from samplers.feeds.endpoints import Refused
from samplers.feeds.folder import Folder
from samplers.feeds.names import STATUS
from samplers.feeds.olrc import unzipped
from samplers.feeds.request import Item, Say
from samplers.registry import source_format

FAILURES = 10
FAILURE_SHARE = 0.1
"""So many files, and this share of a draw, may fail; with more the feed is not what it was, and asking on is rude."""

LOST_SHARE = 0.2
"""This share of a draw, however small it is, may be lost: it is about what is drawn beyond the number wanted."""


class Downloads:
    """What became of the files asked for: fetched, there already as recorded, or failed with a reason."""

    def __init__(self, client: Client, target: Folder, limit: int, say: Say) -> None:
        self._client = client
        self._target = target
        self._limit = limit
        self._say = say
        self.failed: list[tuple[str, str]] = []
        self.n_fetched = self.n_kept = 0

    def take(self, items: Sequence[Item], what: str) -> None:
        """Put every missing file into the folder; raise a BackendError if too many cannot be had."""
        for number, item in enumerate(items, start=1):
            if self._target.read(item) is not None:
                self.n_kept += 1
            else:
                self._fetch(item, len(items))
            if number % 25 == 0 or number == len(items):
                self._say(f"{number:,} of {len(items):,} {what}")

    def check(self, n_items: int) -> None:
        """Raise a BackendError if the folder lost too much of a draw to stand for it."""
        if len(self.failed) > LOST_SHARE * n_items:
            raise BackendError(
                f"{len(self.failed)} of {n_items} files cannot be had, more than {LOST_SHARE:.0%}, the first one since "
                f"{self.failed[0][1]} The other {n_items - len(self.failed)} are kept in {self._target.root}. Run the "
                "command again, or another draw with --seed and a new folder."
            )

    def _fetch(self, item: Item, n_items: int) -> None:
        try:
            answer = had(self._client, item, self._limit)
        except Refused as error:
            self.failed.append((item.path, str(error)))
            self._say(str(error))
            if len(self.failed) > max(FAILURES, FAILURE_SHARE * n_items):
                raise BackendError(
                    f"{len(self.failed)} of {n_items} files cannot be had, the first one since {self.failed[0][1]} The "
                    "feed is not what this tool knows; what was fetched is kept."
                ) from error
        else:
            self._target.put(item, answer, now(self._client))
            self.n_fetched += 1


def had(client: Client, item: Item, limit: int) -> Answer:
    """Return the file and the validators of its answer; raise Refused for what cannot be had."""
    answer = client.file(item.url, item.kind, limit)
    return answer._replace(data=unzipped(answer.data, item.path, limit)) if item.kind == "zip" else answer


def now(client: Client) -> str:
    """Return the time as records have it."""
    return f"{client.clock.utc():%Y-%m-%dT%H:%M:%SZ}"


def take_companions(client: Client, source: str, target: Folder, items: Sequence[Item], say: Say) -> tuple[str, ...]:
    """Fetch what the source's reader reads beside these files, the status of each bill; return a note of what fails.

    Nothing is lost without them but the policy area of a stratum, so none of them ends a run.
    """
    wanted = source_format(source).sidecar
    if source != "bills" or not wanted:
        return ()
    found = [STATUS.item(item.path.removesuffix(".xml")) for item in items]
    statuses = {item.path: item for item in found if item and re.search(wanted, item.path)}
    files = Downloads(client, target, source_format(source).max_bytes, say)
    try:
        files.take([statuses[path] for path in sorted(statuses)], "files of bill status")
    except BackendError as error:
        return (f"The bills are there, the files of their status are not all: {error}",)
    return (f"{len(files.failed)} files of bill status could not be had.",) if files.failed else ()
