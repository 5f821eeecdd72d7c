"""The checks and every arm of a substrate of 100,000 chunks against brute force in numpy over the same vectors.

    python benchmarks/post_bulk.py

The substrate is fictional: random unit vectors of 384 dimensions, made-up words, five chunks per document. The peer is
one float32 matrix product of the 25 queries with all vectors, held in memory, and argpartition; it has no documents,
no ties and no database. A ratio says how many times the peer's seconds per query an arm takes.
"""

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import Found, fastest, peak_mb, timed
from numpy.typing import NDArray
from sizes import sized

from runner.base.records import RUN_DEPTH, Chunk, Document, Span
from runner.substrate.checks import Expected, check_substrate
from runner.substrate.database import open_substrate
from runner.substrate.search import REPEATS, Search, index_recall, latencies, percentiles, search_runs
from runner.substrate.texts import Cut

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the builder belongs to the tests

from tests.support.substrate_builder import MODEL, Build, build, unit_rows

N_DOCUMENTS, CHUNKS_EACH, DIM, N_QUERIES = sized((20_000, 5, 384, 25), (100, 5, 384, 3))
SAMPLE = sized(750, 20)
CHUNK_WORDS = 60
VECTORS_SEED = 2


def collection() -> tuple[list[Document], list[Chunk]]:
    generator = np.random.default_rng(np.random.PCG64(1))
    lexicon = np.array([f"w{number}" for number in range(30_000)])
    shares = 1 / np.arange(1, len(lexicon) + 1)
    documents, chunks = [], []
    for number in range(1, N_DOCUMENTS + 1):
        words = lexicon[generator.choice(len(lexicon), CHUNKS_EACH * CHUNK_WORDS, p=shares / shares.sum())]
        texts = [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words), CHUNK_WORDS)]
        document = Document(f"BILLS-118hr{number}ih", "\n".join(texts), f"Act {number}", "118", f"118-hr-{number}", "")
        documents.append(document)
        start = 0
        for place, text in enumerate(texts):
            chunks.append(Chunk(document.doc_id, place, Span(start, start + len(text)), document.title, CHUNK_WORDS))
            start += len(text) + 1
    return documents, chunks


def said(label: str, call: Callable[[], Found]) -> Found:
    seconds, found = timed(call)
    print(f"{label}: {seconds:.2f} s", flush=True)
    return found


def bare(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.intp]:
    return np.argpartition(queries @ vectors.T, -RUN_DEPTH, axis=1)[:, -RUN_DEPTH:]


def make(path: Path) -> tuple[list[Document], Cut]:
    """The substrate at `path`, and the documents of it that are an eval set's sample with their chunks."""
    documents, chunks = collection()
    build(path, Build(documents, chunks, unit_rows(len(chunks), DIM, seed=VECTORS_SEED)))
    sample = documents[:: N_DOCUMENTS // SAMPLE][:SAMPLE]
    ids = {document.doc_id for document in sample}
    return sample, Cut("five chunks a document", [chunk for chunk in chunks if chunk.doc_id in ids])


def main() -> None:
    queries = unit_rows(N_QUERIES, DIM, seed=3)
    words = np.random.default_rng(np.random.PCG64(4)).zipf(1.4, (N_QUERIES, 8)) % 30_000
    texts = {f"q{number:02}": " ".join(f"w{word}" for word in row) for number, row in enumerate(words)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "substrate.db"
        # In a process of its own, or what it takes to make the substrate would hide what it takes to read it.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            sample, cut = pool.submit(make, path).result()
        print(f"{N_DOCUMENTS * CHUNKS_EACH:,} chunks x {DIM}, a database of {path.stat().st_size / 1e6:.0f} MB")
        before = peak_mb()
        with open_substrate(path, "bills") as substrate:
            checks = said("checks", lambda: check_substrate(substrate, sample, Expected(*MODEL, cut)))
            started, cpu = time.perf_counter(), time.process_time()
            few = Search(texts, queries, [document.doc_id for document in sample])
            every = replace(few, restricted=False)
            said(f"runs over the chunks of {len(sample)} documents", lambda: search_runs(substrate, few))
            recall = said("index recall", lambda: index_recall(substrate, every))
            seconds = said(f"latency, {REPEATS} rounds", lambda: latencies(substrate, every))
            print(
                f"{N_QUERIES} queries, all arms, these three: {time.perf_counter() - started:.1f} s, "
                f"{time.process_time() - cpu:.1f} s of CPU; peak memory + {peak_mb() - before} MB"
            )
    print(f"faults found: {[finding.name for finding in checks.faults]}; index recall at 10 {np.mean(recall[10]):.3f}")
    vectors = unit_rows(N_DOCUMENTS * CHUNKS_EACH, DIM, seed=VECTORS_SEED)
    peer = fastest(lambda: bare(queries, vectors))[0] / N_QUERIES
    print(f"numpy product + argpartition: {peer:.4f} s a query")
    for arm, calls in seconds.items():
        p = percentiles(calls)
        print(f"{arm}: p50 {p[50]:.3f} s, p95 {p[95]:.3f} s, p99 {p[99]:.3f} s, ratio {p[50] / peer:.0f}")


if __name__ == "__main__":
    main()
