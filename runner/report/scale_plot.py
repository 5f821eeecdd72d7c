"""Where the lines of the distractor chart run; the template draws them."""

import math
from collections.abc import Mapping
from itertools import pairwise

from runner.base.canonical import JSON

WIDTH, HEIGHT = 640, 360

LEFT, RIGHT, TOP, BOTTOM = 48, 584, 16, 308

LABEL_GAP = 14

COLOURS = ("#2a7fc0", "#c8551b", "#2a8f5b", "#b0478f", "#94761a", "#7a6fd0")

DASHES = ("none", "7 3", "2 3")

MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.5 -3.5h7v7h-7z",
    "M0 -4.5l4.5 8h-9z",
    "M0 -5l5 5l-5 5l-5 -5z",
    "M-4.5 -2.5h9l-4.5 7z",
)
"""Colours, dashes and marks by turns: 30 cells look different, also without colours."""


def chart(scale: Mapping[str, JSON]) -> dict[str, JSON]:
    """Lines, ticks and labels in the coordinates of a WIDTH x HEIGHT drawing, at one place, from a ScaleResult as JSON.

    The abscissa is the logarithm of the factor; the ordinate runs from 0 to the next tenth above the highest mean.
    Labels stand at the lines' right ends, moved apart where they would touch.
    """
    factors = [row["factor"] for row in scale["factors"]]
    top = max(math.ceil(10 * max(p["mean"] for cell in scale["cells"] for p in cell["points"])), 1)
    lines = [_line(number, cell, factors, top) for number, cell in enumerate(scale["cells"], start=1)]
    _spread(lines)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
        "lines": lines,
        "across": [{"x": _x(factor, factors), "text": f"{factor:g}"} for factor in factors],
        "up": [{"y": _y(tenth / 10, top), "text": f"{tenth / 10:.1f}"} for tenth in range(top + 1)],
    }


def _line(number: int, cell: Mapping[str, JSON], factors: list[float], top: int) -> dict[str, JSON]:
    marks = [{"x": _x(p["factor"], factors), "y": _y(p["mean"], top)} for p in cell["points"]]
    look = number - 1
    return {
        "number": number,
        "cell": cell["cell"],
        "marks": marks,
        "points": " ".join(f"{mark['x']},{mark['y']}" for mark in marks),
        "label_y": marks[-1]["y"],
        "colour": COLOURS[look % len(COLOURS)],
        "dash": DASHES[look % len(DASHES)],
        "mark": MARKS[look % len(MARKS)],
    }


def _spread(lines: list[dict[str, JSON]]) -> None:
    """Moves labels apart, to LABEL_GAP where there is room, none below BOTTOM."""
    gap = min(LABEL_GAP, (BOTTOM - TOP) / max(len(lines) - 1, 1))
    ordered = sorted(lines, key=lambda line: (line["label_y"], line["number"]))
    for upper, lower in pairwise(ordered):
        lower["label_y"] = round(max(lower["label_y"], upper["label_y"] + gap), 1)
    ordered[-1]["label_y"] = min(ordered[-1]["label_y"], BOTTOM)
    for lower, upper in pairwise(reversed(ordered)):
        upper["label_y"] = round(min(upper["label_y"], lower["label_y"] - gap), 1)


def _x(factor: float, factors: list[float]) -> float:
    first, last = math.log(factors[0]), math.log(factors[-1])
    return round(LEFT + (math.log(factor) - first) / (last - first) * (RIGHT - LEFT), 1)


def _y(value: float, top: int) -> float:
    return round(BOTTOM - value / (top / 10) * (BOTTOM - TOP), 1)
