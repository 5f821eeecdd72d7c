"""What a plain table of scores would have hidden of a system: sentences that follow from figures alone."""

from collections.abc import Sequence

from runner.base.canonical import JSON
from runner.base.figures import round4

_WEAK = 0.05
"""A score that a reader takes for that of a weak engine; below it a table gives a system away by itself."""
_MANY = 3


def ranked(rows: Sequence[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The rows as a table of reported scores has them: best nDCG@10 at four places first, equal ones by name."""
    return sorted(rows, key=lambda row: (-round4(row["reported"]["ndcg@10"]), row["name"]))


def hidden(row: dict[str, JSON], rows: Sequence[dict[str, JSON]], n_queries: int) -> str:
    """What a table does not say of a system, in clauses; "nothing: ..." if it says all. `rows` are `ranked`."""
    if row["kind"] == "engine":
        return _of_engine(row)
    said = [_inflated(row), _place(row, rows), _twin(row, rows), _zeros(row, rows, n_queries), _four(row)]
    return "; ".join(filter(None, said)) or f"nothing: {reported(row):.4f} gives it away"


def reported(row: dict[str, JSON]) -> float:
    """The nDCG@10 that a table would show."""
    return round4(row["reported"]["ndcg@10"])


def measured(row: dict[str, JSON]) -> float:
    """The nDCG@10 over all queries and all judgments."""
    return round4(row["scores"]["ndcg@10"])


def fails(row: dict[str, JSON]) -> list[str]:
    """The nulls of the graded gate that the system fails."""
    return [null["name"] for null in row["graded"]["nulls"] if null["verdict"] == "fail"]


def refused_by(row: dict[str, JSON]) -> str:
    """The nulls of the graded gate that the system fails: by name if they are one or two, else how many."""
    failed, nulls = fails(row), row["graded"]["nulls"]
    return ", ".join(failed) if len(failed) < _MANY else f"{len(failed)} of {len(nulls)} nulls"


def _of_engine(row: dict[str, JSON]) -> str:
    if row["graded"]["verdict"] == "pass":
        return "nothing: it reads the queries"
    return f"that it cannot be told from: {', '.join(fails(row))}" if fails(row) else "that nothing could be shown"


def _inflated(row: dict[str, JSON]) -> str:
    if reported(row) == measured(row):
        return ""
    return f"reports {reported(row):.4f}; over all queries and judgments it scores {measured(row):.4f}"


def _place(row: dict[str, JSON], rows: Sequence[dict[str, JSON]]) -> str:
    """How the reported score compares with those of real engines."""
    engines = [other for other in rows if other["kind"] == "engine"]
    below = [other for other in engines if reported(other) < reported(row)]
    if below:
        return (
            f"a table ranks it above {len(below)} of {len(engines)} real engines, {below[0]['name']} "
            f"({reported(below[0]):.4f}) among them"
        )
    return f"{reported(row):.4f} looks like a weak engine" if reported(row) >= _WEAK else ""


def _twin(row: dict[str, JSON], rows: Sequence[dict[str, JSON]]) -> str:
    """A clause if a refused system finds exactly as much as a real engine, so that recall cannot tell them apart."""
    found = round4(row["scores"]["recall@10"])
    if row["graded"]["verdict"] == "pass" or not found:
        return ""
    twins = (r["name"] for r in rows if r["kind"] == "engine" and round4(r["scores"]["recall@10"]) == found)
    return next((f"its Recall@10 is that of {name}" for name in twins), "")


def _zeros(row: dict[str, JSON], rows: Sequence[dict[str, JSON]], n_queries: int) -> str:
    """A clause if a system that passes scores 0 on most queries, and on more than any real engine."""
    engines = [other["zero"] for other in rows if other["kind"] == "engine"]
    if row["graded"]["verdict"] == "pass" and row["zero"] > max(n_queries // 2, *engines):
        return f"{row['zero']} of {n_queries} queries score 0"
    return ""


def _four(row: dict[str, JSON]) -> str:
    """A clause if nulls A to D, which look for the answer alone, pass what the graded gate refuses."""
    passed = row["single_gold"] and all(found["verdict"] == "pass" for found in row["single_gold"])
    return "nulls A to D pass it" if passed and row["graded"]["verdict"] != "pass" else ""


def tally(study: dict[str, JSON]) -> str:
    """How many engines and broken predictors the graded gate passed and refused."""
    groups = {kind: [row for row in study["systems"] if row["kind"] == kind] for kind in ("engine", "broken")}
    passed = {kind: [row for row in rows if row["graded"]["verdict"] == "pass"] for kind, rows in groups.items()}
    engines, broken = len(groups["engine"]), len(groups["broken"])
    return (
        f"The gate passes {len(passed['engine'])} of {engines} real engines and refuses "
        f"{broken - len(passed['broken'])} of {broken} broken predictors."
    )
