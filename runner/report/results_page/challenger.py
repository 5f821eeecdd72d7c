"""The cell that the verdict is about, criterion by criterion, with figures that show their side of a bar."""

from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.base.figures import figure_beside_bar, p_beside_alpha, round4

Row = Mapping[str, JSON]

MINUS = "\u2212"


def challenger(results: Row) -> dict[str, JSON] | None:
    """The best confirmed cell, else the best candidate, else the best that may yet gain enough, else the best.

    None where no cell stands beside the baseline. `criteria` are those of "confirmed", each with its figure and whether
    it is met (None where that is open); where nothing is decided there are none. `doubts` are what else keeps the cell
    from being confirmed. `could_be_chance` is None for a cell without an adjusted p; `p` is the adjusted one, or that
    of the cell alone, or, where only skewed differences make it chance (`skewed`), the one that allows for them.
    """
    rows, plan = [row for row in results["cells"] if row["test"] is not None], results["plan"]
    if not rows:
        return None
    row = next((row for one in (_confirmed, _candidate, _open) for row in rows if one(row, plan)), rows[0])
    test, alpha, loss = row["test"], plan["significance"]["alpha"], plan["rule"]["max_recall_loss"]
    low, high = interval_of(row)
    gain = _mean(row, "ndcg@10")
    adjusted = test["p_adjusted"]
    skewed = adjusted is not None and round4(adjusted) <= alpha < round4(test["p_skew"])
    criteria = [] if row["role"] == "compared" else _criteria(row, plan)
    return {
        "cell": row["cell"],
        "gain": {"texts": texts(gain, low, high, plan["rule"]["min_gain"]), "alone": test["simultaneous"] is None},
        "recall": texts(_mean(row, "recall@10"), row["guard"]["low"], row["guard"]["high"], -loss),
        "p": p_beside_alpha(test["p_skew"] if skewed else test["p"] if adjusted is None else adjusted, alpha),
        "skewed": skewed,
        "could_be_chance": None if adjusted is None else skewed or round4(adjusted) > alpha,
        "price": price(row["guard"], loss),
        "criteria": criteria,
        "doubts": list(row["short_of"]) if all(criterion["met"] for criterion in criteria) else [],
    }


def interval_of(row: Row) -> Sequence[float]:
    """The simultaneous interval of a tested cell, its own outside of the tested family."""
    found: Sequence[float] = row["test"]["simultaneous"] or row["test"]["interval"]
    return found


def guard_words(state: str, loss: float) -> str:
    """What the Recall guard says of a cell that may lose `loss`."""
    says = {"non-inferior": "loses at most", "inconclusive": "may lose more than", "inferior": "loses more than"}
    return f"{says[state]} {loss:g}"


def price(guard: Row, loss: float) -> str:
    """What choosing a cell costs in Recall@10: nothing where its lower bound shows no loss, else as the guard says."""
    return "none: it is shown not to fall" if round4(guard["low"]) >= 0 else guard_words(guard["state"], loss)


def texts(mean: float, low: float, high: float, bar: float) -> list[str]:
    """A mean and the ends of its interval, each so that it shows its side of 0 and of the bar."""
    return [told(each, bar, low, high) for each in (mean, low, high)]


def told(value: float, bar: float, low: float, high: float) -> str:
    """As runner.base.figures.figure_beside_bar, with a true minus."""
    return figure_beside_bar(value, bar, low, high).replace("-", MINUS)


def _confirmed(row: Row, _plan: Row) -> bool:
    return bool(row["confirmed"])


def _candidate(row: Row, _plan: Row) -> bool:
    return bool(row["meets_criterion_5"])


def _open(row: Row, plan: Row) -> bool:
    """Whether a gain of the size asked for is not ruled out, and the cell could be chosen for it."""
    able = row["guard"]["state"] != "inferior" and row["gate"]["verdict"] != "fail"
    return bool(able and round4(interval_of(row)[1]) >= plan["rule"]["min_gain"])


def _criteria(row: Row, plan: Row) -> list[dict[str, JSON]]:
    rule, alpha, test, guard = plan["rule"], plan["significance"]["alpha"], row["test"], row["guard"]
    gain, recall, judged = (_mean(row, measure) for measure in ("ndcg@10", "recall@10", "judged@10"))
    bar, loss, verdict = rule["min_gain"], rule["max_recall_loss"], row["gate"]["verdict"]
    change, lower = (told(each, -loss, guard["low"], guard["high"]) for each in (recall, guard["low"]))
    return [
        _criterion(f"gains at least {bar:g} nDCG@10", told(gain, bar, *interval_of(row)), round4(gain) >= bar),
        _by_p("is beyond chance, all cells compared", "adjusted p", test["p_adjusted"], alpha),
        _by_p("is so with skewed differences allowed for, too", "p", test["p_skew"], alpha),
        _criterion(f"loses at most {loss:g} Recall@10 by its mean", change, round4(recall) >= -loss),
        _criterion(
            f"Recall@10 does not fall by more than {loss:g}",
            f"lower bound {lower}, {guard['state']}",
            {"non-inferior": True, "inferior": False}.get(guard["state"]),
        ),
        _criterion("passes the null gate", verdict, {"pass": True, "fail": False}.get(verdict)),
        _criterion("has every hit of its top ten judged", f"{100 * judged:.4g}\u202f%", round4(judged) >= 1),
    ]


def _by_p(what: str, name: str, p: float | None, alpha: float) -> dict[str, JSON]:
    """A criterion that p is at most alpha; open for a cell outside of the tested family, which has none."""
    if p is None:
        return _criterion(what, "none: outside of the preregistered family", None)
    return _criterion(what, f"{name} {p_beside_alpha(p, alpha)}", round4(p) <= alpha)


def _criterion(what: str, figure: str, met: bool | None) -> dict[str, JSON]:
    return {"what": what, "figure": figure, "met": met}


def _mean(row: Row, measure: str) -> float:
    """A difference to the baseline, of Judged@10 the mean itself."""
    found = row["differences"].get(measure, row["scores"].get(measure))
    return float(found["mean"])
