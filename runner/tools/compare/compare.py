"""One system against published means and against another system, from per-query scores.

With `mulberry32` the figures and labels are those of ruflo's significance script, to the last digit, and
so are the lines for a terminal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

import numpy as np

from runner.base.errors import InputError
from runner.base.records import SCORE_UNIT, Interval, Ints
from runner.base.terminal import ASCII, Signs
from runner.score import mulberry32
from runner.score.bootstrap import RESAMPLES, mean_intervals
from runner.score.power import least_gain
from runner.score.sign_flip import Side, paired_tests
from runner.tools.compare.query_scores import QueryScores, shared_queries

Rng = Literal["default", "mulberry32"]

SEEDS: Mapping[Rng, int] = {"default": 2026, "mulberry32": 42}
"""The seed that is taken if none is given."""

ALPHA = 0.05
"""Error that a 95 % interval allows."""

DRAWS = 100_000
"""Sign flips of the paired test."""

TOO_FEW = 5
"""Queries of which even the rarest pattern of signs, all alike, comes up by chance in more than 5 %."""

FEW = 10
"""Queries below which labels by the bootstrap's interval err in 12 % of cases (5 queries) to all (1)."""

MAX_RESAMPLES = 1_000_000
MAX_SEED = mulberry32.SEEDS - 2  # the paired bootstrap takes the next one

