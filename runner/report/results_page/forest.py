"""Where the marks of the forest plot stand: each cell's difference to the baseline, and its Recall guard beside it."""

from collections.abc import Mapping

from runner.base.canonical import JSON
from runner.base.figures import p_beside_alpha
from runner.decide.sample_size import least_gain
from runner.decide.tiers import side_of
from runner.report.chart import Axis, axis_over
from runner.report.results_page.challenger import challenger, guard_words, interval_of, texts

STANDINGS = {
    "baseline": ("line", "baseline"),
    "confirmed": ("diamond", "confirmed"),
    "candidate": ("disc", "candidate, not confirmed"),
    "late candidate": ("disc", "candidate, exploratory"),
    "exploratory": ("square", "no candidate, exploratory"),
    "other": ("ring", "no candidate"),
    "above": ("diamond", "above the baseline beyond chance"),
    "below": ("ring", "below the baseline beyond chance"),
    "not told apart": ("ring", "not told apart from the baseline"),
}
"""The shape of a cell's mark, and what it is in words; the last three where nothing is decided."""


def forest(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """Rows in the order of the ranking, with places in per cent of two strips' widths, and the axes of both.

    A cell's interval is the simultaneous one; outside of the tested family it is that of the cell `alone`. Recall has
    one-sided bounds. `p` is the adjusted one as text, null without one. A row's `unseen` is what lies within the
    least gain that these queries show at the scatter of that cell, null for the baseline. `asked`, the gain that the
    rule asks for, is null where nothing is decided. `tested` says whether any cell has a mark at all.
    """
    ndcg, recall = _gain_axis(results), _recall_axis(results)
    plan = results["plan"]
    external = results["kind"] == "external"
    return {
        "tested": any(row["test"] is not None for row in results["cells"]),
        "rows": [
            _row(number, row, plan, ndcg, recall) | {"unseen": _unseen(detectable(row, results), ndcg)}
            for number, row in enumerate(results["cells"], start=1)
        ],
        "ndcg": _axis(ndcg)
        | {"asked": None if external else {"at": ndcg.at(plan["rule"]["min_gain"]), "value": plan["rule"]["min_gain"]}},
        "recall": _axis(recall)
        | {"allowed": {"at": recall.at(-plan["rule"]["max_recall_loss"]), "value": plan["rule"]["max_recall_loss"]}},
        "alone": any(_alone(row) for row in results["cells"]),
        "shapes": sorted({STANDINGS[standing(row, plan)] for row in results["cells"]}),
        "challenger": challenger(results),
    }


def standing(row: Mapping[str, JSON], plan: Mapping[str, JSON]) -> str:
    """What the rule says of a cell, or, where nothing is decided, its side of the baseline: a key of STANDINGS."""
    if row["test"] is None:
        return "baseline"
    if row["role"] == "compared":
        return side_of(row["test"]["simultaneous"], row["test"]["p_skew"], plan["significance"]["alpha"])
    if row["confirmed"]:
        return "confirmed"
    late = row["role"] == "exploratory"
    if row["meets_criterion_5"]:
        return "late candidate" if late else "candidate"
    return "exploratory" if late else "other"


def _alone(row: Mapping[str, JSON]) -> bool:
    return row["test"] is not None and row["test"]["simultaneous"] is None


def _row(number: int, row: Mapping[str, JSON], plan: Mapping[str, JSON], ndcg: Axis, recall: Axis) -> dict[str, JSON]:
    name = standing(row, plan)
    shape, words = STANDINGS[name]
    found = {"number": number, "cell": row["cell"], "standing": name, "shape": shape, "words": words}
    if row["test"] is None:
        return found | {"ndcg": None, "recall": None, "p": None}
    p = row["test"]["p_adjusted"]
    low, high = interval_of(row)
    guard = row["guard"]
    gain, change = row["differences"]["ndcg@10"]["mean"], row["differences"]["recall@10"]["mean"]
    loss = plan["rule"]["max_recall_loss"]
    state = {"state": guard["state"], "says": guard_words(guard["state"], loss)}
    return found | {
        "p": None if p is None else p_beside_alpha(p, plan["significance"]["alpha"]),
        "ndcg": _mark((gain, low, high), plan["rule"]["min_gain"], ndcg) | {"alone": _alone(row)},
        "recall": _mark((change, guard["low"], guard["high"]), -loss, recall) | state,
    }


def _mark(value: tuple[float, float, float], bar: float, axis: Axis) -> dict[str, JSON]:
    """A mean and its interval: figures, places, and texts that show their sides of 0 and of the bar."""
    mean, low, high = value
    places = {"at": axis.at(mean), "from": axis.at(low), "to": axis.at(high)}
    return {"mean": mean, "low": low, "high": high, "texts": texts(*value, bar), **places}


def _gain_axis(results: Mapping[str, JSON]) -> Axis:
    """Over all intervals, with 0, what the rule asks for, and what these queries hardly see."""
    tested = [row for row in results["cells"] if row["test"] is not None]
    unseen = max((detectable(row, results) or 0.0 for row in tested), default=0.0)
    values = [value for row in tested for value in (*interval_of(row), row["differences"]["ndcg@10"]["mean"])]
    return axis_over(values, include=(0.0, results["plan"]["rule"]["min_gain"], unseen, -unseen))


def _recall_axis(results: Mapping[str, JSON]) -> Axis:
    """Over all bounds, with 0 and the loss that the rule allows."""
    tested = [row for row in results["cells"] if row["test"] is not None]
    means = [row["differences"]["recall@10"]["mean"] for row in tested]
    bounds = [value for row in tested for value in (row["guard"]["low"], row["guard"]["high"])]
    return axis_over([*means, *bounds], include=(0.0, -results["plan"]["rule"]["max_recall_loss"]))


def _axis(axis: Axis) -> dict[str, JSON]:
    ticks = [{"at": tick.at, "value": tick.value, "text": tick.text} for tick in axis.ticks]
    return {"zero": axis.at(0.0), "ticks": ticks}


def detectable(row: Mapping[str, JSON], results: Mapping[str, JSON]) -> float | None:
    """The least gain that these queries show at a cell's own scatter, all cells compared.

    None without a scatter, and where it is more than a difference can be.
    """
    if row["test"] is None:
        return None
    alpha = results["plan"]["significance"]["alpha"]
    effect = least_gain(len(results["queries"]), row["test"]["sd"], alpha, len(results["cells"]))
    return effect if effect is not None and effect <= 1 else None


def _unseen(effect: float | None, axis: Axis) -> dict[str, JSON] | None:
    if effect is None:
        return None
    low, high = axis.at(-effect), axis.at(effect)
    return {"from": low, "to": high, "width": round(high - low, 2), "value": effect}
