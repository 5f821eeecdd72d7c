"""The folder of an external evaluation, read for a case study."""

from pathlib import Path

from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display, printable
from runner.base.records import Document
from runner.base.schema import checked
from runner.eval_set.collection import published_qrels
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_cell_file, load_corpus, load_queries, newest_version
from runner.tools.case_study.case_study import Subject


def read_subject(folder: Path) -> Subject:
    """The collection and every cell of the results in a version folder of an external evaluation.

    The documents come from the version's archive. InputError for any other folder and for whatever is missing;
    IntegrityError for a file that is not the one that results.json was made from.
    """
    results, collection = _results(folder)
    version = newest_version(results.source, folder.resolve().parent)
    if version.folder != folder.resolve():
        raise InputError(f"{display(folder)} is not the newest version beside it. Give {display(version.folder)}.")
    _check_inputs(version, results)
    plan = results.plan
    qrels = published_qrels(version)
    lengths = {row.doc_id: row.n_chars for row in load_corpus(version.corpus_path)[1]}
    if not any(grade and doc_id in lengths for grades in qrels.values() for doc_id, grade in grades.items()):
        raise InputError(
            f"{display(version.qrels_path)}: no document of the corpus is relevant, so nothing can be found."
        )
    queries = load_queries(version.queries_path)
    query_ids = [query.query_id for query in queries]
    facts = {cell: _cell_file(version, cell) for cell in plan.cells}
    return Subject(
        name=collection.name,
        sha256={name: getattr(collection, f"{name}_sha256") for name in ("corpus", "queries", "qrels")},
        plan=plan,
        queries=queries,
        qrels=qrels,
        document_texts={d.doc_id: _reading(d) for d in corpus_documents(version, None)},
        document_lengths=lengths,
        engines={cell: read_run(version.run_path(cell), cell, query_ids) for cell in plan.cells},
        chunks={cell: found.chunks_per_document for cell, found in facts.items()},
        dense=next((cell for cell, found in facts.items() if found.encoder and not found.bm25), ""),
    )


def _results(folder: Path) -> tuple[Results, CollectionFacts]:
    path = folder / "results.json"
    if not path.is_file():
        raise InputError(
            f"{display(folder)} has no results.json. Give the version folder of an external evaluation, as a run with "
            "--source=beir writes it."
        )
    results = checked(Results, read_json(path), path)
    if results.collection is None:
        raise InputError(f"{display(path)} is {results.kind}, and not of an external collection with published qrels.")
    return results, results.collection


def _check_inputs(version: Version, results: Results) -> None:
    known = {
        (version.qrels_path, results.labels.sha256),
        (version.corpus_path, results.corpus.manifest_sha256),
        *((version.queries_path, row.provenance.queries_sha256) for row in results.cells),
    }
    for path, digest_then in sorted(known):
        if file_sha256(path) != digest_then:
            raise IntegrityError(
                f"{display(path)} is not the file that results.json was made from. Restore it, or run the driver again "
                "to make results.json from it."
            )


def _cell_file(version: Version, cell: str) -> CellFile:
    """A cell's own file, whose run is the one that it names."""
    path, run = version.cell_path(cell), version.run_path(cell)
    facts = load_cell_file(path)
    if facts.cell != cell or file_sha256(run) != facts.run_sha256:
        raise IntegrityError(
            f"{display(run)} is not the run of {printable(cell)} that {display(path)} should name. Restore both, or "
            f"delete {display(path)} and run the driver again{', with --trec-run FILE' if facts.imported else ''}."
        )
    return facts


def _reading(document: Document) -> str:
    """What an encoder reads of a whole document."""
    return f"{document.title}\n{document.text}" if document.title else document.text
