"""Where the marks of #cost stand: nDCG@10 against what an index weighs and what embedding took."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from runner.base.figures import round4
from runner.eval_set.shapes.cell import Provenance
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.paired import MeasureResult
from runner.eval_set.shapes.results import Results
from runner.report.chart import Axis, Tick, axis_over, cost_axis, duration, weight
from runner.report.results_page.challenger import challenger

HEIGHT = 260
"""Pixels from the upper to the lower edge of a field; the width is the reader's."""

NARROW = 240
"""Pixels of the narrowest field that a reader sees: marks apart there are so in any wider one."""

MARK, WHISKER, HAIR = 20, 12, 2
"""Pixels that keep a mark clear of other marks, and of other whiskers; HAIR where many whiskers have one cost."""

FAR = 45
"""Pixels by which a mark may stand beside its cost at most."""

CLOSER = (1.0, 0.9, 0.8, 0.7, 0.6)
"""Shares of the distances that are left, by turns, where many cells have nearly one cost."""


class Cost(NamedTuple):
    """What a cell costs in one unit, `value` None if that is not known, for the reason in `why`."""

    value: float | None
    why: str = ""


class CostMark(NamedTuple):
    """A cell at its cost: where its mark and the ends of its whisker stand, in per cent from the left and from above.

    `shift` are the pixels by which it stands right of its cost; `front` says whether no other cell beats it.
    """

    number: int
    cell: str
    baseline: bool
    score: MeasureResult
    cost: float
    text: str
    x: float
    y: float
    top: float
    bottom: float
    front: bool
    shift: float = 0.0


class CostRow(NamedTuple):
    """A cell with its mark, or why it has none."""

    cell: str
    why: str
    mark: CostMark | None


class CostPanel(NamedTuple):
    """One drawing; its `rows` are all cells, in the ranking's order. `zero` says whether some cell costs nothing."""

    name: str
    across: Sequence[Tick]
    up: Sequence[Tick]
    marks: Sequence[CostMark]
    zero: bool
    stairs: str
    overlapping: int
    rows: Sequence[CostRow]


class CostPlot(NamedTuple):
    """A panel for each kind of cost that was measured for some cell.

    A cell is on the front if no other costs as little and scores as much, and one of both strictly better; nDCG@10
    counts at the four places that the page shows.
    `told` is the cell that the verdict is about, "" without one; `spent` is all that was paid for, None if nothing is
    metered.
    """

    panels: Sequence[CostPanel]
    spent: float | None
    told: str


def cost_plot(results: Results, receipt: Receipt | None) -> CostPlot:
    """The drawings of #cost."""
    documents = results.corpus.documents
    measured = {} if receipt is None else receipt.cells
    index = [_index_cost(measured.get(row.cell, {}), documents) for row in results.cells]
    seconds = [_embedding_cost(measured.get(row.cell, {}), row.provenance) for row in results.cells]
    panels = [_panel("index", results, index, weight), _panel("seconds", results, seconds, duration)]
    told = challenger(results)
    spend = None if receipt is None else receipt.spend
    return CostPlot(
        panels=[panel for panel in panels if panel is not None],
        spent=None if spend is None else spend.usd,
        told=told.cell if told else "",
    )


def front(costs: Sequence[float], scores: Sequence[float]) -> list[bool]:
    """Whether each pair of a cost and a score is undominated; equal pairs are so together."""
    pairs = list(zip(costs, scores, strict=True))
    return [not any(other[0] <= pair[0] and other[1] >= pair[1] and other != pair for other in pairs) for pair in pairs]


def _index_cost(measured: Mapping[str, float], documents: int) -> Cost:
    size = measured.get("index_bytes")
    return Cost(None, "not measured") if size is None or not documents else Cost(size / documents)


def _embedding_cost(measured: Mapping[str, float], provenance: Provenance) -> Cost:
    """Seconds of a cell's encoder; a cell without one takes none; of vectors that were there already none is known."""
    if provenance.imported is not None:
        return Cost(None, "imported as a finished run")
    if provenance.encoder is None:
        return Cost(0.0)
    seconds = measured.get("embed_seconds")
    return Cost(None, "not measured") if seconds is None else Cost(seconds)


