"""A folder that a fetch fills: files put in whole, each recorded once it is there, the draw kept beside them."""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import JSON, jsonl_bytes, read_jsonl, remove_stale, sha256, write_atomic
from runner.base.errors import BackendError, InputError
from samplers.feeds.client import ACCEPTED
from samplers.feeds.endpoints import is_official
from samplers.feeds.request import Draw, Item

FETCHED = "fetched.jsonl"
SELECTION = "selection.jsonl"
DIFFERENCES = "differences.jsonl"
LOCK = ".fetch.lock"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]{0,120}")
_OWN = frozenset((FETCHED, SELECTION, DIFFERENCES, LOCK))


class Fetched(NamedTuple):
    """One row of fetched.jsonl."""

    path: str
    url: str
    bytes: int
    sha256: str
    fetched: str


class Folder:
    """A folder with the record of what was fetched into it; the caller holds its lock."""

    def __init__(self, root: Path, max_mb: int) -> None:
        self.root = root
        self._limit = max_mb * 1_000_000
        remove_stale(root)
        strange = [path.name for path in sorted(root.iterdir()) if path.name not in _OWN]
        if strange and not (root / FETCHED).exists() and not (root / SELECTION).exists():
            raise InputError(f"{root} holds files that no fetch brought ({strange[0]}). Give a new folder with --to.")
        (root / FETCHED).touch()
        self.rows = _recorded(root / FETCHED)

    def read(self, item: Item) -> bytes | None:
        """Return the item's file if it is here as recorded, from the same address."""
        row, path = self.rows.get(item.path), self.root / item.path
        if row is None or row.url != item.url or not path.is_file():
            return None
        data = path.read_bytes()
        return data if sha256(data) == row.sha256 else None

    def put(self, item: Item, data: bytes, when: str) -> None:
        """Write the file, then its row; raise a BackendError if the folder would hold more than it may."""
        # The folder's bound counts what is recorded, a file that is replaced not twice.
        others = sum(row.bytes for row in self.rows.values() if row.path != item.path)
        if others + len(data) > self._limit:
            raise BackendError(
                f"{self.root} would hold more than {self._limit // 1_000_000:,} MB with {item.path}. What was fetched "
                "is kept; run the command again with a larger --max-mb."
            )
        write_atomic(self.root / item.path, data)
        (self.root / f"{item.path}.changed").unlink(missing_ok=True)
        # The row comes last: what it names is there, whole, whenever the run is killed.
        row = Fetched(item.path, item.url, len(data), sha256(data), when)
        with (self.root / FETCHED).open("ab") as stream:
            stream.write(jsonl_bytes([row._asdict()]))
            stream.flush()
            os.fsync(stream.fileno())
        self.rows[item.path] = row

    def set_aside(self, item: Item, data: bytes) -> None:
        """Keep a file that is not what it should be under a name that no reader takes."""
        write_atomic(self.root / f"{item.path}.changed", data)
        (self.root / item.path).unlink(missing_ok=True)

    def selection(self, header: dict[str, JSON]) -> Draw | None:
        """Return the draw made here for a request, None for none; raise an InputError if it was for another."""
        path = self.root / SELECTION
        if not path.exists():
            return None
        rows = list(read_jsonl(path))
        first = rows[0][1] if rows else {}
        n_listed = first.pop("n_listed", 0)
        if first != header:
            raise InputError(
                f"{self.root} holds what was drawn with other flags: {json.dumps(first, sort_keys=True)}. Give those, "
                "or a new folder with --to."
            )
        if not isinstance(n_listed, int) or len(rows) == 1:
            raise InputError(f"{path}:1 is not what a fetch wrote. Remove the file and run the command again.")
        return Draw(tuple(_item(row, f"{path}:{number}") for number, row in rows[1:]), n_listed)

    def select(self, header: dict[str, JSON], draw: Draw) -> None:
        """Keep a draw, so that a killed run goes on with the same files whatever is listed by then."""
        rows = [header | {"n_listed": draw.n_listed}, *(item._asdict() for item in draw.items)]
        write_atomic(self.root / SELECTION, jsonl_bytes(rows))

    def differ(self, rows: list[tuple[str, str]]) -> None:
        """Write differences.jsonl with one document a row, or none at all if nothing differs."""
        path = self.root / DIFFERENCES
        path.unlink(missing_ok=True)
        if rows:
            write_atomic(path, jsonl_bytes([{"doc_id": doc_id, "difference": how} for doc_id, how in rows]))


def _recorded(path: Path) -> dict[str, Fetched]:
    """Return the rows of fetched.jsonl by path, the last one of each; what a kill left of a row is cut off."""
    content = path.read_bytes()
    # Rows are appended one by one, so that only the last can be half written.
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    rows = {}
    for number, row in read_jsonl(path):
        fetched = Fetched(**row) if row.keys() == set(Fetched._fields) else None
        if fetched is None or not isinstance(fetched.bytes, int):
            raise InputError(f"{path}:{number} is not a row of a fetch. Remove the line and run the command again.")
        rows[str(fetched.path)] = fetched
    return rows


def _item(row: dict[str, JSON], where: str) -> Item:
    """Return a row of selection.jsonl; raise an InputError for one that no fetch wrote."""
    if row.keys() == set(Item._fields) and all(isinstance(value, str) for value in row.values()):
        item = Item(**row)
        if item.kind in ACCEPTED and _is_file(item):
            return item
    raise InputError(f"{where} is not what a fetch wrote. Remove the file and run the command again.")


def _is_file(item: Item) -> bool:
    """Return whether a row, which somebody may have written, stays in the folder and leads to a publisher."""
    return bool(_NAME.fullmatch(item.path)) and item.path not in _OWN and is_official(item.url)
