"""What any single query does to a difference and to the candidates: wins, ties and losses, and each query left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.base.canonical import JSON
from runner.base.figures import round4
from runner.base.records import SCORE_UNIT
from runner.decide.tiers import meets_criterion_5
from runner.eval_set.shapes.plan import Rule
from runner.report.chart import Axis, axis_over
from runner.report.results_page.challenger import interval_of, told

MOST_NAMED = 3
"""Queries that a sentence names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Paired:
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


def left_out(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """A row for every tested cell, best first, with places in per cent of two strips' widths.

    `number` is a row's place in the ranking, the baseline counted. Its `dots` are the distinct means that leaving out
    one query gives; `turns` are the queries without which criterion 5 says otherwise of the cell, or where nothing is
    decided its sign, the most telling first. `changes` has the queries without which other cells are candidates.
    p-values are those of all queries: nothing is tested again.
    """
    numbers = {row["cell"]: number for number, row in enumerate(results["cells"], start=1)}
    rows = [row for row in results["cells"] if row["test"] is not None]
    ids, rule = [query["id"] for query in results["queries"]], Rule.model_validate(results["plan"]["rule"])
    decides = results["kind"] != "external"
    paired = {row["cell"]: _paired(row, results) for row in rows}
    without = {cell: each.without() for cell, each in paired.items()}
    means = [gain for each in without.values() for gain, _ in each] + [each.means()[0] for each in paired.values()]
    axis = axis_over(means, include=(0.0, *([rule.min_gain] if decides else [])))
    return {
        "zero": axis.at(0.0),
        "asked": {"at": axis.at(rule.min_gain), "value": rule.min_gain} if decides else None,
        "ticks": [{"at": tick.at, "value": tick.value, "text": tick.text} for tick in axis.ticks],
        "rows": [
            {"number": numbers[row["cell"]]}
            | _wins(row)
            | _row(row, paired[row["cell"]], ids, axis, rule if decides else None)
            for row in rows
        ],
        "changes": _changes(paired, without, ids, rule) if decides else [],
    }


def _paired(row: Mapping[str, JSON], results: Mapping[str, JSON]) -> Paired:
    base = next(each for each in results["cells"] if each["test"] is None)

    def less(measure: str) -> list[int]:
        own, other = (each["scores"][measure]["per_query"] for each in (row, base))
        return [a - b for a, b in zip(own, other, strict=True)]

    return Paired(less("ndcg@10"), less("recall@10"))


def _wins(row: Mapping[str, JSON]) -> dict[str, JSON]:
    """Wins, ties and losses from left to right, each with the place where it begins, in per cent of the strip."""
    counts = {name: row["differences"]["ndcg@10"][name] for name in ("wins", "ties", "losses")}
    total = sum(counts.values()) or 1
    parts, before = [], 0
    for name, count in counts.items():
        start, end = (round(100 * each / total, 2) for each in (before, before + count))
        parts.append({"name": name, "count": count, "from": start, "to": end, "width": round(end - start, 2)})
        before += count
    return {"cell": row["cell"], "parts": parts, **counts}


def _row(row: Mapping[str, JSON], paired: Paired, ids: Sequence[str], axis: Axis, rule: Rule | None) -> dict[str, JSON]:
    """Where the means stand, and what leaving out one query turns; `rule` is None where nothing is decided."""
    (gain, change), without = paired.means(), paired.without()
    gains, moves = [each for each, _ in without] or [gain], paired.moves()
    said = _says(gain, change, rule)
    turning = [place for place, means in enumerate(without) if _says(*means, rule) != said]
    turning.sort(key=lambda place: (-moves[place], place))
    bar, (low, high) = rule.min_gain if rule else 0.0, interval_of(row)
    first = moves.index(max(moves)) if without else None
    return {
        "at": axis.at(gain),
        "dots": sorted({axis.at(each) for each in gains}) if without else [],
        "least": told(min(gains), bar, low, high),
        "greatest": told(max(gains), bar, low, high),
        "influential": None if first is None else {"query": ids[first], "at": axis.at(without[first][0])},
        "is": said,
        "turns": [_turn(ids[place], without[place], row, rule) for place in turning[:MOST_NAMED]],
        "more": len(turning[MOST_NAMED:]),
    }


def _turn(query: str, without: tuple[float, float], row: Mapping[str, JSON], rule: Rule | None) -> dict[str, JSON]:
    """A query without which a cell is something else, and what the cell gains then; Recall@10 only where it counts."""
    gain, change = without
    found = {"query": query, "gain": told(gain, rule.min_gain if rule else 0.0, *interval_of(row)), "recall": None}
    if rule is None:
        return found
    guard = row["guard"]
    return found | {"recall": told(change, -rule.max_recall_loss, guard["low"], guard["high"])}


def _says(gain: float, change: float, rule: Rule | None) -> str:
    """What the mean differences make of a cell: a candidate or none, or a sign where there is no rule."""
    if rule is not None:
        return "candidate" if meets_criterion_5(gain, change, rule) else "no candidate"
    return "above" if round4(gain) > 0 else "below" if round4(gain) < 0 else "level"


def _changes(
    paired: Mapping[str, Paired],
    without: Mapping[str, Sequence[tuple[float, float]]],
    ids: Sequence[str],
    rule: Rule,
) -> list[dict[str, JSON]]:
    """Every query without which criterion 5 flags other cells, with those that it then flags too or no longer."""
    now = {cell for cell, each in paired.items() if meets_criterion_5(*each.means(), rule)}
    found = []
    for place, query in enumerate(ids):
        then = {cell for cell, means in without.items() if means and meets_criterion_5(*means[place], rule)}
        if any(without.values()) and then != now:
            order = [cell for cell in paired if cell in then ^ now]
            found.append(
                {
                    "query": query,
                    "gained": [cell for cell in order if cell in then],
                    "lost": [cell for cell in order if cell in now],
                }
            )
    return found
