"""Where the dots, lines and diamonds of the null gate's strips stand; the template draws them.

A quantile dot plot: every dot stands for an equal part of a null's draws (Kay et al. 2016, CHI, 5092-5103).
"""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import fitting, fitting_signed, p_beside_alpha, places, round4
from runner.eval_set.shapes.gate import ControlResult, NullResult
from runner.eval_set.shapes.paired import MeasureResult
from runner.eval_set.shapes.plan import NullGate
from runner.eval_set.shapes.results import CellResult, Results
from runner.gate.nulls import BY_NAME, Null
from runner.report.chart import Axis, Label, Tick

AXIS = Axis(0.0, 1.0, 0.2)
"""One for all rows: nDCG@10 from its least to its greatest."""

HEIGHT = 44
GROUND = 41
"""Pixels from the top, where dots stand; columns of dots grow upwards from there."""

TALLEST = 32
DOT = 5.0
"""Pixels that a dot takes in a column; less if a column would be higher than TALLEST."""

COLUMN = 1.25
"""Per cent of the width that a column of dots gathers."""


class NullStrip(NamedTuple):
    """A null: the dots of its draws, or a diamond for a constant list, and how far above its mean a score must lie.

    `dots` is an SVG path of points, "" if there are none. `because` is why it is not passed, "" if it is.
    """

    null: NullResult
    dots: str
    diamond: float | None
    mean: float
    asked: float | None
    distance: str
    p: str
    because: str


class CellStrips(NamedTuple):
    """A cell against every null; `nearest` is the one that it is least above, of those that it fails if any."""

    row: CellResult
    real: Label
    passed: str
    nearest: NullStrip
    nulls: Sequence[NullStrip]


class ControlStrip(NamedTuple):
    """A control's mean score, over all draws if it is drawn, and how many of them passed."""

    control: ControlResult
    mean: Label
    drawn: bool
    passes: str


class NullStrips(NamedTuple):
    """Strips of every cell against every null, in the order of the ranking, and of the controls.

    Positions are per cent of the width, heights pixels. `nulls` are those of the gate. `controls` has no rows if there
    are no controls. `single` says in words how many cells pass if each query has one right answer, "" if that was not
    measured.
    """

    ticks: Sequence[Tick]
    nulls: Sequence[Null]
    cells: Sequence[CellStrips]
    controls: Sequence[ControlStrip]
    baseline: Label
    single: str
    height: int = HEIGHT
    ground: int = GROUND


def null_strips(results: Results) -> NullStrips:
    """The drawings of #gate."""
    rows = results.cells
    baseline = next(row for row in rows if row.role == "baseline")
    return NullStrips(
        ticks=AXIS.ticks,
        nulls=[BY_NAME[null.name] for null in baseline.gate.nulls],
        cells=[_cell(row, results.plan.null_gate) for row in rows],
        controls=[_control(control) for control in results.controls],
        baseline=_score(baseline),
        single=_single(rows),
    )


def _cell(row: CellResult, settings: NullGate) -> CellStrips:
    gate, score = row.gate, row.scores["ndcg@10"]
    nulls = [_null(null, settings, score) for null in gate.nulls]
    passed = sum(null.verdict == "pass" for null in gate.nulls)
    return CellStrips(
        row=row,
        real=_score(row),
        passed=f"{passed} of {len(gate.nulls)}",
        nearest=min(nulls, key=lambda strip: (strip.null.verdict == "pass", strip.null.delta)),
        nulls=nulls,
    )


def _score(row: CellResult) -> Label:
    score, ends = row.gate.real, row.scores["ndcg@10"]
    return Label(AXIS.at(score), fitting(score, ends.low, ends.high))


def _null(null: NullResult, settings: NullGate, score: MeasureResult) -> NullStrip:
    asked = None if BY_NAME[null.name].p_alone else settings.tau
    return NullStrip(
        null=null,
        dots=_dots(null.dots),
        diamond=None if null.dots else AXIS.at(null.mean),
        mean=AXIS.at(null.mean),
        asked=None if asked is None else AXIS.at(null.mean + asked),
        distance=f"{_from(null, score)} from the null's {fitting(null.mean, score.low, score.high)}",
        p=p_beside_alpha(null.p, settings.alpha),
        because=_because(null, settings.alpha, asked),
    )


def _from(null: NullResult, score: MeasureResult) -> str:
    return fitting_signed(null.delta, score.low - null.mean, score.high - null.mean)


def _because(null: NullResult, alpha: float, asked: float | None) -> str:
    """Why a null is not passed; thresholds compare the four places of the table below."""
    if null.verdict == "insufficient":
        return "a perfect engine would not pass it either"
    found = [f"p is above {alpha:g}"] if round4(null.p) > alpha else []
    if asked is not None and round4(null.delta) < asked:
        found.append(f"less than {asked:g} above the null")
    return " and ".join(found) if null.verdict == "fail" else ""


def _dots(values: Sequence[float]) -> str:
    """Dots in columns, each in the middle of the values that it gathers (Wilkinson 1999); values ascend.

    A path of lines without length, which round caps draw as dots: a tenth of what circles take.
    """
    columns: list[list[float]] = []
    for at in map(AXIS.at, values):
        if not columns or at - columns[-1][0] >= COLUMN:
            columns.append([])
        columns[-1].append(at)
    step = round(min(DOT, TALLEST / max(map(len, columns), default=1)), 1)
    return "".join(
        f"M{round((column[0] + column[-1]) / 2, 2):g} {round(GROUND - step / 2, 1):g}h0"
        + f"m0-{step:g}h0" * (len(column) - 1)
        for column in columns
    )


def _control(control: ControlResult) -> ControlStrip:
    side = "at least" if control.expected == "pass" else "at most"
    drawn = control.draws > 1
    passes = f"{control.passes:,} of {control.draws:,} passed, {side} {control.bound:,} may"
    once = "passed" if control.passes else "did not pass"
    return ControlStrip(
        control=control,
        mean=Label(AXIS.at(control.mean), places(control.mean, 2)),
        drawn=drawn,
        passes=passes if drawn else once,
    )


def _single(rows: Sequence[CellResult]) -> str:
    verdicts: dict[str, list[str]] = {}
    for row in rows:
        for measure, verdict in row.single_gold.items():
            verdicts.setdefault(measure, []).append(verdict.verdict)
    return ", ".join(
        f"{found.count('pass')} of {len(found)} cells pass by {measure}" for measure, found in verdicts.items()
    )
