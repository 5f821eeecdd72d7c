"""A copy of a results page with titles and passages of the documents, for the reader's own machine."""

from collections.abc import Mapping
from pathlib import Path

from runner.base.canonical import file_sha256, json_bytes
from runner.base.errors import InputError, IntegrityError
from runner.base.records import Document
from runner.decide.passages import with_passages
from runner.decide.tiers import beside_baseline
from runner.eval_set.asked import asked
from runner.eval_set.corpus import archive_fault, archived_documents
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_decision, load_lists, load_receipt, load_results
from runner.report.html_file import write_html
from runner.report.results_page import page

NAME = "results-with-passages.html"


def write_local_copy(version: Version, output: Path | None = None) -> Path:
    """Write the page with passages of documents to `output`, by default NAME in the version's work folder.

    The documents are not ours, so the page is for the reader's own machine and never for the record.
    Raises InputError for a place that is taken or in an eval set, if results or documents are missing, and if the
    record's own page has passages already; IntegrityError if the documents are not those that were scored.
    """
    path = output or version.work / NAME
    receipt_path = version.record / "receipt.json"
    for needed in (version.results_path, version.lists_path, receipt_path):
        if not needed.exists():
            raise InputError(f"{needed} does not exist; `run` makes it.")
    results, bare = load_results(version), load_lists(version)
    if bare.texts:
        raise InputError(
            f"The documents of {version.name} are ours to show, so {version.record / 'results.html'} has its passages "
            "already. Leave out --passages to open it."
        )
    queries = {one.id: one.text for one in asked(results.queries)}
    cells = beside_baseline(results.cells, results.plan)
    lists = json_bytes(with_passages(bare, _documents(version, results), queries, cells).model_dump())
    decision = load_decision(version) if (version.record / "decision.json").exists() else None
    written = json_bytes(results.model_dump())
    content = page(written, lists, load_receipt(receipt_path), decision, local_copy=True)
    return write_html(path, content, version.work, version.folder.parent)


def _documents(version: Version, results: Results) -> Mapping[str, Document]:
    """Return the archived documents by id, each as the manifest that was scored names it."""
    if file_sha256(version.corpus_path) != results.digests["corpus.jsonl"]:
        raise IntegrityError(
            f"{version.corpus_path} is not the manifest that {version.record / 'results.json'} was made over. Restore "
            "both from git or a backup."
        )
    documents = archived_documents(version)
    if documents is None:
        raise InputError(
            f"The documents of {version.name} are not here: {archive_fault(version)}. Put the archive back where it "
            "was written, or leave out --passages to open the page without them."
        )
    return {document.doc_id: document for document in documents}
