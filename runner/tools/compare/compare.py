"""One system against published means and against another system, from per-query scores.

With `mulberry32` the figures are those of ruflo's significance script, to the last digit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from runner.base.errors import InputError
from runner.base.figures import signed
from runner.base.records import SCORE_UNIT, Interval, Ints
from runner.score import mulberry32
from runner.score.bootstrap import RESAMPLES, mean_intervals
from runner.score.comparison import mean
from runner.score.power import least_gain
from runner.score.sign_flip import EXACT_UP_TO, Side, left_out, paired_tests
from runner.tools.compare.query_scores import QueryScores, need_same_queries

Rng = Literal["default", "mulberry32"]

SEED = 2026

RUFLO_SEED = 42
"""The script's seed; its paired bootstrap takes the next one."""

ALPHA = 0.05
"""Error that a 95 % interval allows."""

DRAWS = 100_000
"""Sign flips of the paired test."""

TOO_FEW = 5
"""Queries of which even the rarest pattern of signs, all alike, comes up by chance in more than 5 %."""

FEW = 10
"""Queries below which labels by the bootstrap's interval err in 12 % of cases (5 queries) to all (1)."""

MOST_BASELINES = 250
"""Published means for which a bootstrap interval of all at once still ends within its resamples."""


@dataclass(frozen=True, slots=True)
class Against:
    """A system's mean less a published one, and whether its interval says that it is above or below.

    `label_of_all` holds for all published means at once, by Bonferroni; None for a single one and with mulberry32.
    """

    name: str
    score: float
    difference: float
    label: Side
    label_of_all: Side | None


