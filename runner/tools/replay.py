"""A version with results, embedded once more on some backend: whether its numbers hold. The record is only read.

Documents come from the archive, queries, labels and plan from the record; vectors and runs are made anew in a folder of
their own, so that nothing that was embedded before answers in their place. A replay that was interrupted goes on there.
Scores that moved by no more than rounding does are the same scores, whatever places near-equal documents changed.
"""

import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from runner.base.canonical import file_sha256
from runner.base.errors import InputError, IntegrityError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import (
    SCORE_UNIT,
    BM25Cell,
    CrossCell,
    DenseCell,
    Document,
    HybridCell,
    Run,
    parse_cell,
)
from runner.base.schema import FrozenModel
from runner.decide.compared import Recorded, compared, recorded
from runner.decide.roster import locked_decision
from runner.embed.backends import Backend, Work
from runner.embed.chunk_corpus import chunkers_sha256
from runner.embed.local_encoder import encoder_for
from runner.embed.probe import PARAPHRASES, UNLIMITED, Beside, beside
from runner.embed.reranker import TOLERANCE
from runner.embed.weights import verified_folder
from runner.eval_set import catalog
from runner.eval_set.corpus import archive_fault, archived_documents, listed_documents
from runner.eval_set.lock import verify_version
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.versions import Compared
from runner.eval_set.version import Version, alone, load_cell_file
from runner.retrieve.make_runs import CellRuns, Wanted
from runner.retrieve.variants import INT8_STEP

SHOWN = 1e-4
"""The last place of a score that a page shows; nothing smaller is a change."""

MEASURE = "ndcg@10"

_LONG_TEXTS = 16
"""Of about the catalogued length, at most: three rounds of the probe's five, and the one that is compared."""


class Moved(NamedTuple):
    """The root mean square change of scores, and the most that can be rounding."""

    shift: float = 0.0
    rounding: float = 0.0

    @property
    def is_rounding(self) -> bool:
        """Whether a change was seen, and rounding explains it."""
        return 0 < self.shift <= self.rounding


class CellReplay(FrozenModel):
    """One cell's nDCG@10 then and now; `difference` is now less then, paired by query.

    It holds if the runs are `identical`, the same bytes, as BM25's must be; if scores moved by rounding alone; or if
    nDCG@10 moved no farther than between the record's two A/A runs: `allowed` the mean, `allowed_change` any query.
    `max_change` is the farthest that a query moved, `worst_query` that query.
    """

    cell: str
    recorded: float
    replayed: float
    difference: Difference
    allowed: float
    max_change: float
    allowed_change: float
    worst_query: str
    score_shift: float
    rounding: float
    identical: bool
    holds: bool
    device: str
    note: str


class Replay(FrozenModel):
    """A version's cells in the order of its results."""

    version: str
    backend: str
    cells: list[CellReplay]

    @property
    def holds(self) -> bool:
        """Whether every cell does."""
        return all(cell.holds for cell in self.cells)


def replay(version: Version, backend: Backend) -> Replay:
    """Return every cell of a version's results, made again on the backend and scored with the recorded labels.

    InputError if there are no results or documents, or the catalogue has moved on; IntegrityError if the record is not
    what was locked. What a failing backend finished is kept for the next try. A refused replay creates nothing.
    """
    # Refused before anything is locked or made.
    _check_encoders(_recorded(version).results, backend)
    sample = _documents(version)
    with alone(version):
        known = _recorded(version)  # another run may have ended since
        folder = version.work / "replay" / "again"
        # Vectors of an interrupted replay are taken, by what made them; its runs are not.
        shutil.rmtree(folder / "record", ignore_errors=True)
        again = replace(version, apart=folder / "record", cache=folder / "cache")
        rows = known.results.cells
        say(f"{version.name}: {len(rows)} cells are made again")
        CellRuns(again, lambda: sample, backend).make([Wanted(parse_cell(row.cell)) for row in rows])
        verify_version(version)  # nobody may have changed it meanwhile, this command least of all
        replayed = {row.cell: known.run(row.cell, again) for row in rows}
        now = _again(known, replayed, again)
        shifts = _moved(known, replayed, backend)
        moved = compared(known.results, now, measures=[MEASURE])
        cells = [_cell(known, row, moved[row.cell], again, shifts[row.cell]) for row in now.cells]
        shutil.rmtree(folder)
        with suppress(OSError):
            folder.parent.rmdir()  # unless the ledger is there
    return Replay(version=version.name, backend=backend.name, cells=cells)


