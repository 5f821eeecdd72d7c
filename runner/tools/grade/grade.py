"""Grading what a retriever returned: a bench with one right answer per query, or a TREC run with graded qrels.

A bench goes through the single-gold gate, a run through the graded one. Answers are dicts of plain values, ready for
JSON. A bench file is one JSON object per line, and its pool the ids that could have been retrieved; every id becomes a
string without white space around it: 1, "1" and the line "1 " of a text pool are one id.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field

from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, parsed, printable
from runner.base.records import SCORE_UNIT, Qrels, Run
from runner.base.schema import FrozenModel, checked
from runner.eval_set.shapes.gate import NullResult
from runner.eval_set.trec import TrecRun
from runner.gate.diagnosis import blind_queries, sameness
from runner.gate.gate import Gate
from runner.gate.single_gold import four_null_gate
from runner.retrieve.ranking import ties
from runner.score.bootstrap import mean_intervals
from runner.score.score import score

ALPHA = 0.05
TAU = 0.05
SEED = 2026
TRIALS = 1000
"""Draws of each null: of the 50 that four_null_gate makes, only one may be as good as the real score at 5 %."""

DEPTH = 10
"""Ranks of a run that are looked at."""

MEASURES = (f"ndcg@{DEPTH}", f"recall@{DEPTH}", f"mrr@{DEPTH}")
"""What is reported of a run; the graded gate is on the first."""

_SHOWN = 3

DEFAULT_REL = 3
_MAX_REL = (1 << 31) - 1

_ROW = 'a row such as {"retrieved": ["A", "B", "C"], "gold": "A", "rel": 3}'


def _as_text(value: object) -> object:
    if isinstance(value, str):
        value.encode()  # a ValueError for half of a surrogate pair, which is no text
        return value.strip()
    return str(value) if type(value) is int else value


Item = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=1_000)]
"""An id; a whole number stands for its digits, and white space around it is no part of it."""


class Row(FrozenModel):
    """One query of a bench; fields of other names are passed over."""

    model_config = ConfigDict(extra="ignore")

    retrieved: list[Item]
    gold: Item
    rel: Annotated[int, Field(ge=0, le=_MAX_REL)] = DEFAULT_REL
    stratum: Item | None = None


class _Pool(FrozenModel):
    """The ids of a pool."""

    pool: Annotated[list[Item], Field(min_length=1)]


@dataclass(frozen=True)
class Bench:
    """A bench as columns, one entry per query: ids best first, the right id, its grade, its stratum or None."""

    retrieved: list[list[str]]
    gold: list[str]
    rel: list[int]
    strata: list[str] | None


def read_bench(path: str | Path) -> Bench:
    """Return the bench in a JSONL file, or on standard input for "-"; at least one row.

    `rel` is 3 if a row has none, `stratum` stands in every row or in none. An empty `retrieved` and an id twice in it
    are the gate's to judge; InputError with file and line for all else.
    """
    rows = []
    for number, line in numbered_lines(path):
        where = f"{display(path)}:{number}"
        rows.append(checked(Row, parsed(decoded(line, where), where, f"Write {_ROW}."), where))
        # Half a column of strata would put the others' queries into a stratum of nobody.
        if (rows[-1].stratum is None) != (rows[0].stratum is None):
            raise InputError(f"{where}: a stratum stands in every row or in none, and the rows above differ from this.")
    if not rows:
        raise InputError(f"{display(path)} has no rows. One JSON object a line is expected: {_ROW}.")
    strata = [row.stratum for row in rows if row.stratum is not None]
    return Bench([row.retrieved for row in rows], [row.gold for row in rows], [row.rel for row in rows], strata or None)


def read_pool(path: str | Path) -> list[str]:
    """Return the ids of a pool in the order of the file: one per line, or a JSON array if it begins with [.

    InputError on an empty pool, and on anything that is no id.
    """
    name = display(path)
    lines = [decoded(line, f"{name}:{number}").strip() for number, line in numbered_lines(path)]
    if lines and lines[0].startswith("["):
        ids = parsed("\n".join(lines), name, "A pool that begins with [ is an array of ids.")
    else:
        ids = [line for line in lines if line]
    if not ids:
        raise InputError(f"{name} is an empty pool. Write every id that could have been retrieved, one a line.")
    return checked(_Pool, {"pool": ids}, name).pool


def grade_bench(
    bench: Bench, metric: str, pool: Sequence[str], *, n_trials: int = TRIALS, tau: float = TAU, seed: int = SEED
) -> dict[str, Any]:
    """Return four_null_gate's result on a bench; ValueError if the bench cannot be tested."""
    # By recall and MRR a gold counts whatever its grade.
    if metric.startswith("ndcg") and not any(rel > 0 for rel in bench.rel):
        raise ValueError("no query has a relevant document: no `rel` is above 0")
    settings: dict[str, Any] = {"n_trials": n_trials, "tau": tau, "alpha": ALPHA, "seed": seed}
    return four_null_gate(
        bench.retrieved, bench.gold, bench.rel, metric, item_pool=pool, strata=bench.strata, **settings
    )


def grade_run(
    found: TrecRun,
    qrels: Qrels,
    pool: Collection[str] | None = None,
    *,
    n_trials: int = TRIALS,
    tau: float = TAU,
    seed: int = SEED,
) -> dict[str, Any]:
    """Return the run's MEASURES over the queries of the qrels, and the graded null gate.

    A query of the qrels without a ranking, or without a relevant document, scores 0; one of the run without qrels is
    left out; `warnings` counts all three. The gate is on nDCG@10 with one chunk per document, all of one length. `pool`
    is every document that could have been retrieved, by default those of run and qrels. ValueError if ids do not fit
    together, no query has a relevant document, or an argument is out of range.
    """
    if not 0 <= tau <= 1:
        raise ValueError(f"tau must be in [0, 1], got {tau}")
    if found.run.hits.keys().isdisjoint(qrels):
        mine, theirs = (printable(next(iter(ids), "none")) for ids in (found.run.hits, qrels))
        raise ValueError(f"run and qrels have no query in common; the first of each is {mine} and {theirs}")
    if not any(map(_has_relevant, qrels.values())):
        raise ValueError("no query has a relevant document: the qrels have no grade above 0")
    run = Run(found.run.cell, {query_id: found.run.hits.get(query_id, ()) for query_id in qrels})
    # What is reported: the scores over all queries of the qrels, and the interval of the first.
    documents = _pool(found, qrels, pool)
    scores = score(run, list(qrels), qrels, relevant_grade=1)
    interval = mean_intervals(np.array([scores.values[MEASURES[0]]], np.int64), seed=seed)[0]
    ones, strata = dict.fromkeys(documents, 1), dict.fromkeys(qrels, "")
    settings: dict[str, Any] = {"draws": n_trials, "tau": tau, "alpha": ALPHA, "seed": seed}
    nulls = Gate.of(list(qrels), qrels, strata, ones, **settings)
    gate = nulls.judge(run, ones)
    same = sameness(run) or blind_queries(gate, nulls.blind(run), len(qrels))
    return {
        "n_queries": len(qrels),
        "pool_size": len(documents),
        "scores": {measure: sum(scores.values[measure]) / (len(qrels) * SCORE_UNIT) for measure in MEASURES},
        "interval": [interval.low, interval.high],
        "gate": gate.model_dump(),
        "verdict": gate.verdict,
        "gate_passes": gate.verdict == "pass",
        "reasons": [_reason(null, tau) for null in gate.nulls if null.verdict != "pass"],
        "warnings": [*_warnings(found, run, qrels, same)],
        "n_trials": n_trials,
        "tau": float(tau),
        "alpha": ALPHA,
        "seed": seed,
    }


def _pool(found: TrecRun, qrels: Qrels, pool: Collection[str] | None) -> list[str]:
    """Return the pool's documents in ascending order, each once."""
    named = found.documents.union(*qrels.values())
    documents = named if pool is None else set(pool)
    if missing := sorted(named - documents):
        shown = ", ".join(map(printable, missing[:_SHOWN]))
        raise ValueError(
            f"the pool lacks {len(missing)} documents of run and qrels ({shown}); it must hold every document that "
            "could have been retrieved"
        )
    return sorted(documents)


def _has_relevant(grades: Mapping[str, int]) -> bool:
    return any(grade > 0 for grade in grades.values())


def _reason(null: NullResult, tau: float) -> str:
    if null.verdict == "insufficient":
        return f"{null.name}: a clearly better engine would not pass it either"
    # A null is beaten by chance alone, or by too little to matter.
    if null.p > ALPHA:
        return f"{null.name}: as good by chance with p {null.p:.4g}, more than {ALPHA:g}"
    return f"{null.name}: beaten by {null.delta:.4f} only, less than tau {tau:g}"


def _warnings(found: TrecRun, run: Run, qrels: Qrels, same: str) -> Iterator[str]:
    if missing := [query_id for query_id in qrels if query_id not in found.run.hits]:
        yield f"{_queries(missing)} of the qrels without a ranking: score 0, as in trec_eval -c"
    if empty := [query_id for query_id, grades in qrels.items() if not _has_relevant(grades)]:
        yield f"{_queries(empty)} of the qrels without a relevant document: score 0, as in trec_eval"
    if unasked := [query_id for query_id in found.run.hits if query_id not in qrels]:
        yield f"{_queries(unasked)} of the run without qrels: left out"
    if found.contradicted:
        yield f"{_queries(found.contradicted)} in which a better rank has a lower score: scores decide, as in trec_eval"
    if tied := [query_id for query_id, hits in run.hits.items() if ties(hits[:DEPTH])]:
        yield (
            f"{_queries(tied)} with equal scores at ranks 1 to {DEPTH}: of these the greater document id comes first, "
            "as in trec_eval; the rank column does not count"
        )
    if same:
        yield same
    # Unjudged documents count as not relevant, which only a reader can tell from a bad run.
    shown = [hit.doc_id in qrels[query_id] for query_id, hits in run.hits.items() for hit in hits[:DEPTH]]
    if not all(shown):
        yield (
            f"{shown.count(False)} of {len(shown)} documents at ranks 1 to {DEPTH} are not judged: not relevant"
            + ("" if any(shown) else "; as none is judged, ids may differ in form")
        )


def _queries(query_ids: Sequence[str]) -> str:
    shown = ", ".join(map(printable, query_ids[:_SHOWN])) + (", ..." if len(query_ids) > _SHOWN else "")
    return f"{len(query_ids)} queries ({shown})" if len(query_ids) > 1 else f"1 query ({shown})"
