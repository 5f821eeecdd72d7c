"""The three files of a scoring: results.json, receipt.json and the page that is made of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.base.canonical import json_bytes, write_atomic
from runner.decide.receipt import CellTimes, embedded_by, index_sizes, make_receipt
from runner.embed.cost.ledger import SPEND
from runner.embed.cost.spend_receipt import Billed, spend_receipt
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version
from runner.report.results_page.render import page


def write_results(
    version: Version,
    results: Results,
    folder: Path,
    cells: Sequence[str],
    times: CellTimes,
    seconds: Mapping[str, float],
    billed: Billed,
) -> None:
    """Put them into `folder`, the page last.

    The receipt is of `cells` alone, though `times` may know others; `seconds` are those of the stages, and `billed`
    asks the provider.
    """
    sizes = index_sizes(version, cells)
    own = {cell: times.get(cell, {}) | sizes.get(cell, {}) for cell in cells if cell in times or cell in sizes}
    spend = spend_receipt(version.work / SPEND, billed)
    receipt = make_receipt(own, seconds, embedded_by(version, cells), spend)
    write_atomic(folder / "results.json", json_bytes(results.model_dump()))
    write_atomic(folder / "receipt.json", json_bytes(receipt.model_dump()))
    write_atomic(folder / "results.html", page(results, receipt))
