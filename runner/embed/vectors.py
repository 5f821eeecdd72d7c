"""Matrices of vectors on disk: written batch by batch, read by rows without becoming resident.

`rows.npy` has its full size from the start. A batch's rows go where they belong; then a line of `journal.jsonl` says
so, with their digest. A torn line, or rows with another digest, count as never written, so a kill at any moment is safe
without rename or fsync.

Rows are read into buffers: pages touched through a memory map count as the process's memory until it ends, 1.5 GB for
one pass over a million rows of 384.
"""

import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, json_line
from runner.base.errors import BackendError
from runner.base.store import Store

ROWS = "rows.npy"
JOURNAL = "journal.jsonl"


class VectorFile:
    """Float32 rows (n_rows, dim) in `folder`, which is made if it is missing."""

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

    def __exit__(self, *_: object) -> None:
        os.close(self._rows)
        os.close(self._journal)

    def holds(self, batch_id: str, rows: Sequence[int]) -> bool:
        """Whether an earlier attempt wrote this batch to these rows; every byte is read and compared."""
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
        """Write the batch's vectors to their rows, then note it in the journal; a BackendError if `facts` differ from
        those of earlier rows: a file never mixes devices.
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
        """The length of the .npy header, written if the file does not begin with it; sets the file's full size."""
        header = npy_header(self.n_rows, self.dim)
        if os.pread(self._rows, len(header), 0) != header:
            os.ftruncate(self._rows, 0)
            os.ftruncate(self._journal, 0)
            _write_all(self._rows, memoryview(header), 0)
        os.ftruncate(self._rows, len(header) + 4 * self.n_rows * self.dim)
        return len(header)

    def _read_journal(self) -> dict[str, tuple[str, dict[str, str]]]:
        """What is noted; a torn last line is cut off, so that the next one begins a line."""
        content = self.journal_path.read_bytes()
        os.ftruncate(self._journal, content.rfind(b"\n") + 1)
        return noted(self.journal_path.parent)


def noted(folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Digest and facts by batch from the whole lines of the folder's journal; empty without one."""
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
    seal = sha256(batch_id.encode())
    seal.update(rows.data.cast("B"))
    return seal.hexdigest()


def npy_header(n_rows: int, dim: int) -> bytes:
    """Of an .npy file, version 1.0."""
    stream = BytesIO()
    layout = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, dim)}
    np.lib.format.write_array_header_1_0(stream, layout)
    return stream.getvalue()


def _write_all(descriptor: int, data: memoryview, offset: int | None) -> None:
    """Write every byte at the offset, or at the end; a full disk is an OSError, never a SIGBUS."""
    while data:
        n = os.write(descriptor, data) if offset is None else os.pwrite(descriptor, data, offset)
        data = data[n:]
        offset = None if offset is None else offset + n


