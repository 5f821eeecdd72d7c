"""Where the lines of the distractor chart run; the template draws them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from runner.eval_set.shapes.scale import ScaleCell, ScaleResult
from runner.report.chart import MARKS, Axis, LogAxis, Point, Tick, label_places, log_axis, look

WIDTH, HEIGHT = 640, 360

LEFT, RIGHT, TOP, BOTTOM = 48, 584, 16, 308


class ScaleLine(NamedTuple):
    """A cell's line; `points` are its marks as a polyline has them."""

    number: int
    cell: str
    marks: Sequence[Point]
    points: str
    label_y: float
    colour: str
    dash: str
    mark: str


class ScalePlot(NamedTuple):
    """Lines, ticks and labels in the coordinates of a drawing, at one place."""

    lines: Sequence[ScaleLine]
    across: Sequence[Tick]
    up: Sequence[Tick]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    bottom: int = BOTTOM


def scale_plot(scale: ScaleResult) -> ScalePlot:
    """The drawing: across the logarithm of the factor, upwards from 0 to the next tenth above the highest mean.

    Labels stand at the lines' right ends, moved apart where they would touch.
    """
    across = log_axis([row.factor for row in scale.factors], LEFT, RIGHT, 1)
    top = max(math.ceil(10 * max(point.mean for cell in scale.cells for point in cell.points)), 1)
    up = Axis(0.0, top / 10, 0.1, BOTTOM, TOP, 1)
    marks = [_marks(cell, across, up) for cell in scale.cells]
    labels = label_places([of_cell[-1].y for of_cell in marks], BOTTOM, TOP, centred=False)
    return ScalePlot(
        lines=[
            _line(turn, cell.cell, of_cell, label)
            for turn, (cell, of_cell, label) in enumerate(zip(scale.cells, marks, labels, strict=True))
        ],
        across=[Tick(across.at(factor), factor, f"{factor:g}") for factor in across.values],
        up=[Tick(up.at(tenth / 10), tenth / 10, f"{tenth / 10:.1f}") for tenth in range(top + 1)],
    )


def _marks(cell: ScaleCell, across: LogAxis, up: Axis) -> list[Point]:
    return [Point(across.at(point.factor), up.at(point.mean)) for point in cell.points]


def _line(turn: int, cell: str, marks: Sequence[Point], label_y: float) -> ScaleLine:
    drawn = look(turn)
    points = " ".join(f"{mark.x},{mark.y}" for mark in marks)
    return ScaleLine(turn + 1, cell, marks, points, label_y, drawn.colour, drawn.dash, MARKS[drawn.mark])
