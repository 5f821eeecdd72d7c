"""Where the curves of #recall run: Recall by rank, and relevant documents met by tokens read."""

import math
from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.report.chart import Axis, apart
from runner.report.scale_plot import COLOURS, DASHES, MARKS

HEIGHT = 300
"""Pixels from the upper to the lower edge of the field; the width is the reader's."""

LABEL_GAP = 14
"""Pixels from the number of one line to the next."""

CEILING_NAMED = 2
"""The point of the ceiling, from 0, above which it is named: no line runs there."""

SHARES = Axis(0.0, 1.0, 0.2)


def recall_plot(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """Lines by cell in the order of the ranking, in per cent of a field whose ordinate runs from 0 to 1 upwards.

    Both abscissas are logarithmic. `panels` has no entry for tokens where no cell has a reading list; `unread` are the
    cells without one. The ceiling is what the best possible ranking has, and holds for ranks alone.
    """
    cells = results["cells"]
    looks = [_look(number, row["cell"], results["plan"]["baseline"]) for number, row in enumerate(cells, start=1)]
    ceiling = _ceiling(results)
    by_rank = [(look, row["curve"]["by_rank"]) for look, row in zip(looks, cells, strict=True)]
    by_tokens = [(look, row["curve"]["by_tokens"]) for look, row in zip(looks, cells, strict=True)]
    panels = [_panel("rank", by_rank, ceiling["points"], 0), _panel("tokens", by_tokens, [], -1)]
    return {
        "height": HEIGHT,
        "marks": list(MARKS),
        "looks": looks,
        "panels": [panel for panel in panels if panel["lines"]],
        "ceiling": ceiling,
        "unread": [look["cell"] for look, points in by_tokens if not points],
    }


def _look(number: int, cell: str, baseline: str) -> dict[str, JSON]:
    """How a line is told apart: by turns, and the baseline's by the colour of the text, which no other has."""
    turn, is_baseline = number - 1, cell == baseline
    return {
        "number": number,
        "cell": cell,
        "baseline": is_baseline,
        "colour": "currentColor" if is_baseline else COLOURS[turn % len(COLOURS)],
        "dash": "none" if is_baseline else DASHES[turn % len(DASHES)],
        "mark": turn % len(MARKS),
    }


def _ceiling(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """What no ranking exceeds, at every rank of the curves, by the number of documents that are relevant.

    `crowded` queries have more than ten of them, and `barren` queries none, which score 0 whatever is retrieved. There
    is no point where nothing is listed.
    """
    relevant = [query["relevant"] for query in results["lists"]["queries"]]
    ranks = [point["at"] for row in results["cells"][:1] for point in row["curve"]["by_rank"] if relevant]
    points = [{"at": rank, "mean": _best_recall(relevant, rank)} for rank in ranks]
    return {
        "points": points,
        "at_10": _best_recall(relevant, 10),
        "queries": len(relevant),
        "crowded": sum(count > 10 for count in relevant),
        "barren": sum(not count for count in relevant),
    }


def _best_recall(relevant: Sequence[int], rank: int) -> float:
    """The mean over queries of the greatest possible Recall at this rank; 0 without queries."""
    return sum(min(rank, count) / count for count in relevant if count) / max(len(relevant), 1)


def _panel(
    name: str,
    curves: Sequence[tuple[Mapping[str, JSON], Sequence[JSON] | None]],
    ceiling: Sequence[JSON],
    numbered: int,
) -> dict[str, JSON]:
    """One drawing: ticks, lines, the range of the baseline's interval and the ceiling; no line without points.

    `numbered` is the mark beside which a line's number stands: the first by rank, since many lines end in 1.
    """
    drawn = [(look, points) for look, points in curves if points]
    ats = sorted({point["at"] for _, points in drawn for point in points})
    axis = Axis(math.log(ats[0]), math.log(ats[-1]), 1.0) if len(ats) > 1 else Axis(0.0, 1.0, 1.0)
    lines = [_line(look, points, axis, numbered) for look, points in drawn]
    places = _label_places(lines)
    return {
        "name": name,
        "across": [{"at": axis.at(math.log(at)), "value": at} for at in ats],
        "up": [{"at": _up(tick.value), "text": tick.text} for tick in SHARES.ticks],
        "lines": [{**line, "label": place} for line, place in zip(lines, places, strict=True)],
        "band": next((_band(points, axis) for look, points in drawn if look["baseline"]), ""),
        "ceiling": _marks(ceiling, axis),
        "ceiling_named": _marks(ceiling[: CEILING_NAMED + 1], axis)[-1:],
    }


def _line(look: Mapping[str, JSON], points: Sequence[JSON], axis: Axis, numbered: int) -> dict[str, JSON]:
    marks = _marks(points, axis)
    return {**look, "marks": marks, "end": marks[numbered] | {"pixel": round(marks[numbered]["y"] / 100 * HEIGHT, 1)}}


def _marks(points: Sequence[JSON], axis: Axis) -> list[dict[str, JSON]]:
    return [{"x": axis.at(math.log(point["at"])), "y": _up(point["mean"])} for point in points]


def _band(points: Sequence[JSON], axis: Axis) -> str:
    """The corners of the range from every point's lower to its upper bound."""
    lower = [(axis.at(math.log(point["at"])), _up(point["low"])) for point in points]
    upper = [(axis.at(math.log(point["at"])), _up(point["high"])) for point in points]
    return " ".join(f"{x:g},{y:g}" for x, y in [*lower, *reversed(upper)])


def _label_places(lines: Sequence[Mapping[str, JSON]]) -> list[float]:
    """Pixels from the upper edge for the number of every line, near its numbered mark and apart from the others."""
    ordered = sorted(lines, key=lambda line: (line["end"]["pixel"], line["number"]))
    places = apart([line["end"]["pixel"] for line in ordered], lambda one, two: LABEL_GAP * (two - one), 0.0, HEIGHT)
    placed = {line["number"]: round(place, 1) for line, place in zip(ordered, places, strict=True)}
    return [placed[line["number"]] for line in lines]


def _up(share: float) -> float:
    return round(100 - SHARES.at(share), 2)
