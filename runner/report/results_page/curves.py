"""Where the curves of #recall run: Recall by rank, and relevant documents met by tokens read."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.eval_set.shapes.lists import RecallPoint
from runner.eval_set.shapes.results import Results
from runner.report.chart import MARKS, Axis, LogAxis, Point, Tick, label_places, log_axis, look

HEIGHT = 300
"""Pixels from the upper to the lower edge of the field; the width is the reader's."""

CEILING_NAMED = 2
"""The point of the ceiling, from 0, above which it is named: no line runs there."""

SHARES = Axis(0.0, 1.0, 0.2)


class LineLook(NamedTuple):
    """How a line is told apart: by turns, and the baseline's by the colour of the text, which no other has."""

    number: int
    cell: str
    baseline: bool
    colour: str
    dash: str
    mark: int


class Ceiling(NamedTuple):
    """What no ranking exceeds, at every rank of the curves, by the number of documents that are relevant.

    `crowded` queries have more than ten of them, and `barren` queries none, which score 0 whatever is retrieved. There
    is no point where nothing is listed.
    """

    points: Sequence[RecallPoint]
    at_10: float
    queries: int
    crowded: int
    barren: int


class CurveLine(NamedTuple):
    """One cell's line; its number stands `label` pixels from above, led from the mark at `end`, `pixel` from above."""

    look: LineLook
    marks: Sequence[Point]
    end: Point
    pixel: float
    label: float


class CurvePanel(NamedTuple):
    """One drawing: ticks, lines, the range of the baseline's interval and the ceiling."""

    name: str
    across: Sequence[Tick]
    up: Sequence[Tick]
    lines: Sequence[CurveLine]
    band: str
    ceiling: Sequence[Point]
    ceiling_named: Sequence[Point]


class RecallPlot(NamedTuple):
    """Lines by cell in the order of the ranking, in per cent of a field whose ordinate runs from 0 to 1 upwards.

    Both abscissas are logarithmic. `panels` has no entry for tokens if no cell has a reading list; `unread` are the
    cells without one. The ceiling is what the best possible ranking has, and holds for ranks alone.
    """

    marks: Sequence[str]
    looks: Sequence[LineLook]
    panels: Sequence[CurvePanel]
    ceiling: Ceiling
    unread: Sequence[str]


Curve = tuple[LineLook, Sequence[RecallPoint]]


def recall_plot(results: Results) -> RecallPlot:
    """The drawings of #recall."""
    cells, ceiling = results.cells, _ceiling(results)
    looks = [_look(turn, row.cell, results.plan.baseline) for turn, row in enumerate(cells)]
    by_rank = [(drawn, row.curve.by_rank) for drawn, row in zip(looks, cells, strict=True)]
    by_tokens = [(drawn, row.curve.by_tokens or []) for drawn, row in zip(looks, cells, strict=True)]
    panels = [_panel("rank", by_rank, ceiling.points, 0), _panel("tokens", by_tokens, [], -1)]
    return RecallPlot(
        marks=MARKS,
        looks=looks,
        panels=[panel for panel in panels if panel is not None],
        ceiling=ceiling,
        unread=[drawn.cell for drawn, points in by_tokens if not points],
    )


def _look(turn: int, cell: str, baseline: str) -> LineLook:
    is_baseline, (colour, dash, mark) = cell == baseline, look(turn)
    return LineLook(
        turn + 1, cell, is_baseline, "currentColor" if is_baseline else colour, "none" if is_baseline else dash, mark
    )


def _ceiling(results: Results) -> Ceiling:
    relevant = [query.relevant for query in results.lists.queries]
    ranks = [point.at for row in results.cells[:1] for point in row.curve.by_rank if relevant]
    return Ceiling(
        points=[
            RecallPoint(at=rank, mean=best, low=best, high=best)
            for rank in ranks
            for best in (_best_recall(relevant, rank),)
        ],
        at_10=_best_recall(relevant, 10),
        queries=len(relevant),
        crowded=sum(count > 10 for count in relevant),
        barren=sum(not count for count in relevant),
    )


def _best_recall(relevant: Sequence[int], rank: int) -> float:
    """The mean over queries of the greatest possible Recall at this rank; 0 without queries."""
    return sum(min(rank, count) / count for count in relevant if count) / max(len(relevant), 1)


def _panel(name: str, curves: Sequence[Curve], ceiling: Sequence[RecallPoint], numbered: int) -> CurvePanel | None:
    """One drawing, None without any points.

    `numbered` is the mark beside which a line's number stands: the first by rank, since many lines end in 1.
    """
    drawn = [(one, points) for one, points in curves if points]
    ats = sorted({point.at for _, points in drawn for point in points})
    if not ats:
        return None
    axis = log_axis(ats)
    marks = [_marks(points, axis) for _, points in drawn]
    pixels = [round(places[numbered].y / 100 * HEIGHT, 1) for places in marks]
    return CurvePanel(
        name=name,
        across=[Tick(axis.at(at), at, str(at)) for at in ats],
        up=[tick._replace(at=SHARES.up(tick.value)) for tick in SHARES.ticks],
        lines=[
            CurveLine(one, places, places[numbered], pixel, label)
            for (one, _), places, pixel, label in zip(drawn, marks, pixels, label_places(pixels, HEIGHT), strict=True)
        ],
        band=next((_band(points, axis) for one, points in drawn if one.baseline), ""),
        ceiling=_marks(ceiling, axis),
        ceiling_named=_marks(ceiling[: CEILING_NAMED + 1], axis)[-1:],
    )


def _marks(points: Sequence[RecallPoint], axis: LogAxis) -> list[Point]:
    return [Point(axis.at(point.at), SHARES.up(point.mean)) for point in points]


def _band(points: Sequence[RecallPoint], axis: LogAxis) -> str:
    """The corners of the range from every point's lower to its upper bound."""
    lower = [(axis.at(point.at), SHARES.up(point.low)) for point in points]
    upper = [(axis.at(point.at), SHARES.up(point.high)) for point in points]
    return " ".join(f"{x:g},{y:g}" for x, y in [*lower, *reversed(upper)])
