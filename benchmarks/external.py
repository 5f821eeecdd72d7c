"""External collections: scores against ir_measures, all statistics of a large one, and published values on two.

    python benchmarks/external.py

SciFact and NFCorpus are read from PSE_SHARED (bench/) and go through the command's own stages in a folder that is
thrown away. Vectors are taken from the cache and not made here: `bin/per-source-eval.py --source=beir --corpus-path
FOLDER` makes them. Ends with 1 if a value of docs/matrix/published.yaml is missed by more than its tolerance.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml
from corpus import CHECKOUT, NFCORPUS, SCIFACT
from measuring import timed
from score import compare
from sizes import SMALL, sized

from runner.base.canonical import JSON, digest
from runner.base.errors import BackendError
from runner.base.places import cache_folder
from runner.base.records import RUN_DEPTH, Hit, ImportedCell, PromptSide, Query, Run, Span
from runner.base.store import MANIFEST, Store
from runner.decide.cell_results import cell_results
from runner.decide.results import control_results
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import embed
from runner.embed.local_encoder import encoder_for
from runner.eval_set.catalog import source
from runner.eval_set.corpus import read_external
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import newest_version
from runner.evening.external import ExternalEvaluation
from runner.gate.graded_gate import GradedGate
from runner.score.comparison import Comparison
from runner.tools.matrix.runs import load_published

N_QUERIES, DEPTH, N_DOCUMENTS = sized((3_000, 1_000, 100_000), (5, 120, 1_000))
BM25 = ("bm25 x whole_doc", "bm25-plain x whole_doc")
ENCODERS = ("minilm-l6-v2", "mpnet-base-v2")
SPAN = Span(0, 1)


def main() -> None:
    compare(N_QUERIES, DEPTH)
    for n_cells in sized((2, 8), (2,)):
        seconds = statistics_seconds(made_up(n_cells))
        print(
            f"all statistics: {N_QUERIES:,} queries, {N_DOCUMENTS:,} documents, {n_cells} cells: "
            f"{sum(seconds.values()):.1f} s ({', '.join(f'{name} {value:.1f}' for name, value in seconds.items())})"
        )
    missed = []
    for folder in (SCIFACT, NFCORPUS):
        if not folder.is_dir():
            print(f"NOT MEASURED: {folder} is not there; set PSE_SHARED to the folder that has bench/{folder.name}")
            continue
        missed += against_published(folder.name, values_of(folder))
    if missed and not SMALL:  # then it is another collection
        raise SystemExit(f"missed by more than its tolerance: {', '.join(missed)}")


def made_up(n_cells: int) -> Comparison:
    """Imported runs, each a little better than the one before, over five to ten judged documents per query."""
    rng = np.random.default_rng(1)
    documents = [f"d{i:06}" for i in range(N_DOCUMENTS)]
    queries = [Query(f"q{i}", "text", "published", "harvested") for i in range(N_QUERIES)]
    qrels = {query.query_id: judgments(documents, rng) for query in queries}
    cells = [str(ImportedCell(f"engine-{i}")) for i in range(n_cells)]
    plan = Plan.model_validate(yaml.safe_load(default_plan_text(source("beir"), rehearsal=False)))
    return Comparison(
        plan=plan.model_copy(update={"cells": cells, "baseline": cells[0]}),
        queries=queries,
        runs={cell: engine(cell, 0.1 * i, documents, qrels, rng) for i, cell in enumerate(cells)},
        qrels=qrels,
        facts={cell: cell_file(cell, documents) for cell in cells},
        registered=frozenset(cells),
        document_lengths=dict(zip(documents, rng.integers(200, 9_000, N_DOCUMENTS).tolist(), strict=True)),
        published=True,
    )


def judgments(documents: Sequence[str], rng: np.random.Generator) -> dict[str, int]:
    judged = rng.choice(len(documents), rng.integers(5, 11), replace=False)
    grades = rng.choice(4, len(judged), p=[0.5, 0.2, 0.2, 0.1])
    return {documents[i]: grade for i, grade in zip(judged.tolist(), grades.tolist(), strict=True)}


def engine(
    cell: str, skill: float, documents: Sequence[str], qrels: Mapping[str, Mapping[str, int]], rng: np.random.Generator
) -> Run:
    """DEPTH documents per query, the better graded ones earlier, of which an import keeps RUN_DEPTH."""
    hits = {}
    for query_id, grades in qrels.items():
        first = rng.integers(N_DOCUMENTS - DEPTH)
        scores = dict(zip(documents[first : first + DEPTH], rng.normal(size=DEPTH).tolist(), strict=True))
        scores |= {doc_id: 1.5 + rng.normal() + skill * grade for doc_id, grade in grades.items()}
        ranked = sorted(scores, key=lambda doc_id: -scores[doc_id])[:RUN_DEPTH]
        hits[query_id] = tuple(Hit(doc_id, scores[doc_id], SPAN) for doc_id in ranked)
    return Run(cell, hits)


def cell_file(cell: str, documents: Sequence[str]) -> CellFile:
    return CellFile(
        schema_version=5,
        backend=None,
        cell=cell,
        queries_sha256="0" * 64,
        corpus_sha256="0" * 64,
        run_sha256="0" * 64,
        chunk_run_sha256=None,
        chunks=None,
        encoder=None,
        probe=None,
        truncation=None,
        bm25=None,
        method="made up",
        chunkers_sha256=None,
        chunks_per_document=[1] * len(documents),
        index_bytes=None,
        imported=None,
    )


def statistics_seconds(comparison: Comparison) -> dict[str, float]:
    """Seconds of each part of what a page says of its cells."""
    parts: dict[str, Callable[[], object]] = {
        "scores": lambda: comparison.scores,
        "tests and recall bounds": lambda: (comparison.tests, comparison.gain_tests, comparison.recall_bounds),
        "intervals and null gates": lambda: cell_results(comparison, GradedGate.over(comparison), readings={}),
        "controls": lambda: control_results(comparison, GradedGate.over(comparison)),
        "false alarms and winner's curse": lambda: (comparison.false_alarms(), comparison.best_gain_corrected()),
    }
    return {name: timed(part)[0] for name, part in parts.items()}


class KeptVectors(Store):
    """The store, from which vectors are only taken: LookupError where there are none."""

    def ensure(self, stage: str, inputs: JSON, build: Callable[[Path], None]) -> Path:
        """As the store's, but that it never waits for another process that is making them."""
        folder = self.root / stage / digest({"stage": stage, "inputs": inputs})
        if stage == "vectors" and not (folder / MANIFEST).exists():
            raise LookupError(f"no vectors in {folder}")
        return super().ensure(stage, inputs, build)


