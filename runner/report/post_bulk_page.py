"""post-bulk.html: one self-contained page, a pure function of post_bulk.json, its receipt and the templates.

Where reports on the substrate lie: one folder a run, whole or not there, with a lock of its own.
"""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from itertools import count
from pathlib import Path

from runner.base.canonical import json_bytes, rename_synced, rounded, sha256, slug, write_atomic
from runner.decide.receipt import make_receipt
from runner.eval_set.door import LOCK_NAME, REPORTS, lock_over
from runner.eval_set.runs import run_bytes
from runner.eval_set.shapes.decision import Receipt
from runner.report.page_frame import inert, rendered
from runner.substrate.measure import Measured, verdict
from runner.substrate.shapes import PostBulk

TEMPLATE_VERSION = 1
"""Raised with every change of a template or of this module that changes the page; the page names it."""


def post_bulk_page(found: PostBulk, receipt: Receipt) -> bytes:
    """Return UTF-8 HTML without script, network or clock; what substrate and record hold is never interpreted."""
    stored = PostBulk.model_validate(rounded(found.model_dump()))
    return rendered(
        "post_bulk.html.j2",
        found=inert(stored),
        verdict=inert(verdict(found)),
        receipt=inert(Receipt.model_validate(rounded(receipt.model_dump()))),
        found_sha256=sha256(json_bytes(stored.model_dump())),
        template_version=TEMPLATE_VERSION,
    )


PAGE = "post-bulk.html"

LIBRARIES = ("apsw", "sqlite-vec")


def place_report(record: Path, outcome: Measured, *, check: Callable[[], object]) -> Path:
    """Return the folder of a new report: made under a name that nothing reads, renamed if `check` raises nothing.

    The caller holds the version's lock. Whatever ends this before the rename leaves no report.
    """
    partial = record / REPORTS / ".tmp-report"  # git leaves such names out
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
    try:
        _write(partial, outcome)
        check()
        return rename_synced(partial, _free(record / REPORTS))
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write(folder: Path, outcome: Measured) -> None:
    receipt = make_receipt({}, {}, {})
    used = {name: metadata.version(name) for name in LIBRARIES}
    receipt = receipt.model_copy(update={"libraries": receipt.libraries | used})
    for arm, run in outcome.runs.items():
        write_atomic(folder / "runs" / f"{slug(arm)}.tsv.bz2", run_bytes(run))
    write_atomic(folder / "post_bulk.json", json_bytes(outcome.report.model_dump()))
    write_atomic(folder / "receipt.json", json_bytes(receipt.model_dump()))
    write_atomic(folder / PAGE, post_bulk_page(outcome.report, receipt))
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    write_atomic(folder / LOCK_NAME, json_bytes(lock_over(folder, names).model_dump()))


def _free(reports: Path) -> Path:
    """Return today's folder, or with -2, -3, ... if there are some already."""
    day = datetime.now(UTC).date().isoformat()
    names = (day if number == 1 else f"{day}-{number}" for number in count(1))
    return next(reports / name for name in names if not (reports / name).exists())