def encoder_beside(backend: Backend, name: str) -> Beside:
    """Return how one encoder's vectors there and here compare.

    Raise BackendError if the weights cannot be had here, before anything is started that costs money.
    """
    verified_folder(catalog.encoder(name))
    here, there = encoder_for(name), backend.encoder(name)
    n_sentences = 6 * len(PARAPHRASES)
    tokens = _LONG_TEXTS * (here.spec.max_tokens or UNLIMITED) + 30 * n_sentences
    backend.prepare([Work(name, _LONG_TEXTS + n_sentences, tokens)])
    say(f"{name}: the probe's sentences on {backend.name}, then here")
    return beside(here, there)


def _recorded(version: Version) -> Recorded:
    """Return the version's record, verified; an InputError if it has no results to hold."""
    if version.source.policy == "external":
        raise InputError(f"{version.name} is a collection, which is never locked, so there is nothing to replay.")
    decision = locked_decision(version)
    if decision is not None and decision.kind == "policy":
        raise InputError(f"{version.name} is decided by policy and rests on no results, so there is nothing to replay.")
    if not (version.results_path.exists() and (version.rehearsal or decision)):
        what = "rehearsal has no results" if version.rehearsal else "record is not decided over results and locked"
        raise InputError(
            f"{version.name}: its {what} yet, so there is nothing to replay. Run: {DRIVER} run {version.viewed}"
        )
    known = recorded(version)
    # A rehearsal may be unlocked, so its files are held against what the results name.
    named = {version.run_path(row.cell): row.provenance.run_sha256 for row in known.results.cells} | {
        version.queries_path: known.results.digests["queries.yaml"],
        version.corpus_path: known.results.digests["corpus.jsonl"],
    }
    for path, then in named.items():
        if file_sha256(path) != then:
            raise IntegrityError(
                f"{path} is not what {version.results_path} was scored from. Restore both from git or a backup."
            )
    return known


def _check_encoders(results: Results, backend: Backend) -> None:
    """Raise InputError unless the catalogue still means the models that the record was made with."""
    for row in results.cells:
        cell, then = parse_cell(row.cell), row.provenance.encoder
        if isinstance(cell, BM25Cell) or then is None:
            continue
        spec = catalog.reranker(cell.model) if isinstance(cell, CrossCell) else backend.encoder(cell.encoder).spec
        now = spec.provenance
        moved = sorted(name for name in now if name in then and then[name] != now[name])
        if moved:
            raise InputError(
                f"{row.cell}: the catalogue's {moved[0]} of {spec.name} is {now[moved[0]]!r} today and was "
                f"{then[moved[0]]!r} when the record was made: that is not a replay. Use the release that made it."
            )


def _documents(version: Version) -> Sequence[Document]:
    """Return the documents, from the archive, else from the corpus that comes with this tool; nothing is written."""
    archived = archived_documents(version)
    if archived is not None:
        return archived
    why = "Sources drift, so nothing is read in its place."
    if (embedded := version.embedded_corpus) is not None:
        try:
            return listed_documents(version, embedded)
        except InputError:
            why = f"{embedded} does not hold the version's documents either."
    raise InputError(
        f"{version.name} can be scored again and not embedded again: {archive_fault(version)}. {why} Put a sound copy "
        "of the archive there and run the command again."
    )


def moved(recorded: Run, replayed: Run, rounding: float) -> Moved:
    """Return how far scores lie apart; a document that one run lacks moved at least past the end of its list."""
    changes: list[float] = []
    for query_id, hits in recorded.hits.items():
        both = [{hit.doc_id: hit.score for hit in each} for each in (hits, replayed.hits[query_id])]
        for own, other in (both, both[::-1]):
            last = min(other.values(), default=0.0)
            changes += [score - other.get(doc_id, min(score, last)) for doc_id, score in own.items()]
    return Moved(float(np.sqrt(np.mean(np.square(changes)))) if changes else 0.0, rounding)


