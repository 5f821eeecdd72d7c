"""One result beside another, or beside a report on the substrate: what was asked otherwise, and how far cells moved."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.base.canonical import JSON
from runner.decide.previous_version import Beside, queries_kept, settings_changed
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.paired import Difference, MeasureResult
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.versions import Movement, QueriesKept
from runner.report.comparison.inputs import CellThen, Scored, Side
from runner.substrate.shapes import ArmResult, FindingResult, PostBulk
from runner.substrate.verdict import verdict

MEASURES = ("ndcg@10", "recall@10", "mrr")
"""What is set side by side; the last two depend on the relevant grade."""

Cell = CellResult | CellThen


class Reading(NamedTuple):
    """Whether a difference of figures may be read as one of cells: "yes", "with care" or "no", and why."""

    level: str
    sentences: Sequence[str]


class AskedRow(NamedTuple):
    """What was asked of either; `same` compares whole values, and is None if there is nothing to compare."""

    what: str
    before: JSON
    now: JSON
    same: bool | None


class SideShown(NamedTuple):
    """What the page says of a side as a whole; `gains` if a decision could rest on it."""

    name: str
    kind: str
    tier: str
    sentence: str
    not_shown: str
    baseline: str
    sha256: str
    decision: Decision | None
    gains: bool


class Level(NamedTuple):
    """A mean with its interval."""

    mean: float
    low: float
    high: float


class GainShown(NamedTuple):
    """A gain over the side's own baseline; `alone` if the interval is that of one cell, which has no adjusted p."""

    mean: float
    low: float
    high: float
    alone: bool
    p: float | None
    standing: str


class SideValues(NamedTuple):
    """A side's figures of a row; `per_query` is nDCG@10 of the queries in common. A search has bounds and no gain."""

    scores: Mapping[str, Level]
    per_query: Sequence[int]
    gain: GainShown | None = None
    bounds: Sequence[float] = ()
    unjudged: int = 0


class PairRow(NamedTuple):
    """A cell of either side, or a search beside the cell `record`; a side that does not have it has no values."""

    name: str
    record: str
    before: SideValues | None
    now: SideValues | None
    moved: Mapping[str, Movement | Difference | None]
    same_run: bool = False
    roles: tuple[str, str] = ("", "")
    p: float | None = None


class Compared(NamedTuple):
    """Both sides, what was asked of each, the reading of their figures, and one row per cell of either."""

    sides: tuple[SideShown, SideShown]
    asked: Sequence[AskedRow]
    queries: QueriesKept
    reading: Reading
    rows: Sequence[PairRow]
    common: Sequence[str]
    texts: Mapping[str, str]
    findings: Sequence[FindingResult]
    limits: Sequence[str]


def compared_results(before: Side, now: Side) -> Compared:
    """Two results. Cells of the later one come first, in its ranking; raises nothing: whatever differs is told."""
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
    return Compared(
        sides=(told_side(before, names[0]), told_side(now, names[1])),
        asked=asked(before.results, now.results, queries),
        queries=queries,
        reading=reading(before.results, now.results, differs, names, len(common)),
        rows=_rows(before.results, now.results, beside),
        common=common,
        texts=texts,
        findings=[],
        limits=[
            "No movement here was tested against chance, and none is adjusted for how many cells are compared.",
            *_provisional((before, now), names),
        ],
    )


def reading(
    before: Scored | Results, now: Results, differs: Sequence[str], names: Sequence[str], common: int
) -> Reading:
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
    return Reading(level, sentences)


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


def asked(before: Scored | Results, now: Results, queries: QueriesKept) -> list[AskedRow]:
    """What was asked of either, one row a thing; `same` compares whole values, digests if there are any."""
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
    return [AskedRow(what, *values) for what, values in told.items()]


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


def _names(before: Side, now: Side) -> list[str]:
    """What each side is called; the digests are added if both would be called the same."""
    names = [before.name, now.name]
    if before.results.source != now.results.source:
        names = [f"{side.results.source} {side.name}" for side in (before, now)]
    if names[0] == names[1]:
        names = [f"{side.name} ({side.sha256[:8]})" for side in (before, now)]
    return names


def told_side(side: Side, name: str) -> SideShown:
    """A result as a whole."""
    outcome = side.results.outcome
    return SideShown(
        name=name,
        kind=side.results.kind,
        tier=outcome.tier,
        sentence=outcome.sentence,
        not_shown=outcome.not_shown,
        baseline=side.results.plan.baseline,
        sha256=side.sha256,
        decision=side.decision,
        gains=True,
    )


def _rows(before: Scored | Results, now: Results, beside: Beside) -> list[PairRow]:
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
) -> PairRow:
    moved: dict[str, Movement | Difference | None] = dict.fromkeys(MEASURES)
    if old is not None and new is not None:
        for measure in MEASURES:
            moved[measure] = beside.measure_beside(measure, old, new, places).movement  # type: ignore[arg-type]  # fewer fields do
    return PairRow(
        name=name,
        record="",
        before=None if old is None else _values_of(old, places[0], beside.common),
        now=None if new is None else _values_of(new, places[1], beside.common),
        moved=moved,
        same_run=old is not None and new is not None and old.provenance.run_sha256 == new.provenance.run_sha256,
        roles=("" if old is None else old.role, "" if new is None else new.role),
    )


