"""Vectors of texts of which some occur more than once: a row a text, without all of them in memory."""

from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.base.store import Store
from runner.embed.vector_rows import Matrix, gathered
from runner.embed.vectors import ROWS, npy_header

COPIED_BYTES = 1 << 26
"""Up to here a copy in memory costs less than a further file."""

_ROWS_AT_ONCE = 4096


def placed(store: Store, folder: Path, places: NDArray[np.int64]) -> Matrix:
    """The rows named of the artefact in `folder`, in that order: a copy where they are few, else a mapped file."""
    rows: Matrix = np.load(folder / ROWS, mmap_mode="r")
    if len(places) * rows.shape[1] * rows.itemsize <= COPIED_BYTES:
        return gathered(rows, places)

    def build(into: Path) -> None:
        with (into / ROWS).open("wb") as stream:
            stream.write(npy_header(len(places), rows.shape[1]))
            for start in range(0, len(places), _ROWS_AT_ONCE):
                stream.write(gathered(rows, places[start : start + _ROWS_AT_ONCE]).data.cast("B"))

    inputs = {"of": folder.name, "places": sha256(places.tobytes()).hexdigest()}
    found: Matrix = np.load(store.ensure("placed", inputs, build) / ROWS, mmap_mode="r")
    return found
