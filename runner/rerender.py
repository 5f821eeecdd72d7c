"""Pages again from what a record holds: to look at, or to compare byte by byte with the committed one."""

from pathlib import Path

from runner.canonical import read_json, write_atomic
from runner.errors import InputError, IntegrityError
from runner.eval_set import Version
from runner.render import page
from runner.schemas import Receipt, Results
from runner.strict import checked


def write_page(version: Version, receipt: Path | None, output: Path | None) -> Path:
    """Where the page went: `output`, by default results.html in the version's work folder."""
    path = output or version.work / "results.html"
    write_atomic(path, _page(version, receipt))
    return path


def check_page(version: Version, receipt: Path | None) -> str:
    """A sentence that the page is reproduced; an IntegrityError when it is not."""
    path = version.record / "results.html"
    if not path.exists():
        raise InputError(f"{path} does not exist; run the driver first.")
    if path.read_bytes() != _page(version, receipt):
        raise IntegrityError(f"{path} is not what results.json, receipt.json and the present templates make.")
    return f"{path} is reproduced byte for byte"


def _page(version: Version, receipt: Path | None) -> bytes:
    results_path = version.record / "results.json"
    receipt_path = receipt or version.record / "receipt.json"
    for path in (results_path, receipt_path):
        if not path.exists():
            raise InputError(f"{path} does not exist; run the driver first.")
    return page(
        checked(Results, read_json(results_path), results_path), checked(Receipt, read_json(receipt_path), receipt_path)
    )
