"""The distractor sensitivity: how long it takes, and how far it errs on a public collection.

    python benchmarks/distractors.py [ENCODER ...]

Times come from made-up runs. Errors come from SciFact where PSE_SHARED has it (bench/scifact): subsamples of its
documents are indexed and ranked for real, the exact expectation is held against them, and all of the collection is
predicted from a tenth and from a hundredth of it. A query's relevant documents are in every subsample; its other
statistics, BM25's idf among them, are the subsample's own, but for the relevant documents of 29 other queries.
ENCODER: packaged ones to measure alone and together with BM25, minilm-static-384 by default; their vectors go to the
cache. Two minutes a cell on one core.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import csv
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from corpus import CHECKOUT, SCIFACT
from measuring import timed
from sizes import sized

from runner.base.records import RUN_DEPTH, Chunk, Hit, Qrels, Run, Span
from runner.base.store import Store
from runner.decide.scale.law import Counts, Law
from runner.decide.scale.places import placed
from runner.decide.scale.scale import scale_result
from runner.decide.scale.thinning import thinned
from runner.embed.embed_chunks import embed
from runner.embed.local_encoder import encoder_for
from runner.embed.probe import probed
from runner.eval_set.shapes.scale import ScaleResult
from runner.eval_set.version import cache_folder
from runner.retrieve.bm25 import bm25_run
from runner.retrieve.retrieve import RRF_K

SPAN = Span(0, 1)
SUBSAMPLES = sized(10, 2)
RESAMPLES = sized(10_000, 100)
BATCH = 30
SHARES = sized((0.1, 0.01), (0.1,))
REFITS = sized(300, 3)

Texts = dict[str, str]
Ranker = Callable[[Sequence[str], Sequence[str]], dict[str, list[str]]]
"""The documents named, ranked for the queries named."""


def scale(
    runs: dict[str, Run], query_ids: Sequence[str], qrels: Qrels, n_documents: int, resamples: int
) -> ScaleResult:
    return scale_result(
        runs, query_ids, qrels, n_documents, baseline=next(iter(runs)), seed=1, resamples=resamples, confidence=0.95
    )


def speed(n_cells: int, n_queries: int, n_documents: int = sized(100_000, 1_000)) -> None:
    generator = np.random.default_rng(1)
    query_ids = [f"q{i}" for i in range(n_queries)]
    qrels = {q: {f"r{q}.{j}": 1 for j in range(1 + i % 3)} for i, q in enumerate(query_ids)}
    runs = {}
    for c in range(n_cells):
        hits = {}
        for q in query_ids:
            names = [f"d{j}" for j in generator.integers(n_documents, size=RUN_DEPTH + 5)]
            for r in qrels[q]:
                names.insert(int(generator.geometric(0.1 + 0.02 * c)) - 1, r)
            hits[q] = tuple(Hit(name, 1.0, SPAN) for name in list(dict.fromkeys(names))[:RUN_DEPTH])
        runs[f"cell{c}"] = Run(f"cell{c}", hits)
    taken, _ = timed(lambda: scale(runs, query_ids, qrels, n_documents, RESAMPLES), time.process_time)
    print(f"{n_cells} cells x {n_queries:,} queries, {RESAMPLES:,} resamples: {taken:.2f} CPU-s", flush=True)


def read_scifact(folder: Path) -> tuple[Texts, Texts, dict[str, dict[str, int]]]:
    documents, queries = {}, {}
    for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        documents[row["_id"]] = f"{row['title']} {row['text']}".strip()
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        queries[row["_id"]] = row["text"]
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return documents, {q: queries[q] for q in qrels}, qrels


def sparse(
    variant: str, documents: Texts, queries: Texts, names: Sequence[str], query_ids: Sequence[str]
) -> dict[str, list[str]]:
    chunks = [Chunk(name, 0, SPAN, "", 1) for name in names]
    found = bm25_run(variant, variant, {q: queries[q] for q in query_ids}, chunks, [documents[name] for name in names])
    return {q: [hit.doc_id for hit in hits] for q, hits in found.run.hits.items()}


def dense(encoder_name: str, documents: Texts, queries: Texts) -> Ranker:
    encoder, store = encoder_for(encoder_name), Store(cache_folder(CHECKOUT))
    probed(store, encoder)
    rows = np.asarray(embed(store, encoder, list(documents.values()), "document").rows)
    asked = np.asarray(embed(store, encoder, list(queries.values()), "query").rows)
    numbers, places = ({name: i for i, name in enumerate(names)} for names in (documents, queries))

    def rank(names: Sequence[str], query_ids: Sequence[str]) -> dict[str, list[str]]:
        similar = asked[[places[q] for q in query_ids]] @ rows[[numbers[name] for name in names]].T
        return {
            q: [names[i] for i in np.argsort(-row, kind="stable")] for q, row in zip(query_ids, similar, strict=True)
        }

    return rank


def reranked(first: Ranker, second: Ranker) -> Ranker:
    """The first ranking's documents, RUN_DEPTH of them, in the order of the second."""

    def rank(names: Sequence[str], query_ids: Sequence[str]) -> dict[str, list[str]]:
        found, order = first(names, query_ids), second(names, query_ids)
        heads = {q: set(found[q][:RUN_DEPTH]) for q in query_ids}
        return {q: [name for name in order[q] if name in heads[q]] for q in query_ids}

    return rank


