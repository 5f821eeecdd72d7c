"""A version with results, embedded once more on some backend: whether its numbers hold. The record is only read.

Documents come from the archive, queries, labels and plan from the record; vectors and runs are made anew in a folder of
their own, so that nothing that was embedded before answers in their place. A replay that was interrupted goes on there.
How far nDCG@10 moves by rounding alone is what documents that score almost alike can do by changing places.
"""

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import file_sha256
from runner.base.progress import say
from runner.base.records import (
    RUN_DEPTH,
    SCORE_UNIT,
    BM25Cell,
    CrossCell,
    DenseCell,
    HybridCell,
    Qrels,
    Run,
    parse_cell,
)
from runner.embed.backends import Backend
from runner.embed.chunk_corpus import chunkers_sha256
from runner.embed.reranker import TOLERANCE
from runner.eval_set.lock import verify_version
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.results import CellResult, NoiseFloor
from runner.eval_set.version import Version, alone, load_cell_file
from runner.retrieve.make_runs import CellRuns, Wanted
from runner.retrieve.variants import INT8_STEP
from runner.score.comparison import paired_differences
from runner.score.score import DISCOUNTS, ideal_gains, score
from runner.tools.replay.record import Recorded, check_encoders, documents, recorded

DRAWS = 1000

Floats = NDArray[np.float64]


class Noise(NamedTuple):
    """What rounding explains: the farthest that any draw moved the mean over queries, and one query.

    `score_shift` is the root mean square change of a score that was seen, `rounding` the most that can be rounding.
    """

    mean: float
    query: float
    score_shift: float
    rounding: float


NONE = Noise(0.0, 0.0, 0.0, 0.0)


def noise(recorded: Run, replayed: Run, query_ids: Sequence[str], qrels: Qrels, rounding: float, seed: int) -> Noise:
    """How far nDCG@10 moves if as much noise as was seen is added to recorded scores; 0 if that exceeds `rounding`.

    A document that the run does not retrieve never comes in: it would have to pass ninety others.
    """
    shift = _score_shift(recorded, replayed)
    if shift > rounding:
        return Noise(0.0, 0.0, shift, rounding)
    scores, gains = _in_reach(*_tables(recorded, query_ids, qrels), shift)
    ideal = ideal_gains(query_ids, qrels)
    scale = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    before = _ndcg(np.broadcast_to(np.arange(scores.shape[1]), scores.shape), gains, scale)
    generator = np.random.default_rng(np.random.PCG64(seed))
    mean = query = 0.0
    for _ in range(DRAWS):
        moved = scores + generator.normal(0.0, shift, scores.shape)
        changes = _ndcg(np.argsort(-moved, axis=1, kind="stable"), gains, scale) - before
        mean, query = max(mean, abs(float(changes.mean()))), max(query, float(np.abs(changes).max()))
    return Noise(mean, query, shift, rounding)


def largest(noises: Iterable[Noise]) -> Noise:
    """The largest of each figure; NONE if there are none."""
    found = list(noises)
    return Noise(*map(max, zip(*found, strict=True))) if found else NONE


def _score_shift(recorded: Run, replayed: Run) -> float:
    """Root mean square change of a document's score, over those that both runs retrieve for a query; 0 for none."""
    changes = []
    for query_id, hits in recorded.hits.items():
        scores = {hit.doc_id: hit.score for hit in replayed.hits[query_id]}
        changes += [scores[hit.doc_id] - hit.score for hit in hits if hit.doc_id in scores]
    return float(np.sqrt(np.mean(np.square(changes)))) if changes else 0.0


def _tables(run: Run, query_ids: Sequence[str], qrels: Qrels) -> tuple[Floats, Floats]:
    """Scores down each ranking and their grades, (queries, RUN_DEPTH); -inf and 0 if a ranking is shorter."""
    scores = np.full((len(query_ids), RUN_DEPTH), -np.inf)
    gains = np.zeros_like(scores)
    for row, query_id in enumerate(query_ids):
        judged, hits = qrels.get(query_id, {}), run.hits[query_id]
        scores[row, : len(hits)] = [hit.score for hit in hits]
        gains[row, : len(hits)] = [judged.get(hit.doc_id, 0) for hit in hits]
    return scores, gains


