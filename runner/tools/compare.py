"""One system against published means and against another system, from per-query scores.

In: per-query scores, from a file of ruflo's form or from a cell of results.json. Out: intervals and paired tests, as
data and as text. It must not know the plan or the gate: it compares what it is given. With `mulberry32` the figures are
those of ruflo's significance script, to the last digit.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.figures import signed
from runner.base.given_files import decoded, display, numbered_lines, parsed, printable, quoted
from runner.base.records import SCORE_UNIT, Interval
from runner.base.schema import FrozenModel, Share, checked
from runner.eval_set.door import held
from runner.eval_set.lock import verified
from runner.eval_set.shapes.plan import Bootstrap
from runner.eval_set.shapes.results import Results
from runner.score import mulberry32
from runner.score.bootstrap import RESAMPLES
from runner.score.comparison import less, measured, planned_intervals
from runner.score.sign_flip import EXACT_UP_TO, Side, paired_tests
from runner.tools.grade.grade import Item

Rng = Literal["default", "mulberry32"]

SEED = 2026
"""Of the bootstrap and of the sign flips, here and in the matrix: whatever a plan says, all is drawn alike."""

RUFLO_SEED = 42
"""The script's seed; its paired bootstrap takes the next one."""

ALPHA = 0.05
"""Error that a 95 % interval allows."""

DRAWS = 100_000
"""Sign flips of the paired test."""

BOOTSTRAP = Bootstrap(resamples=RESAMPLES, confidence=1 - ALPHA, seed=SEED)

TOO_FEW = 5
"""Queries of which even the rarest pattern of signs, all alike, comes up by chance in more than 5 %."""

FEW = 10
"""Queries below which labels by the bootstrap's interval err in 12 % of cases (5 queries) to all (1)."""

MOST_QUERIES = 100_000

MOST_BASELINES = 250
"""Published means for which a bootstrap interval of all at once still ends within its resamples."""

NDCG = "ndcg@10"
"""The measure of run files and of published means; a row of a run file names it without "@"."""


@dataclass(frozen=True)
class QueryScores:
    """A system's scores in one measure, in [0, 1], in the order of its file; at least one.

    `baselines` are published means of the same measure by name. `dataset` and `texts` (query id to text) tell whether
    two systems answered the same queries; they are empty if the file does not say. `provisional` results have
    unjudged pairs.
    """

    name: str
    measure: str
    values: Mapping[str, float]
    baselines: Mapping[str, float] = field(default_factory=dict)
    dataset: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    provisional: bool = False

    @property
    def units(self) -> dict[str, int]:
        """The scores in whole units of 1e-9."""
        return {query: round(value * SCORE_UNIT) for query, value in self.values.items()}


class _Query(FrozenModel):
    """A row of a run file; further fields are passed over, here and below."""

    model_config = ConfigDict(extra="ignore")

    qid: Item
    ndcg10: Share


class _Means(FrozenModel):
    """Published means of nDCG@10 by name."""

    model_config = ConfigDict(extra="ignore")

    baselines: dict[Item, Share] = Field(default_factory=dict, max_length=MOST_BASELINES)


class _RunFile(_Means):
    """A run of ruflo's form."""

    per_query: Annotated[list[_Query], Field(min_length=1, max_length=MOST_QUERIES, alias="perQuery")]
    dataset: object = ""


def read_scores(path: Path, cell: str | None = None) -> QueryScores:
    """Return the nDCG@10 that a file holds.

    A file with `perQuery` is ruflo's and holds one system; one with `cells` is ours, and `cell` names which.
    InputError, naming file and query, for anything else: a query twice, a value that is no number from 0 to 1.
    """
    where = display(path)
    document = _read_json(held(path), where)
    if isinstance(document, dict) and "cells" in document and "perQuery" not in document:
        verified(path)
        return scores_of_cell(checked(Results, document, where), cell, where)
    if cell is not None:
        raise InputError(f"{where} holds one system, so it has no cell {cell!r}. Leave the cell out.")
    run = checked(_RunFile, document, where)
    values = {row.qid: row.ndcg10 for row in run.per_query}
    if len(values) < len(run.per_query):
        twice = Counter(row.qid for row in run.per_query).most_common(1)[0][0]
        raise InputError(f"{where}: query {twice!r} occurs twice. Keep one of them.")
    dataset = run.dataset if isinstance(run.dataset, str) else ""
    return QueryScores(where, NDCG, values, run.baselines, dataset=dataset)


def read_baselines(path: Path) -> dict[str, float]:
    """Return published means by name, from a JSON object {name: score}; InputError names the one that is wrong."""
    where = display(path)
    return checked(_Means, {"baselines": _read_json(path, where)}, where).baselines