def fused(first: Ranker, second: Ranker) -> Ranker:
    """Both rankings' first RUN_DEPTH documents by reciprocal rank; equal sums by name."""

    def rank(names: Sequence[str], query_ids: Sequence[str]) -> dict[str, list[str]]:
        found = {}
        rankings = first(names, query_ids), second(names, query_ids)
        for q in query_ids:
            sums: dict[str, float] = {}
            for ranking in rankings:
                for place, name in enumerate(ranking[q][:RUN_DEPTH], start=1):
                    sums[name] = sums.get(name, 0) + 1 / (RRF_K + place)
            found[q] = sorted(sums, key=lambda name: (-sums[name], name))
        return found

    return rank


def subsampled(rank: Ranker, names: Sequence[str], kept: set[str], qrels: Qrels) -> dict[str, list[str]]:
    """Every query's ranking of the documents kept and of its own relevant ones."""
    found, query_ids = {}, list(qrels)
    for start in range(0, len(query_ids), BATCH):
        batch = query_ids[start : start + BATCH]
        wanted = kept.union(*(qrels[q] for q in batch))
        for q, ranked in rank([name for name in names if name in wanted], batch).items():
            found[q] = [name for name in ranked if name in kept or name in qrels[q]]
    return found


def run(cell: str, ranked: dict[str, list[str]]) -> Run:
    return Run(cell, {q: tuple(Hit(name, 1.0, SPAN) for name in names[:RUN_DEPTH]) for q, names in ranked.items()})


def mean_now(one: Run, qrels: Qrels) -> float:
    places, _, _ = placed({"cell": one}, list(qrels), qrels)
    return float(places["cell"].ndcg().mean()) / 1e9


def figures(errors: Sequence[float]) -> str:
    return f"{np.mean(errors):+.4f} on average, SD {np.std(errors):.4f}, RMS {np.sqrt(np.mean(np.square(errors))):.4f}"


