"""Exact dense retrieval against one bare matrix product over the same vectors, and against faiss's exact index.

    python benchmarks/retrieve.py

The product (`vectors @ queries.T`, the faster of its two orientations) scores chunks in float32 and stops there: no
top 100, no documents, no ties, no evidence, no reading list. IndexFlatIP picks any 100 chunks. Ours goes from vectors
to final rankings, once over a mapped file that is never loaded whole, where the growth of the process's peak memory
is printed too, and once over the same vectors in memory. Rounds are interleaved and the best of each counts; a
ratio says how many times the other's seconds ours are. Reading the list of chunks into a table is timed apart, since
one table serves all runs over a chunker's chunks.
"""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import faiss
import numpy as np
from measuring import each_alone, grown_mb, timed
from numpy.typing import NDArray
from sizes import sized

from runner.base.records import RUN_DEPTH, Chunk, Span
from runner.retrieve.ranking import chunk_table
from runner.retrieve.retrieve import DenseArm, dense_run

N_QUERIES = 25
SHAPES = sized(
    ((20_000, 384, 5), (100_000, 384, 5), (100_000, 1024, 20), (1_000_000, 384, 1), (1_000_000, 384, 5)),
    ((2_000, 16, 5),),
)
ROUNDS = sized(5, 1)
WANTED = 1.3
WANTED_MB = 300
BLOCK = 10_000


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


def best_of_rounds(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least seconds of each call, all of them called in turn in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            seconds[name].append(timed(call)[0])
    return {name: min(each) for name, each in seconds.items()}


def compare(n_chunks: int, dim: int, per_document: int, path: Path) -> None:
    queries = unit_rows(N_QUERIES, dim, seed=1)
    query_ids = [f"q{i}" for i in range(N_QUERIES)]
    chunks = [Chunk(f"d{i // per_document:07}", i % per_document, Span(0, 100), "", 100) for i in range(n_chunks)]
    write_vectors(path, n_chunks, dim)
    mapped = np.load(path, mmap_mode="r")
    table = chunk_table(chunks)
    grown = grown_mb(lambda: dense_run("cell", DenseArm(query_ids, queries, chunks, mapped, table)))

    vectors = np.load(path)
    index = faiss.IndexFlatIP(dim)
    index.add(vectors)
    took = best_of_rounds(
        {
            "file": lambda: dense_run("cell", DenseArm(query_ids, queries, chunks, mapped, table)),
            "product": lambda: vectors @ queries.T,
            "memory": lambda: dense_run("cell", DenseArm(query_ids, queries, chunks, vectors, table)),
            "mapped product": lambda: np.load(path, mmap_mode="r") @ queries.T,
            "faiss": lambda: index.search(queries, RUN_DEPTH),
            "table": lambda: chunk_table(chunks),
        }
    )
    print(
        f"dense top {RUN_DEPTH}, {n_chunks:,} chunks x {dim}, {per_document} a document, {N_QUERIES} queries, seconds: "
        f"product in memory {took['product']:.3f}, of a fresh map {took['mapped product']:.3f}, "
        f"faiss IndexFlatIP {took['faiss']:.3f}; ours"
    )
    for name in ("file", "memory"):
        ratios = ", ".join(f"{took[name] / took[peer]:.2f} x {peer}" for peer in ("product", "mapped product", "faiss"))
        print(f"  from {name} {took[name]:.3f}: {ratios} (wanted under {WANTED} x product)")
    print(
        f"  peak memory + {grown:.0f} MB for a file of {path.stat().st_size / 1e6:.0f} MB (wanted under {WANTED_MB}); "
        f"apart from that {took['table']:.3f} s to read the list of chunks",
        flush=True,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        each_alone(compare, ((*shape, Path(name) / "vectors.npy") for shape in SHAPES))


if __name__ == "__main__":
    main()
