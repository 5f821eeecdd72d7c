"""Evenings to simulate: real per-query differences of public collections and rehearsed sources, under given means."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints

Floats = NDArray[np.float64]

CHECKOUT = Path(__file__).resolve().parents[1]
RUNS = CHECKOUT / "docs" / "matrix" / "runs"
BASELINE, CHALLENGER = "minilm-l6-v2 x whole_doc", "minilm-l6-v2 x fixed_token_256_25"
"""Of public collections; the challenger changes the chunker alone, as the first one of a default plan does."""

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

TEST_SEED = 1_000_000
"""Between a run's seed and that of its tests: flips must not come from the numbers that made the differences."""


CLAIMS = ("per cent of evenings", "50 queries", "100", "200", "wanted")
"""Heads of the table of claims."""


class World(NamedTuple):
    """Real differences to a baseline in nDCG@10 and Recall@10, (cells, queries) each, of which `first` go first.

    `kinds` are the queries' kinds, none of a public collection.
    """

    cells: list[str]
    first: int
    gains: Floats
    recalls: Floats
    kinds: list[str]


@cache
def scores(collection: str, measure: str = "ndcg10") -> dict[str, Floats]:
    """Return every cell's scores by query (queries,), the baseline first, then the challenger."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((RUNS / collection).glob("*.json"))]
    found = {file["cell"]: np.array([row[measure] for row in file["perQuery"]]) for file in files}
    return {cell: found[cell] for cell in sorted(found, key=lambda cell: (cell != BASELINE, cell != CHALLENGER, cell))}


def differences(collection: str, measure: str = "ndcg10") -> Floats:
    """Return every other cell's scores less the baseline's, (cells, queries), the challenger first."""
    baseline, *others = scores(collection, measure).values()
    return np.array(others) - baseline


def public(collection: str) -> World:
    """Return a public collection, whose challenger goes first where it has one."""
    cells = list(scores(collection))[1:]
    both = differences(collection), differences(collection, "recall10")
    return World(cells, cells.count(CHALLENGER), *both, [])


@cache
def rehearsal(source: str) -> World:
    """Return a rehearsed source, from the results in the record; cells that go first stand first."""
    path = CHECKOUT / "eval-sets" / source / "v1" / "rehearsal" / "results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    rows = {row["cell"]: row["scores"] for row in results["cells"]}
    baseline, first = rows.pop(results["plan"]["baseline"]), results["plan"]["first"]
    cells = [*first, *(cell for cell in results["plan"]["cells"] if cell in rows and cell not in first)]
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
    named = [[_role(cell) for cell in world.cells] for world in worlds]
    roles = [role for role in named[0] if all(role in names for names in named)]
    rows = [[names.index(role) for role in roles] for names in named]
    gains, recalls = (
        np.hstack([values[row] for values, row in zip(each, rows, strict=True)])
        for each in ([world.gains for world in worlds], [world.recalls for world in worlds])
    )
    return World(roles, 1, gains, recalls, [kind for world in worlds for kind in world.kinds])


def _role(cell: str) -> str:
    model, _, chunker = cell.partition(" x ")
    common = ("fixed_token", "recursive", "whole_doc")
    return cell if chunker.startswith(common) else f"{model} x structural{'_256' if '_256_' in chunker else ''}"


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


def units(values: Floats) -> Ints:
    """Return differences as the tests take them."""
    return np.rint(values * SCORE_UNIT).astype(np.int64)


def percent(found: float, of: int) -> str:
    """Return a share in per cent with its Monte Carlo standard error."""
    p = found / of
    return f"{100 * p:.1f} ({100 * (p * (1 - p) / of) ** 0.5:.1f})"


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table, each row as soon as it is there."""
    print(f"\n{title}\n")
    for row in chain((heads, ["---"] * len(heads)), rows):
        print("|", " | ".join(map(str, row)), "|", flush=True)
