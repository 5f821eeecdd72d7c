"""The words of a run when it is done: to a person on the terminal, and to a program as one JSON object."""

import shlex
import textwrap
from pathlib import Path
from typing import Any

from runner.base.canonical import JSON
from runner.base.errors import InputNeeded
from runner.base.figures import PLACES, figure_beside_bar, p_and_bar, texts, whole_percent
from runner.base.places import DRIVER
from runner.base.terminal import table, terminal_width
from runner.decide.decide import decision_sentence
from runner.decide.roster import locked_decision, standing, version_in_force
from runner.decide.tiers import expected_text, interval_of
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import ScoredPlan
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.version import Version, load_decision, load_results
from runner.report import sentences

WIDTH = 100
"""Columns of a summary that is not printed on a terminal."""


def run_summary(results: Results, *, flags: str = "", is_said: bool = False, decided: bool = False) -> str:
    """Return the verdict's sentences, the table of cells, and what comes next, as wide as the terminal is.

    `flags` name the version in commands, by default its source does. If the verdict `is_said` beside it, its sentence
    and what comes next are left out; once it is `decided`, the latter.
    """
    width = terminal_width(WIDTH)
    is_explored = results.kind == "exploration"
    said = sentences.asked_words(results)
    notes = [
        *([said] if said else []),
        *(f"{row.cell}: {row.diagnosis}" for row in results.cells if row.diagnosis),
        *([] if is_said or decided else [f"next: {sentences.next_step(results)}"]),
    ]
    # Not wrapped: a line break inside quotes would be part of the cell's name.
    command = [f"  {DRIVER} version {flags or shlex.quote(results.source)}"] if is_explored else []
    sentence = [] if is_said else wrapped(f"{_name(results)}: {sentences.found(results)}", width)
    lines = [line for note in notes for line in wrapped(note, width)]
    return "\n".join([*sentence, ranking_table(results, width), *_incumbent_table(results, width), *lines, *command])


def ranking_table(results: Results, width: int = WIDTH) -> str:
    """Return the cells, best nDCG@10 first, at the places that their intervals allow, within `width` columns."""
    head: tuple[str, ...] = ("nDCG@10", "difference", "p / bar", "Recall@10", "gate")
    rows = [_figures(row, results.plan) for row in results.cells]
    # Cells of an exploration were not preregistered, so that their column would be empty.
    if not any(row[head.index("p / bar")] for row in rows):
        head, *rows = [(*row[:2], *row[3:]) for row in (head, *rows)]
    named = [(row.cell, *figures) for row, figures in zip(results.cells, rows, strict=True)]
    lines = table(("cell", *head), named, width)
    share = whole_percent(1 - results.plan.significance.alpha)
    tests = [row.test for row in results.cells if row.test is not None]
    alone = [test for test in tests if test.simultaneous is None]
    note = f"[ ] holds the differences of all cells at once ({share})" + (
        "; * that of this cell alone" if alone else ""
    )
    if alone and len(alone) == len(tests):
        note = f"[ ]* is the interval of this cell alone ({share})"
        note += "; an exploration gives no p" if results.kind == "exploration" else ""
    if any(test.bar is not None for test in tests):
        note += "; p up to its bar shows a gain"
    late = [row.cell for row in results.cells if row.role == "exploratory" and results.kind != "exploration"]
    added = [f"not preregistered, so shown and never recommended: {'; '.join(late)}"] if late else []
    same = [f"{row.cell}: same lists as {row.same_as}" for row in results.cells if row.same_as]
    return "\n".join([*lines, *(line for said in (note, *added, *same) for line in wrapped(said, width))])


def _incumbent_table(results: Results, width: int) -> list[str]:
    """Return what every other cell does against the incumbent, best nDCG@10 first; nothing without one."""
    rows = []
    for row, over in ((row, row.over_incumbent) for row in results.cells if row.over_incumbent):
        assert over is not None, "as asked"
        p, bar, (low, high) = over.test.p_gain, over.test.bar, interval_of(over.test)
        claimed = "" if p is None or bar is None else " / ".join(p_and_bar(p, bar))
        gained, least, most = texts(over.differences["ndcg@10"].mean, low, high, 0.0)
        expected = "" if over.expected is None else expected_text(over.expected.mean, results.plan.switching_cost)
        rows.append((row.cell, f"{gained} [{least}, {most}]", claimed, expected))
    if not rows:
        return []
    head = f"against the incumbent, {results.plan.incumbent}"
    return table((head, "difference", "p / bar", "expected"), rows, width)


