"""receipt.json: what was measured while a version ran; it differs from machine to machine and from day to day."""

import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from runner import __version__
from runner.base.canonical import json_bytes, read_json, write_atomic
from runner.base.errors import InputError
from runner.base.records import WITHOUT_VECTORS, parse_cell
from runner.embed.cost.estimate import size
from runner.eval_set.shapes.cell import BackendRecord, CellFile
from runner.eval_set.shapes.decision import Receipt, SpendReceipt
from runner.eval_set.version import Version, load_cell_file

LIBRARIES = (
    *("numpy", "bm25s", "rank-bm25", "tiktoken", "lxml", "onnxruntime", "sentence-transformers"),
    *("transformers", "torch", "httpx", "modal"),
)

CellTimes = dict[str, dict[str, float]]


def remember_times(record: Version, measured: CellTimes) -> CellTimes:
    """Return the newest measurements of every cell: one taken from the cache keeps what it once took."""
    try:
        before = _measured(record)
    except InputError:
        before = {}  # measurements can be made again; they must not stop an evening
    times = before | {cell: before.get(cell, {}) | values for cell, values in measured.items()}
    write_atomic(_path(record), json_bytes(times))
    return times


def _path(record: Version) -> Path:
    return record.work / ("measured-rehearsal.json" if record.rehearsal else "measured.json")


def _measured(record: Version) -> CellTimes:
    times = read_json(_path(record)) if _path(record).exists() else {}
    return times if isinstance(times, dict) else {}


def _cell_files(record: Version, cells: Iterable[str]) -> dict[str, CellFile]:
    paths = {cell: record.cell_path(cell) for cell in cells}
    return {cell: load_cell_file(path) for cell, path in paths.items() if path.exists()}


def measured_rate(record: Version, cells: Iterable[str]) -> float | None:
    """Return GFLOP per second at which this machine embedded the version's cells; None if none was timed."""
    times, gflop, seconds = _measured(record), 0.0, 0.0
    for cell, facts in _cell_files(record, cells).items():
        took, parsed = times.get(cell, {}).get("embed_seconds", 0.0), parse_cell(cell)
        here = facts.backend is not None and facts.backend.name == "local"
        if took > 0 and here and facts.truncation is not None and not isinstance(parsed, WITHOUT_VECTORS):
            # Tokens past the encoder's maximum took no time.
            read = facts.truncation.tokens - facts.truncation.lost
            gflop += read * size(parsed.encoder).gflop_per_token
            seconds += took
    return gflop / seconds if gflop and seconds else None


def index_sizes(record: Version, cells: Iterable[str]) -> CellTimes:
    """Return `index_bytes` of the cells whose files lie in the record: measured or not, a cell has its index."""
    sizes = {cell: facts.index_bytes for cell, facts in _cell_files(record, cells).items()}
    return {cell: {"index_bytes": size} for cell, size in sizes.items() if size is not None}


def embedded_by(record: Version, cells: Iterable[str]) -> dict[str, BackendRecord]:
    """Return what embedded the cells whose files lie in the record; without cells that no encoder embedded."""
    return {cell: facts.backend for cell, facts in _cell_files(record, cells).items() if facts.backend is not None}


def make_receipt(
    cells: CellTimes,
    seconds: Mapping[str, float],
    backends: Mapping[str, BackendRecord],
    spend: SpendReceipt | None = None,
) -> Receipt:
    """Return what this machine is, what this run took, where its vectors were made, and what that cost if metered."""
    return Receipt(
        schema_version=1,
        finished_on=datetime.now(UTC).isoformat(timespec="seconds"),
        tool_version=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        cpu_count=os.cpu_count() or 1,
        libraries={name: found for name in LIBRARIES if (found := _installed(name))},
        seconds={name: round(value, 3) for name, value in seconds.items()},
        cells=cells,
        backends=dict(backends),
        spend=spend,
    )


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
