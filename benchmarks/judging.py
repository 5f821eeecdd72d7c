"""Batches out, answers in, agreement: 7,500 pairs through files, against a bare pass over the same JSON.

    python benchmarks/judging.py

25 queries over 300 documents of 6,000 characters; every pair is exported with 5,000 characters of evidence, answered,
imported, read again by a second judge (10 %) and compared over ten invented cells. The peer parses and writes the same
batch files and nothing else.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the small version belongs to the tests

from measuring import timed
from sizes import sized

from runner.base.canonical import jsonl_bytes, sha256, write_atomic
from runner.base.records import Document, Hit, Query, Run, Span
from runner.decide.judge_agreement import judge_agreement
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels
from runner.eval_set.shapes.corpus import CorpusHeader, CorpusRow
from runner.eval_set.version import Version, corpus_bytes
from runner.judge.answers import Importer
from runner.judge.prep_labels import export_batches
from runner.judge.second_reading import export_doubles
from tests.support.example_results import PLAN
from tests.support.small_judging import MODEL
from tests.support.small_set import make_version, write_plans

N_QUERIES, N_DOCUMENTS, N_CELLS = sized((25, 300, 10), (3, 12, 3))
SENTENCE = "The office shall publish each finding within thirty days and pay the cost from the fund. "


def begin(folder: Path) -> tuple[Version, dict[str, Query], dict[str, Document]]:
    """A version with queries and a manifest, without a corpus archive: nothing here reads it."""
    version = make_version(folder)
    version.folder.mkdir(parents=True, exist_ok=True)
    queries = {
        f"q{n:02d}": Query(f"q{n:02d}", f"which finding is number {n}?", "topic", "hand") for n in range(N_QUERIES)
    }
    text = SENTENCE * 70
    documents = {f"d{n:03d}": Document(f"d{n:03d}", text, f"Act {n}", "s", "", "") for n in range(N_DOCUMENTS)}
    rows = [{"id": q.query_id, "text": q.text, "kind": q.kind, "origin": q.origin} for q in queries.values()]
    version.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}))
    write_plans(version)
    version.judge_path.write_text("Grade from 0 to 3.\n")
    header = CorpusHeader(
        schema_version=1,
        source="demo",
        reader="demo",
        sample=PLAN.sample,
        n_read=N_DOCUMENTS,
        n_documents=N_DOCUMENTS,
        quarantined=[],
        archive_sha256=sha256(""),
    )
    manifest = [
        CorpusRow(doc_id=d.doc_id, url="", sha256=d.sha256, stratum="s", family="", n_chars=len(d.text))
        for d in documents.values()
    ]
    write_atomic(version.corpus_path, corpus_bytes(header, manifest))
    return version, queries, documents


def answer(version: Version, paths: list[Path], judge: str, generator: np.random.Generator) -> None:
    """Answer files beside the batches, then all of them imported."""
    for path in paths:
        rows = read_batch(path)
        grades = generator.choice(4, len(rows), p=[0.7, 0.15, 0.1, 0.05]).tolist()
        said = [
            {"query_id": row.query_id, "doc_id": row.doc_id, "grade": grade, "batch": row.batch}
            for row, grade in zip(rows, grades, strict=True)
        ]
        path.with_name(f"{path.stem}.answers.jsonl").write_bytes(jsonl_bytes(said))


def imported(version: Version, paths: list[Path], judge: str) -> None:
    importer = Importer(version)
    for path in paths:
        answers = path.with_name(f"{path.stem}.answers.jsonl")
        importer.take_file(answers, judge=judge, model=MODEL, judged_on="2026-01-31")


def runs(queries: dict[str, Query], documents: dict[str, Document], generator: np.random.Generator) -> dict[str, Run]:
    found = {}
    for cell in [PLAN.baseline, *(f"cell {n}" for n in range(1, N_CELLS))]:
        hits = {
            query_id: tuple(
                Hit(doc_id, 100.0 - rank, Span(0, 100))
                for rank, doc_id in enumerate(generator.permutation(sorted(documents))[:100].tolist())
            )
            for query_id in queries
        }
        found[cell] = Run(cell, hits)
    return found


def bare(paths: list[Path]) -> None:
    """The peer: every row parsed and written once more."""
    for path in paths:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.with_suffix(".copy").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    generator = np.random.default_rng(np.random.PCG64(1))
    with tempfile.TemporaryDirectory() as name:
        version, queries, documents = begin(Path(name))
        pairs = {(q, d): (Span(0, 5_000),) for q in queries for d in documents}
        exporting, paths = timed(lambda: export_batches(version, pairs, queries, documents))
        answer(version, paths, "first", generator)
        importing, _ = timed(lambda: imported(version, paths, "first"))
        doubles = export_doubles(version, load_labels(version.labels_path), 0.1).paths
        answer(version, doubles, "second", generator)
        imported(version, doubles, "second")
        cells = runs(queries, documents, generator)
        labels = load_labels(version.labels_path)
        agreeing, _ = timed(lambda: judge_agreement(labels, cells, list(queries), PLAN))
        copying, _ = timed(lambda: bare(batch_files(version.judging)))
        megabytes = sum(path.stat().st_size for path in batch_files(version.judging)) / 1e6
    total = exporting + importing + agreeing
    print(f"{len(pairs):,} pairs in {len(paths)} batches, {megabytes:.0f} MB; {len(labels):,} labels")
    print(f"export {exporting:.2f} s, import of every file {importing:.2f} s, agreement {agreeing:.2f} s")
    print(f"together {total:.2f} s; one bare pass over the same JSON {copying:.2f} s; ratio {total / copying:.1f}")


if __name__ == "__main__":
    main()