def save_array(path: Path, array: NDArray[np.generic]) -> None:
    """An .npy file. np.save would lose the error number of a full disk, and a memory map would die of SIGBUS."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(np.ascontiguousarray(array).data.cast("B"))


Matrix = NDArray[np.float32]


def blocks(matrix: Matrix, n_rows: int, part: range | None = None) -> Iterator[tuple[int, Matrix]]:
    """Blocks of at most `n_rows` rows, in order and C order, each with its first row's number.

    `part` is the range of rows, all by default. A block is valid until the next is asked for. Threads may read parts of
    one matrix at once.
    """
    part = range(len(matrix)) if part is None else part
    path = _file_of(matrix)
    if path is None:
        for start in range(part.start, part.stop, n_rows):
            yield start, np.ascontiguousarray(matrix[start : min(start + n_rows, part.stop)])
        return
    buffer = np.empty((min(n_rows, len(part)), matrix.shape[1]), np.float32)
    with closing(_Reader(path, matrix)) as reader:
        for start in range(part.start, part.stop, n_rows):
            block = buffer[: part.stop - start]
            reader.read(start, block)
            yield start, block


def gathered(matrix: Matrix, rows: NDArray[np.int64], into: Matrix | None = None) -> Matrix:
    """The rows named, in that order, in C order: as a new matrix, or in `into`, which has a row for each."""
    path = _file_of(matrix)
    if path is None:
        # With a target numpy checks every row in a copy, unless it is told what to do with a wrong one.
        return np.asarray(matrix).take(rows, axis=0, out=into, mode="raise" if into is None else "clip")
    found = np.empty((len(rows), matrix.shape[1]), np.float32) if into is None else into
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1  # what lies together, as a document's chunks do, is read at once
    with closing(_Reader(path, matrix)) as reader:
        for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), len(rows)], strict=True):
            if start < stop:
                reader.read(int(rows[start]), found[start:stop])
    return found


def _file_of(matrix: Matrix) -> Path | None:
    """The file behind a whole read-only float32 memory map; None for any other matrix, parts of maps included."""
    whole = isinstance(matrix, np.memmap) and isinstance(matrix.base, mmap.mmap)
    if not (isinstance(matrix, np.memmap) and whole and matrix.mode == "r" and matrix.filename):
        return None
    return Path(matrix.filename) if matrix.dtype == np.float32 and matrix.flags.c_contiguous else None


class _Reader:
    """Positioned reads of a mapped matrix's rows from its file."""

    def __init__(self, path: Path, matrix: Matrix) -> None:
        assert isinstance(matrix, np.memmap)
        self.path = path
        self.offset = matrix.offset
        self.row_bytes = matrix.shape[1] * matrix.itemsize
        self.descriptor = os.open(path, os.O_RDONLY)

    def read(self, row: int, into: Matrix) -> None:
        """Fill `into` from `row` on; a BackendError if the file is shorter than its map."""
        if os.preadv(self.descriptor, [into.data], self.offset + row * self.row_bytes) != into.nbytes:
            raise BackendError(
                f"{self.path} ends before its row {row + len(into)}; remove it and run again to remake it."
            )

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.descriptor)


COPIED_BYTES = 1 << 26
"""Up to here a copy in memory costs less than a further file."""

_ROWS_AT_ONCE = 4096


def placed(store: Store, folder: Path, places: NDArray[np.int64]) -> Matrix:
    """The named rows of the artefact in `folder`, in that order: a copy if they are few, else a mapped file."""
    rows: Matrix = np.load(folder / ROWS, mmap_mode="r")
    if len(places) * rows.shape[1] * rows.itemsize <= COPIED_BYTES:
        return gathered(rows, places)

    parts = (gathered(rows, places[start : start + _ROWS_AT_ONCE]) for start in range(0, len(places), _ROWS_AT_ONCE))
    inputs = {"of": folder.name, "places": sha256(places.tobytes()).hexdigest()}
    return _stored(store, inputs, parts, (len(places), rows.shape[1]))


def transformed(store: Store, matrix: Matrix, name: str, dim: int, of: Callable[[Matrix], Matrix]) -> Matrix:
    """The rows (n, dim) that `of` makes of blocks of rows: in memory if they are few, else a mapped file.

    `name` stands for `of` in the store, to which a large matrix belongs.
    """
    path, n_rows = _file_of(matrix), len(matrix)
    parts = (of(block) for _, block in blocks(matrix, _ROWS_AT_ONCE))
    if path is None or n_rows * dim * matrix.itemsize <= COPIED_BYTES:
        return np.concatenate([np.empty((0, dim), np.float32), *parts])
    return _stored(store, {"of": path.parent.name, "as": name}, parts, (n_rows, dim))


def _stored(store: Store, inputs: JSON, parts: Iterable[Matrix], shape: tuple[int, int]) -> Matrix:
    """The parts one below the other, as a mapped file of the store."""

    def build(into: Path) -> None:
        with (into / ROWS).open("wb") as stream:
            stream.write(npy_header(*shape))
            for part in parts:
                stream.write(np.ascontiguousarray(part).data.cast("B"))

    found: Matrix = np.load(store.ensure("placed", inputs, build) / ROWS, mmap_mode="r")
    return found
