"""Rows of a matrix of vectors, in memory or in a file, without the file becoming resident.

Pages that are touched through a memory map count as the process's memory until it ends: one pass over a million rows
of 384 leaves 1.5 GB, and rows picked here and there bring their neighbours along. Reading the same bytes into one
buffer leaves none.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.base.errors import BackendError

Matrix = NDArray[np.float32]


def blocks(matrix: Matrix, n_rows: int, part: range | None = None) -> Iterator[tuple[int, Matrix]]:
    """Blocks of at most `n_rows` rows in order, in C order, each with the number of its first row.

    `part` is the range of rows to go through, every one where it is left out. A block is valid until the next one is
    asked for. Threads may go through parts of one matrix at the same time.
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


def gathered(matrix: Matrix, rows: NDArray[np.int64]) -> Matrix:
    """The rows named, in that order, as a new matrix in C order."""
    path = _file_of(matrix)
    if path is None:
        return np.asarray(matrix).take(rows, axis=0)
    found = np.empty((len(rows), matrix.shape[1]), np.float32)
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1  # what lies together, as a document's chunks do, is read at once
    with closing(_Reader(path, matrix)) as reader:
        for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), len(rows)], strict=True):
            if start < stop:
                reader.read(int(rows[start]), found[start:stop])
    return found


def _file_of(matrix: Matrix) -> Path | None:
    """The file that a whole read-only float32 memory map shows; None for any other matrix, a part of a map included."""
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
        """Fill `into` from `row` on; BackendError where the file is shorter than its map."""
        if os.preadv(self.descriptor, [into.data], self.offset + row * self.row_bytes) != into.nbytes:
            raise BackendError(
                f"{self.path} ends before its row {row + len(into)}; remove it and run again to remake it."
            )

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.descriptor)
