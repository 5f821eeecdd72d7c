"""receipt.json: what was measured while a version ran; it differs from machine to machine and from day to day."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from runner import __version__
from runner.canonical import json_bytes, read_json, write_atomic
from runner.decision_schemas import Receipt
from runner.errors import InputError
from runner.eval_set import Version

LIBRARIES = ("numpy", "bm25s", "rank-bm25", "tiktoken", "lxml", "sentence-transformers", "transformers", "torch")

CellTimes = dict[str, dict[str, float]]


def remember_times(record: Version, measured: CellTimes) -> CellTimes:
    """The seconds of every cell, newest measurement each: a cell taken from the cache keeps what it once took."""
    path = record.work / ("measured-rehearsal.json" if record.rehearsal else "measured.json")
    try:
        known = read_json(path) if path.exists() else {}
    except InputError:
        known = {}  # measurements can be made again; they must not stop an evening
    times: CellTimes = {**(known if isinstance(known, dict) else {}), **measured}
    write_atomic(path, json_bytes(times))
    return times


def make_receipt(cells: CellTimes, seconds: dict[str, float]) -> Receipt:
    """What this machine is, and what this run took."""
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
        usd=0.0,
    )


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
