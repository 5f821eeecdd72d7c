"""Replays on a terminal and as data, those among them that could not be made."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from runner.base.canonical import JSON
from runner.base.given_files import LONGEST_LINE, printable
from runner.tools.symbols import Signs

if TYPE_CHECKING:
    from runner.tools.replay.run import CellReplay, Replay


class Failure(NamedTuple):
    """A version that could not be replayed."""

    version: str
    error: str
    exit_code: int


def report(found: Sequence["Replay"], failures: Sequence[Failure]) -> JSON:
    """Every replay and every failure as one JSON value; `holds` is None if there was nothing to replay."""
    return {
        "holds": not failures and all(row.holds for row in found) if found or failures else None,
        "versions": [{**asdict(row), "holds": row.holds, "cells": list(map(_cell_row, row.cells))} for row in found],
        "not_replayed": [row._asdict() for row in failures],
    }


def _cell_row(cell: "CellReplay") -> JSON:
    return {**asdict(cell), "difference": cell.difference.model_dump()}


def replay_lines(found: "Replay", signs: Signs) -> list[str]:
    """Each cell then and now, and how many hold."""
    held = sum(cell.holds for cell in found.cells)
    lines = [line for cell in found.cells for line in _cell_lines(cell, signs)]
    devices = sorted({cell.device for cell in found.cells if cell.device})
    where = f"{found.backend} ({', '.join(devices)})" if devices else found.backend
    return [*lines, printable(f"{found.version} on {where}: {held} of {len(found.cells)} cells hold", LONGEST_LINE)]


def _cell_lines(cell: "CellReplay", signs: Signs) -> list[str]:
    sign = signs.ok if cell.holds else signs.no
    head = f"{sign} {cell.cell}: nDCG@10 {cell.recorded:.4f} then, {cell.replayed:.4f} now"
    if cell.identical:
        return [printable(f"{head}; the same run", LONGEST_LINE)]
    interval = " to ".join(signs.signed(value, 4) for value in (cell.difference.low, cell.difference.high))
    moved = f"largest change of a query {cell.max_change:.4f}"
    if cell.worst_query:
        moved += f" ({cell.worst_query}; {cell.queries_changed} changed)"
    allowed = f"noise explains {cell.allowed:.4f} and {cell.allowed_change:.4f}"
    text = f"{head}, {signs.signed(cell.difference.mean, 4)} ({interval}); {moved}; {allowed}"
    return [printable(text, LONGEST_LINE), *([f"    {printable(cell.note, LONGEST_LINE)}"] if cell.note else [])]


def failure_lines(failure: Failure, signs: Signs) -> list[str]:
    """Why a version was not replayed."""
    head = f"{signs.no} {failure.version}: not replayed (exit code {failure.exit_code}): {failure.error}"
    return [printable(head, LONGEST_LINE)]


def summary(found: Sequence["Replay"], failures: Sequence[Failure]) -> str:
    """How many versions hold, and which were not replayed."""
    held = sum(row.holds for row in found)
    failed = f"; not replayed: {', '.join(row.version for row in failures)}" if failures else ""
    return f"{held} of {len(found)} versions hold{failed}"
