"""Where the dots, lines and diamonds of the null gate's strips stand; the template draws them.

A quantile dot plot: every dot stands for an equal part of a null's draws (Kay et al. 2016, CHI, 5092-5103).
"""

from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.base.figures import fitting, fitting_signed, p_beside_alpha, places, round4
from runner.report.chart import Axis

AXIS = Axis(0.0, 1.0, 0.2)
"""One for all rows: nDCG@10 from its least to its greatest."""

HEIGHT = 44
GROUND = 41
"""Pixels from the top, where dots stand; columns of dots grow upwards from there."""

TALLEST = 32
DOT = 5.0
"""Pixels that a dot takes in a column; less where a column would be higher than TALLEST."""

COLUMN = 1.25
"""Per cent of the width that a column of dots gathers."""


def null_strips(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """Strips of every cell against every null, in the order of the ranking, and of the controls, from results as JSON.

    Positions are per cent of the width, heights pixels. `cells` come with `unfolded` for the best cell and the
    baseline, and with `open` for those that do not pass. `controls` has no rows where there are no controls. `single`
    says in words how many cells pass where each query has one right answer, "" where that was not measured.
    """
    rows = results["cells"]
    baseline = next(row for row in rows if row["role"] == "baseline")
    cells = [_cell(row, unfolded=place == 0 or row is baseline) for place, row in enumerate(rows)]
    return {
        "ticks": [{"at": tick.at, "text": tick.text} for tick in AXIS.ticks],
        "height": HEIGHT,
        "ground": GROUND,
        "cells": cells,
        "controls": [_control(control) for control in results["controls"]],
        "baseline": _score(baseline),
        "single": _single(rows),
    }


def _cell(row: Mapping[str, JSON], *, unfolded: bool) -> dict[str, JSON]:
    gate, ends = row["gate"], _ends(row)
    nearest = min(gate["nulls"], key=lambda null: null["delta"])
    passed = sum(null["verdict"] == "pass" for null in gate["nulls"])
    return {
        "cell": row["cell"],
        "role": row["role"],
        "verdict": gate["verdict"],
        "diagnosis": row["diagnosis"],
        "unfolded": unfolded,
        "open": gate["verdict"] != "pass",
        "real": _score(row),
        "passed": f"{passed} of {len(gate['nulls'])}",
        "nearest": f"{nearest['name']}, {_from(nearest['delta'], nearest['mean'], ends)}",
        "nulls": [_null(null, gate, ends) for null in gate["nulls"]],
    }


def _score(row: Mapping[str, JSON]) -> dict[str, JSON]:
    """The line of a cell's score; its figure stands where there is room, on the left of a line far to the right."""
    score = row["gate"]["real"]
    at = AXIS.at(score)
    return {"cell": row["cell"], "at": at, "value": score, "text": fitting(score, *_ends(row)), "before": at > 80}


def _ends(row: Mapping[str, JSON]) -> tuple[float, float]:
    """The interval of the score: of all that stands here only the queries' scatter limits the places."""
    score = row["scores"]["ndcg@10"]
    return score["low"], score["high"]


def _null(null: Mapping[str, JSON], gate: Mapping[str, JSON], ends: tuple[float, float]) -> dict[str, JSON]:
    asked = None if null["name"] == "shuffled top 10" else gate["tau"]
    return {
        "name": null["name"],
        "verdict": null["verdict"],
        "dots": _dots(null["dots"]),
        "diamond": None if null["dots"] else AXIS.at(null["mean"]),
        "mean": AXIS.at(null["mean"]),
        "asked": None if asked is None else AXIS.at(null["mean"] + asked),
        "distance": f"{_from(null['delta'], null['mean'], ends)} from the null's {fitting(null['mean'], *ends)}",
        "p": p_beside_alpha(null["p"], gate["alpha"]),
        "because": _because(null, gate["alpha"], asked),
    }


def _from(delta: float, mean: float, ends: tuple[float, float]) -> str:
    return fitting_signed(delta, ends[0] - mean, ends[1] - mean)


def _because(null: Mapping[str, JSON], alpha: float, asked: float | None) -> str:
    """Why a null is not passed, "" where it is; thresholds compare the four places of the table below."""
    if null["verdict"] == "insufficient":
        return f"p could not have been below {p_beside_alpha(null['smallest_p'], alpha)}"
    found = [f"p is above {alpha:g}"] if round4(null["p"]) > alpha else []
    if asked is not None and round4(null["delta"]) < asked:
        found.append(f"less than {asked:g} above the null")
    return " and ".join(found) if null["verdict"] == "fail" else ""


def _dots(values: Sequence[float]) -> list[dict[str, float]]:
    """Dots in columns, each in the middle of the values that it gathers (Wilkinson 1999); values ascend."""
    columns: list[list[float]] = []
    for at in map(AXIS.at, values):
        if not columns or at - columns[-1][0] >= COLUMN:
            columns.append([])
        columns[-1].append(at)
    step = min(DOT, TALLEST / max(map(len, columns), default=1))
    return [
        {"x": round((column[0] + column[-1]) / 2, 2), "y": round(GROUND - (place + 0.5) * step, 1)}
        for column in columns
        for place in range(len(column))
    ]


def _control(control: Mapping[str, JSON]) -> dict[str, JSON]:
    """A control's mean score, over all draws where it is drawn, and how many of them passed."""
    side = "at least" if control["expected"] == "pass" else "at most"
    drawn = control["draws"] > 1
    at = AXIS.at(control["mean"])
    passes = f"{control['passes']:,} of {control['draws']:,} passed, {side} {control['bound']:,} may"
    once = "passed" if control["passes"] else "did not pass"
    return {
        "name": control["name"],
        "must": control["expected"],
        "behaves": control["behaves"],
        "at": at,
        "before": at > 80,
        "drawn": drawn,
        "text": places(control["mean"], 2),
        "passes": passes if drawn else once,
    }


def _single(rows: Sequence[Mapping[str, JSON]]) -> str:
    verdicts = [verdict for row in rows for verdict in row["single_gold"]]
    passed = []
    for measure in dict.fromkeys(verdict["measure"] for verdict in verdicts):
        of_measure = [verdict["verdict"] for verdict in verdicts if verdict["measure"] == measure]
        passed.append(f"{of_measure.count('pass')} of {len(of_measure)} cells pass by {measure}")
    return ", ".join(passed)
