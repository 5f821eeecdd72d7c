"""A comparison as lines for a terminal; baselines and, with mulberry32, the rest as ruflo's script prints them."""

from decimal import ROUND_HALF_UP, Decimal

from runner.base.records import Interval
from runner.base.terminal import ASCII, Signs
from runner.tools.compare.compare import Against, Compared, Paired, RufloPaired


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