def need_same_queries(run: QueryScores, other: QueryScores) -> None:
    """Raise InputError unless two runs answered the same queries: of one dataset, with the same texts."""
    if run.dataset and other.dataset and run.dataset != other.dataset:
        raise InputError(f"{run.name} is over {quoted(run.dataset)}, {other.name} over {quoted(other.dataset)}.")
    for here, there in ((run, other), (other, run)):
        if alone := [query for query in here.values if query not in there.values]:
            raise InputError(
                f"{len(alone)} of {len(here.values)} queries of {here.name} are not in {there.name}, the first "
                f"{alone[0]!r}. Score both over the same queries."
            )
    shared = [query for query in run.texts if query in other.texts]
    if changed := [query for query in shared if run.texts[query] != other.texts[query]]:
        raise InputError(f"Query {changed[0]!r} is another text in {run.name} than in {other.name}.")


def scores_of_cell(results: Results, cell: str | None, where: str, measure: str = NDCG) -> QueryScores:
    """Return a cell's scores in one measure; InputError if there is no such cell or measure."""
    rows = {row.cell: row.scores for row in results.cells}
    if cell is None or cell not in rows:
        what = "say which of its cells" if cell is None else f"{cell!r} is none of its cells. These are"
        raise InputError(f"{where}: {what}: {printable('; '.join(rows), longest=2000)}.")
    if measure not in rows[cell]:
        raise InputError(f"{where}: {cell} has no {measure!r}. It has {', '.join(rows[cell])}.")
    units = rows[cell][measure].per_query
    if len(units) != len(results.queries):
        raise InputError(f"{where}: {cell} has {len(units)} scores for {len(results.queries)} queries.")
    return QueryScores(
        f"{where}: {printable(cell)}",
        measure,
        {query.id: unit / SCORE_UNIT for query, unit in zip(results.queries, units, strict=True)},
        texts={query.id: query.said for query in results.queries},
        provisional=results.provisional,
    )


def _read_json(path: Path, where: str) -> JSON:
    text = "\n".join(decoded(line, f"{where}:{number}") for number, line in numbered_lines(path))
    return parsed(text, where, "Correct it, or give another file.")


@dataclass(frozen=True, slots=True)
class Against:
    """A system's mean less a published one, and whether the run's interval of labels is above or below it."""

    name: str
    score: float
    difference: float
    label: Side


@dataclass(frozen=True, slots=True)
class Paired:
    """A system's mean less another's over the same queries; `interval` inverts a two-sided test that flips signs."""

    other: str
    difference: float
    interval: Interval
    verdict: Side
    p: float
    exact: bool


@dataclass(frozen=True, slots=True)
class RufloPaired:
    """The paired bootstrap of ruflo's script: `p_one_sided` is the share of resampled differences of 0 or less."""

    other: str
    difference: float
    interval: Interval
    verdict: Side
    p_one_sided: float


@dataclass(frozen=True, slots=True)
class Compared:
    """All that `compare` computes; `notes` say what the figures do not show.

    `interval` is of the mean alone, `interval_of_labels` of a level at which every label holds at once (Bonferroni);
    with mulberry32, and with one baseline at most, they are the same.
    """

    run: str
    measure: str
    n_queries: int
    rng: Rng
    mean: float
    interval: Interval
    interval_of_labels: Interval
    baselines: tuple[Against, ...]
    paired: Paired | RufloPaired | None
    notes: tuple[str, ...]


def compare(run: QueryScores, other: QueryScores | None = None, rng: Rng = "default") -> Compared:
    """Return the run's mean with its interval, labels against its baselines, and the paired comparison with `other`.

    InputError if the two runs answered other queries.
    """
    count = len(run.baselines)
    # The mean with its interval; ours has a second one, at which all labels hold at once (Bonferroni).
    if rng == "mulberry32":
        drawn = mulberry32.bootstrap(list(run.values.values()), resamples=RESAMPLES, seed=RUFLO_SEED)
        average, alone = drawn.mean, drawn.interval
        of_labels = alone
    else:
        units = np.array([[*run.units.values()]])
        own = measured(units, BOOTSTRAP)[0]
        average, alone = own.mean, Interval(own.low, own.high)
        at_once = BOOTSTRAP.model_copy(update={"confidence": 1 - ALPHA / max(count, 1)})
        of_labels = planned_intervals(units, at_once)[0] if count > 1 else alone
    # Each published mean against the interval.
    is_told = rng == "mulberry32" or len(run.values) > TOO_FEW
    labels = [
        Against(name, score, average - score, _side(of_labels, score) if is_told else "not told apart")
        for name, score in run.baselines.items()
    ]
    paired: Paired | RufloPaired | None = None
    if other is not None:
        need_same_queries(run, other)
        paired = _ruflo_paired(run, other) if rng == "mulberry32" else _paired(run, other)
    notes = tuple(_notes(run, other, rng, paired))
    return Compared(
        run.name, run.measure, len(run.values), rng, average, alone, of_labels, tuple(labels), paired, notes
    )


