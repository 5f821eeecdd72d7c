"""What was asked of two results otherwise, and whether a difference of their figures may be read as one of cells.

One result beside another, cell by cell: the figures of both, and how far cells of both moved.
"""

from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.decide.previous_version import Beside, queries_kept, settings_changed
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.versions import QueriesKept
from runner.report.comparison.inputs import CellThen, Scored, Side
from runner.score.score import COMPARED


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


Cell = CellResult | CellThen


def compared_results(before: Side, now: Side) -> dict[str, JSON]:
    """Both sides, what was asked of each, the reading of their figures, and one row a cell of either.

    Cells of the later result come first, in its ranking. Raises nothing: whatever differs is told.
    """
    names = _names(before, now)
    texts_before, texts = ({query.id: query.text for query in side.results.queries} for side in (before, now))
    common = [name for name in texts if texts_before.get(name) == texts[name]]
    queries = queries_kept(texts_before, texts, len(common))
    assert isinstance(now.results, Results)  # only what it is compared with may be of another release
    differs = differences(before.results, now.results, queries)
    beside = Beside(
        now.results.plan,
        common,
        same_documents="documents" not in differs,
        same_grade="the relevant grade" not in differs,
    )
    return {
        "sides": [told_side(side, name) for side, name in zip((before, now), names, strict=True)],
        "asked": asked(before.results, now.results, queries),
        "queries": queries.model_dump(),
        "reading": reading(before.results, now.results, differs, names, len(common)),
        "rows": _rows(before.results, now.results, beside),
        "common": common,
        "texts": texts,
        "findings": [],
        "limits": [
            "No movement here was tested against chance, and none is adjusted for how many cells are compared.",
            *_provisional((before, now), names),
        ],
    }


def _names(before: Side, now: Side) -> list[str]:
    """What each side is called; the digests are added where both would be called the same."""
    names = [before.name, now.name]
    if before.results.source != now.results.source:
        names = [f"{side.results.source} {side.name}" for side in (before, now)]
    if names[0] == names[1]:
        names = [f"{side.name} ({side.sha256[:8]})" for side in (before, now)]
    return names


def told_side(side: Side, name: str) -> dict[str, JSON]:
    """What the page says of a side as a whole; `gains` where a decision could rest on it."""
    outcome, decision = side.results.outcome, side.decision
    return {
        "name": name,
        "source": side.results.source,
        "kind": side.results.kind,
        "tier": outcome.tier,
        "sentence": outcome.sentence,
        "not_shown": outcome.not_shown,
        "baseline": side.results.plan.baseline,
        "sha256": side.sha256,
        "decision": None if decision is None else decision.model_dump(),
        "gains": True,
    }


def _rows(before: Scored | Results, now: Results, beside: Beside) -> list[dict[str, JSON]]:
    old: Mapping[str, Cell] = {row.cell: row for row in before.cells}
    new = {row.cell: row for row in now.cells}
    places = _places(before.queries), _places(now.queries)
    return [
        _row(name, old.get(name), new.get(name), beside, places)
        for name in [*new, *(name for name in old if name not in new)]
    ]


def _places(queries: Sequence[JSON]) -> dict[str, int]:
    return {query.id: place for place, query in enumerate(queries)}


def _row(
    name: str, old: Cell | None, new: CellResult | None, beside: Beside, places: tuple[dict[str, int], dict[str, int]]
) -> dict[str, JSON]:
    moved: dict[str, JSON] = dict.fromkeys(COMPARED)
    if old is not None and new is not None:
        for measure in COMPARED:
            movement = beside.measure_beside(measure, old, new, places).movement  # type: ignore[arg-type]  # fewer fields do
            moved[measure] = movement and movement.model_dump()
    values = [
        None if row is None else _values_of(row, at, beside.common) for row, at in zip((old, new), places, strict=True)
    ]
    return {
        "name": name,
        "record": "",
        "before": values[0],
        "now": values[1],
        "moved": moved,
        "same_run": old is not None and new is not None and old.provenance.run_sha256 == new.provenance.run_sha256,
        "roles": ["" if row is None else row.role for row in (old, new)],
        "p": None,
    }


def _values_of(row: Cell, places: Mapping[str, int], common: Sequence[str]) -> dict[str, JSON]:
    """Means with their intervals, nDCG@10 of the queries in common, and the gain over the side's own baseline."""
    ndcg = row.scores["ndcg@10"].per_query
    gain = None
    if row.test is not None:
        low, high = row.test.simultaneous or row.test.interval
        gain = {
            "mean": row.differences["ndcg@10"].mean,
            "low": low,
            "high": high,
            "alone": row.test.simultaneous is None,
            "p": row.test.p_adjusted,
            "standing": "confirmed" if row.confirmed else "candidate" if row.meets_criterion_5 else "no candidate",
        }
    scores = {name: row.scores[name] for name in COMPARED}
    return {
        "scores": {name: {"mean": s.mean, "low": s.low, "high": s.high} for name, s in scores.items()},
        "per_query": [ndcg[places[name]] for name in common],
        "gain": gain,
    }


def _provisional(sides: Sequence[Side], names: Sequence[str]) -> list[str]:
    return [
        f"{name[0].upper()}{name[1:]} was scored before every pair of its pool was judged; its figures may still move."
        for side, name in zip(sides, names, strict=True)
        if side.results.provisional
    ]
