"""The judges of a version: how they agree, and what other grades than the scored ones leave of every cell."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from runner.base.figures import gain_text, p_text, round4
from runner.base.records import ASKED, Run, by_model
from runner.decide.tiers import CellFigures, greatest_gain, meets_criterion_5, unmet_criteria
from runner.decide.two_level import two_level
from runner.eval_set.batches import Pair
from runner.eval_set.labels import scored
from runner.eval_set.shapes.judges import (
    PEOPLE,
    CellUnderJudge,
    JudgeNoise,
    Judging,
    SecondJudge,
)
from runner.eval_set.shapes.labels import Label, family
from runner.eval_set.shapes.plan import ScoredPlan
from runner.eval_set.shapes.queries import QueryRow
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double, doubles, drifts
from runner.judge.agreement.kappa import confusion, estimates, halves
from runner.score.comparison import Comparison
from runner.score.source_documents import missed_sources

LEAST_SHARE = 0.1
"""Of the relevant pairs, that a person or a second family of models must have read for grades to be more than one's."""


def agreement(
    labels: Sequence[Label], runs: Mapping[str, Run], queries: Sequence[QueryRow], plan: ScoredPlan
) -> Judging:
    """Return what the labels of these queries say of the judges; no entries if no pair was read more than once.

    `runs` are those whose first ten are told apart; without the baseline among them nothing is said by cell.
    """
    known = {query.id for query in queries}
    rows = [label for label in labels if label.query_id in known]
    twice = doubles(rows)
    n_read = Counter(double.second_judge for double in twice)
    judges = sorted(n_read, key=lambda judge: (-n_read[judge], judge))
    missed = _missed(rows, queries, plan)
    return Judging(
        read_twice=len({double.pair for double in twice}),
        seconds=[
            _second([double for double in twice if double.second_judge == judge], missed, runs, plan)
            for judge in judges
        ],
        graded=sorted({_reader(label.model) for label in scored(rows).values()}),
        read_again=sorted({_reader(double.second_model) for double in twice}),
        drift=drifts(rows, seed=plan.significance.seed),
        noise=None,
    )


def _missed(labels: Iterable[Label], queries: Iterable[QueryRow], plan: ScoredPlan) -> Collection[Pair]:
    """Return the source documents with less than a relevant grade, which are read again because of it."""
    grades = {pair: label.grade for pair, label in scored(labels).items()}
    return missed_sources(queries, grades, plan.relevant_grade).keys()


def writers(queries: Iterable[QueryRow]) -> list[str]:
    """Return the families of the models that wrote queries, PEOPLE for persons; nobody wrote those that were asked."""
    return sorted({_reader(query.origin) for query in queries if query.origin not in ASKED})


def _reader(model: str) -> str:
    return family(model) if model and by_model(model) else PEOPLE


def by_one_model(labels: Sequence[Label], relevant_grade: int) -> bool:
    """Return whether fewer than LEAST_SHARE of the relevant pairs were read by a person or by a second family."""
    readers: dict[Pair, set[str]] = {}
    for label in labels:
        readers.setdefault(label.pair, set()).add(_reader(label.model))
    relevant = [pair for pair, label in scored(labels).items() if label.grade >= relevant_grade]
    checked = sum(PEOPLE in readers[pair] or len(readers[pair]) > 1 for pair in relevant)
    return checked < LEAST_SHARE * len(relevant) - 1e-9


def _second(
    twice: Sequence[Double], missed: Collection[Pair], runs: Mapping[str, Run], plan: ScoredPlan
) -> SecondJudge:
    """Return the agreement of one second judge with the first ones; `twice` are the pairs that it read.

    Those `missed` were read because of their grade, and say nothing of how often a judge errs.
    """
    drawn = [double for double in twice if double.pair not in missed]
    by_query: dict[str, list[tuple[int, int]]] = {}
    for double in drawn:
        by_query.setdefault(double.query_id, []).append((double.first, double.second))
    # Intervals are over queries: a judge who misreads one need errs in all of its pairs.
    bootstrap, settings = plan.bootstrap, plan.significance
    tables = {query_id: confusion(grades) for query_id, grades in by_query.items()}
    alike, kappa, ac2 = estimates(tables, plan.relevant_grade, seed=bootstrap.seed, confidence=bootstrap.confidence)
    # The first reading down, the second across: not relevant, relevant.
    (neither, gained), (lost, kept) = halves(sum(tables.values(), confusion(())), plan.relevant_grade).tolist()
    by_cell = {}
    if plan.baseline in runs:
        by_cell = favours(drawn, runs, plan.baseline, alpha=settings.alpha, seed=settings.seed)
    return SecondJudge(
        judge=twice[0].second_judge,
        models=sorted({double.second_model for double in twice} - {""}),
        first_judges=sorted({double.first_judge for double in twice}),
        pairs=len(twice),
        queries=len({double.query_id for double in twice}),
        same=sum(double.first == double.second for double in twice),
        higher=sum(double.first < double.second for double in twice),
        copied=sum(double.copied for double in twice),
        relevant=lost + kept,
        lost=lost,
        others=neither + gained,
        gained=gained,
        alike=alike,
        kappa=kappa,
        ac2=ac2,
        by_cell=by_cell,
    )


