"""A version with results, embedded once more on some backend: whether its numbers hold. The record is only read.

Documents come from the archive, queries, labels and plan from the record; vectors and runs are made anew in a folder of
their own, so that nothing that was embedded before answers in their place. A replay that was interrupted goes on there.
"""

import math
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from runner.base.canonical import digest, file_sha256
from runner.base.progress import say
from runner.base.records import SCORE_UNIT, BM25Cell, DenseCell, HybridCell, Run, parse_cell
from runner.embed.backends import Backend
from runner.embed.chunk_corpus import chunkers_sha256
from runner.eval_set.lock import verify_version
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.results import CellResult, NoiseFloor
from runner.eval_set.version import Version, alone, load_cell_file
from runner.retrieve.make_runs import CellRuns, Wanted
from runner.retrieve.variants import INT8_STEP
from runner.score.comparison import paired_differences
from runner.score.score import score
from runner.tools.replay.noise import NONE, Noise, largest, noise
from runner.tools.replay.record import Recorded, check_encoders, documents, recorded

SHOWN = 1e-4
"""The last place of a score that a page shows; nothing smaller is a change."""

MEASURE = "ndcg@10"


@dataclass(frozen=True)
class CellReplay:
    """One cell's nDCG@10 then and now; `difference` is now less then, paired by query.

    `allowed` and `allowed_change` are how far noise moves the mean and one query; `max_change` is the farthest that a
    query moved, `worst_query` that query; `score_shift` is the root mean square change of a document's score.
    `identical` runs are the same bytes; BM25's must be.
    """

    cell: str
    recorded: float
    replayed: float
    difference: Difference
    allowed: float
    max_change: float
    allowed_change: float
    worst_query: str
    queries_changed: int
    score_shift: float
    identical: bool
    holds: bool
    device: str
    note: str


@dataclass(frozen=True)
class Replay:
    """A version's cells in the order of its results."""

    version: str
    backend: str
    results_sha256: str
    cells: tuple[CellReplay, ...]

    @property
    def holds(self) -> bool:
        """Whether every cell does."""
        return all(cell.holds for cell in self.cells)


def replay(version: Version, backend: Backend) -> Replay:
    """Every cell of a version's results made again on the backend and scored with the recorded labels.

    InputError if there are no results or documents, or the catalogue has moved on; IntegrityError if the record is not
    what was locked. What a failing backend finished is kept for the next try. A refused replay creates nothing.
    """
    check_encoders(recorded(version).results, backend)
    sample = documents(version)
    with alone(version):
        known = recorded(version)  # another run may have ended since
        folder = version.work / "replay" / _key(known, backend)
        again = replace(version, record=folder, cache=folder / "cache")
        runs = CellRuns(again, lambda: sample, backend)
        wanted = [Wanted(parse_cell(row.cell)) for row in known.results.cells]
        say(f"{version.name}: {len(wanted)} cells are made again")
        runs.make(wanted)
        verify_version(version)  # nobody may have changed it meanwhile, this command least of all
        found = _compared(known, again, backend)
        shutil.rmtree(folder)
        with suppress(OSError):
            folder.parent.rmdir()  # unless another replay was interrupted there
    return found


def _key(known: Recorded, backend: Backend) -> str:
    """The folder's name: what is replayed, by what; an interrupted replay of the same finds its vectors there."""
    parsed = [parse_cell(row.cell) for row in known.results.cells]
    names = sorted({cell.encoder for cell in parsed if not isinstance(cell, BM25Cell)})
    results = file_sha256(known.version.results_path)
    return digest([results, chunkers_sha256(), [backend.encoder(name).identity() for name in names]])[:12]


def _compared(known: Recorded, again: Version, backend: Backend) -> Replay:
    rows = known.results.cells
    replayed = {row.cell: known.run_of(again, row.cell) for row in rows}
    explained = _noise(known, replayed, backend)
    return Replay(
        version=known.version.name,
        backend=backend.name,
        results_sha256=file_sha256(known.version.results_path),
        cells=tuple(_cell(known, row, again, replayed[row.cell], explained[row.cell]) for row in rows),
    )


