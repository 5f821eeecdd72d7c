"""One result beside another, cell by cell: the figures of both, and how far cells of both moved."""

from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.decide.previous_version import Beside, queries_kept
from runner.eval_set.shapes.results import CellResult, Results
from runner.report.comparison.asked import asked, differences, reading
from runner.report.comparison.inputs import CellThen, Scored, Side

MEASURES = ("ndcg@10", "recall@10", "mrr")
"""What is set side by side; the last two depend on the relevant grade."""

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
    moved: dict[str, JSON] = dict.fromkeys(MEASURES)
    if old is not None and new is not None:
        for measure in MEASURES:
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
    scores = {name: row.scores[name] for name in MEASURES}
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
