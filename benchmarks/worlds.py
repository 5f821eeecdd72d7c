"""Evenings to simulate: real per-query differences of public collections and rehearsed sources, under given means."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints
from runner.eval_set.kinds import near_copies
from runner.score.gain_test import effective_number

Floats = NDArray[np.float64]

CHECKOUT = Path(__file__).resolve().parents[1]
RUNS = CHECKOUT / "docs" / "matrix" / "runs"
BASELINE, CHALLENGER = "minilm-l6-v2 x whole_doc", "minilm-l6-v2 x fixed_token_256_25"
"""Of public collections; the challenger changes the chunker alone, as the first one of a default plan does."""

PUBLIC = {"SciFact": "scifact", "NFCorpus": "nfcorpus"}
REHEARSED = (
    "bills",
    "committee_reports",
    "congressional_record",
    "ecfr_and_cfr",
    "federal_register",
    "hearing_transcripts",
    "public_laws",
    "us_code",
)
REHEARSED_BASELINE = "minilm-l6-v2 x fixed_token_256_25"

TEST_SEED = 1_000_000
"""Between a run's seed and that of its tests: flips must not come from the numbers that made the differences."""

FEW = 12
"""Queries' worth that weights leave at least, for a world to be tilted."""

CHALLENGERS = 11
"""Beside the baseline in the largest default plan."""

Row = tuple[str, dict[int, float], str]
"""A figure in words, its value by number of queries, and the value that is wanted."""


class World(NamedTuple):
    """Real differences to a baseline in nDCG@10 and Recall@10, (cells, queries) each, of which `first` go first.

    `kinds` are the queries' kinds, none of a public collection.
    """

    cells: list[str]
    first: int
    gains: Floats
    recalls: Floats
    kinds: list[str]

    def only(self, rows: Sequence[int]) -> "World":
        """Return the world of these cells."""
        return self._replace(
            cells=[self.cells[row] for row in rows], gains=self.gains[rows], recalls=self.recalls[rows]
        )

    def has(self, opening: str) -> bool:
        """Return whether the name of a cell opens so."""
        return any(cell.startswith(opening) for cell in self.cells)

    def place(self, opening: str) -> int:
        """Return the place of the first cell whose name opens so."""
        return next(place for place, cell in enumerate(self.cells) if cell.startswith(opening))


def world(name: str) -> World:
    """Return a public collection, a rehearsed source, or "all eight" of these together."""
    if name == "all eight":
        return all_rehearsals()
    return public(PUBLIC[name]) if name in PUBLIC else rehearsal(name)


