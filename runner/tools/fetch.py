"""A version's manifest as what to fetch again, and what came of a fetch in words."""

from pathlib import Path
from typing import Any

from runner.base.canonical import read_jsonl
from runner.base.errors import InputError, IntegrityError
from runner.base.places import DRIVER
from runner.eval_set.door import held
from samplers.feeds.request import FetchReport

_N_NAMED = 20


def manifest(path: Path, source: str) -> dict[str, Any]:
    """Return what a FetchRequest takes of a corpus.jsonl: ids with digests, and the reader's options."""
    rows = [row for _, row in read_jsonl(held(path))]
    header = rows[0] if rows else {}
    sample = header.get("sample")
    if not isinstance(sample, dict) or header.get("source") != source:
        raise InputError(f"{path} is not a manifest of {source}. Give the corpus.jsonl of one of its versions.")
    documents = {str(row.get("doc_id")): str(row.get("sha256")) for row in rows[1:]}
    if not documents:
        raise InputError(f"{path} names no document.")
    return {"documents": documents, "options": frozenset(sample.get("options") or ())}


def check_same(report: FetchReport, folder: Path) -> None:
    """Raise an IntegrityError, which names documents, unless each is as the manifest has it."""
    differing = [*report.changed, *report.missing]
    if not differing:
        return
    named = "\n".join(f"  - {doc_id}: {how}" for doc_id, how in differing[:_N_NAMED])
    more = (
        f"\n  and {len(differing) - _N_NAMED} more, all in {folder}/differences.jsonl" if differing[_N_NAMED:] else ""
    )
    rest = f"{len(report.same) or 'None'} of them are in {folder} as the manifest has them."
    raise IntegrityError(
        f"{len(report.changed)} of {report.n_listed} documents are changed and {len(report.missing)} missing:\n"
        f"{named}{more}\n{rest} Put the version's archive back, or open a new version."
    )


def summary(report: FetchReport, source: str, folder: Path) -> str:
    """Return what was listed, fetched and kept, and the command that comes next."""
    kept = f", {report.n_kept:,} were there" if report.n_kept else ""
    failed = f", {len(report.failed):,} could not be had" if report.failed else ""
    return (
        f"{report.n_files:,} of {report.n_listed:,} listed files were drawn: {report.n_fetched:,} fetched{kept}{failed}"
        f"; {report.n_bytes / 1e6:,.1f} MB in {folder}.\n"
        f"Next: {DRIVER} run {source} --corpus-path {folder}"
    )
