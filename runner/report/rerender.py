"""Pages again from what a record holds: to look at, to compare with the committed one, or with passages added."""

import re
from collections.abc import Mapping
from pathlib import Path

from runner.base.canonical import file_sha256, json_bytes, refuse_special
from runner.base.errors import InputError, IntegrityError
from runner.base.places import DRIVER
from runner.base.records import Document
from runner.decide.passages.passages import with_passages
from runner.decide.tiers import beside_baseline
from runner.eval_set.corpus import archive_fault, archived_documents, manifest_row
from runner.eval_set.history import versions_of
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_corpus, load_decision, load_receipt, load_results
from runner.report.comparison.file import write_html
from runner.report.results_page.render import TEMPLATE_VERSION, page

NAME = "results-with-passages.html"

_TEMPLATE = re.compile(rb'<meta name="generator" content="per-source-eval, page template (\d+)">')


def write_page(version: Version, receipt: Path | None, output: Path | None) -> Path:
    """Where the page went: `output`, by default results.html in the version's work folder; never into an eval set."""
    path = output or version.work / "results.html"
    content = _page(version, receipt)
    return write_html(path, content, version.work, version.folder.parent)


def check_page(version: Version, receipt: Path | None) -> str:
    """A sentence that the page is reproduced, or that another release made it and its lock holds it.

    Raises IntegrityError if the page differs, InputError if there is none or nothing holds another release's page.
    """
    path = version.record / "results.html"
    if not path.exists():
        raise InputError(missing(version, path))
    refuse_special(path)
    made_by = template_of(path)
    if made_by is not None and made_by != TEMPLATE_VERSION:
        return _of_another_release(version, path, made_by)
    if path.read_bytes() != _page(version, receipt):
        raise IntegrityError(f"{path} is not what results.json, receipt.json, decision.json and the templates make.")
    return f"{path} is reproduced byte for byte"


def template_of(path: Path) -> int | None:
    """The number of the template that a page says it was made with; None if it says none or is not there."""
    found = _TEMPLATE.search(path.read_bytes()[:4_000] if path.is_file() else b"")
    return int(found[1]) if found else None


def _of_another_release(version: Version, path: Path, number: int) -> str:
    """What holds a page that the present templates cannot make; whoever calls has verified the lock."""
    said = f"{path} was made by page template {number}, this release makes {TEMPLATE_VERSION}"
    if not (version.record / "lock.json").exists():
        raise InputError(f"{said}, and no lock holds it. Run {DRIVER} run {version.flags} to make it again.")
    return f"{said}: not compared; it is as its lock holds it"


def _page(version: Version, receipt: Path | None) -> bytes:
    receipt_path = receipt or version.record / "receipt.json"
    if not version.results_path.exists():
        raise InputError(missing(version, version.results_path))
    if not receipt_path.exists():
        raise InputError(_no_receipt(version, receipt_path, is_given=receipt is not None))
    return page(json_bytes(load_results(version).model_dump()), load_receipt(receipt_path), decision_of(version))


def decision_of(version: Version) -> Decision | None:
    """The decision in the version's record, None before there is one."""
    return load_decision(version) if (version.record / "decision.json").exists() else None


def _no_receipt(version: Version, path: Path, *, is_given: bool) -> str:
    if is_given:
        return f"{path} does not exist. Give --receipt another file, or leave it out to take the record's own."
    if (version.record / "decision.json").exists():
        return f"{path} does not exist. Restore it from git, or give --receipt another."
    return missing(version, path)


def missing(version: Version, path: Path) -> str:
    """The sentence about a file of the record that a run writes; it names other versions that have results."""
    name = version.record.relative_to(version.folder) / "results.json"
    others = [f"v{one.number}" for one in versions_of(version) if (one.folder / name).exists() and one != version]
    elsewhere = f"; results are in {', '.join(others)}, which --version N asks for" if others else ""
    return f"{path} does not exist; run the driver first{elsewhere}."


def write_local_copy(version: Version, receipt: Path | None, output: Path | None) -> Path:
    """Where the page with passages of documents went: `output`, by default NAME in the version's work folder.

    The documents are not ours, so the page is for the reader's own machine and never for the record.
    Raises InputError for a place that is taken or in an eval set, if results or documents are missing, and if the
    record's own page has passages already; IntegrityError if the documents are not those that were scored.
    """
    path = output or version.work / NAME
    receipt_path = receipt or version.record / "receipt.json"
    for needed in (version.results_path, receipt_path):
        if not needed.exists():
            raise InputError(f"{needed} does not exist; run the driver first.")
    results = load_results(version)
    if results.lists.texts:
        raise InputError(
            f"The documents of {version.name} are ours to show, so {version.record / 'results.html'} has its passages "
            "already. Open that page, or leave out --passages to write it again elsewhere."
        )
    measured = load_receipt(receipt_path)
    queries = {query.id: query.text for query in results.queries}
    cells = beside_baseline(results.cells, results.plan)
    lists = with_passages(results.lists, _documents(version, results), queries, cells)
    content = page(json_bytes(results.model_dump()), measured, decision_of(version), local_copy=lists)
    return write_html(path, content, version.work, version.folder.parent)


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
    other = [row.doc_id for row in rows if row.doc_id not in found or manifest_row(found[row.doc_id], row.file) != row]
    if other:
        raise IntegrityError(
            f"The archive of {version.name} holds other documents than {version.corpus_path} names ({len(other)}: "
            f"{', '.join(other[:5])}). Put the archive of this version back."
        )
    return found
