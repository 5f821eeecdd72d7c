"""What a run says when it is done: to a person on the terminal, and to a program as one JSON object."""

import shlex
import textwrap
from pathlib import Path

from runner.base.canonical import JSON
from runner.base.errors import InputNeeded
from runner.base.figures import figure_beside_bar, fitting, p_beside_alpha, texts, whole_percent
from runner.base.places import DRIVER
from runner.base.terminal import table, terminal_width
from runner.decide.decide import decision_sentence
from runner.decide.roster import locked_decision, standing, version_in_force
from runner.decide.tiers import interval_of
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.version import Version, load_decision, load_results
from runner.report import sentences

WIDTH = 100
"""Columns of a summary that is not printed on a terminal."""


def run_summary(results: Results, *, flags: str = "", is_said: bool = False, decided: bool = False) -> str:
    """The verdict's sentence, the table of cells, and what the figures do not show, as wide as the terminal is.

    `flags` name the version in commands, by default its source does. If the verdict `is_said` beside it, its sentence
    and what comes next are left out; once it is `decided`, the latter.
    """
    width = terminal_width(WIDTH)
    notes = [
        *(f"{row.cell}: {row.diagnosis}" for row in results.cells if row.diagnosis),
        f"not shown: {sentences.not_shown(results)}",
        *([] if is_said or decided else [f"next: {_following(results)}"]),
    ]
    # Not wrapped: a line break inside quotes would be part of the cell's name.
    command = [f"  {DRIVER} version {flags or shlex.quote(results.source)}"] if results.kind == "exploration" else []
    sentence = [] if is_said else _wrapped(f"{_name(results)}: {sentences.found(results)}", width)
    lines = [line for note in notes for line in _wrapped(note, width)]
    return "\n".join([*sentence, ranking_table(results, width), *lines, *command])


def _following(results: Results) -> str:
    return sentences.to_do(results, None) if results.kind == "exploration" else sentences.next_step(results)


def ranking_table(results: Results, width: int = WIDTH) -> str:
    """The cells, best nDCG@10 first, at the places that their intervals allow, within `width` columns."""
    head: tuple[str, ...] = ("nDCG@10", "difference", "p", "Recall@10", "recall falls", "gate")
    rows = [_figures(row, results.plan) for row in results.cells]
    if not any(row[head.index("p")] for row in rows):
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
    if any(test.p_step is not None for test in tests):
        note += "; p follows the plan's order of tests, so that cells can share it, and is not the chance of luck"
    return "\n".join([*lines, *_wrapped(note, width)])


def _figures(row: CellResult, plan: Plan) -> tuple[str, ...]:
    """A cell's columns beside its name; differences show their side of 0 and of the rule."""
    ndcg, recall = row.scores["ndcg@10"], row.scores["recall@10"]
    score, recalled = (fitting(one.mean, one.low, one.high).replace("\u2212", "-") for one in (ndcg, recall))
    if row.test is None or row.recall_bound is None:
        return score, "baseline", "", recalled, "", row.gate.verdict
    gain, change = row.differences["ndcg@10"].mean, row.differences["recall@10"].mean
    low, high = interval_of(row.test)
    gained, least, most = texts(gain, low, high, plan.rule.min_gain)
    alone = "" if row.test.simultaneous else "*"
    changed = figure_beside_bar(change, -plan.rule.max_recall_loss, row.recall_bound.low, row.recall_bound.high)
    p = row.test.p_gain
    claimed = "" if p is None else p_beside_alpha(p, plan.significance.alpha)
    gains, recalls = f"{gained} [{least}, {most}]{alone}", f"{recalled} ({changed})"
    return score, gains, claimed, recalls, str(row.differences["recall@10"].losses), row.gate.verdict


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _name(results: Results) -> str:
    """Source and version, and whether these figures can decide anything."""
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


