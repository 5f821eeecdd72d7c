"""The rows of results.json: every cell scored, tested against the baseline, and put through both faces of the gate."""

from collections.abc import Callable

from runner.base.records import Run
from runner.base.schema import part
from runner.decide.tiers import CellFigures, meets_criterion_5, unmet_criteria
from runner.eval_set.asked import topic_of
from runner.eval_set.shapes.cell import Provenance
from runner.eval_set.shapes.gate import GateVerdict
from runner.eval_set.shapes.results import CellResult, Role
from runner.gate.diagnosis import diagnosis
from runner.gate.gate import Gate
from runner.gate.single_gold import single_gold_verdict
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison
from runner.score.score import score, single_gold
from runner.score.tipping_point import tipping_point


def cell_results(
    comparison: Comparison,
    gate: Gate,
    blockers: Callable[[str], list[str]] = lambda cell: [],
) -> list[CellResult]:
    """Return one row per cell, best mean nDCG@10 first, equal ones by name.

    `blockers` says what keeps a cell from being confirmed that is so by its scores.
    """
    rows = [_row(comparison, gate, cell, blockers) for cell in comparison.runs]
    return sorted(rows, key=lambda row: (-row.scores["ndcg@10"].mean, row.cell))


def _row(comparison: Comparison, graded: Gate, cell: str, blockers: Callable[[str], list[str]]) -> CellResult:
    plan, run = comparison.plan, comparison.runs[cell]
    scores, differences, test = comparison.means[cell], comparison.differences[cell], comparison.tests.get(cell)
    gate = graded.judge(run, comparison.document_chunks(cell))
    gain, recall = differences["ndcg@10"].mean, differences["recall@10"].mean
    unjudged, bounds = unjudged_hits(comparison, run)
    unmet = []
    # Published judgments decide nothing: no cell of theirs is a candidate, confirmed, or short of anything.
    loss, same = comparison.losses.get(cell), comparison.same_lists.get(cell, "")
    eligible = test is not None and not comparison.published and loss is None and not same
    if eligible and test is not None:
        tested, judged = comparison.gain_tests.get(cell), scores["judged@10"].mean
        figures = CellFigures(gain, recall, comparison.effective, tested, gate.verdict, judged)
        unmet = unmet_criteria(figures, plan.rule) or blockers(cell)
    elif loss is not None and not comparison.published:
        unmet = [f"copies {comparison.copies[cell]}, against which it is asked what it loses"]
    elif same and not comparison.published:
        unmet = [f"returns the same lists as {same}, which stands for it"]
    return CellResult(
        cell=cell,
        role=_role(cell, comparison),
        scores=scores,
        differences=differences,
        test=test,
        recall_bound=comparison.recall_bounds.get(cell),
        meets_criterion_5=eligible and meets_criterion_5(gain, recall, plan.rule),
        short_of=unmet,
        gate=gate,
        diagnosis=diagnosis(run, gate, graded.blind(run), plan.null_gate.alpha, comparison.unanswered),
        same_as=same,
        single_gold=single_gold_verdicts(comparison, run),
        unjudged=unjudged,
        bounds=bounds,
        # A cell's file without its backend, which decides nothing, and without what only gate and explorations read.
        provenance=part(Provenance, comparison.facts[cell]),
        expected=comparison.expected_gains.get(cell),
        loss=loss,
        over_incumbent=comparison.over_incumbent.get(cell),
        tipping_point=tipping_point(
            run,
            comparison.runs[plan.baseline],
            [*comparison.asked_weights],
            comparison.qrels,
            comparison.highest_grade,
            [*comparison.asked_weights.values()],
        ),
        by_wording=comparison.by_wording(cell),
    )


def _role(cell: str, comparison: Comparison) -> Role:
    if cell == comparison.plan.baseline:
        return "baseline"
    if comparison.published:
        return "compared"
    if cell == comparison.plan.incumbent:
        return "incumbent"
    return "preregistered" if cell in comparison.registered else "exploratory"


def single_gold_verdicts(comparison: Comparison, run: Run) -> dict[str, GateVerdict]:
    """Return nulls A to D by measure, as if each query's highest-graded document (of equals the first) were right.

    Queries without a document graded above 0 have no such document and are left out. Empty if the corpus has fewer
    than ten documents, among which retrieving ten at random finds everything.
    """
    gold = single_gold([one.id for one in comparison.asked], comparison.grades_of_asked)
    lengths, settings = comparison.document_lengths, comparison.plan.null_gate
    if not gold or len(lengths) < 10:
        return {}
    return {
        measure: single_gold_verdict(
            run,
            gold,
            {query_id: comparison.strata[topic_of(query_id)] for query_id in gold},
            lengths,
            measure,
            draws=settings.draws,
            tau=settings.tau,
            alpha=settings.alpha,
            seed=settings.seed,
        )
        for measure in ("recall@10", "mrr@10")
    }


def unjudged_hits(comparison: Comparison, run: Run) -> tuple[int, list[float]]:
    """Return how many hits among the first ten nobody judged, and the least and the greatest nDCG@10 that they allow.

    These are the means of the lower and of the higher score, query by query, that grading all of them as worthless and
    as perfect gives. A perfect one raises the ideal too, so either can be the higher.
    """
    # All unjudged hits perfect; all worthless is what the score counts already.
    judged = comparison.grades_of_asked
    filled = {asked_id: dict(grades) for asked_id, grades in judged.items()}
    unjudged = 0
    for asked_id, hits in run.hits.items():
        for hit in hits[:10]:
            if hit.doc_id not in judged[asked_id]:
                unjudged += 1
                filled[asked_id][hit.doc_id] = comparison.highest_grade
    grade = comparison.plan.relevant_grade
    scores = [comparison.by_topic(score(run, [*judged], qrels, grade)) for qrels in (judged, filled)]
    both = score_matrix(scores, "ndcg@10")[:, comparison.counted]
    return unjudged, [comparison.mean(both.min(axis=0)), comparison.mean(both.max(axis=0))]
