"""What a run says to a program when it is done: one JSON object of the same fields, whatever the outcome."""

from pathlib import Path

from runner.base.canonical import JSON, read_json
from runner.base.schema import checked
from runner.decide.decide import decision_sentence
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.version import Version, load_decision

Scored = tuple[Results, Path]
"""What a run scored, and the folder that holds it."""


def run_json(version: Version, scored: Scored | None, exit_code: int, message: str) -> dict[str, JSON]:
    """A run's outcome: its figures, or those that the recorded decision rests on, with what was said of it.

    Without either, before scoring and after a decision by policy, figures and files are null and there are no cells.
    """
    decision = load_decision(version) if (version.record / "decision.json").exists() else None
    path = version.record / "results.json"
    if scored is None and decision is not None and decision.kind != "policy":
        scored = checked(Results, read_json(path), path), version.record
    if scored is None:
        kind = "rehearsal" if version.rehearsal else "production"
        found = unscored_json(version.source.name, version.number, kind, decision)
    else:
        results, folder = scored
        found = summary_json(results, None if results.kind == "exploration" else decision, folder)
    return found | {"exit_code": exit_code, "message": message}


def summary_json(results: Results, decision: Decision | None, folder: Path) -> dict[str, JSON]:
    """What a program asks of a run: the outcome, the choice, and every cell's figures, best nDCG@10 first.

    `chosen` is null where nothing is decided; `results` and `page` are the files of `folder`.
    """
    said = results.outcome
    return {
        "source": results.source,
        "version": results.version,
        "kind": results.kind,
        "provisional": results.provisional,
        "tier": said.tier,
        "sentence": said.sentence,
        "not_shown": said.not_shown,
        "next_step": said.next_step,
        "baseline": results.plan.baseline,
        "chosen": None if decision is None else chosen_json(decision),
        "cells": [_cell_json(row) for row in results.cells],
        "results": str(folder / "results.json"),
        "page": str(folder / "results.html"),
    }


def unscored_json(source: str, version: int, kind: str, decision: Decision | None) -> dict[str, JSON]:
    """A summary's fields where there are no results: before scoring, and after a decision by policy."""
    fields = ("provisional", "tier", "sentence", "not_shown", "next_step", "baseline", "results", "page")
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
        "p_adjusted": None if test is None else test.p_adjusted,
        "recall@10": row.scores["recall@10"].model_dump(include={"mean", "low", "high"}),
        "recall_change": None if test is None else row.differences["recall@10"].mean,
        "guard": None if row.guard is None else row.guard.state,
        "gate": row.gate.verdict,
        "judged": None if judged is None else judged.mean,
        "meets_criterion_5": row.meets_criterion_5,
        "confirmed": row.confirmed,
    }
