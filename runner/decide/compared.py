"""One result beside another: how far every cell moved, and what became of the version that this one was opened from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.base.canonical import file_sha256
from runner.base.records import Qrels, Run
from runner.eval_set.asked import asked_ids
from runner.eval_set.history import earlier, with_results
from runner.eval_set.labels import load_labels, version_labels
from runner.eval_set.lock import verify_lock
from runner.eval_set.plan import read_plan
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.cell import Provenance
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.versions import JUDGE_PROMPT, Compared, Kept, PreviousVersion
from runner.eval_set.version import Version, load_decision, load_queries, load_results
from runner.judge.carried_labels import check_earlier, digests, texts
from runner.score.comparison import Comparison, less, summarised
from runner.score.score import qrels

BESIDE = ("ndcg@10", "recall@10")
"""What is set beside one another; the second depends on the relevant grade."""


@dataclass(frozen=True)
class Recorded:
    """A version's results and what they were scored from: queries, grades, and the run of every cell."""

    version: Version
    results: Results
    queries: Sequence[QueryRow]
    qrels: Qrels

    def run(self, cell: str, version: Version | None = None) -> Run:
        """Return the run of a cell, of the version or of another folder, over the queries that were scored."""
        return read_run((version or self.version).run_path(cell), cell, asked_ids(self.queries))

    def comparison(self, runs: Mapping[str, Run], baseline: str) -> Comparison:
        """Compare runs with the one named; they are no family, so that every p stands alone."""
        plan = self.results.plan.model_copy(update={"baseline": baseline})
        return Comparison(plan, self.queries, runs, self.qrels)


def recorded(version: Version) -> Recorded:
    """Return a version's results with the labels that they were scored with: later ones would move the figures."""
    results = load_results(version)
    labels = version_labels(version, results.labels.lines)
    return Recorded(version, results, load_queries(version.queries_path), qrels(labels))


def compared(old: Results, new: Results, *, measures: Sequence[str] = BESIDE) -> dict[str, Compared]:
    """Return every cell of either result, those of `new` first, each in the order of its ranking.

    Differences, in `measures`, are over the queries that both ask in the same words under one id; there are none
    without such a query, and none of a measure by relevance if the relevant grade differs. Whether documents and judges
    are the same, so that a difference means something, is for the caller to know.
    """
    before, after = ({row.cell: row for row in results.cells} for results in (old, new))
    asked = {query.id: query.wordings for query in old.queries}
    rows = zip(new.queries, new.topic_weights, strict=True)
    counted = {query.id: weight for query, weight in rows if weight and asked.get(query.id) == query.wordings}
    common, weights = [*counted], [*counted.values()]
    if old.plan.relevant_grade != new.plan.relevant_grade:
        measures = [measure for measure in measures if measure == "ndcg@10"]

    def moved(cell: str, measure: str) -> Difference:
        scores = by_query(new, after[cell], measure), by_query(old, before[cell], measure)
        return summarised(less(*scores, common)[None], new.plan.bootstrap, weights)[0]

    return {
        cell: Compared(
            before=_means(before.get(cell)),
            difference={name: moved(cell, name) for name in measures if common and cell in before and cell in after},
            changed=_changed(before.get(cell), after.get(cell)),
        )
        for cell in dict.fromkeys([*after, *before])
    }


def by_query(results: Results, row: CellResult, measure: str) -> dict[str, int]:
    """Return a cell's scores in one measure by query id, in units of 1e-9."""
    return dict(zip((query.id for query in results.queries), row.scores[measure].per_query, strict=True))


def _means(row: CellResult | None) -> dict[str, float]:
    return {} if row is None else {measure: row.scores[measure].mean for measure in BESIDE}


def _changed(before: CellResult | None, after: CellResult | None) -> list[str]:
    if before is None or after is None:
        return []
    old, new = before.provenance, after.provenance
    return [name for name in Provenance.model_fields if getattr(old, name) != getattr(new, name)]


def previous_version(version: Version, results: Results) -> PreviousVersion | None:
    """Return the version that this one was opened from, beside its results; None without one, and in an exploration.

    A pure function of the two versions' files. An IntegrityError if the earlier one is not as it was locked.
    """
    before = earlier(version)
    if before is None or results.kind not in ("production", "rehearsal"):
        return None
    check_earlier(version, before)
    asked_before, asked = texts(before), texts(version)
    held_before, held = digests(before), digests(version)
    lock = verify_lock(before.record)
    decision = None if lock is None else load_decision(before)
    path = before.plan_path(rehearsal=before.rehearsal)
    # Scored was with what the results say; judges and encoders of the plan's own stand in its file alone.
    plan = read_plan(version.plan_path(rehearsal=version.rehearsal)).model_copy(update=dict(results.plan))
    changed = settings_changed(read_plan(path), plan) if path.exists() else []
    # The judge's prompt is no field of a plan, but grades depend on it as much.
    prompt = before.judge_path
    if prompt.exists() and file_sha256(prompt) != results.digests[version.judge_path.name]:
        changed.append(JUDGE_PROMPT)
    # A decision by policy has no results, and other documents leave nothing to pair.
    scored = lock is not None and before.results_path.name in lock.files
    measures = BESIDE if held == held_before else ()
    return PreviousVersion(
        version=before.number,
        chosen="" if decision is None else decision.chosen.cell,
        tier="" if decision is None else decision.tier,
        results_sha256=None if decision is None else decision.results_sha256,
        queries=_kept(asked_before, asked),
        documents=_kept(held_before, held),
        labels_carried=_labels_carried(before, version, results.labels.lines),
        changed=changed,
        cells=compared(load_results(before), results, measures=measures) if scored else {},
    )


def known_before(version: Version, queries: Sequence[QueryRow]) -> dict[str, list[str]]:
    """Return what keeps a cell from being confirmed that an earlier version tested on a query that is asked again.

    In words of `tiers.unmet_criteria`, by cell: whoever knows its figures can give it more of the error than it had. A
    cell that was confirmed may be so again. Versions that were given up count, and either view.
    """
    asked = {text for query in queries for text in query.wordings.values()}
    found: dict[str, list[str]] = {}
    for view in with_results(version):
        results = load_results(view)
        if not asked.isdisjoint(text for query in results.queries for text in query.wordings.values()):
            tested = [row for row in results.cells if row.test is not None and row.test.p_gain is not None]
            lacks = [f"was tested on queries of v{view.number}, which did not confirm it (version --confirm)"]
            found |= {row.cell: lacks for row in tested if not row.confirmed}
    return found


def settings_changed(before: Plan, now: Plan) -> list[str]:
    """Return the plan's fields that differ, but for its number and its cells."""
    names = [name for name in Plan.model_fields if name not in ("version", "cells")]
    return [name for name in names if getattr(before, name) != getattr(now, name)]


def _kept(before: Mapping[str, str], now: Mapping[str, str]) -> Kept:
    """Count how queries or documents, by id their text or its digest, became others."""
    both = now.keys() & before.keys()
    common = sum(before[name] == now[name] for name in both)
    return Kept(common=common, changed=len(both) - common, new=len(now) - len(both), gone=len(before) - len(both))


def _labels_carried(before: Version, version: Version, n_scored: int) -> int:
    """Count the lines that were scored and that the earlier version has word for word."""
    known = {label.key: label for label in load_labels(before.labels_path)}
    return sum(known.get(label.key) == label for label in load_labels(version.labels_path, n_scored))
