"""The judges of a version: how they agree, and what other grades than the scored ones leave of every cell."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runner.base.figures import gain_text, p_text, round4
from runner.base.records import Run
from runner.decide.tiers import CellFigures, greatest_gain, meets_criterion_5, unmet_criteria
from runner.decide.two_level import two_level
from runner.eval_set.labels import scored
from runner.eval_set.shapes.judges import CellUnderJudge, JudgeNoise, Judging, Readers, SecondJudge
from runner.eval_set.shapes.labels import Label, undated
from runner.eval_set.shapes.plan import ScoredPlan
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double, doubles, drifts
from runner.judge.agreement.kappa import confusion, estimates
from runner.score.comparison import Comparison, mean


def agreement(labels: Sequence[Label], runs: Mapping[str, Run], query_ids: Sequence[str], plan: ScoredPlan) -> Judging:
    """Return what the labels of these queries say of the judges; no entries if no pair was read more than once.

    `runs` are those whose first ten are told apart; without the baseline among them nothing is said by cell.
    """
    known = set(query_ids)
    rows = [label for label in labels if label.query_id in known]
    twice = doubles(rows)
    n_read = Counter(double.second_judge for double in twice)
    judges = sorted(n_read, key=lambda judge: (-n_read[judge], judge))
    return Judging(
        pairs=len(scored(rows)),
        read_twice=len({(double.query_id, double.doc_id) for double in twice}),
        seconds=[_second([double for double in twice if double.second_judge == judge], runs, plan) for judge in judges],
        drift=drifts(rows, seed=plan.significance.seed),
        noise=None,
    )


def _second(twice: Sequence[Double], runs: Mapping[str, Run], plan: ScoredPlan) -> SecondJudge:
    """Return the agreement of one second judge with the first ones; `twice` are the pairs that it read."""
    by_query: dict[str, list[tuple[int, int]]] = {}
    for double in twice:
        by_query.setdefault(double.query_id, []).append((double.first, double.second))
    # Intervals are over queries: a judge who misreads one need errs in all of its pairs.
    bootstrap, settings = plan.bootstrap, plan.significance
    tables = {query_id: confusion(grades) for query_id, grades in by_query.items()}
    kappa, binary = estimates(tables, plan.relevant_grade, seed=bootstrap.seed, confidence=bootstrap.confidence)
    by_cell = []
    if plan.baseline in runs:
        by_cell = favours(twice, runs, plan.baseline, alpha=settings.alpha, seed=settings.seed)
    return SecondJudge(
        judge=twice[0].second_judge,
        models=sorted({double.second_model for double in twice} - {""}),
        readers=_readers(twice),
        first_judges=sorted({double.first_judge for double in twice}),
        pairs=len(twice),
        queries=len(by_query),
        same=sum(double.first == double.second for double in twice),
        higher=sum(double.first < double.second for double in twice),
        kappa=kappa,
        binary=binary,
        by_cell=by_cell,
    )


def _readers(twice: Sequence[Double]) -> Readers:
    if not all(double.first_model and double.second_model for double in twice):
        return "people"
    is_one = all(undated(double.first_model) == undated(double.second_model) for double in twice)
    return "one model" if is_one else "models"


def judging(comparison: Comparison, labels: Sequence[Label]) -> Judging:
    """Return the agreement of the judges, and the decision under noise and under every judge.

    None of them is left out, since any may upset a cell.
    """
    twice = doubles(labels)
    panel = agreement(labels, comparison.runs, comparison.query_ids, comparison.plan)
    seconds = []
    for second in panel.seconds:
        read = [double for double in twice if double.second_judge == second.judge]
        cells, recommended = under_judge(comparison, read)
        seconds.append(second.model_copy(update={"cells": cells, "recommended": recommended}))
    noise = two_level(comparison, twice, seed=comparison.plan.bootstrap.seed) if twice else None
    return panel.model_copy(update={"seconds": seconds, "noise": noise})


def under_judge(comparison: Comparison, read: Sequence[Double]) -> tuple[list[CellUnderJudge], str]:
    """Return what another judge's first grades, put in place of the scored ones, make of the cells and of the choice.

    Pairs that it did not read keep the scored grade; so few readings move little, and "it holds" says no more than that
    these few do not upset it. Null gate and unjudged hits are left aside.
    """
    under = comparison
    # A judge who grades everything alike costs no second test.
    if changed := [double for double in read if double.first != double.second]:
        qrels = {query_id: dict(grades) for query_id, grades in comparison.qrels.items()}
        for double in changed:
            qrels[double.query_id][double.doc_id] = double.second
        under = replace(comparison, qrels=qrels)
    eligible = {
        cell: under.expected_gains[cell]
        for cell in under.challengers
        if cell in under.registered and meets_criterion_5(*_differences(under, cell), under.plan.rule)
    }
    return [cell_under_judge(under, cell) for cell in under.challengers], greatest_gain(eligible, under.plan)


def cell_under_judge(comparison: Comparison, cell: str) -> CellUnderJudge:
    """Return what the test says of a cell with the grades that the comparison has."""
    test, (gain, recall) = comparison.gain_tests.get(cell), _differences(comparison, cell)
    figures = CellFigures(gain, recall, len(comparison.queries), test, "pass", 1.0)
    holds = not unmet_criteria(figures, comparison.plan.rule)
    return CellUnderJudge(cell=cell, gain=gain, p_gain=test and test.p, holds=holds)


def _differences(comparison: Comparison, cell: str) -> tuple[float, float]:
    """Return the cell's mean nDCG@10 and Recall@10 less the baseline's, without the intervals that take time."""
    gain, recall = (mean(comparison.paired([cell], measure)[0]) for measure in ("ndcg@10", "recall@10"))
    return gain, recall


Blockers = Callable[[str], list[str]]
"""What the judges leave of a cell, in words of `tiers.unmet_criteria`; empty if they uphold it."""


def blockers(panel: Judging | None, labels: Sequence[Label], alpha: float) -> Blockers:
    """Return what keeps a cell that is confirmed by its scores from being confirmed, as a function of the cell.

    Grades of a model that too few second readings check uphold nothing: else fewer readings would confirm more. Nothing
    keeps a cell if the judgments are published, without a panel.
    """
    if panel is None:
        return lambda cell: []
    others = {second.judge: second.cells for second in panel.seconds}
    favoured, unchecked = _favoured(panel), []
    if any(label.model for label in scored(labels).values()) and (panel.noise is None or panel.noise.unknown):
        unchecked = ["was judged by a model that nobody checked (labels double)"]
    return lambda cell: [*unchecked, *judge_blockers(cell, panel.noise, others, favoured, alpha)]


def judge_blockers(
    cell: str,
    noise: JudgeNoise | None,
    others: Mapping[str, Sequence[CellUnderJudge]],
    favoured: Mapping[str, float | None],
    alpha: float,
) -> list[str]:
    """Return what the judges leave of a cell: more of what "it" does or is that keeps it from being confirmed.

    `others` are the cells under each second judge. `favoured` has each cell's adjusted p of the first judge favouring
    it, None if that is unknown; a cell that is not in it was not asked. Only a cell that is confirmed by its scores
    alone should be asked: the words say what the judges add. A two-level interval that does not exclude 0 keeps a cell
    from being confirmed as well; one that was not drawn does not.
    """
    upset = [judge for judge, cells in others.items() if cell not in {row.cell for row in cells if row.holds}]
    words = [f"is not confirmed with the grades of {judge}" for judge in upset]
    p = favoured.get(cell)
    if p is not None and round4(p) <= alpha:
        words.append(f"is favoured by its judge (adjusted p {p_text(p)})")
    noisy = next((row for row in noise.cells if row.cell == cell), None) if noise else None
    if noisy is not None and round4(noisy.interval[0]) <= 0:
        low, high = map(gain_text, noisy.interval)
        words.append(f"may owe its gain to the judge's errors ({low} to {high} with the grades of a second judge)")
    return words


def _favoured(panel: Judging) -> dict[str, float | None]:
    """Return each cell's p of a judge that favours it; of several second judges the least, adjusted for them all."""
    least: dict[str, float | None] = {}
    for second in panel.seconds:
        for row in second.by_cell:
            # Bonferroni: every second judge is another chance to find a favour.
            p = None if row.p_for_cell is None else min(1.0, row.p_for_cell * len(panel.seconds))
            known = least.get(row.cell)
            least[row.cell] = p if known is None else known if p is None else min(p, known)
    return least