def _noise(known: Recorded, replayed: Mapping[str, Run], backend: Backend) -> dict[str, Noise]:
    """What rounding explains of each cell; of a fused one, whose scores are ranks, the most among its encoder's."""
    found: dict[str, Noise] = {}
    by_encoder: dict[str, list[Noise]] = {}
    fused: dict[str, str] = {}
    for name, cell in ((row.cell, parse_cell(row.cell)) for row in known.results.cells):
        if isinstance(cell, BM25Cell):
            found[name] = NONE
        elif isinstance(cell, HybridCell) and cell.method == "rrf":
            fused[name] = cell.encoder
        else:
            # Each of the two vectors that are compared may be off.
            rounding = backend.encoder(cell.encoder).tolerance * math.sqrt(2)
            if isinstance(cell, DenseCell) and cell.variant == "int8":
                rounding += INT8_STEP  # a coordinate next to a code's edge takes the other one
            seed = known.results.plan.bootstrap.seed
            found[name] = noise(known.run(name), replayed[name], known.query_ids, known.qrels, rounding, seed)
            by_encoder.setdefault(cell.encoder, []).append(found[name])
    return found | {name: largest(by_encoder.get(encoder, ())) for name, encoder in fused.items()}


def _cell(known: Recorded, row: CellResult, again: Version, replayed: Run, explained: Noise) -> CellReplay:
    results = known.results
    now = score(replayed, known.query_ids, known.qrels, results.plan.relevant_grade).values[MEASURE]
    values = np.array([row.scores[MEASURE].per_query, now], dtype=np.int64)
    changes = np.abs(values[1] - values[0])
    difference, max_change = paired_differences(values, 0, results.plan)[1], int(changes.max()) / SCORE_UNIT
    sparse = isinstance(parse_cell(row.cell), BM25Cell)
    allowed = (0.0, 0.0) if sparse else _allowed(results.noise_floor, explained)
    identical = file_sha256(again.run_path(row.cell)) == row.provenance.run_sha256
    facts = load_cell_file(again.cell_path(row.cell))
    return CellReplay(
        cell=row.cell,
        recorded=row.scores[MEASURE].mean,
        replayed=int(values[1].sum()) / (len(now) * SCORE_UNIT),
        difference=difference,
        allowed=allowed[0],
        max_change=max_change,
        allowed_change=allowed[1],
        worst_query=known.query_ids[int(changes.argmax())] if changes.any() else "",
        queries_changed=int((changes != 0).sum()),
        score_shift=explained.score_shift,
        identical=identical,
        holds=identical or (not sparse and abs(difference.mean) <= allowed[0] and max_change <= allowed[1]),
        device="" if facts.backend is None else facts.backend.served.get("device", ""),
        note="" if identical else _note(known.version, row.cell, explained),
    )


def _allowed(measured: NoiseFloor | None, explained: Noise) -> tuple[float, float]:
    """How far noise moves the mean, and one query: the larger of what was measured and what rounding explains.

    Measured is the record's A/A run: the farther end of its interval, and its largest change. On one machine that is
    often 0, which no other machine can meet; so recorded scores are also moved at random by as much as the replay
    moved them, if rounding can. The mean alone would not do: errors of both signs cancel in it.
    """
    mean = change = SHOWN
    if measured is not None:
        ends = (measured.difference.mean, measured.difference.low, measured.difference.high)
        mean, change = max(SHOWN, *map(abs, ends)), max(SHOWN, measured.max_change)
    return max(mean, explained.mean), max(change, explained.query)


def _note(version: Version, cell: str, explained: Noise) -> str:
    """What a reader should know of runs that are not the same."""
    if load_cell_file(version.cell_path(cell)).chunkers_sha256 != chunkers_sha256():
        return "the chunkers changed since the record was made, so this is not the backend's doing alone"
    if isinstance(parse_cell(cell), BM25Cell):
        return "nothing is embedded here: the text search or a library of it changed"
    if explained.score_shift > explained.rounding:
        return (
            f"scores moved by {explained.score_shift:.4f}, and rounding explains {explained.rounding:.4f}: other "
            "weights, prompts or limits; doctor --parity tells which"
        )
    return ""