def _moved(known: Recorded, replayed: Mapping[str, Run], backend: Backend) -> dict[str, Moved]:
    """Return how far each cell's scores moved; of two arms, whose scores are no cosines, how far its encoder's did."""
    found: dict[str, Moved] = {}
    by_encoder: dict[str, list[Moved]] = {}
    fused: dict[str, str] = {}
    for name, cell in ((row.cell, parse_cell(row.cell)) for row in known.results.cells):
        if isinstance(cell, BM25Cell):
            found[name] = Moved()
            continue
        if isinstance(cell, HybridCell) and cell.method != "rerank":
            fused[name] = cell.encoder
            continue
        # Each of the two vectors that are compared may be off.
        rounding = TOLERANCE if isinstance(cell, CrossCell) else backend.encoder(cell.encoder).tolerance * math.sqrt(2)
        if isinstance(cell, DenseCell) and cell.variant == "int8":
            rounding += INT8_STEP  # a coordinate next to a code's edge takes the other one
        found[name] = moved(known.run(name), replayed[name], rounding)
        if not isinstance(cell, CrossCell):
            by_encoder.setdefault(cell.encoder, []).append(found[name])
    most = {encoder: max(own, key=lambda each: each.shift - each.rounding) for encoder, own in by_encoder.items()}
    return found | {name: most.get(encoder, Moved()) for name, encoder in fused.items()}


def _again(known: Recorded, runs: Mapping[str, Run], again: Version) -> Results:
    """Return the results that the record would have with these runs."""
    scores = known.comparison(runs, known.results.plan.baseline).means
    cells = []
    for row in known.results.cells:
        made_of = row.provenance.model_copy(update={"run_sha256": file_sha256(again.run_path(row.cell))})
        cells.append(row.model_copy(update={"scores": scores[row.cell], "provenance": made_of}))
    return known.results.model_copy(update={"cells": cells})


def _cell(known: Recorded, row: CellResult, beside: Compared, again: Version, seen: Moved) -> CellReplay:
    cell, difference = row.cell, beside.difference[MEASURE]
    then = next(other for other in known.results.cells if other.cell == cell)
    changes = np.abs(np.subtract(row.scores[MEASURE].per_query, then.scores[MEASURE].per_query))
    max_change = int(changes.max()) / SCORE_UNIT
    # The record's A/A run: the farther end of its interval, and its largest change. On one machine that is often 0,
    # which no other machine can meet. The mean alone would not do: errors of both signs cancel in it.
    mean = change = 0.0
    if not isinstance(parse_cell(cell), BM25Cell):
        mean = change = SHOWN
        if (floor := known.results.noise_floor) is not None:
            mean = max(SHOWN, *map(abs, (floor.difference.mean, floor.difference.low, floor.difference.high)))
            change = max(SHOWN, floor.max_change)
    identical = "run_sha256" not in beside.changed
    facts = load_cell_file(again.cell_path(cell))
    return CellReplay(
        cell=cell,
        recorded=beside.before[MEASURE],
        replayed=row.scores[MEASURE].mean,
        difference=difference,
        allowed=mean,
        max_change=max_change,
        allowed_change=change,
        worst_query=known.queries[int(changes.argmax())].id if changes.any() else "",
        score_shift=seen.shift,
        rounding=seen.rounding,
        identical=identical,
        holds=identical or seen.is_rounding or (mean > 0 and abs(difference.mean) <= mean and max_change <= change),
        device="" if facts.backend is None else facts.backend.served.get("device", ""),
        note="" if identical else _note(known.version, cell, seen),
    )


def _note(version: Version, cell: str, seen: Moved) -> str:
    """Return what a reader should know of runs that are not the same."""
    if load_cell_file(version.cell_path(cell)).chunkers_sha256 != chunkers_sha256(parse_cell(cell).chunker):
        return "the chunkers changed since the record was made, so this is not the backend's doing alone"
    if isinstance(parse_cell(cell), BM25Cell):
        return "nothing is embedded here: the text search or a library of it changed"
    if seen.shift > seen.rounding:
        return (
            f"scores moved by {seen.shift:.4f}, and rounding explains {seen.rounding:.4f}: other "
            "weights, prompts or limits; `replay --encoder` compares it with this machine's"
        )
    return ""
