"""Where the marks of a comparison stand, and the queries that moved most; its templates only draw it."""

from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.base.figures import fitting, fitting_signed, places, signed
from runner.base.records import SCORE_UNIT
from runner.report.chart import Axis, axis_over

MOST_QUERIES = 20
"""Queries of which the page tells how they moved; of the others it says how many moved at all."""

Row = Mapping[str, JSON]


def pair_forest(compared: Row) -> dict[str, JSON]:
    """Two marks a row on one axis of nDCG@10, and the movement beside them on an axis of its own.

    Places are per cent of a strip's width. `moved` is null for a row without a movement, and as a whole where no row
    has one; a side that does not have the row has no mark.
    """
    rows = compared["rows"]
    levels = _axis([row[side]["scores"]["ndcg@10"] for row in rows for side in ("before", "now") if row[side]])
    moves = [row["moved"]["ndcg@10"] for row in rows if row["moved"]["ndcg@10"]]
    moving = _axis(moves, include=(0.0,), ticks=3) if moves else None
    return {
        "rows": [_row(row, levels, moving) for row in rows],
        "levels": _ticks(levels),
        "begins": levels.ticks[0].text,
        "moved": None if moving is None else _ticks(moving) | {"zero": moving.at(0.0)},
    }


def moved_queries(compared: Row) -> dict[str, JSON]:
    """The queries whose nDCG@10 moved furthest in any cell that both have, furthest first, and counts of all.

    `mean` is over those cells, `cell` the one that moved furthest, with its figures of both sides.
    """
    rows = [row for row in compared["rows"] if row["moved"]["ndcg@10"]]
    found = [_query(place, name, rows) for place, name in enumerate(compared["common"])] if rows else []
    moving = sorted((query for query in found if query["by"]), key=lambda query: (-abs(query["by"]), query["id"]))
    shown = [query | {"text": compared["texts"][query["id"]]} for query in moving[:MOST_QUERIES]]
    return {"rows": shown, "moved": len(moving), "of": len(found), "cells": len(rows)}


def _row(row: Row, levels: Axis, moving: Axis | None) -> dict[str, JSON]:
    move = row["moved"]["ndcg@10"]
    return {
        "name": row["name"],
        "record": row["record"],
        "before": row["before"] and _mark(row["before"]["scores"]["ndcg@10"], levels),
        "now": row["now"] and _mark(row["now"]["scores"]["ndcg@10"], levels),
        "moved": None if move is None or moving is None else _moved(move, moving),
        "same_run": row["same_run"],
    }


def _mark(score: Row, axis: Axis) -> dict[str, JSON]:
    mean, low, high = score["mean"], score["low"], score["high"]
    return {
        "at": axis.at(mean),
        "from": axis.at(low),
        "to": axis.at(high),
        "texts": [fitting(value, low, high) for value in (mean, low, high)],
    }


def _moved(move: Row, axis: Axis) -> dict[str, JSON]:
    mean, low, high = move["mean"], move["low"], move["high"]
    return {
        "at": axis.at(mean),
        "from": axis.at(low),
        "to": axis.at(high),
        "texts": [fitting_signed(value, low, high) for value in (mean, low, high)],
        "counts": [move["wins"], move["ties"], move["losses"]],
    }


def _axis(found: Sequence[Row], include: Sequence[float] = (), ticks: int = 5) -> Axis:
    return axis_over([row[end] for row in found for end in ("mean", "low", "high")], include=include, ticks=ticks)


def _ticks(axis: Axis) -> dict[str, JSON]:
    return {"ticks": [{"at": tick.at, "value": tick.value, "text": tick.text} for tick in axis.ticks]}


def _query(place: int, name: str, rows: Sequence[Row]) -> dict[str, JSON]:
    moves = [row["now"]["per_query"][place] - row["before"]["per_query"][place] for row in rows]
    furthest = max(range(len(rows)), key=lambda number: (abs(moves[number]), -number))
    row = rows[furthest]
    return {
        "id": name,
        "by": moves[furthest],
        "cell": row["name"],
        "before": places(row["before"]["per_query"][place] / SCORE_UNIT, 2),
        "now": places(row["now"]["per_query"][place] / SCORE_UNIT, 2),
        "moved": signed(moves[furthest] / SCORE_UNIT, 2),
        "mean": signed(sum(moves) / (len(moves) * SCORE_UNIT), 2),
        "counts": [sum(m > 0 for m in moves), sum(m == 0 for m in moves), sum(m < 0 for m in moves)],
    }
