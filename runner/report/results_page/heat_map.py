"""nDCG@10 of every query in every cell, the queries on which cells part most first."""

from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.base.figures import per_query, places, shade, signed
from runner.base.records import SCORE_UNIT
from runner.report.anchors import anchor
from runner.report.results_page.challenger import challenger

MEASURE = "ndcg@10"


def heat_map(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """Columns in the order of the ranking and rows by spread, widest first, then by id; figures are texts.

    `value` is the figure that a sort compares, in units of 1e-9. `challenger` is the number of the cell that the
    verdict is about, None where there is none; rows then have no gain. `kinds` and `origins` are what a filter offers.
    """
    columns = [_column(number, row) for number, row in enumerate(results["cells"], start=1)]
    pair = contenders(results)
    rows = [_row(place, query, results["cells"], pair) for place, query in enumerate(results["queries"])]
    return {
        "columns": columns,
        "challenger": pair[1] + 1 if pair else None,
        "rows": sorted(rows, key=lambda row: (-row["spread"]["value"], row["id"])),
        "kinds": sorted({row["kind"] for row in rows}),
        "origins": sorted({row["origin"] for row in rows}),
        "strata": any(row["stratum"] for row in rows),
    }


def contenders(results: Mapping[str, JSON]) -> tuple[int, int] | None:
    """Where the baseline and the cell that the verdict is about stand in the ranking; None where one is missing."""
    told, rows = challenger(results), results["cells"]
    baseline = next((place for place, row in enumerate(rows) if row["role"] == "baseline"), None)
    if told is None or baseline is None:
        return None
    return baseline, next(place for place, row in enumerate(rows) if row["cell"] == told["cell"])


def _column(number: int, row: Mapping[str, JSON]) -> dict[str, JSON]:
    score = row["scores"][MEASURE]
    return {
        "number": number,
        "cell": row["cell"],
        "baseline": row["role"] == "baseline",
        "mean": score["mean"],
        "low": score["low"],
        "high": score["high"],
    }


def _row(
    place: int, query: Mapping[str, JSON], cells: Sequence[Mapping[str, JSON]], pair: tuple[int, int] | None
) -> dict[str, JSON]:
    values = [row["scores"][MEASURE]["per_query"][place] for row in cells]
    spread = max(values) - min(values)
    return {
        **{name: query[name] for name in ("id", "text", "kind", "origin", "stratum")},
        "anchor": anchor(query["id"]),
        "values": [{"value": value, "text": per_query(value), "shade": shade(value)} for value in values],
        "spread": {"value": spread, "text": places(spread / SCORE_UNIT, 2)},
        "gain": _gain(values[pair[1]] - values[pair[0]]) if pair else None,
    }


def _gain(value: int) -> dict[str, JSON]:
    return {"value": value, "text": signed(value / SCORE_UNIT, 2)}