_RUFLO_LABELS: Mapping[Side, str] = {
    "above": "p<0.05 (95% CI excludes baseline)",
    "below": "p<0.05 (95% CI below baseline)",
    "not told apart": "n.s. (95% CI overlaps baseline)",
}
_RUFLO_VERDICTS: Mapping[Side, str] = {
    "above": "SIGNIFICANT improvement (p<0.025 one-sided)",
    "below": "SIGNIFICANT regression (p<0.025 one-sided)",
    "not told apart": "NOT SIGNIFICANT — CI overlaps zero",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How to resample; without a seed, the generator's of SEEDS."""

    rng: Rng = "default"
    seed: int | None = None
    resamples: int = RESAMPLES
    allow_unmatched: bool = False


@dataclass(frozen=True, slots=True)
class Against:
    """A system's mean less a published one, and whether its interval says that it is above or below.

    `label_of_all` holds for all published means at once, by Bonferroni; None for a single one and with mulberry32.
    """

    name: str
    score: float
    difference: float
    label: str
    label_of_all: Side | None


@dataclass(frozen=True, slots=True)
class Pairing:
    """A system's mean less another's over the queries that both answered; queries of one alone are counted."""

    other: str
    n_queries: int
    only_in_run: int
    only_in_other: int
    difference: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Paired(Pairing):
    """A pairing tested by flipping signs, two-sided.

    `interval` inverts the test, `bootstrap_interval` is for comparison. `left_out` spans the differences with one query
    left out, `influential` moves it most. `detectable` is shown with 80 % power at this scatter; None below three
    queries or without scatter.
    """

    verdict: Side
    p: float
    exact: bool
    bootstrap_interval: Interval
    sd: float
    left_out: Interval
    influential: str
    detectable: float | None


@dataclass(frozen=True, slots=True)
class RufloPaired(Pairing):
    """The paired bootstrap of ruflo's script: `p_one_sided` is the share of resampled differences of 0 or less."""

    verdict: str
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
    seed: int
    resamples: int
    mean: float
    interval: Interval
    interval_of_all: Interval | None
    baselines: tuple[Against, ...]
    paired: Paired | RufloPaired | None
    notes: tuple[str, ...]


def compare(run: QueryScores, other: QueryScores | None = None, settings: Settings | None = None) -> Compared:
    """The run's mean with its interval, labels against its baselines, and the paired comparison with `other`.

    InputError if settings are out of bounds or the two runs answered other queries (see `shared_queries`).
    """
    chosen = settings or Settings()
    seed = SEEDS[chosen.rng] if chosen.seed is None else chosen.seed
    _check_bounds(chosen, seed, len(run.baselines))
    shared = () if other is None else shared_queries(run, other, allow_unmatched=chosen.allow_unmatched)
    one_sample = _one_sample if chosen.rng == "default" else _ruflo_one_sample
    mean, interval, of_all, baselines = one_sample(run, chosen.resamples, seed)
    paired: Paired | RufloPaired | None = None
    if other is not None:
        test = _paired if chosen.rng == "default" else _ruflo_paired
        paired = test(run, other, shared, chosen.resamples, seed)
    return Compared(
        run=run.name,
        measure=run.measure,
        n_queries=len(run.values),
        rng=chosen.rng,
        seed=seed,
        resamples=chosen.resamples,
        mean=mean,
        interval=interval,
        interval_of_all=of_all,
        baselines=baselines,
        paired=paired,
        notes=tuple(_notes(run, other, chosen.rng, paired)),
    )


def _check_bounds(settings: Settings, seed: int, n_baselines: int) -> None:
    if not 0 <= seed <= MAX_SEED:
        raise InputError(f"The seed {seed} is not a whole number from 0 to {MAX_SEED}.")
    # An end of an interval at level 1 - 0.05 / m is an order statistic, so at least one mean must lie outside it.
    least = 1 if settings.rng == "mulberry32" else 40 * max(1, n_baselines)
    if not least <= settings.resamples <= MAX_RESAMPLES:
        raise InputError(
            f"{settings.resamples} resamples cannot be used: with {n_baselines} baselines from {least} to "
            f"{MAX_RESAMPLES} are needed."
        )


OneSample = tuple[float, Interval, Interval | None, tuple[Against, ...]]


def _one_sample(run: QueryScores, resamples: int, seed: int) -> OneSample:
    values = _units(run, tuple(run.values))
    mean = int(values.sum()) / (len(values) * SCORE_UNIT)
    alone = mean_intervals(values[None], seed=seed, resamples=resamples)[0]
    of_all = None
    if len(run.baselines) > 1:
        level = 1 - ALPHA / len(run.baselines)
        of_all = mean_intervals(values[None], seed=seed, resamples=resamples, level=level)[0]

    def side(interval: Interval, score: float) -> Side:
        return _side(interval, score) if len(values) > TOO_FEW else "not told apart"

    labels = [
        Against(name, score, mean - score, side(alone, score), None if of_all is None else side(of_all, score))
        for name, score in run.baselines.items()
    ]
    return mean, alone, of_all, tuple(labels)


def _ruflo_one_sample(run: QueryScores, resamples: int, seed: int) -> OneSample:
    found = mulberry32.bootstrap(list(run.values.values()), resamples=resamples, seed=seed)
    labels = [
        Against(name, score, found.mean - score, _RUFLO_LABELS[_side(found.interval, score)], None)
        for name, score in run.baselines.items()
    ]
    return found.mean, found.interval, None, tuple(labels)


def _paired(run: QueryScores, other: QueryScores, shared: Sequence[str], resamples: int, seed: int) -> Paired:
    differences = (_units(run, shared) - _units(other, shared))[None]
    test = paired_tests(differences, draws=DRAWS, alpha=ALPHA, seed=seed)[0]
    return Paired(
        *_counts(run, other, shared),
        difference=test.mean,
        interval=test.interval,
        verdict=_side(test.interval, 0),
        p=test.p,
        exact=test.exact,
        bootstrap_interval=mean_intervals(differences, seed=seed, resamples=resamples)[0],
        sd=test.sd,
        left_out=test.left_out,
        influential=shared[test.influential],
        detectable=least_gain(len(shared), test.sd, ALPHA / 2, losses=0) if len(shared) > 2 and test.sd else None,
    )


def _ruflo_paired(
    run: QueryScores, other: QueryScores, shared: Sequence[str], resamples: int, seed: int
) -> RufloPaired:
    differences = [run.values[query] - other.values[query] for query in shared]
    found = mulberry32.bootstrap(differences, resamples=resamples, seed=seed + 1)
    return RufloPaired(
        *_counts(run, other, shared),
        difference=found.mean,
        interval=found.interval,
        verdict=_RUFLO_VERDICTS[_side(found.interval, 0)],
        p_one_sided=found.share_at_most_zero,
    )


def _counts(run: QueryScores, other: QueryScores, shared: Sequence[str]) -> tuple[str, int, int, int]:
    """The first fields of a Pairing."""
    return other.name, len(shared), len(run.values) - len(shared), len(other.values) - len(shared)


def _units(scores: QueryScores, queries: Sequence[str]) -> Ints:
    return np.array([round(scores.values[query] * SCORE_UNIT) for query in queries], np.int64)


def _side(interval: Interval, score: float) -> Side:
    """Where an interval lies; one that ends at the score itself does not tell."""
    if interval.low > score:
        return "above"
    return "below" if interval.high < score else "not told apart"


def _notes(run: QueryScores, other: QueryScores | None, rng: Rng, paired: Paired | RufloPaired | None) -> list[str]:
    notes = []
    if len(run.values) < FEW:
        notes.append(
            f"{len(run.values)} queries: a bootstrap interval over so few is far too narrow, and labels by it are "
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
    if isinstance(paired, Paired) and paired.n_queries <= TOO_FEW:
        notes.append(f"{paired.n_queries} queries cannot show a difference at 5 %, however large it is.")
    if isinstance(paired, RufloPaired) and paired.p_one_sided == 0:
        notes.append("The one-sided p is below one in the number of resamples; it is not zero.")
    if paired is not None and (paired.only_in_run or paired.only_in_other):
        notes.append(
            f"{paired.only_in_run} queries of {run.name} and {paired.only_in_other} of {paired.other} have no partner "
            "and were left out of the pairing."
        )
    notes += [
        f"{scores.name} is provisional: documents that nobody judged count as not relevant."
        for scores in (run, other)
        if scores is not None and scores.provisional
    ]
    return notes


def comparison_lines(compared: Compared, signs: Signs) -> list[str]:
    """What was compared, the mean, a line per baseline, the paired comparison, and what they do not show."""
    parity = compared.rng == "mulberry32"
    lines = _parity_mean(compared) if parity else _mean(compared)
    lines += [_baseline_line(against, signs, parity=parity) for against in compared.baselines]
    if isinstance(compared.paired, Paired):
        lines += _paired_lines(compared.paired, signs)
    elif isinstance(compared.paired, RufloPaired):
        lines += _parity_paired_lines(compared.paired, signs)
    return [*lines, *(f"note: {note}" for note in compared.notes)]


def fixed(value: float, places: int) -> str:
    """A number at fixed places as JavaScript's toFixed rounds it: a tie, which Python takes to even, away from zero."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def signed(value: float, minus: str = "-") -> str:
    """A difference at four places with its sign."""
    return f"{minus if value < 0 else '+'}{fixed(abs(value), 4)}"


def _mean(compared: Compared) -> list[str]:
    lines = [
        f"{compared.run}: {compared.measure} over {compared.n_queries} queries",
        f"  mean {fixed(compared.mean, 4)}, 95 % interval {_ends(compared.interval)} (bootstrap, "
        f"{compared.resamples} resamples, seed {compared.seed})",
    ]
    if compared.baselines:
        lines.append("published means, in brackets whether the interval tells the run from them:")
    if compared.interval_of_all is not None:
        count = len(compared.baselines)
        lines.append(
            f"  (all {count} at once by the {100 - 5 / count:.4g} % interval {_ends(compared.interval_of_all)})"
        )
    return lines


def _parity_mean(compared: Compared) -> list[str]:
    low, high = fixed(compared.interval.low, 4), fixed(compared.interval.high, 4)
    lines = [
        f"=== {compared.run}: {compared.measure}, {compared.n_queries} queries (1-sample bootstrap CI) ===",
        f"  point:    {fixed(compared.mean, 4)}",
        f"  95% CI:   [{low}, {high}]",
    ]
    return [*lines, "=== vs each published baseline (CI overlap) ==="] if compared.baselines else lines


def _baseline_line(against: Against, signs: Signs, *, parity: bool) -> str:
    side = f"{signs.up} above" if against.difference > 0 else f"{signs.down} below"
    if against.difference == 0 and not parity:
        side = "= equal"
    label = against.label if against.label_of_all is None else f"{against.label}; of all: {against.label_of_all}"
    difference = signed(against.difference, "-" if parity else signs.minus)
    return f"  {fixed(against.score, 3)}  {against.name:<28}  {signs.delta}={difference}  {side}  [{label}]"


def _paired_lines(paired: Paired, signs: Signs) -> list[str]:
    kind = "all sign flips" if paired.exact else "random sign flips"
    p = fixed(paired.p, 4) if paired.p >= 0.0001 else "below 0.0001"
    lines = [
        f"paired with {paired.other} over {paired.n_queries} queries: this run is {paired.verdict}",
        f"  {signs.delta}={signed(paired.difference, signs.minus)}, 95 % interval "
        f"{_signed_ends(paired.interval, signs)}, two-sided p {p} ({kind})",
        f"  bootstrap interval {_signed_ends(paired.bootstrap_interval, signs)}",
        f"  with one query left out {_signed_ends(paired.left_out, signs)}; {paired.influential} moves it most",
    ]
    if paired.detectable is not None:
        lines.append(f"  these queries show a difference of {fixed(paired.detectable, 4)} with 80 % power")
    return lines


def _parity_paired_lines(paired: RufloPaired, signs: Signs) -> list[str]:
    return [
        f"=== paired with {paired.other} ===",
        f"  paired queries: {paired.n_queries}",
        f"  {signs.delta}:  {signed(paired.difference)}",
        f"  95% CI:  [{signed(paired.interval.low)}, {signed(paired.interval.high)}]",
        f"  one-sided p ({signs.delta} {signs.at_most} 0):  {fixed(paired.p_one_sided, 4)}",
        f"  {paired.verdict.replace('—', '-') if signs == ASCII else paired.verdict}",
    ]


def _ends(interval: Interval) -> str:
    return f"{fixed(interval.low, 4)} to {fixed(interval.high, 4)}"


def _signed_ends(interval: Interval, signs: Signs) -> str:
    return f"{signed(interval.low, signs.minus)} to {signed(interval.high, signs.minus)}"