def run_json(version: Version, scored: Scored | None, exit_code: int, message: str) -> dict[str, JSON]:
    """A run's outcome: its figures, or those that the recorded decision rests on, with what was said of it.

    Without either, before scoring and after a decision by policy, figures and files are null and there are no cells.
    """
    decision = load_decision(version) if (version.record / "decision.json").exists() else None
    if scored is None and decision is not None and decision.kind != "policy":
        scored = load_results(version), version.record
    if scored is None:
        kind = "rehearsal" if version.rehearsal else "production"
        found = unscored_json(version.source.name, version.number, kind, decision)
    else:
        results, folder = scored
        found = summary_json(results, None if results.kind == "exploration" else decision, folder)
    return found | {"exit_code": exit_code, "message": message}


def summary_json(results: Results, decision: Decision | None, folder: Path) -> dict[str, JSON]:
    """What a program asks of a run: the outcome, the choice, and every cell's figures, best nDCG@10 first.

    `chosen` is null if nothing is decided; `results` and `page` are the files of `folder`.
    """
    said = results.outcome
    return {
        "source": results.source,
        "version": results.version,
        "kind": results.kind,
        "provisional": results.provisional,
        "tier": said.tier,
        "sentence": sentences.found(results),
        "not_shown": sentences.not_shown(results),
        "next_step": sentences.next_step(results),
        "baseline": results.plan.baseline,
        "recommended": said.recommended,
        "chosen": None if decision is None else chosen_json(decision),
        "cells": [_cell_json(row) for row in results.cells],
        "results": str(folder / "results.json"),
        "page": str(folder / "results.html"),
    }


def unscored_json(source: str, version: int, kind: str, decision: Decision | None) -> dict[str, JSON]:
    """A summary's fields if there are no results: before scoring, and after a decision by policy."""
    fields = ("provisional", "tier", "sentence", "not_shown", "next_step", "baseline", "recommended", "results", "page")
    found: dict[str, JSON] = {"source": source, "version": version, "kind": kind} | dict.fromkeys(fields)
    found |= {"chosen": None, "cells": []}
    if decision is None:
        return found
    return found | {
        "kind": decision.kind,
        "tier": decision.tier,
        "sentence": decision_sentence(decision),
        "baseline": decision.baseline,
        "chosen": chosen_json(decision),
    }


def recorded_json(version: Version, lines: list[str], *, recorded: bool) -> dict[str, JSON]:
    """What a program asks of a dry run: whether a decision is recorded, what it chose, or what keeps it from one."""
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
    """How far a version has come: what is done and outstanding, ways to bring it, what is in doubt, what is live."""
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
    """What goes to production, and who says so."""
    by = {"decided_by": decision.decided_by, "reason": decision.reason, "decided_on": decision.decided_on}
    return decision.chosen.model_dump() | by


def _cell_json(row: CellResult) -> dict[str, JSON]:
    gain, test = row.differences["ndcg@10"], row.test
    difference = None
    if test is not None:
        ends = {"interval": test.interval, "simultaneous": test.simultaneous}
        difference = {"mean": gain.mean, **ends, "wins": gain.wins, "ties": gain.ties, "losses": gain.losses}
    judged = row.scores.get("judged@10")
    return {
        "cell": row.cell,
        "role": row.role,
        "ndcg@10": row.scores["ndcg@10"].model_dump(include={"mean", "low", "high"}),
        "difference": difference,
        "p_gain": None if test is None else test.p_gain,
        "p_step": None if test is None else test.p_step,
        "p_adjusted": None if test is None else test.p_adjusted,
        "recall@10": row.scores["recall@10"].model_dump(include={"mean", "low", "high"}),
        "recall_change": None if test is None else row.differences["recall@10"].mean,
        "recall_bound": None if row.recall_bound is None else row.recall_bound.model_dump(),
        "gate": row.gate.verdict,
        "judged": None if judged is None else judged.mean,
        "meets_criterion_5": row.meets_criterion_5,
        "confirmed": row.confirmed,
        "loss": None if row.loss is None else row.loss.model_dump(),
    }
