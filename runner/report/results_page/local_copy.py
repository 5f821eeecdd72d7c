"""A results page with passages of documents that are not ours: for the reader's own machine, never for the record."""

from collections.abc import Mapping
from pathlib import Path

from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError, IntegrityError
from runner.base.records import Document
from runner.base.schema import checked
from runner.decide.passages.passages import with_passages
from runner.eval_set.corpus import archive_fault, archived_documents, manifest_row
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_corpus
from runner.report.comparison.file import write_html
from runner.report.results_page.render import page

NAME = "results-with-passages.html"


def write_local_copy(version: Version, receipt: Path | None, output: Path | None) -> Path:
    """Where the page went: `output`, by default NAME in the version's work folder.

    Raises InputError for a place in an eval set or over anything but such a page, where results or documents are not
    here, and where the record's own page has passages already; IntegrityError where the documents are not those that
    were scored.
    """
    path = output or version.work / NAME
    results_path, receipt_path = version.record / "results.json", receipt or version.record / "receipt.json"
    for needed in (results_path, receipt_path):
        if not needed.exists():
            raise InputError(f"{needed} does not exist; run the driver first.")
    results = checked(Results, read_json(results_path), results_path)
    if results.lists.texts:
        raise InputError(
            f"The documents of {version.name} are ours to show, so {version.record / 'results.html'} has its passages "
            "already. Open that page, or leave out --passages to write it again elsewhere."
        )
    measured = checked(Receipt, read_json(receipt_path), receipt_path)
    queries = {query.id: query.text for query in results.queries}
    lists = with_passages(results.lists, _documents(version, results), queries)
    content = page(results, measured, local_copy=lists)
    return write_html(path, content, version.work, version.folder.parent, version.checkout / "eval-sets")


def _documents(version: Version, results: Results) -> Mapping[str, Document]:
    """The archived documents by id, each as the manifest that was scored names it."""
    if file_sha256(version.corpus_path) != results.corpus.manifest_sha256:
        raise IntegrityError(
            f"{version.corpus_path} is not the manifest that {version.record / 'results.json'} was made over. Restore "
            "both from git."
        )
    documents = archived_documents(version)
    if documents is None:
        raise InputError(
            f"The documents of {version.name} are not here: {archive_fault(version)}. Put the archive back where it "
            "was written; without it there are no passages, and `render` without --passages makes the page."
        )
    _, rows = load_corpus(version.corpus_path)
    found = {document.doc_id: document for document in documents}
    other = [row.doc_id for row in rows if row.doc_id not in found or manifest_row(found[row.doc_id]) != row]
    if other:
        raise IntegrityError(
            f"The archive of {version.name} holds other documents than {version.corpus_path} names ({len(other)}: "
            f"{', '.join(other[:5])}). Put the archive of this version back."
        )
    return found