@cache
def public(collection: str) -> World:
    """Return a public collection, whose challenger goes first where it has one."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((RUNS / collection).glob("*.json"))]
    queries = {file["cell"]: file["perQuery"] for file in files}
    baseline = queries.pop(BASELINE)
    cells = sorted(queries, key=lambda cell: (cell != CHALLENGER, cell))
    gains, recalls = (
        np.array([[row[measure] for row in queries[cell]] for cell in cells]) - [row[measure] for row in baseline]
        for measure in ("ndcg10", "recall10")
    )
    return World(cells, cells.count(CHALLENGER), gains, recalls, [])


@cache
def rehearsal(source: str) -> World:
    """Return a rehearsed source, from the results in the record, without near-copies; what goes first stands first."""
    path = CHECKOUT / "eval-sets" / source / "v1" / "rehearsal" / "results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    rows = {row["cell"]: row["scores"] for row in results["cells"]}
    baseline, first = rows.pop(results["plan"]["baseline"]), results["plan"]["first"]
    others = [cell for cell in results["plan"]["cells"] if cell in rows and cell not in first]
    cells = [*first, *(cell for cell in others if cell not in near_copies(results["plan"]["cells"]))]
    both = (
        np.array([rows[cell][measure]["per_query"] for cell in cells]) - np.array(baseline[measure]["per_query"])
        for measure in ("ndcg@10", "recall@10")
    )
    gains, recalls = (values / SCORE_UNIT for values in both)
    return World(cells, len(first), gains, recalls, [query["kind"] for query in results["queries"]])


@cache
def all_rehearsals() -> World:
    """Return the queries of all rehearsed sources in one, of the cells that stand in each of them by their role."""
    worlds = [rehearsal(source) for source in REHEARSED]
    # A source's own chunker plays the same part everywhere.
    named = [[_role(cell) for cell in each.cells] for each in worlds]
    roles = [role for role in named[0] if all(role in names for names in named)]
    aligned = [each.only([names.index(role) for role in roles]) for each, names in zip(worlds, named, strict=True)]
    gains, recalls = np.hstack([each.gains for each in aligned]), np.hstack([each.recalls for each in aligned])
    return World(roles, 1, gains, recalls, [kind for each in worlds for kind in each.kinds])


def as_default(real: World) -> World:
    """Return a rehearsed source as a default plan has it: a sum and the structural chunks go first of CHALLENGERS.

    The sum has no change of Recall@10; cells that equal the baseline fill it up.
    """
    summed = real.place("sum(")
    rows = [summed, *(row for row in range(len(real.cells)) if row != summed)]
    cells = [real.cells[row] for row in rows]
    recalls = np.vstack([level(real.recalls[rows[:1]]), real.recalls[rows[1:]]])
    missing = np.zeros((max(0, CHALLENGERS - len(rows)), real.gains.shape[1]))
    return real._replace(
        cells=[*cells, *(f"equal {number}" for number in range(len(missing)))],
        first=2,
        gains=np.vstack([real.gains[rows], missing]),
        recalls=np.vstack([recalls, missing]),
    )


def _role(cell: str) -> str:
    model, _, chunker = cell.partition(" x ")
    common = ("fixed_", "recursive", "whole_doc")
    return cell if chunker.startswith(common) else f"{model} x structural{'_256' if '_256_' in chunker else ''}"


def level(gains: Floats) -> Floats:
    """Return every cell moved to a mean of 0."""
    return gains - gains.mean(axis=1, keepdims=True)


def level_with_ties(gains: Floats) -> Floats:
    """Return the same, moved on the queries alone on which the cell differs."""
    differs = gains != 0
    return gains - differs * (gains.sum(axis=1) / np.maximum(1, differs.sum(axis=1)))[:, None]


def null_worlds(gains: Floats) -> dict[str, tuple[Floats, Floats | None]]:
    """Return the worlds in which nothing gains, each with the weights of its queries."""
    worlds: dict[str, tuple[Floats, Floats | None]] = {
        "as they are": (gains, None),
        "shifted": (level(gains), None),
        "ties kept": (level_with_ties(gains), None),
        "mirrored": (-level(gains), None),
        "mirrored, ties kept": (-level_with_ties(gains), None),
    }
    try:
        weights = tilted(gains, np.zeros(len(gains)))
    except ValueError:
        return worlds
    if effective_number(weights.tolist()) < FEW:
        return worlds
    return worlds | {"tilted": (gains, weights), "tilted, mirrored": (-gains, weights)}


def tilted(values: Floats, means: Floats) -> Floats:
    """Return the weights of queries, of least relative entropy, under which each row of (cells, queries) has its mean.

    ValueError if no weights give these means.
    """
    # Newton's method on the dual: the tilt of least relative entropy is exponential in the rows' values.
    slopes = np.zeros(len(values))
    for _ in range(200):
        exponents = slopes @ values
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        found = values @ weights
        spread = (values * weights) @ values.T - np.outer(found, found)
        # A clipped step cannot overshoot into weights that underflow.
        slopes += np.clip(np.linalg.solve(spread + 1e-9 * np.eye(len(slopes)), means - found), -2, 2)
    if not np.allclose(values @ weights, means, atol=1e-6):
        raise ValueError("no weights of these queries give these means")
    return weights


def drawn(rows: Floats, n_queries: int, runs: int, weights: Floats | None = None) -> Floats:
    """Return so many evenings of queries drawn with replacement, (rows, evenings, queries)."""
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    evenings: Floats = rows[:, rng.choice(rows.shape[1], (runs, n_queries), p=weights)]
    return evenings


def drawn_by_kind(
    rows: Floats, kinds: Sequence[str], parts: Mapping[str, float], n_queries: int, runs: int
) -> tuple[Floats, Floats]:
    """Return evenings (rows, evenings, queries) worth n_queries of equal weight, and the weights of their queries.

    Of each kind, which counts for its part, so many are drawn as the source has in proportion.
    """
    rng, counts = np.random.default_rng(np.random.PCG64(n_queries)), Counter(kinds)
    # Of so many times the source's own queries, by Kish's formula.
    times = n_queries * sum(parts[kind] ** 2 / count for kind, count in counts.items())
    sizes = {kind: math.ceil(count * times + 1e-9) for kind, count in counts.items()}
    places = {kind: np.flatnonzero([other == kind for other in kinds]) for kind in counts}
    taken = np.hstack([rng.choice(places[kind], (runs, size)) for kind, size in sizes.items()])
    weights = np.concatenate([np.full(size, parts[kind] / size) for kind, size in sizes.items()])
    return rows[:, taken], weights


def made(shape: float, ties: float, n_queries: int, runs: int) -> Floats:
    """Return evenings of nine cells that gain a little on most queries and lose much on few, correlated by .5."""
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    own, shared = (rng.gamma(shape, size=(cells, runs, n_queries)) - shape for cells in (9, 1))
    # Scaled to a SD of .15 after ties, each query's share common to all cells.
    noise: Floats = (own + shared) / (2 * shape * (1 - ties)) ** 0.5
    return -0.15 * noise * (rng.random((9, runs, n_queries)) >= ties)


def units(values: Floats) -> Ints:
    """Return differences as the tests take them."""
    return np.rint(values * SCORE_UNIT).astype(np.int64)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table, each row as soon as it is there."""
    for row in chain((heads, ["---"] * len(heads)), rows):
        print("|", " | ".join(map(str, row)), "|", flush=True)