def _paired(run: QueryScores, other: QueryScores) -> Paired:
    queries = list(run.values)
    # Paired by query, in whole units: sums of signs are then exact.
    differences = less(run.units, other.units, queries)
    test = paired_tests(differences[None], draws=DRAWS, alpha=ALPHA, seed=SEED)[0]
    interval = Interval(*test.interval)
    return Paired(
        other=other.name,
        difference=int(differences.sum()) / len(queries) / SCORE_UNIT,
        interval=interval,
        verdict=_side(interval, 0),
        p=test.p,
        exact=int(np.count_nonzero(differences)) <= EXACT_UP_TO,
    )


def _ruflo_paired(run: QueryScores, other: QueryScores) -> RufloPaired:
    differences = [value - other.values[query] for query, value in run.values.items()]
    drawn = mulberry32.bootstrap(differences, resamples=RESAMPLES, seed=RUFLO_SEED + 1)
    return RufloPaired(other.name, drawn.mean, drawn.interval, _side(drawn.interval, 0), drawn.share_at_most_zero)


def _side(interval: Interval, score: float) -> Side:
    """Say where an interval lies; one that ends at the score itself does not tell."""
    if interval.low > score:
        return "above"
    return "below" if interval.high < score else "not told apart"


def _notes(run: QueryScores, other: QueryScores | None, rng: Rng, paired: Paired | RufloPaired | None) -> list[str]:
    count, published = len(run.values), len(run.baselines)
    both = [run] if other is None else [run, other]
    notes = {
        f"{count} queries: a bootstrap interval over so few is far too narrow, and labels by it are "
        "wrong more often than one time in twenty.": count < FEW,
        "Both are cells of a results.json: this p is not adjusted for their having been picked from several; "
        "the adjusted one is on its page.": other is not None and run.texts and run.texts == other.texts,
        "A published mean is taken as exact; it was measured on a sample too, and its error is not known.": published
        > 0,
        f"Labels are not corrected for {published} comparisons: of twenty means that equal this system's, "
        "one is told apart by chance.": rng == "mulberry32" and published > 1,
        f"{count} queries cannot show a difference at 5 %, however large it is.": isinstance(paired, Paired)
        and count <= TOO_FEW,
        "The one-sided p is below one in the number of resamples; it is not zero.": isinstance(paired, RufloPaired)
        and paired.p_one_sided == 0,
    } | {
        f"{scores.name} is provisional: documents that nobody judged count as not relevant.": scores.provisional
        for scores in both
    }
    return [note for note, holds in notes.items() if holds]


def comparison_lines(compared: Compared) -> list[str]:
    """Return what was compared, the mean, a line per baseline, the paired comparison, and what they do not show."""
    lines = [
        f"{compared.run}: {compared.measure} over {compared.n_queries} queries",
        f"  mean {compared.mean:.4f}, 95 % interval {_ends(compared.interval)} (bootstrap)",
    ]
    if compared.baselines:
        lines.append("published means, in brackets whether the interval tells the run from them:")
    if len(compared.baselines) > 1 and compared.rng == "default":
        level = f"{100 - 100 * ALPHA / len(compared.baselines):.4g} %"
        lines.append(f"  (by the interval of {level}, so that all hold at once: {_ends(compared.interval_of_labels)})")
    for row in compared.baselines:
        lines.append(f"  {row.score:.3f}  {printable(row.name):<28}  Δ={signed(row.difference, 4)}  [{row.label}]")
    if (paired := compared.paired) is not None:
        lines.append(f"paired with {paired.other}: this run is {paired.verdict}")
        difference_line = f"  Δ={signed(paired.difference, 4)}, 95 % interval {_signed(paired.interval)}"
        if isinstance(paired, RufloPaired):
            lines.append(f"{difference_line} (bootstrap), one-sided p (Δ ≤ 0) {paired.p_one_sided:.4f}")
        else:
            p = f"{paired.p:.4f}" if paired.p >= 0.0001 else "below 0.0001"
            lines.append(f"{difference_line}, two-sided p {p} ({'all' if paired.exact else 'random'} sign flips)")
    return [*lines, *(f"note: {note}" for note in compared.notes)]


def _ends(interval: Interval) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}"


def _signed(interval: Interval) -> str:
    return f"{signed(interval.low, 4)} to {signed(interval.high, 4)}"
