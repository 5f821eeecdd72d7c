"""Pages again from what a record holds: to look at, or to compare byte by byte with the committed one."""

from pathlib import Path

from runner.canonical import read_json, write_atomic
from runner.decision_schemas import Receipt
from runner.errors import BackendError, InputError, IntegrityError
from runner.eval_set import Version
from runner.render import page
from runner.result_schemas import Results
from runner.strict import checked


def write_page(version: Version, receipt: Path | None, output: Path | None) -> Path:
    """Where the page went: `output`, by default results.html in the version's work folder."""
    path = output or version.work / "results.html"
    if path.resolve().is_relative_to(version.folder.resolve()):
        raise InputError(f"{path} lies in the record, which only a run writes. Give --output another place.")
    if path.exists() and path.suffix != ".html":
        raise InputError(f"{path} exists and is no page. Give --output a name that ends in .html.")
    content = _page(version, receipt)
    try:
        write_atomic(path, content)
    except OSError as error:
        raise BackendError(f"{path} cannot be written ({error.strerror}). Give --output another place.") from error
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
