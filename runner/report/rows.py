"""Rows of the ranking in words, and their order."""

from collections.abc import Iterable
from typing import Any

from runner.eval_set.shapes.results import CellResult


def ranked(rows: Iterable[Any], cells: Iterable[CellResult]) -> list[Any]:
    """Rows with a `cell`, or names of cells, in the order of the ranking; those that are not in it come last."""
    places_of = {row.cell: place for place, row in enumerate(cells)}
    return sorted(rows, key=lambda row: places_of.get(row if isinstance(row, str) else row.cell, len(places_of)))


def confirmation(row: CellResult) -> str:
    """Whether a cell is confirmed, in words, with what keeps it from being so."""
    if row.role == "baseline":
        return "is the baseline"
    if not row.meets_criterion_5:
        return "no candidate"
    return "yes" if row.confirmed else f"no: {'; '.join(row.short_of)}"