@dataclass(frozen=True, slots=True)
class Paired:
    """A system's mean less another's over the same queries, tested by flipping signs, two-sided.

    `interval` inverts the test, `bootstrap_interval` is for comparison. `left_out` spans the differences with one query
    left out, `influential` moves it most. `detectable` is shown with 80 % power at this scatter; None below three
    queries or without scatter.
    """

    other: str
    difference: float
    interval: Interval
    verdict: Side
    p: float
    exact: bool
    bootstrap_interval: Interval
    sd: float
    left_out: Interval
    influential: str
    detectable: float | None


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

    `interval` is of the mean alone, `interval_of_all` of a level at which every label holds at once: None with fewer
    than two baselines and with mulberry32.
    """

    run: str
    measure: str
    n_queries: int
    rng: Rng
    mean: float
    interval: Interval
    interval_of_all: Interval | None
    baselines: tuple[Against, ...]
    paired: Paired | RufloPaired | None
    notes: tuple[str, ...]


def compare(run: QueryScores, other: QueryScores | None = None, rng: Rng = "default") -> Compared:
    """Return the run's mean with its interval, labels against its baselines, and the paired comparison with `other`.

    InputError if there are too many baselines or the two runs answered other queries.
    """
    count = len(run.baselines)
    if count > MOST_BASELINES:
        raise InputError(f"{run.name}: {count} published means; at most {MOST_BASELINES} can be compared.")
    units, of_all = _units(run, run.values), None
    if rng == "mulberry32":
        found = mulberry32.bootstrap(list(run.values.values()), resamples=RESAMPLES, seed=RUFLO_SEED)
        mean, alone = found.mean, found.interval
    else:
        mean, alone = int(units.sum()) / (len(units) * SCORE_UNIT), _interval(units, ALPHA)
        of_all = _interval(units, ALPHA / count) if count > 1 else None

    def side(interval: Interval, score: float) -> Side:
        return _side(interval, score) if rng == "mulberry32" or len(units) > TOO_FEW else "not told apart"

    labels = [
        Against(name, score, mean - score, side(alone, score), None if of_all is None else side(of_all, score))
        for name, score in run.baselines.items()
    ]
    paired: Paired | RufloPaired | None = None
    if other is not None:
        need_same_queries(run, other)
        paired = _ruflo_paired(run, other) if rng == "mulberry32" else _paired(run, other)
    notes = tuple(_notes(run, other, rng, paired))
    return Compared(run.name, run.measure, len(units), rng, mean, alone, of_all, tuple(labels), paired, notes)


def _units(scores: QueryScores, queries: Iterable[str]) -> Ints:
    return np.array([round(scores.values[query] * SCORE_UNIT) for query in queries], np.int64)


def _interval(units: Ints, alpha: float) -> Interval:
    return mean_intervals(units[None], seed=SEED, resamples=RESAMPLES, level=1 - alpha)[0]


def _paired(run: QueryScores, other: QueryScores) -> Paired:
    queries = list(run.values)
    differences = (_units(run, queries) - _units(other, queries))[None]
    test = paired_tests(differences, draws=DRAWS, alpha=ALPHA, seed=SEED)[0]
    interval, (spread, influential) = Interval(*test.interval), left_out(differences[0].tolist())
    return Paired(
        other=other.name,
        difference=mean(differences[0]),
        interval=interval,
        verdict=_side(interval, 0),
        p=test.p,
        exact=int(np.count_nonzero(differences)) <= EXACT_UP_TO,
        bootstrap_interval=_interval(differences[0], ALPHA),
        sd=test.sd,
        left_out=spread,
        influential=queries[influential],
        detectable=least_gain(len(queries), test.sd, ALPHA / 2, losses=0) if len(queries) > 2 and test.sd else None,
    )


def _ruflo_paired(run: QueryScores, other: QueryScores) -> RufloPaired:
    differences = [value - other.values[query] for query, value in run.values.items()]
    found = mulberry32.bootstrap(differences, resamples=RESAMPLES, seed=RUFLO_SEED + 1)
    return RufloPaired(other.name, found.mean, found.interval, _side(found.interval, 0), found.share_at_most_zero)


def _side(interval: Interval, score: float) -> Side:
    """Say where an interval lies; one that ends at the score itself does not tell."""
    if interval.low > score:
        return "above"
    return "below" if interval.high < score else "not told apart"


def _notes(run: QueryScores, other: QueryScores | None, rng: Rng, paired: Paired | RufloPaired | None) -> list[str]:
    notes, count = [], len(run.values)
    if count < FEW:
        notes.append(
            f"{count} queries: a bootstrap interval over so few is far too narrow, and labels by it are "
            "wrong more often than one time in twenty."
        )
    if other is not None and run.texts and run.texts == other.texts:
        notes.append(
            "Both are cells of a results.json: this p is not adjusted for their having been picked from several; "
            "the adjusted one is on its page."
        )
    if run.baselines:
        notes.append("A published mean is taken as exact; it was measured on a sample too, and its error is not known.")
    if rng == "mulberry32" and len(run.baselines) > 1:
        notes.append(
            f"Labels are not corrected for {len(run.baselines)} comparisons: of twenty means that equal this system's, "
            "one is told apart by chance."
        )
    if isinstance(paired, Paired) and count <= TOO_FEW:
        notes.append(f"{count} queries cannot show a difference at 5 %, however large it is.")
    if isinstance(paired, RufloPaired) and paired.p_one_sided == 0:
        notes.append("The one-sided p is below one in the number of resamples; it is not zero.")
    notes += [
        f"{scores.name} is provisional: documents that nobody judged count as not relevant."
        for scores in (run, other)
        if scores is not None and scores.provisional
    ]
    return notes


def comparison_lines(compared: Compared) -> list[str]:
    """Return what was compared, the mean, a line per baseline, the paired comparison, and what they do not show."""
    lines = [
        f"{compared.run}: {compared.measure} over {compared.n_queries} queries",
        f"  mean {compared.mean:.4f}, 95 % interval {_ends(compared.interval)} (bootstrap)",
    ]
    if compared.baselines:
        lines.append("published means, in brackets whether the interval tells the run from them:")
    if compared.interval_of_all is not None:
        count = len(compared.baselines)
        level = f"{100 - 5 / count:.4g} % interval {_ends(compared.interval_of_all)}"
        lines.append(f"  (all {count} at once by the {level})")
    for row in compared.baselines:
        label = row.label if row.label_of_all is None else f"{row.label}; of all: {row.label_of_all}"
        difference = f"Δ={signed(row.difference, 4)}"
        lines.append(f"  {row.score:.3f}  {row.name:<28}  {difference}  [{label}]")
    if (paired := compared.paired) is not None:
        lines.append(f"paired with {paired.other}: this run is {paired.verdict}")
        told = f"  Δ={signed(paired.difference, 4)}, 95 % interval {_signed(paired.interval)}"
        if isinstance(paired, RufloPaired):
            lines.append(f"{told} (bootstrap), one-sided p (Δ ≤ 0) {paired.p_one_sided:.4f}")
        else:
            p = f"{paired.p:.4f}" if paired.p >= 0.0001 else "below 0.0001"
            lines += [
                f"{told}, two-sided p {p} ({'all' if paired.exact else 'random'} sign flips)",
                f"  bootstrap interval {_signed(paired.bootstrap_interval)}",
                f"  with one query left out {_signed(paired.left_out)}; {paired.influential} moves it most",
            ]
            if paired.detectable is not None:
                lines.append(f"  these queries show a difference of {paired.detectable:.4f} with 80 % power")
    return [*lines, *(f"note: {note}" for note in compared.notes)]


def _ends(interval: Interval) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}"


def _signed(interval: Interval) -> str:
    return f"{signed(interval.low, 4)} to {signed(interval.high, 4)}"