def judging(comparison: Comparison, labels: Sequence[Label]) -> Judging:
    """Return the agreement of the judges, and the decision under noise and under every judge.

    None of them is left out, since any may upset a cell.
    """
    twice, plan = doubles(labels), comparison.plan
    panel = agreement(labels, comparison.runs, comparison.queries, plan)
    seconds = []
    for second in panel.seconds:
        read = [double for double in twice if double.second_judge == second.judge]
        cells, recommended = under_judge(comparison, read)
        seconds.append(second.model_copy(update={"cells": cells, "recommended": recommended}))
    missed = _missed(labels, comparison.queries, plan)
    drawn = [double for double in twice if double.pair not in missed]
    noise = two_level(comparison, drawn, seed=plan.bootstrap.seed) if twice else None
    return panel.model_copy(update={"seconds": seconds, "noise": noise})


def under_judge(comparison: Comparison, read: Sequence[Double]) -> tuple[dict[str, CellUnderJudge], str]:
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
    rule, family = under.plan.rule, under.family
    eligible = [cell for cell in family if meets_criterion_5(*_differences(under, cell), rule)]
    recommended = greatest_gain(eligible, under.switch_gains, under.plan)
    return {cell: cell_under_judge(under, cell) for cell in under.challengers}, recommended


def cell_under_judge(comparison: Comparison, cell: str) -> CellUnderJudge:
    """Return what the test says of a cell with the grades that the comparison has."""
    test, (gain, recall) = comparison.gain_tests.get(cell), _differences(comparison, cell)
    figures = CellFigures(gain, recall, comparison.effective, test, "pass", 1.0)
    holds = not unmet_criteria(figures, comparison.plan.rule)
    return CellUnderJudge(gain=gain, p_gain=test and test.p, holds=holds)


def _differences(comparison: Comparison, cell: str) -> tuple[float, float]:
    """Return the cell's mean nDCG@10 and Recall@10 less the baseline's, without the intervals that take time."""
    gain, recall = (comparison.mean(comparison.paired([cell], measure)[0]) for measure in ("ndcg@10", "recall@10"))
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
    others: Mapping[str, Mapping[str, CellUnderJudge]],
    favoured: Mapping[str, float | None],
    alpha: float,
) -> list[str]:
    """Return what the judges leave of a cell: more of what "it" does or is that keeps it from being confirmed.

    `others` are the cells under each second judge. `favoured` has each cell's adjusted p of the first judge favouring
    it, None if that is unknown; a cell that is not in it was not asked. Only a cell that is confirmed by its scores
    alone should be asked: the words say what the judges add. A two-level interval that does not exclude 0 keeps a cell
    from being confirmed as well; one that was not drawn does not.
    """
    upset = [judge for judge, cells in others.items() if cell not in cells or not cells[cell].holds]
    words = [f"is not confirmed with the grades of {judge}" for judge in upset]
    p = favoured.get(cell)
    if p is not None and round4(p) <= alpha:
        words.append(f"is favoured by its judge (adjusted p {p_text(p)})")
    noisy = noise.cells.get(cell) if noise else None
    if noisy is not None and round4(noisy.interval[0]) <= 0:
        low, high = map(gain_text, noisy.interval)
        words.append(f"may owe its gain to the judge's errors ({low} to {high} with the grades of a second judge)")
    return words


def _favoured(panel: Judging) -> dict[str, float | None]:
    """Return each cell's p of a judge that favours it; of several second judges the least, adjusted for them all."""
    least: dict[str, float | None] = {}
    for second in panel.seconds:
        for cell, row in second.by_cell.items():
            # Bonferroni: every second judge is another chance to find a favour.
            p = None if row.p_for_cell is None else min(1.0, row.p_for_cell * len(panel.seconds))
            known = least.get(cell)
            least[cell] = p if known is None else known if p is None else min(p, known)
    return least
