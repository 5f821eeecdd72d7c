"""Matrices of vectors on disk, read by rows without becoming resident.

Rows are read into buffers: pages touched through a memory map count as the process's memory until it ends, 1.5 GB for
one pass over a million rows of 384.
"""

import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, json_line, write_atomic
from runner.base.errors import BackendError
from runner.base.store import Store

ROWS = "rows.npy"


def write_piece(path: Path, array: NDArray[np.generic], facts: Mapping[str, str]) -> None:
    """Write an array whole or not at all, behind a line with its digest and the facts of where it was made."""
    data = array.tobytes()
    line = json_line({"facts": facts, "sha256": sha256(data).hexdigest()})
    write_atomic(path, line.encode() + b"\n" + data)


def read_piece(path: Path, dtype: str, *shape: int) -> tuple[NDArray[Any], dict[str, str]] | None:
    """Return what `write_piece` wrote; None for nothing and for a damaged file, of which every byte is compared."""
    # One line of JSON, then the bytes of the array.
    try:
        line, _, data = path.read_bytes().partition(b"\n")
        entry = json.loads(line)
        if sha256(data).hexdigest() != entry["sha256"]:
            return None
        return np.frombuffer(data, dtype).reshape(shape), dict(entry["facts"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def described(facts: Mapping[str, str]) -> str:
    """Return facts as a message has them."""
    return ", ".join(f"{name} {value}" for name, value in sorted(facts.items())) or "nothing said of itself"


def npy_header(n_rows: int, dim: int) -> bytes:
    """Return the header of an .npy file, version 1.0."""
    stream = BytesIO()
    layout = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, dim)}
    np.lib.format.write_array_header_1_0(stream, layout)
    return stream.getvalue()


def save_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write an .npy file. np.save would lose the error number of a full disk, and a memory map would die of SIGBUS."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(np.ascontiguousarray(array).data.cast("B"))


Matrix = NDArray[np.float32]


def unit(rows: NDArray[np.floating]) -> Matrix:
    """Return rows scaled to length 1, in float32; rows of 0 stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Matrix = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def blocks(matrix: Matrix, n_rows: int, part: range | None = None) -> Iterator[tuple[int, Matrix]]:
    """Yield blocks of at most `n_rows` rows, in order and C order, each with its first row's number.

    `part` is the range of rows, all by default. A block is valid until the next is asked for. Threads may read parts of
    one matrix at once.
    """
    part = range(len(matrix)) if part is None else part
    path = _file_of(matrix)
    if path is None:
        for start in range(part.start, part.stop, n_rows):
            yield start, np.ascontiguousarray(matrix[start : min(start + n_rows, part.stop)])
        return
    # One buffer for all blocks: pages of the map itself would stay resident.
    buffer = np.empty((min(n_rows, len(part)), matrix.shape[1]), np.float32)
    with _reader(path, matrix) as read:
        for start in range(part.start, part.stop, n_rows):
            block = buffer[: part.stop - start]
            read(start, block)
            yield start, block


def gathered(matrix: Matrix, rows: NDArray[np.int64], into: Matrix | None = None) -> Matrix:
    """Return the rows named, in that order, in C order: as a new matrix, or in `into`, which has a row for each."""
    path = _file_of(matrix)
    if path is None:
        # With a target numpy checks every row in a copy, unless it is told what to do with a wrong one.
        return np.asarray(matrix).take(rows, axis=0, out=into, mode="raise" if into is None else "clip")
    picked = np.empty((len(rows), matrix.shape[1]), np.float32) if into is None else into
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1  # what lies together, as a document's chunks do, is read at once
    with _reader(path, matrix) as read:
        for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), len(rows)], strict=True):
            if start < stop:
                read(int(rows[start]), picked[start:stop])
    return picked


def _file_of(matrix: Matrix) -> Path | None:
    """Return the file behind a whole read-only float32 memory map; None for any other, parts of maps included."""
    whole = isinstance(matrix, np.memmap) and isinstance(matrix.base, mmap.mmap)
    if not (isinstance(matrix, np.memmap) and whole and matrix.mode == "r" and matrix.filename):
        return None
    return Path(matrix.filename) if matrix.dtype == np.float32 and matrix.flags.c_contiguous else None


@contextmanager
def _reader(path: Path, matrix: Matrix) -> Iterator[Callable[[int, Matrix], None]]:
    """Open a mapped matrix's file: what is given fills a block from a row on; BackendError if the file is shorter."""
    assert isinstance(matrix, np.memmap)
    descriptor, row_bytes = os.open(path, os.O_RDONLY), matrix.shape[1] * matrix.itemsize

    def read(row: int, into: Matrix) -> None:
        if os.preadv(descriptor, [into.data], matrix.offset + row * row_bytes) != into.nbytes:
            raise BackendError(f"{path} ends before its row {row + len(into)}; remove it and run again to remake it.")

    try:
        yield read
    finally:
        os.close(descriptor)


COPIED_BYTES = 1 << 26
"""Up to here a copy in memory costs less than a further file."""

_ROWS_AT_ONCE = 4096


def placed(store: Store, folder: Path, places: NDArray[np.int64]) -> Matrix:
    """Return the named rows of the artefact in `folder`, in that order: a copy if they are few, else a mapped file."""
    rows: Matrix = np.load(folder / ROWS, mmap_mode="r")
    if len(places) * rows.shape[1] * rows.itemsize <= COPIED_BYTES:
        return gathered(rows, places)

    parts = (gathered(rows, places[start : start + _ROWS_AT_ONCE]) for start in range(0, len(places), _ROWS_AT_ONCE))
    inputs = {"of": folder.name, "places": sha256(places.tobytes()).hexdigest()}
    return _stored(store, inputs, parts, (len(places), rows.shape[1]))


def transformed(store: Store, matrix: Matrix, name: str, dim: int, of: Callable[[Matrix], Matrix]) -> Matrix:
    """Return the rows (n, dim) that `of` makes of blocks of rows: in memory if they are few, else a mapped file.

    `name` stands for `of` in the store, to which a large matrix belongs.
    """
    path, n_rows = _file_of(matrix), len(matrix)
    # Made lazily, so that a large matrix is never whole in memory.
    parts = (of(block) for _, block in blocks(matrix, _ROWS_AT_ONCE))
    if path is None or n_rows * dim * matrix.itemsize <= COPIED_BYTES:
        return np.concatenate([np.empty((0, dim), np.float32), *parts])
    return _stored(store, {"of": path.parent.name, "as": name}, parts, (n_rows, dim))


def _stored(store: Store, inputs: JSON, parts: Iterable[Matrix], shape: tuple[int, int]) -> Matrix:
    """Return the parts one below the other, as a mapped file of the store."""

    def build(into: Path) -> None:
        with (into / ROWS).open("wb") as stream:
            stream.write(npy_header(*shape))
            for part in parts:
                stream.write(np.ascontiguousarray(part).data.cast("B"))

    mapped: Matrix = np.load(store.ensure("placed", inputs, build) / ROWS, mmap_mode="r")
    return mapped
