"""A case study on a terminal: the table that everybody prints, with both gates beside it."""

from collections.abc import Sequence

from runner.base.canonical import JSON
from runner.base.given_files import printable
from runner.tools.case_study.rules import refused_by, tally
from runner.tools.case_study.zoo_reports import TABLE
from runner.tools.console import Signs

_WIDEST = 38


def study_lines(study: dict[str, JSON], signs: Signs) -> list[str]:
    """A line a system by its reported nDCG@10, then what a table hides of each, then the count."""
    facts, rows = study["collection"], study["systems"]
    return [
        f"{printable(facts['name'])}: {facts['documents']:,} documents, {facts['queries']:,} queries; * is broken",
        "",
        _row("", "system", TABLE, "gate", "A-D", "refused by"),
        *(_system(number, row, signs) for number, row in enumerate(rows, start=1)),
        "",
        "gate: five nulls on graded judgments, nDCG@10; A-D: four nulls on single golds, recall@10 and mrr@10",
        "",
        "what the three scores would have hidden:",
        *(f"  {number:>2} {row['name']}: {row['hidden']}" for number, row in _hiding(rows)),
        "",
        tally(study),
    ]


def _hiding(rows: Sequence[dict[str, JSON]]) -> list[tuple[int, dict[str, JSON]]]:
    return [(number, row) for number, row in enumerate(rows, start=1) if not row["hidden"].startswith("nothing")]


def _system(number: int, row: dict[str, JSON], signs: Signs) -> str:
    mark = "" if row["kind"] == "engine" else "* "
    figures = [f"{row['reported'][measure]:.4f}" for measure in TABLE]
    golds = " ".join(signs.of(found["verdict"]) for found in row["single_gold"])
    gate = f"{signs.of(row['graded']['verdict'])} {row['graded']['verdict']}"
    return _row(str(number), mark + row["name"], figures, gate, golds, refused_by(row)).rstrip()


def _row(number: str, name: str, figures: Sequence[str], gate: str, golds: str, refused: str) -> str:
    return f"{number:>3} {name:<{_WIDEST}}" + "".join(f"{f:>11}" for f in figures) + f"  {gate:<17}{golds:<9}{refused}"
