"""Exact dense retrieval against one bare matrix product over the same vectors, and against faiss's exact index.

The product (`vectors @ queries.T`) scores chunks in float32 and stops there: no top 100, no documents, no ties, no
evidence, no reading list. IndexFlatIP picks any 100 chunks. Ours goes from a mapped file that is never loaded whole to
final rankings. Rounds are interleaved and the best of each counts.
"""

import tempfile
from pathlib import Path

import faiss
import numpy as np
from measuring import fastest, grown_mb, row, sized
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Chunk, Span
from runner.retrieve.ranking import chunk_table
from runner.retrieve.retrieve import DenseArm, dense_run

N_QUERIES, BLOCK = 25, 10_000
SHAPES = sized(((100_000, 384, 5), (100_000, 1024, 20), (1_000_000, 384, 5)), ((2_000, 16, 5),))


def unit_rows(n: int, dim: int, seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((n, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def write_vectors(path: Path, n: int, dim: int) -> None:
    with path.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, dim)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, n, BLOCK):
            stream.write(unit_rows(min(BLOCK, n - start), dim, seed=start + 2).tobytes())


def compare(n_chunks: int, dim: int, per_document: int, path: Path) -> None:
    queries = unit_rows(N_QUERIES, dim, seed=1)
    chunks = [Chunk(f"d{i // per_document:07}", i % per_document, Span(0, 100), "", 100) for i in range(n_chunks)]
    write_vectors(path, n_chunks, dim)
    mapped, table = np.load(path, mmap_mode="r"), chunk_table(chunks)
    arm = DenseArm([f"q{i}" for i in range(N_QUERIES)], queries, chunks, mapped, table)
    grown = grown_mb(lambda: dense_run("cell", arm))
    vectors = np.load(path)  # the peers have all of it in memory
    index = faiss.IndexFlatIP(dim)
    index.add(vectors)
    calls = (
        lambda: dense_run("cell", arm),
        lambda: vectors @ queries.T,
        lambda: index.search(queries, RUN_DEPTH),
    )
    rounds = [[fastest(call, 1)[0] for call in calls] for _ in range(sized(5, 1))]
    own, product, peer = map(min, zip(*rounds, strict=True))
    what = f"dense top {RUN_DEPTH} of {N_QUERIES} queries over {n_chunks:,} chunks x {dim}, seconds"
    row(f"{what}; bare product", f"{own:.3f}", f"{product:.3f}", f"{own / product:.2f} times", "1.3 times")
    row(f"{what}; faiss IndexFlatIP", f"{own:.3f}", f"{peer:.3f}", f"{own / peer:.2f} times")
    row("its peak memory, MB; the file's size", f"{grown:.0f}", f"{path.stat().st_size / 1e6:.0f}", "", "300")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for shape in SHAPES:
            compare(*shape, Path(name) / "vectors.npy")


if __name__ == "__main__":
    main()