def values_of(folder: Path) -> dict[str, float]:
    """nDCG@10 of the cells that can be had without embedding."""
    collection = read_external(folder)
    by_id = {document.doc_id: document for document in collection.documents}
    readings = [chunk.reading(by_id[chunk.doc_id]) for chunk in chunk_corpus(collection.documents, "whole_doc")]
    texts: dict[PromptSide, list[str]] = {"document": readings, "query": list(collection.queries.values())}
    cells = [*BM25, *(f"{encoder} x whole_doc" for encoder in ENCODERS if is_kept(encoder, texts))]
    with tempfile.TemporaryDirectory() as scratch:
        version = newest_version("beir", Path(scratch))
        plan = yaml.safe_load(default_plan_text(version.source, rehearsal=False)) | {"cells": cells}
        path = version.plan_path(rehearsal=False)
        path.parent.mkdir()
        path.write_text(yaml.safe_dump(plan), encoding="utf-8")
        ExternalEvaluation(version, folder).run()
        results = json.loads((version.record / "results.json").read_bytes())
    return {row["cell"]: row["scores"]["ndcg@10"]["mean"] for row in results["cells"]}


def is_kept(encoder: str, texts: Mapping[PromptSide, Sequence[str]]) -> bool:
    try:
        for side, given in texts.items():
            embed(KeptVectors(cache_folder()), encoder_for(encoder), given, side)
    except (LookupError, BackendError) as error:
        print(f"NOT MEASURED: {encoder} x whole_doc: {error}")
        return False
    return True


def against_published(dataset: str, values: Mapping[str, float]) -> list[str]:
    """Every published nDCG@10 that has a tolerance, beside ours; the names of those that ours misses."""
    missed = []
    for row in load_published(CHECKOUT / "docs" / "matrix" / "published.yaml").values:
        if row.dataset != dataset or row.tolerance is None or row.measure != "ndcg@10" or row.system not in values:
            continue
        difference = values[row.system] - row.value
        agrees = abs(difference) <= row.tolerance
        print(
            f"{dataset}, {row.system}: nDCG@10 {values[row.system]:.5f}, {row.source} {row.value:.5f}, difference "
            f"{difference:+.5f} {'within' if agrees else 'NOT WITHIN'} {row.tolerance}"
        )
        if not agrees:
            missed.append(f"{row.system} on {dataset} ({row.source})")
    return missed


if __name__ == "__main__":
    main()