def _in_reach(scores: Floats, gains: Floats, sd: float) -> tuple[Floats, Floats]:
    """The columns that may come among the first ten: no draw of noise is twelve times its deviation."""
    depth = len(DISCOUNTS)
    width = max(depth, int((scores >= scores[:, depth - 1 : depth] - 12 * sd).sum(axis=1).max()))
    return scores[:, :width], gains[:, :width]


def _ndcg(order: NDArray[np.intp], gains: Floats, scale: Floats) -> Floats:
    first = np.take_along_axis(gains, order[:, : len(DISCOUNTS)], axis=1)
    values: Floats = (first * DISCOUNTS).sum(axis=1) * scale
    return values


SHOWN = 1e-4
"""The last place of a score that a page shows; nothing smaller is a change."""

MEASURE = "ndcg@10"


@dataclass(frozen=True)
class CellReplay:
    """One cell's nDCG@10 then and now; `difference` is now less then, paired by query.

    `allowed` and `allowed_change` are how far noise moves the mean and one query; `max_change` is the farthest that a
    query moved, `worst_query` that query. `identical` runs are the same bytes; BM25's must be.
    """

    cell: str
    recorded: float
    replayed: float
    difference: Difference
    allowed: float
    max_change: float
    allowed_change: float
    worst_query: str
    identical: bool
    holds: bool
    device: str
    note: str


@dataclass(frozen=True)
class Replay:
    """A version's cells in the order of its results."""

    version: str
    backend: str
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
        folder = version.work / "replay" / "again"
        # Vectors of an interrupted replay are taken, by what made them; its runs are not.
        shutil.rmtree(folder / "record", ignore_errors=True)
        again = replace(version, apart=folder / "record", cache=folder / "cache")
        runs = CellRuns(again, lambda: sample, backend)
        wanted = [Wanted(parse_cell(row.cell)) for row in known.results.cells]
        say(f"{version.name}: {len(wanted)} cells are made again")
        runs.make(wanted)
        verify_version(version)  # nobody may have changed it meanwhile, this command least of all
        rows = known.results.cells
        replayed = {row.cell: known.run_of(again, row.cell) for row in rows}
        explained = _noise(known, replayed, backend)
        cells = tuple(_cell(known, row, again, replayed[row.cell], explained[row.cell]) for row in rows)
        shutil.rmtree(folder)
        with suppress(OSError):
            folder.parent.rmdir()  # unless the ledger is there
    return Replay(version.name, backend.name, cells)


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
            if isinstance(cell, CrossCell):
                rounding = TOLERANCE
            else:  # each of the two vectors that are compared may be off
                rounding = backend.encoder(cell.encoder).tolerance * math.sqrt(2)
            if isinstance(cell, DenseCell) and cell.variant == "int8":
                rounding += INT8_STEP  # a coordinate next to a code's edge takes the other one
            seed = known.results.plan.bootstrap.seed
            found[name] = noise(
                known.run_of(known.version, name), replayed[name], known.query_ids, known.qrels, rounding, seed
            )
            if not isinstance(cell, CrossCell):
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
    if load_cell_file(version.cell_path(cell)).chunkers_sha256 != chunkers_sha256(parse_cell(cell).chunker):
        return "the chunkers changed since the record was made, so this is not the backend's doing alone"
    if isinstance(parse_cell(cell), BM25Cell):
        return "nothing is embedded here: the text search or a library of it changed"
    if explained.score_shift > explained.rounding:
        return (
            f"scores moved by {explained.score_shift:.4f}, and rounding explains {explained.rounding:.4f}: other "
            "weights, prompts or limits; `replay --encoder` compares it with this machine's"
        )
    return ""