def _figures(row: CellResult, plan: ScoredPlan) -> tuple[str, ...]:
    """Return a cell's columns beside its name; differences show their side of 0 and of the rule."""
    ndcg, recall = row.scores["ndcg@10"], row.scores["recall@10"]
    score, recalled = (f"{one.mean:.{PLACES}f}" for one in (ndcg, recall))
    if row.test is None or row.recall_bound is None:
        return score, "baseline", "", recalled, row.gate.verdict
    gain, change = row.differences["ndcg@10"].mean, row.differences["recall@10"].mean
    low, high = interval_of(row.test)
    gained, least, most = texts(gain, low, high, plan.rule.min_gain)
    alone = "" if row.test.simultaneous else "*"
    changed = figure_beside_bar(change, -plan.rule.max_recall_loss)
    p, bar = row.test.p_gain, row.test.bar
    claimed = "" if p is None or bar is None else " / ".join(p_and_bar(p, bar))
    if row.loss is not None:
        claimed = f"loses <= {row.loses_at_most}"
    elif row.same_as:
        claimed = "same lists"
    gains, recalls = f"{gained} [{least}, {most}]{alone}", f"{recalled} ({changed})"
    return score, gains, claimed, recalls, row.gate.verdict


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width`, those after the first indented."""
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _name(results: Results) -> str:
    """Return source and version, and whether these figures can decide anything."""
    name = f"{results.source} v{results.version}"
    beside = {
        "production": "",
        "rehearsal": " (rehearsal, never a decision)",
        "exploration": " (exploration, decides nothing)",
        "external": " (public collection, decides nothing)",
    }
    if results.collection is not None and results.collection.judged_by:
        return results.collection.name
    return name + beside[results.kind] + (" (provisional)" if results.provisional else "")


Scored = tuple[Results, Path]
"""What a run scored, and the folder that holds it."""

_OF_SCORES = ("provisional", "tier", "sentence", "next_step", "baseline", "recommended", "results", "page")
_LEFT_OUT: dict[str, Any] = {
    "provenance": True,
    "single_gold": True,
    "scores": {"__all__": {"per_query"}},
    "gate": {"nulls"},
}
"""What a cell of results.json has beside what a program asks of a run."""


def run_json(version: Version, scored: Scored | None, exit_code: int, message: str) -> dict[str, JSON]:
    """Return a run's outcome: its figures, or those that the recorded decision rests on, with what was said of it.

    Without either, before scoring and after a decision by policy, figures and files are null and there are no cells.
    """
    decision = load_decision(version) if (version.record / "decision.json").exists() else None
    # A decision of an earlier run stands, with the figures that it rests on.
    if scored is None and decision is not None and decision.kind != "policy":
        scored = load_results(version), version.record
    kind = "rehearsal" if version.rehearsal else "production"
    told: dict[str, JSON] = {"source": version.source.name, "version": version.number, "kind": kind}
    told |= dict.fromkeys(_OF_SCORES) | {"chosen": None, "cells": []}
    if decision is not None and (scored is None or scored[0].kind != "exploration"):
        told |= {"kind": decision.kind, "tier": decision.tier, "sentence": decision_sentence(decision)}
        told |= {"baseline": decision.baseline, "chosen": chosen_json(decision)}
    if scored is not None:
        results, folder = scored
        told |= {
            "kind": results.kind,
            "provisional": results.provisional,
            "tier": results.outcome.tier,
            "sentence": sentences.found(results),
            "next_step": sentences.next_step(results, None if results.kind == "exploration" else decision),
            "baseline": results.plan.baseline,
            "recommended": results.outcome.recommended,
            "cells": [row.model_dump(exclude=_LEFT_OUT) | {"confirmed": row.confirmed} for row in results.cells],
            "results": str(folder / "results.json"),
            "page": str(folder / "results.html"),
        }
    return told | {"exit_code": exit_code, "message": message}


def recorded_json(version: Version, lines: list[str], *, recorded: bool) -> dict[str, JSON]:
    """Return what a program asks of a dry run: what a recorded decision chose, or what keeps the version from one."""
    in_force = (version_in_force(version) or version) if recorded else None
    decision = None if in_force is None else load_decision(in_force)
    return {
        "source": version.source.name,
        "version": version.name,
        "decided_version": None if in_force is None else in_force.name,
        "recorded": recorded,
        "undecided": None if recorded else lines[-1].removeprefix("undecided: "),
        "live": standing(version).live,
        "tier": None if decision is None else decision.tier,
        "kind": None if decision is None else "policy" if decision.kind == "policy" else "evaluation",
        "chosen": None if decision is None else chosen_json(decision),
        "in_production": version.source.trigger_order > 0,
        "weakness": version.source.weakness,
        "lines": [*lines],
        "exit_code": 0 if recorded else 1,
    }


def step_json(version: Version, stop: InputNeeded) -> dict[str, JSON]:
    """Return how far a version has come: what is done and outstanding, the ways on, what is in doubt, what is live."""
    return {
        "version": version.name,
        "decided": locked_decision(version) is not None,
        "live": standing(version).live,
        "done": [*stop.done],
        "outstanding": stop.outstanding,
        "ways": [*stop.ways],
        "notes": [*stop.notes],
    }


def chosen_json(decision: Decision) -> dict[str, JSON]:
    """Return what goes to production, and who says so."""
    by = {"decided_by": decision.decided_by, "reason": decision.reason, "decided_on": decision.decided_on}
    return decision.chosen.model_dump() | by
