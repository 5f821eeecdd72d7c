"""Where the curves of #recall run: Recall by rank, and relevant documents met by tokens read."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.eval_set.shapes.lists import RecallPoint
from runner.eval_set.shapes.results import Results
from runner.report.chart import Axis, LogAxis, Point, Tick, label_places, log_axis
from runner.report.results_page.challenger import challenger

HEIGHT = 300
"""Pixels from the upper to the lower edge of the field; the width is the reader's."""

CEILING_NAMED = 2
"""The point of the ceiling, from 0, above which it is named: no line runs there."""

SHARES = Axis(0.0, 1.0, 0.2)


class LineLook(NamedTuple):
    """How a line is drawn: `look` is "base", "win" for the cell that the verdict is about, or "other"."""

    cell: str
    look: str


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
    """One cell's line; the name of one that stands out is `label` pixels from above, led from the mark at `end`."""

    look: LineLook
    marks: Sequence[Point]
    end: Point
    pixel: float
    label: float | None


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

    looks: Sequence[LineLook]
    panels: Sequence[CurvePanel]
    ceiling: Ceiling
    unread: Sequence[str]


Curve = tuple[LineLook, Sequence[RecallPoint]]


def recall_plot(results: Results) -> RecallPlot:
    """The drawings of #recall."""
    cells, ceiling = results.cells, _ceiling(results)
    told = challenger(results)
    of = {results.plan.baseline: "base"} | ({told.cell: "win"} if told else {})
    looks = [LineLook(row.cell, of.get(row.cell, "other")) for row in cells]
    by_rank = [(drawn, row.curve.by_rank) for drawn, row in zip(looks, cells, strict=True)]
    by_tokens = [(drawn, row.curve.by_tokens or []) for drawn, row in zip(looks, cells, strict=True)]
    panels = [_panel("rank", by_rank, ceiling.points), _panel("tokens", by_tokens, [])]
    return RecallPlot(
        looks=looks,
        panels=[panel for panel in panels if panel is not None],
        ceiling=ceiling,
        unread=[drawn.cell for drawn, points in by_tokens if not points],
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


def _panel(name: str, curves: Sequence[Curve], ceiling: Sequence[RecallPoint]) -> CurvePanel | None:
    """One drawing, None without any points; lines that stand out are drawn last, above the others."""
    drawn = sorted(((one, points) for one, points in curves if points), key=lambda each: each[0].look != "other")
    ats = sorted({point.at for _, points in drawn for point in points})
    if not ats:
        return None
    axis = log_axis(ats)
    marks = [_marks(points, axis) for _, points in drawn]
    pixels = [round(places[-1].y / 100 * HEIGHT, 1) for places in marks]
    named = [place for place, (one, _) in enumerate(drawn) if one.look != "other"]
    label_of = dict(zip(named, label_places([pixels[place] for place in named], HEIGHT), strict=True))
    return CurvePanel(
        name=name,
        across=[Tick(axis.at(at), at, str(at)) for at in ats],
        up=[tick._replace(at=SHARES.up(tick.value)) for tick in SHARES.ticks],
        lines=[
            CurveLine(one, places, places[-1], pixels[place], label_of.get(place))
            for place, ((one, _), places) in enumerate(zip(drawn, marks, strict=True))
        ],
        band=next((_band(points, axis) for one, points in drawn if one.look == "base"), ""),
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
