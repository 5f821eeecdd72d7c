"""Exact dense retrieval against one bare matrix product and argpartition over the same vectors.

    python benchmarks/retrieve.py

The peer scores chunks in float32, takes any 100 of them and stops there: no documents, no ties, no evidence, no
reading list. A ratio says how many times its seconds ours are. Ours runs twice: over the vectors in memory, and over
a mapped file that is never loaded whole, where the growth of the process's peak memory is printed too.
"""

import gc
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.ranking import RUN_DEPTH, chunk_table
from runner.records import Chunk, Span
from runner.retrieve import DenseArm, dense_run

N_QUERIES = 25
SHAPES = ((20_000, 384, 5), (100_000, 384, 5), (100_000, 1024, 20), (300_000, 384, 1))
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


def bare(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.intp]:
    return np.argpartition(queries @ vectors.T, -RUN_DEPTH, axis=1)[:, -RUN_DEPTH:]


def best_of(repeats: int, call: Callable[[], object]) -> float:
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def compare(n_chunks: int, dim: int, per_document: int, path: Path) -> None:
    queries = unit_rows(N_QUERIES, dim, seed=1)
    query_ids = [f"q{i}" for i in range(N_QUERIES)]
    chunks = [Chunk(f"d{i // per_document:07}", i % per_document, Span(0, 100), "", 100) for i in range(n_chunks)]
    write_vectors(path, n_chunks, dim)
    table = best_of(3, lambda: chunk_table(chunks))
    gc.collect()
    before = peak_mb()
    mapped = np.load(path, mmap_mode="r")
    from_file = best_of(3, lambda: dense_run("cell", DenseArm(query_ids, queries, chunks, mapped)))
    grown = peak_mb() - before
    vectors = np.load(path)
    ours = best_of(3, lambda: dense_run("cell", DenseArm(query_ids, queries, chunks, vectors)))
    peer = best_of(3, lambda: bare(queries, vectors))
    print(
        f"dense top {RUN_DEPTH}, {n_chunks:,} chunks x {dim}, {per_document} a document, {N_QUERIES} queries: "
        f"ours {ours:.3f} s (of it {table:.3f} s to read the list of chunks), numpy product + argpartition "
        f"{peer:.3f} s, ratio {ours / peer:.2f}; from a mapped file {from_file:.3f} s, ratio {from_file / peer:.2f}, "
        f"peak memory + {grown} MB for a file of {path.stat().st_size / 1e6:.0f} MB",
        flush=True,
    )


def main() -> None:
    # One process a shape, or the peak memory of one would hide that of the next.
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        for shape in SHAPES:
            process = spawn.Process(target=compare, args=(*shape, Path(name) / "vectors.npy"))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(process.exitcode)


if __name__ == "__main__":
    main()
