"""Dense retrieval from less than whole float32 vectors, as sqlite-vec stores it: cut short, int8 codes, or signs."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Ints
from runner.base.store import Store
from runner.embed.vectors import Matrix, blocks, transformed, unit
from runner.retrieve.ranking import Retrieval
from runner.retrieve.retrieve import DenseArm, dense_run, exact_run

OVERSAMPLE = 4
"""Binary candidates a document of the run: 4 x 100 chunks are rescored."""

CANDIDATES = OVERSAMPLE * RUN_DEPTH

BLOCK = 1024
"""Rows that sqlite-vec keeps and scans together; of equal distances it takes an earlier block's, and a block's last."""

INT8_STEP = float(np.float32(2 / 255))
"""Of sqlite-vec's vec_quantize_int8(x, 'unit'): 256 codes from -1 to 1, the fraction dropped."""


def variant_run(cell: str, variant: str, arm: DenseArm, store: Store) -> Retrieval:
    """Return the run of the arm's vectors as `variant` stores them; `index_bytes` are those of what is stored.

    "256": cosine of the first 256 dimensions. "int8": cosine of the codes of query and chunk. "bit": the CANDIDATES
    chunks nearest by Hamming distance of the signs, by the cosine of their float32 vectors, which are stored too.
    """
    n, dim = arm.chunk_vectors.shape
    if variant == "bit":
        words = sign_words(arm.chunk_vectors)
        candidates = (nearest_by_signs(signs, words, CANDIDATES) for signs in sign_words(arm.query_vectors))
        return exact_run(cell, arm, candidates, arm.index_bytes + n * dim // 8)
    is_int8 = variant == "int8"
    kept, of = (dim, int8_rows) if is_int8 else (int(variant), partial(cut_rows, dim=int(variant)))
    stored = transformed(store, arm.chunk_vectors, variant, kept, of)
    found = dense_run(cell, arm._replace(query_vectors=of(arm.query_vectors), chunk_vectors=stored))
    return found._replace(index_bytes=n * dim) if is_int8 else found


def cut_rows(rows: Matrix, dim: int) -> Matrix:
    """Return the first `dim` dimensions at unit length (Matryoshka); rows that are 0 there stay 0."""
    return unit(rows[:, :dim].astype(np.float64))


def int8_rows(rows: Matrix) -> Matrix:
    """Return the codes of `int8_codes` at unit length, so that an inner product is the cosine of two codes."""
    return unit(int8_codes(rows).astype(np.float64))


def int8_codes(rows: Matrix) -> NDArray[np.int8]:
    """Return what sqlite-vec's vec_quantize_int8(row, 'unit') stores: components from -0.004 to 0.012 become 0."""
    # To [0, 255] in steps of 2 / 255, shifted to [-128, 127]; the cast drops the fraction towards 0, as C does.
    codes: NDArray[np.int8] = ((rows.astype(np.float64) + 1) / INT8_STEP - 128).astype(np.int8)
    return codes


def sign_words(vectors: Matrix) -> NDArray[np.uint64]:
    """Return the signs of every row, a bit a dimension (1 above 0), in 64-bit words."""
    n, dim = vectors.shape
    words = np.zeros((n, -(-dim // 64)), np.uint64)
    packed = words.view(np.uint8)
    for start, block in blocks(vectors, BLOCK):
        # Eight dimensions a byte; what is left of the last word stays 0.
        packed[start : start + len(block), : -(-dim // 8)] = np.packbits(block > 0, axis=1)
    return words


def nearest_by_signs(query: NDArray[np.uint64], words: NDArray[np.uint64], count: int) -> Ints:
    """Return the `count` rows nearest by Hamming distance, best first, in the order that sqlite-vec gives to ties."""
    distances = np.bitwise_count(words ^ query).sum(axis=1, dtype=np.int64)
    places, size = np.arange(len(words)), len(words) + BLOCK
    # One key for distance and sqlite-vec's order of ties: earlier blocks first, last rows of a block first.
    keys = distances * size + places - places % BLOCK + BLOCK - 1 - places % BLOCK
    closest = np.argpartition(keys, count - 1)[:count] if count < len(keys) else places
    nearest: Ints = closest[np.argsort(keys[closest])]
    return nearest
