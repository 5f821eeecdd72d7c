"""Pages again from what a record holds: to look at, or to compare byte by byte with the committed one."""

import re
from pathlib import Path

from runner.base.canonical import read_json, refuse_special
from runner.base.errors import InputError, IntegrityError
from runner.base.schema import checked
from runner.eval_set.history import versions_of
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import DRIVER, Version
from runner.report.comparison.file import write_html
from runner.report.results_page.render import TEMPLATE_VERSION, page

_TEMPLATE = re.compile(rb'<meta name="generator" content="per-source-eval, page template (\d+)">')


def write_page(version: Version, receipt: Path | None, output: Path | None) -> Path:
    """Where the page went: `output`, by default results.html in the version's work folder; never into an eval set."""
    path = output or version.work / "results.html"
    content = _page(version, receipt)
    return write_html(path, content, version.work, version.folder.parent, version.checkout / "eval-sets")


def check_page(version: Version, receipt: Path | None) -> str:
    """A sentence that the page is reproduced, or that another release made it and its lock holds it.

    Raises IntegrityError where the page is not what it should be, InputError where there is none, or where another
    release made it and no lock holds it.
    """
    path = version.record / "results.html"
    if not path.exists():
        raise InputError(missing(version, path))
    refuse_special(path)
    content = path.read_bytes()
    made_by = _TEMPLATE.search(content[:4_000])
    if made_by is not None and int(made_by[1]) != TEMPLATE_VERSION:
        return _of_another_release(version, path, int(made_by[1]))
    if content != _page(version, receipt):
        raise IntegrityError(f"{path} is not what results.json, receipt.json and the present templates make.")
    return f"{path} is reproduced byte for byte"


def _of_another_release(version: Version, path: Path, number: int) -> str:
    """What holds a page that the present templates cannot make; whoever calls has verified the lock."""
    said = f"{path} was made by page template {number}, this release makes {TEMPLATE_VERSION}"
    if not (version.record / "lock.json").exists():
        raise InputError(f"{said}, and no lock holds it. Run {DRIVER} {version.flags} to make it again.")
    return f"{said}: not compared; it is as its lock holds it"


def _page(version: Version, receipt: Path | None) -> bytes:
    results_path = version.record / "results.json"
    receipt_path = receipt or version.record / "receipt.json"
    if not results_path.exists():
        raise InputError(missing(version, results_path))
    if not receipt_path.exists():
        raise InputError(_no_receipt(version, receipt_path, is_given=receipt is not None))
    return page(
        checked(Results, read_json(results_path), results_path), checked(Receipt, read_json(receipt_path), receipt_path)
    )


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
