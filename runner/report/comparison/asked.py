"""What was asked of two results otherwise, and whether a difference of their figures may be read as one of cells."""

from collections.abc import Sequence

from runner.base.canonical import JSON
from runner.decide.previous_version import settings_changed
from runner.eval_set.shapes.results import Results
from runner.eval_set.shapes.versions import QueriesKept
from runner.report.comparison.inputs import Scored


def reading(
    before: Scored | Results, now: Results, differs: Sequence[str], names: Sequence[str], common: int
) -> dict[str, JSON]:
    """Whether a difference of figures may be read as one of cells: `level` yes, with care, or no, and the sentences.

    The rule is that of a version beside the one it was opened from; labels are told apart since they move alone.
    """
    sentences, other_labels = [], before.labels.sha256 != now.labels.sha256
    if differs:
        level = "no"
        sentences.append(
            f"Not the same on both sides: {_listed(differs)}. A level may differ for reasons that are no cell's."
        )
        sentences.append(_left_to_compare(differs, common))
    elif other_labels:
        level = "with care"
        sentences.append("Both asked the same queries of the same documents, under the same instructions.")
    else:
        level = "yes"
        sentences.append(
            "Queries, documents, instructions, relevant grade and labels are the same, so figures differ only where "
            "cells, or their runs, do."
        )
    if other_labels:
        sentences.append(
            "They were scored with other labels: where a run is the same, whatever moved is of labels alone."
        )
    if before.plan.baseline != now.plan.baseline:
        sentences.append(
            f"The baselines differ: gains and tiers are over {before.plan.baseline} in {names[0]} and over "
            f"{now.plan.baseline} in {names[1]}; a gain of one says nothing of a gain of the other."
        )
    return {"level": level, "sentences": sentences}


def _left_to_compare(differs: Sequence[str], common: int) -> str:
    if "documents" in differs or not common:
        return "No movement is given, since none would be of a cell: compare cells within one result."
    return (
        f"Movements are over the {common:,} queries with the same words on both sides, so what other queries do to a "
        "level is not in them" + ("." if differs == ["queries"] else "; the rest of what differs is.")
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def differences(before: Scored | Results, now: Results, queries: QueriesKept) -> list[str]:
    """What makes levels incomparable, by name."""
    found = {
        "the source": before.source != now.source,
        "queries": bool(queries.changed or queries.new or queries.gone),
        "documents": before.corpus.manifest_sha256 != now.corpus.manifest_sha256,
        "the judge's instructions": before.judge_prompt_sha256 != now.judge_prompt_sha256,
        "the relevant grade": before.plan.relevant_grade != now.plan.relevant_grade,
    }
    return [name for name, is_other in found.items() if is_other]


def asked(before: Scored | Results, now: Results, queries: QueriesKept) -> list[dict[str, JSON]]:
    """What was asked of either, one row a thing; `same` compares whole values, digests where there are any."""
    told: dict[str, tuple[JSON, JSON, bool]] = {
        "Source": _values(before.source, now.source),
        "Baseline": _values(before.plan.baseline, now.plan.baseline),
        "Queries": (
            len(before.queries),
            len(now.queries),
            not (queries.changed or queries.new or queries.gone),
        ),
        "Documents": (
            before.corpus.documents,
            now.corpus.documents,
            before.corpus.manifest_sha256 == now.corpus.manifest_sha256,
        ),
        "Manifest of the documents": _digests(before.corpus.manifest_sha256, now.corpus.manifest_sha256),
        "Judge's instructions": _digests(before.judge_prompt_sha256, now.judge_prompt_sha256),
        "Relevant grade": _values(before.plan.relevant_grade, now.plan.relevant_grade),
        "Lines of labels": (before.labels.lines, now.labels.lines, before.labels.sha256 == now.labels.sha256),
        "Unjudged pairs of the pool": _values(before.labels.unjudged_pairs, now.labels.unjudged_pairs),
        "Cells": (len(before.cells), len(now.cells), {c.cell for c in before.cells} == {c.cell for c in now.cells}),
    }
    for name in settings_changed(before.plan, now.plan):
        if name not in ("source", "baseline", "relevant_grade"):
            sides = [side.plan.model_dump().get(name) for side in (before, now)]
            told[name.replace("_", " ").capitalize()] = (*_apart(*sides), False)
    return [{"what": what, "before": old, "now": new, "same": same} for what, (old, new, same) in told.items()]


def _apart(before: JSON, now: JSON) -> tuple[JSON, JSON]:
    """Of two groups of settings those that differ; other values as they are."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return before, now
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return {name: before.get(name) for name in names}, {name: now.get(name) for name in names}


def _values(before: JSON, now: JSON) -> tuple[JSON, JSON, bool]:
    return before, now, before == now


def _digests(before: str | None, now: str | None) -> tuple[JSON, JSON, bool]:
    return (before or "")[:12] or None, (now or "")[:12] or None, before == now
