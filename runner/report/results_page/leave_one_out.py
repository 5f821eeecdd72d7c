"""What any single query does to a difference and to the candidates: wins, ties and losses, and each query left out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.base.figures import round4
from runner.base.records import SCORE_UNIT
from runner.decide.tiers import interval_of, meets_criterion_5
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.plan import Rule
from runner.eval_set.shapes.results import CellResult, Results
from runner.report.chart import Axis, Bar, Label, axis_over
from runner.report.results_page.challenger import Tested, tested, told

MOST_NAMED = 3
"""Queries that a sentence names; it counts the others."""


class Paired(NamedTuple):
    """A cell less the baseline by query, in units of 1e-9."""

    gains: Sequence[int]
    changes: Sequence[int]

    def means(self) -> tuple[float, float]:
        """Of nDCG@10 and of Recall@10 over all queries."""
        count = len(self.gains) * SCORE_UNIT
        return sum(self.gains) / count, sum(self.changes) / count

    def without(self) -> list[tuple[float, float]]:
        """The means with one query left out, in the order of the queries; none of a single query."""
        count, gain, change = (len(self.gains) - 1) * SCORE_UNIT, sum(self.gains), sum(self.changes)
        if not count:
            return []
        return [((gain - a) / count, (change - b) / count) for a, b in zip(self.gains, self.changes, strict=True)]

    def moves(self) -> list[int]:
        """How far leaving out each query moves the mean of nDCG@10, exactly, in a unit of its own."""
        return [abs(len(self.gains) * each - sum(self.gains)) for each in self.gains]


class Part(NamedTuple):
    """A cell's wins, ties or losses, and where they begin and end, in per cent of the strip."""

    name: str
    queries: int
    left: float
    right: float
    width: float


class Turn(NamedTuple):
    """A query without which a cell is something else, and what the cell gains then; Recall@10 only if it counts."""

    query: str
    gain: str
    recall: str | None


class LeftOutRow(NamedTuple):
    """A tested cell; `number` is its place in the ranking, the baseline counted.

    `dots` are the distinct means that leaving out one query gives, `least` and `greatest` of them as text. `turns` are
    the queries without which criterion 5 says otherwise of the cell than `verdict`, or where nothing is decided its
    sign, the most telling first, and `more` counts those that are not named. `influential` is the query whose absence
    moves the mean most, and where the mean then stands.
    """

    number: int
    cell: str
    parts: Sequence[Part]
    counts: Difference
    at: float
    dots: Sequence[float]
    least: str
    greatest: str
    influential: Label | None
    verdict: str
    turns: Sequence[Turn]
    more: int


class Change(NamedTuple):
    """A query without which other cells are candidates: which are so then too, and which no longer."""

    query: str
    gained: Sequence[str]
    lost: Sequence[str]


class LeftOut(NamedTuple):
    """A row for every tested cell, best first; p-values are those of all queries: nothing is tested again."""

    axis: Axis
    asked: Bar | None
    rows: Sequence[LeftOutRow]
    changes: Sequence[Change]


def left_out(results: Results) -> LeftOut:
    """The strips of #tests, with places in per cent of their width."""
    base = next((row for row in results.cells if row.test is None), None)
    ones = tested(results) if base else []
    paired = {one.row.cell: _paired(one.row, base) for one in ones if base}
    without = {cell: each.without() for cell, each in paired.items()}
    rule = None if results.kind == "external" else results.plan.rule
    means = [gain for each in without.values() for gain, _ in each] + [each.means()[0] for each in paired.values()]
    axis = axis_over(means, include=(0.0, *([rule.min_gain] if rule else [])))
    ids = [query.id for query in results.queries]
    numbers = {row.cell: number for number, row in enumerate(results.cells, start=1)}
    return LeftOut(
        axis=axis,
        asked=axis.bar(rule.min_gain) if rule else None,
        rows=[_row(numbers[one.row.cell], one, paired[one.row.cell], ids, axis, rule) for one in ones],
        changes=_changes(paired, without, ids, rule) if rule else [],
    )


def _paired(row: CellResult, base: CellResult) -> Paired:
    def less(measure: str) -> list[int]:
        own, other = (each.scores[measure].per_query for each in (row, base))
        return [a - b for a, b in zip(own, other, strict=True)]

    return Paired(less("ndcg@10"), less("recall@10"))


def _parts(counts: Difference) -> list[Part]:
    """Wins, ties and losses from left to right."""
    found = {"wins": counts.wins, "ties": counts.ties, "losses": counts.losses}
    total = sum(found.values()) or 1
    parts, before = [], 0
    for name, count in found.items():
        left, right = (round(100 * each / total, 2) for each in (before, before + count))
        parts.append(Part(name, count, left, right, round(right - left, 2)))
        before += count
    return parts


def _row(number: int, one: Tested, paired: Paired, ids: Sequence[str], axis: Axis, rule: Rule | None) -> LeftOutRow:
    """Where the means stand, and what leaving out one query turns; `rule` is None if nothing is decided."""
    (gain, change), without = paired.means(), paired.without()
    gains, moves = [each for each, _ in without] or [gain], paired.moves()
    verdict = _says(gain, change, rule)
    turning = [place for place, means in enumerate(without) if _says(*means, rule) != verdict]
    turning.sort(key=lambda place: (-moves[place], place))
    bar, (low, high) = rule.min_gain if rule else 0.0, interval_of(one.test)
    first = moves.index(max(moves)) if without else None
    counts = one.row.differences["ndcg@10"]
    return LeftOutRow(
        number=number,
        cell=one.row.cell,
        parts=_parts(counts),
        counts=counts,
        at=axis.at(gain),
        dots=sorted({axis.at(each) for each in gains}) if without else [],
        least=told(min(gains), bar, low, high),
        greatest=told(max(gains), bar, low, high),
        influential=None if first is None else Label(axis.at(without[first][0]), ids[first]),
        verdict=verdict,
        turns=[_turn(ids[place], without[place], one, rule) for place in turning[:MOST_NAMED]],
        more=len(turning[MOST_NAMED:]),
    )


def _turn(query: str, without: tuple[float, float], one: Tested, rule: Rule | None) -> Turn:
    gain, change = without
    ends, bound = interval_of(one.test), one.bound
    if rule is None:
        return Turn(query, told(gain, 0.0, *ends), None)
    return Turn(query, told(gain, rule.min_gain, *ends), told(change, -rule.max_recall_loss, bound.low, bound.high))


def _says(gain: float, change: float, rule: Rule | None) -> str:
    """What the mean differences make of a cell: a candidate or none, or a sign if there is no rule."""
    if rule is not None:
        return "candidate" if meets_criterion_5(gain, change, rule) else "no candidate"
    return "above" if round4(gain) > 0 else "below" if round4(gain) < 0 else "level"


def _changes(
    paired: Mapping[str, Paired],
    without: Mapping[str, Sequence[tuple[float, float]]],
    ids: Sequence[str],
    rule: Rule,
) -> list[Change]:
    """Every query without which criterion 5 flags other cells, with those that it then flags too or no longer."""
    now = {cell for cell, each in paired.items() if meets_criterion_5(*each.means(), rule)}
    found = []
    for place, query in enumerate(ids):
        then = {cell for cell, means in without.items() if means and meets_criterion_5(*means[place], rule)}
        if any(without.values()) and then != now:
            order = [cell for cell in paired if cell in then ^ now]
            gained = [cell for cell in order if cell in then]
            found.append(Change(query, gained, [cell for cell in order if cell in now]))
    return found
