"""The judges of a version: how they agree, and the tests again with each one's grades in place of the scored ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runner.base.figures import gain_text, p_text, round4
from runner.base.records import Qrels
from runner.decide.judge_agreement import judge_agreement
from runner.decide.tiers import CellFigures, least_loss, meets_criterion_5, unmet_criteria
from runner.decide.two_level import two_level
from runner.eval_set.labels import scored
from runner.eval_set.shapes.judges import CellUnderJudge, JudgeNoise, Judging
from runner.eval_set.shapes.labels import Label
from runner.judge.agreement.double_graded import Double, doubles
from runner.score.comparison import Comparison, mean


def judge_blockers(
    cell: str,
    noise: JudgeNoise | None,
    others: Mapping[str, Sequence[CellUnderJudge]],
    favoured: Mapping[str, float | None],
    alpha: float,
) -> list[str]:
    """What the judges leave of a cell: more of what "it" does or is that keeps it from being confirmed.

    `others` are the cells under each second judge. `favoured` has each cell's adjusted p of the first judge favouring
    it, None if that is unknown; a cell that is not in it was not asked. Only a cell that is confirmed by its scores
    alone should be asked: the words say what the judges add. A two-level interval that does not exclude 0 keeps a cell
    from being confirmed as well; one that was not drawn does not.
    """
    upset = [judge for judge, cells in others.items() if cell not in {row.cell for row in cells if row.holds}]
    found = [f"is not confirmed with the grades of {judge}" for judge in upset]
    p = favoured.get(cell)
    if p is not None and round4(p) <= alpha:
        found.append(f"is favoured by its judge (adjusted p {p_text(p)})")
    noisy = next((row for row in noise.cells if row.cell == cell), None) if noise else None
    if noisy is not None and round4(noisy.interval[0]) <= 0:
        low, high = map(gain_text, noisy.interval)
        found.append(f"may owe its gain to the judge's errors ({low} to {high} with the grades of a second judge)")
    return found


def under_judge(comparison: Comparison, read: Sequence[Double]) -> tuple[list[CellUnderJudge], str]:
    """Return what another judge's first grades, put in place of the scored ones, make of the cells and of the choice.

    Pairs that it did not read keep the scored grade; so few readings move little, and "it holds" says no more than that
    these few do not upset it.
    """
    under = comparison
    if changed := [double for double in read if double.first != double.second]:
        under = replace(comparison, qrels=_regraded(comparison.qrels, changed))
    eligible = {cell: under.losses[cell] for cell in under.challengers if _is_candidate(under, cell)}
    cells = [cell_under_judge(under, cell) for cell in under.challengers]
    return cells, least_loss(comparison.plan.baseline, eligible)


def _regraded(qrels: Qrels, changed: Sequence[Double]) -> Qrels:
    found = {query_id: dict(grades) for query_id, grades in qrels.items()}
    for double in changed:
        found[double.query_id][double.doc_id] = double.second
    return found


def cell_under_judge(comparison: Comparison, cell: str) -> CellUnderJudge:
    """What the test says of a cell with the grades that the comparison has."""
    plan, gain_test = comparison.plan, comparison.gain_tests.get(cell)
    p_gain = gain_test and gain_test.p
    gain, recall = _differences(comparison, cell)
    figures = CellFigures(gain, recall, p_gain, "pass", 1.0)
    return CellUnderJudge(
        cell=cell,
        gain=gain,
        p_gain=p_gain,
        holds=not unmet_criteria(figures, plan.rule, plan.significance.alpha),
    )


def _differences(comparison: Comparison, cell: str) -> tuple[float, float]:
    """The cell's mean nDCG@10 and Recall@10 less the baseline's."""
    gain, recall = (mean(comparison.paired([cell], measure)[0]) for measure in ("ndcg@10", "recall@10"))
    return gain, recall


def _is_candidate(comparison: Comparison, cell: str) -> bool:
    return cell in comparison.registered and meets_criterion_5(*_differences(comparison, cell), comparison.plan.rule)


Blockers = Callable[[str], list[str]]
"""What the judges leave of a cell, in words of `tiers.unmet_criteria`; empty if they uphold it."""


def judging(comparison: Comparison, labels: Sequence[Label]) -> Judging:
    """Return the agreement of the judges, and the decision under noise and under every judge.

    None of them is left out, since any may upset a cell.
    """
    twice = doubles(labels)
    found = judge_agreement(labels, comparison.runs, comparison.query_ids, comparison.plan)
    seconds = []
    for second in found.seconds:
        read = [double for double in twice if double.second_judge == second.judge]
        cells, recommended = under_judge(comparison, read)
        seconds.append(second.model_copy(update={"cells": cells, "recommended": recommended}))
    noise = two_level(comparison, twice, seed=comparison.plan.bootstrap.seed) if twice else None
    return found.model_copy(update={"seconds": seconds, "noise": noise})


def blockers(panel: Judging | None, labels: Sequence[Label], alpha: float) -> Blockers:
    """What keeps a cell that is confirmed by its scores from being confirmed, as a function of the cell.

    Grades of a model that too few second readings check uphold nothing: else fewer readings would confirm more.
    """
    if panel is None:
        return lambda cell: []
    favoured, others = _favoured(panel), {second.judge: second.cells for second in panel.seconds}
    unchecked = []
    if any(label.model for label in scored(labels).values()) and (panel.noise is None or panel.noise.unknown):
        unchecked = ["was judged by a model that nobody checked (labels double)"]
    return lambda cell: [
        *unchecked,
        *judge_blockers(cell, panel.noise, others, favoured, alpha),
    ]


def _favoured(panel: Judging) -> dict[str, float | None]:
    """Each cell's p of a judge that favours it; of several second judges the least, adjusted for their number."""
    seconds = panel.seconds
    found: dict[str, float | None] = {}
    for second in seconds:
        for row in second.by_cell:
            p = None if row.p_for_cell is None else min(1.0, row.p_for_cell * len(seconds))
            known = found.get(row.cell)
            found[row.cell] = p if known is None else known if p is None else min(p, known)
    return found