def measured(cell: str, rank: Ranker, names: Sequence[str], qrels: Qrels) -> Run:
    whole = run(cell, rank(names, list(qrels)))
    query_ids, observed = list(qrels), mean_now(whole, qrels)
    result = scale({cell: whole}, query_ids, qrels, len(names), 1000)
    print(
        f"{cell}: "
        + ", ".join(f"{p.factor:g}x {p.mean:.4f} [{p.low:.4f}, {p.high:.4f}]" for p in result.cells[0].points)
    )
    test = result.cells[0].back_test
    if test is not None:
        print(f"  back-test on the page: {figures(test.errors)}")
    generator = np.random.default_rng(7)
    for share in SHARES:
        real, errors, order_kept = [], [], []
        full = {q: list(ids) for q, ids in rank(names, query_ids).items()}
        for _ in range(SUBSAMPLES):
            kept = {names[i] for i in generator.choice(len(names), round(share * len(names)), replace=False)}
            small = run(cell, subsampled(rank, names, kept, qrels))
            real.append(mean_now(small, qrels))
            same_order = {q: [n for n in ids if n in kept or n in qrels[q]] for q, ids in full.items()}
            order_kept.append(mean_now(run(cell, same_order), qrels))
            points = scale({cell: small}, query_ids, qrels, len(kept), 2).cells[0].points
            errors.append(next(p.mean for p in points if abs(p.factor * share - 1) < 1e-9) - observed)
        places, _, _ = placed({cell: whole}, query_ids, qrels)
        sizes = np.array([len(names) - len(qrels[q]) for q in query_ids])
        low, missing = thinned(places[cell], sizes, share)
        print(
            f"  {share:g}x: expected {low.mean():.4f} to {(low + missing).mean():.4f}, real subsamples "
            f"{np.mean(real):.4f} (SD {np.std(real):.4f}), cut from the whole ranking {np.mean(order_kept):.4f}; "
            f"1x predicted from real subsamples: {figures(errors)}",
            flush=True,
        )
    return whole


def refitted(one: Run, qrels: Qrels, n_documents: int, factor: float) -> str:
    """The bootstrap interval with the law fitted to every resample, beside the one that is printed."""
    query_ids = list(qrels)
    places = placed({"cell": one}, query_ids, qrels)[0]["cell"]
    sizes = np.array([n_documents - len(qrels[q]) for q in query_ids])[places.queries]
    generator, means = np.random.default_rng(1), []
    for _ in range(REFITS):
        times = np.bincount(generator.integers(len(query_ids), size=len(query_ids)), minlength=len(query_ids))
        rows = np.repeat(np.arange(len(places.queries)), times[places.queries])
        known = np.where(places.listed | places.cut, places.above, 10)
        law = Law(Counts(known[rows], sizes[rows], places.listed[rows]))
        values, _ = law.expected(places.above[rows], places.before[rows], sizes[rows], factor)
        means.append((values * places.weights[rows] * places.listed[rows]).sum() / len(query_ids))
    low, high = np.quantile(means, [0.025, 0.975])
    result = scale({"cell": one}, query_ids, qrels, n_documents, RESAMPLES).cells[0].points
    printed = next(point for point in result if point.factor == factor)
    return f"{factor:g}x refitted [{low:.4f}, {high:.4f}], printed [{printed.low:.4f}, {printed.high:.4f}]"


def main() -> None:
    for n_queries in sized((300, 3_000), (5,)):
        speed(10, n_queries)
    if not SCIFACT.is_dir():
        print(f"NOT MEASURED: SciFact is not at {SCIFACT}; set PSE_SHARED to the folder that has bench/scifact")
        return
    documents, queries, qrels = read_scifact(SCIFACT)
    names = list(documents)
    rankers: dict[str, Ranker] = {
        variant: partial(sparse, variant, documents, queries) for variant in ("bm25", "bm25-okapi")
    }
    for encoder in sys.argv[1:] or ["minilm-static-384"]:
        rankers[encoder] = dense(encoder, documents, queries)
        rankers[f"bm25>{encoder}"] = reranked(rankers["bm25"], rankers[encoder])
        rankers[f"rrf(bm25,{encoder})"] = fused(rankers["bm25"], rankers[encoder])
    runs = {cell: measured(cell, rank, names, qrels) for cell, rank in rankers.items()}
    print(f"bm25: {'; '.join(refitted(runs['bm25'], qrels, len(names), factor) for factor in (10.0, 100.0))}")
    result = scale(runs, list(qrels), qrels, len(names), RESAMPLES)
    print("\n".join(result.sentences))


if __name__ == "__main__":
    main()