def _panel(name: str, results: Results, costs: Sequence[Cost], text: Callable[[float], str]) -> CostPanel | None:
    """One drawing, None if no cell costs anything that is known."""
    values = [cost.value for cost in costs if cost.value is not None]
    if not any(values):
        return None
    known = {place: cost.value for place, cost in enumerate(costs) if cost.value is not None}
    scores = [results.cells[place].scores["ndcg@10"] for place in known]
    across, up = cost_axis(values), _scores(scores)
    best = front(values, [round4(score.mean) for score in scores])
    marks = _shifted(
        [
            CostMark(
                number=place + 1,
                cell=results.cells[place].cell,
                baseline=results.cells[place].cell == results.plan.baseline,
                score=score,
                cost=value,
                text=text(value),
                x=across.at(value),
                y=up.up(score.mean),
                top=up.up(score.high),
                bottom=up.up(score.low),
                front=is_best,
            )
            for (place, value), score, is_best in zip(known.items(), scores, best, strict=True)
        ]
    )
    drawn = {mark.number: mark for mark in marks}
    return CostPanel(
        name=name,
        across=[Tick(across.at(tick), tick, text(tick)) for tick in across.values],
        up=[tick._replace(at=round(100 - tick.at, 2)) for tick in up.ticks],
        marks=marks,
        zero=not all(values),
        stairs=_stairs([mark for mark in marks if mark.front]),
        overlapping=_overlapping(marks),
        rows=[
            CostRow(row.cell, cost.why, drawn.get(number))
            for number, (row, cost) in enumerate(zip(results.cells, costs, strict=True), start=1)
        ],
    )


def _scores(scores: Sequence[MeasureResult]) -> Axis:
    """An axis over all intervals; from 0 to 1 where they are one point."""
    ends = [end for score in scores for end in (score.low, score.high)]
    return axis_over(ends, include=() if min(ends) < max(ends) else (0.0, 1.0))


def _shifted(marks: Sequence[CostMark]) -> list[CostMark]:
    """Every mark with the pixels, FAR at most, by which it stands right of its cost, so that none covers another.

    The front stands first. Where that would move some mark by more than FAR, they stand closer, then their whiskers do;
    where even that is too far, all shifts shrink by one factor and marks overlap.
    """
    ordered = sorted(marks, key=lambda mark: (mark.x, not mark.front, mark.number))
    for whisker, share in product((WHISKER, HAIR), CLOSER):
        shifts = _packed(ordered, share * MARK, share * whisker)
        if max(shifts) <= FAR:
            break
    shrunk = min(1.0, FAR / max(FAR, *shifts))
    shift_of = {mark.number: round(shrunk * shift, 1) for mark, shift in zip(ordered, shifts, strict=True)}
    return [mark._replace(shift=shift_of[mark.number]) for mark in marks]


def _packed(marks: Sequence[CostMark], apart: float, whiskers: float) -> list[float]:
    """The least shifts, one mark after the other, with which none touches an earlier one in a field of NARROW pixels.

    A mark stands right of all cheaper ones that it would touch, so that none comes to cover another in a wider field.
    """
    places: list[float] = []
    for mark in marks:
        before = [
            (other, place, _gap(other, mark, apart, whiskers)) for other, place in zip(marks, places, strict=False)
        ]
        least = max([_true(mark), *(place + gap for other, place, gap in before if gap and other.x < mark.x)])
        free = sorted([least, *(place + gap for _, place, gap in before if gap and place + gap > least)])
        places.append(next(at for at in free if all(abs(at - place) >= gap - 1e-9 for _, place, gap in before if gap)))
    return [place - _true(mark) for place, mark in zip(places, marks, strict=True)]


def _true(mark: CostMark) -> float:
    """Pixels from the left where a mark's cost is, in a field of NARROW pixels."""
    return mark.x / 100 * NARROW


def _gap(one: CostMark, two: CostMark, apart: float, whiskers: float) -> float:
    """Pixels across that keep two marks clear of each other; 0 if neither they nor their whiskers would touch."""
    if abs(one.y - two.y) / 100 * HEIGHT < apart:
        return apart
    return whiskers if one.top <= two.bottom and two.top <= one.bottom else 0.0


def _stairs(marks: Sequence[CostMark]) -> str:
    """The corners of the front, at true costs: from the cheapest along to the next cost, then up, and so on."""
    ordered = sorted({(mark.x, mark.y) for mark in marks})
    corners = [f"{x:g},{y:g}" for x, y in ordered[:1]]
    for (_, before), (x, y) in pairwise(ordered):
        corners += [f"{x:g},{before:g}", f"{x:g},{y:g}"]
    return " ".join(corners)


def _overlapping(marks: Sequence[CostMark]) -> int:
    """How many cells off the front have an interval that overlaps that of every cell on it that stands above them."""
    best = [mark for mark in marks if mark.front]
    return sum(
        all(
            mark.score.high >= other.score.low
            for other in best
            if other.cost <= mark.cost and other.score.mean >= mark.score.mean
        )
        for mark in marks
        if not mark.front
    )
