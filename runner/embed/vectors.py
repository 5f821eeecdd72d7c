"""A matrix of vectors that grows by finished batches, in any order, and survives being killed at any moment.

`rows.npy` has its full size from the start; a batch's rows go where they belong, then one line of `journal.jsonl` says
that they are there, with their digest. A line that is torn, or whose rows are not what it says, counts as never
written. Neither rename nor fsync: what a power cut loses fails its digest and is embedded again.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import json_line
from runner.base.errors import BackendError

ROWS = "rows.npy"
JOURNAL = "journal.jsonl"


class VectorFile:
    """Float32 rows (n_rows, dim) in `folder`, which is made where it is missing."""

    def __init__(self, folder: Path, n_rows: int, dim: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / ROWS
        self.journal_path = folder / JOURNAL
        self.n_rows, self.dim = n_rows, dim
        self.facts: dict[str, str] | None = None
        """Where the rows were made, None before the first of them."""
        self.low = np.full(dim, np.inf, np.float32)
        self.high = np.full(dim, -np.inf, np.float32)
        self._rows = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        self._journal = os.open(self.journal_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._offset = self._begin()
        self._noted = self._read_journal()

    def __enter__(self) -> "VectorFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._rows)
        os.close(self._journal)

    def holds(self, batch_id: str, rows: Sequence[int]) -> bool:
        """Whether an earlier attempt wrote this batch to these rows, every byte read and compared."""
        noted = self._noted.get(batch_id)
        if noted is None:
            return False
        stored = np.empty((len(rows), self.dim), np.float32)
        for number, row in enumerate(rows):
            os.preadv(self._rows, [stored[number].data], self._offset + row * 4 * self.dim)
        if _seal(batch_id, stored) != noted[0] or not np.isfinite(stored).all():
            return False
        self._note(stored, noted[1])
        return True

    def write(self, batch_id: str, rows: Sequence[int], vectors: NDArray[np.float32], facts: Mapping[str, str]) -> None:
        """Put the batch's vectors to their rows, then say so in the journal.

        A BackendError where `facts` are others than those of the rows before: a file never mixes devices.
        """
        ordered = np.ascontiguousarray(vectors, dtype="<f4")
        self._note(ordered, facts)
        for number, row in enumerate(rows):
            _write_all(self._rows, ordered[number].data.cast("B"), self._offset + row * 4 * self.dim)
        line = json_line({"batch": batch_id, "sha256": _seal(batch_id, ordered), "facts": dict(facts)}) + "\n"
        _write_all(self._journal, memoryview(line.encode()), None)

    def _note(self, rows: NDArray[np.float32], facts: Mapping[str, str]) -> None:
        if self.facts is None:
            self.facts = dict(facts)
        elif self.facts != dict(facts):
            raise BackendError(
                f"The backend changed while it embedded: {described(self.facts)} at first, {described(facts)} now. "
                "Vectors of two devices or library versions are never mixed in one cell. Run again where the first one "
                f"is to be had, or delete {self.path.parent} to begin this cell anew."
            )
        np.minimum(self.low, rows.min(axis=0), out=self.low)
        np.maximum(self.high, rows.max(axis=0), out=self.high)

    def _begin(self) -> int:
        """The length of the .npy header, written where the file does not begin with it; the file has its full size."""
        header = npy_header(self.n_rows, self.dim)
        if os.pread(self._rows, len(header), 0) != header:
            os.ftruncate(self._rows, 0)
            os.ftruncate(self._journal, 0)
            _write_all(self._rows, memoryview(header), 0)
        os.ftruncate(self._rows, len(header) + 4 * self.n_rows * self.dim)
        return len(header)

    def _read_journal(self) -> dict[str, tuple[str, dict[str, str]]]:
        """What is noted; what a killed attempt tore off is cut away, so that the next line begins a line."""
        content = self.journal_path.read_bytes()
        os.ftruncate(self._journal, content.rfind(b"\n") + 1)
        return noted(self.journal_path.parent)


def noted(folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Digest and facts by batch, as the whole lines of the folder's journal say; empty without one."""
    path = folder / JOURNAL
    found = {}
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        try:
            entry = json.loads(line)
            found[entry["batch"]] = (entry["sha256"], dict(entry["facts"]))
        except (ValueError, TypeError, KeyError):
            continue  # a damaged line is a batch to embed again
    return found


def described(facts: Mapping[str, str]) -> str:
    """Facts as a message has them."""
    return ", ".join(f"{name} {value}" for name, value in sorted(facts.items())) or "nothing said of itself"


def _seal(batch_id: str, rows: NDArray[np.float32]) -> str:
    seal = hashlib.sha256(batch_id.encode())
    seal.update(rows.data.cast("B"))
    return seal.hexdigest()


def npy_header(n_rows: int, dim: int) -> bytes:
    """Of an .npy file, version 1.0."""
    stream = BytesIO()
    layout = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, dim)}
    np.lib.format.write_array_header_1_0(stream, layout)
    return stream.getvalue()


def _write_all(descriptor: int, data: memoryview, offset: int | None) -> None:
    """Every byte, at the offset or at the end; a full disk is an OSError with its number, never a SIGBUS."""
    while data:
        n = os.write(descriptor, data) if offset is None else os.pwrite(descriptor, data, offset)
        data = data[n:]
        offset = None if offset is None else offset + n


def save_array(path: Path, array: NDArray[np.generic]) -> None:
    """An .npy file. np.save would lose the error number of a full disk, and a memory map would die of SIGBUS."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(np.ascontiguousarray(array).data.cast("B"))