def _values_of(row: Cell, places: Mapping[str, int], common: Sequence[str]) -> SideValues:
    ndcg = row.scores["ndcg@10"].per_query
    gain = None
    if row.test is not None:
        low, high = row.test.simultaneous or row.test.interval
        gain = GainShown(
            mean=row.differences["ndcg@10"].mean,
            low=low,
            high=high,
            alone=row.test.simultaneous is None,
            p=row.test.p_adjusted,
            standing="confirmed" if row.confirmed else "candidate" if row.meets_criterion_5 else "no candidate",
        )
    levels = {name: Level(row.scores[name].mean, row.scores[name].low, row.scores[name].high) for name in MEASURES}
    return SideValues(levels, [ndcg[places[name]] for name in common], gain)


def _provisional(sides: Sequence[Side], names: Sequence[str]) -> list[str]:
    return [
        f"{name[0].upper()}{name[1:]} was scored before every pair of its pool was judged; its figures may still move."
        for side, name in zip(sides, names, strict=True)
        if side.results.provisional
    ]


def compared_bulk(now: Side, bulk: PostBulk, bulk_sha256: str) -> Compared:
    """A report: the record is what was before, the substrate what is now, and one row a search."""
    return Compared(
        sides=(told_side(now, f"record, {now.name}"), _substrate(bulk, bulk_sha256)),
        asked=_asked_of_bulk(now, bulk),
        queries=QueriesKept(common=len(bulk.queries), changed=[], new=[], gone=[]),
        reading=_reading_of_bulk(bulk),
        rows=[_search(arm) for arm in bulk.arms],
        common=bulk.queries,
        texts={query.id: query.text for query in now.results.queries},
        findings=bulk.findings,
        limits=bulk.limits,
    )


def _substrate(bulk: PostBulk, digest: str) -> SideShown:
    faults = len(bulk.faults)
    return SideShown(
        name=f"substrate {bulk.substrate.version}",
        kind="post-bulk",
        tier=f"{faults} fault{'' if faults == 1 else 's'}" if faults else "no fault",
        sentence=verdict(bulk),
        not_shown="",
        baseline=bulk.plan.baseline,
        sha256=digest,
        decision=None,
        gains=False,
    )


def _asked_of_bulk(now: Side, bulk: PostBulk) -> list[AskedRow]:
    covered = bulk.coverage
    return [
        AskedRow("Queries", len(now.results.queries), len(bulk.queries), True),
        AskedRow(
            "Documents with chunks", covered.documents, covered.with_chunks, covered.documents == covered.with_chunks
        ),
        AskedRow("Cell decided upon, and vectors held to", bulk.chosen.cell, bulk.model.model_id, None),
        AskedRow("Chunks held by the substrate", None, bulk.substrate.chunks, None),
        AskedRow("Words of full text", None, bulk.substrate.tokenizer, None),
    ]


def _reading_of_bulk(bulk: PostBulk) -> Reading:
    """Labels are the record's: hits that nobody graded count as worthless on the substrate's side alone."""
    unjudged, covered = sum(arm.unjudged for arm in bulk.arms), bulk.coverage
    missing = covered.documents - covered.with_chunks
    sentences = ["Both answered the same queries and were scored with the same labels."]
    if unjudged:
        sentences.append(
            f"{unjudged:,} hits of the searches' top tens were never graded and count as not relevant, which flatters "
            "the record: a search's nDCG@10 lies between its bounds."
        )
    if missing:
        sentences.append(
            f"{missing:,} of the record's {covered.documents:,} documents have no chunks in the substrate, so no "
            "search can find them."
        )
    if not unjudged and not missing:
        sentences.append(
            "Every document has chunks, and every hit of the top ten is graded: a difference is of the search and of "
            "what was bulk embedded."
        )
    return Reading("with care" if unjudged or missing else "yes", sentences)


def _search(arm: ArmResult) -> PairRow:
    beside = arm.beside
    moved: dict[str, Movement | Difference | None] = dict.fromkeys(MEASURES)
    return PairRow(
        name=arm.arm,
        record=beside.cell if beside else "",
        before=_values_of_search(beside.scores) if beside else None,
        now=_values_of_search(arm.scores)._replace(bounds=arm.bounds, unjudged=arm.unjudged),
        moved={name: beside.differences[name] for name in MEASURES} if beside else moved,
        p=beside.test.p if beside else None,
    )


def _values_of_search(scores: Mapping[str, MeasureResult]) -> SideValues:
    levels = {name: Level(scores[name].mean, scores[name].low, scores[name].high) for name in MEASURES}
    return SideValues(levels, scores["ndcg@10"].per_query)
