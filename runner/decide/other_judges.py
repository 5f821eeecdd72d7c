"""The judges of a version: how they agree, and the tests again with each one's grades in place of the scored ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from runner.base.figures import gain_text, p_text, round4
from runner.base.records import Qrels
from runner.decide.judge_agreement import judge_agreement
from runner.decide.tiers import CellFigures, least_loss, meets_criterion_5, unmet_criteria
from runner.decide.two_level import two_level
from runner.eval_set.labels import scored
from runner.eval_set.shapes.judges import CellUnderJudge, JudgeOutcome, NoiseResult
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.results import JudgePanel
from runner.judge.agreement.double_graded import Double, doubles
from runner.score.comparison import Comparison, mean


def under_other_judges(comparison: Comparison, labels: Iterable[Label]) -> list[JudgeOutcome]:
    """What every other judge's first grades, put in place of the scored ones, make of the cells.

    The judges with the most pairs first, of equals by name; none is left out, since any of them may upset a cell. Each
    who graded a pair otherwise takes a test of all cells. Pairs that a judge did not read keep
    the scored grade; so few readings move little, and "it holds" says no more than that these few do not upset it.
    """
    by_judge: dict[str, list[Double]] = {}
    for double in doubles(labels):
        by_judge.setdefault(double.second_judge, []).append(double)
    ordered = sorted(by_judge.items(), key=lambda item: (-len(item[1]), item[0]))
    return [_outcome(comparison, judge, found) for judge, found in ordered]


def judge_blockers(
    cell: str,
    noise: NoiseResult | None,
    others: Sequence[JudgeOutcome],
    favoured: Mapping[str, float | None],
    alpha: float,
) -> list[str]:
    """What the judges leave of a cell: more of what "it" does or is that keeps it from being confirmed.

    `favoured` has each cell's adjusted p of the first judge favouring it, None if that is unknown; a cell that is
    not in it was not asked. Only a cell that is confirmed by its scores alone should be asked: the words say what the
    judges add. A two-level interval that does not exclude 0 keeps a cell from being confirmed as well; one that was
    not drawn does not.
    """
    upset = [one.judge for one in others if cell not in {row.cell for row in one.cells if row.holds}]
    found = [f"is not confirmed with the grades of {judge}" for judge in upset]
    p = favoured.get(cell)
    if p is not None and round4(p) <= alpha:
        found.append(f"is favoured by its judge (adjusted p {p_text(p)})")
    noisy = next((row for row in noise.cells if row.cell == cell), None) if noise else None
    if noisy is not None and round4(noisy.interval[0]) <= 0:
        low, high = map(gain_text, noisy.interval)
        found.append(f"may owe its gain to the judge's errors ({low} to {high} with the grades of a second judge)")
    return found


def _outcome(comparison: Comparison, judge: str, read: Sequence[Double]) -> JudgeOutcome:
    under = comparison
    if changed := [double for double in read if double.first != double.second]:
        under = replace(comparison, qrels=_regraded(comparison.qrels, changed))
    eligible = {cell: under.losses[cell] for cell in under.challengers if _is_candidate(under, cell)}
    return JudgeOutcome(
        judge=judge,
        n_pairs=len(read),
        n_changed=len(changed),
        recommended=least_loss(comparison.plan.baseline, eligible),
        cells=[under_judge(under, cell) for cell in under.challengers],
    )


def _regraded(qrels: Qrels, changed: Sequence[Double]) -> Qrels:
    found = {query_id: dict(grades) for query_id, grades in qrels.items()}
    for double in changed:
        found[double.query_id][double.doc_id] = double.second
    return found


def under_judge(comparison: Comparison, cell: str) -> CellUnderJudge:
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


def judge_panel(comparison: Comparison, labels: Sequence[Label]) -> JudgePanel:
    """Return the agreement of the judges, and the decision under noise and under every judge."""
    twice = doubles(labels)
    return JudgePanel(
        agreement=judge_agreement(labels, comparison.runs, comparison.query_ids, comparison.plan),
        noise=two_level(comparison, twice, seed=comparison.plan.bootstrap.seed) if twice else None,
        others=under_other_judges(comparison, labels),
    )


def blockers(panel: JudgePanel, labels: Sequence[Label], alpha: float) -> Blockers:
    """What keeps a cell that is confirmed by its scores from being confirmed, as a function of the cell.

    Grades of a model that too few second readings check uphold nothing: else fewer readings would confirm more.
    """
    favoured = _favoured(panel)
    unchecked = []
    if any(label.model for label in scored(labels).values()) and (panel.noise is None or panel.noise.unknown):
        unchecked = ["was judged by a model that nobody checked (labels double)"]
    return lambda cell: [
        *unchecked,
        *judge_blockers(cell, panel.noise, panel.others, favoured, alpha),
    ]


def _favoured(panel: JudgePanel) -> dict[str, float | None]:
    """Each cell's p of a judge that favours it; of several second judges the least, adjusted for their number."""
    seconds = panel.agreement.seconds
    found: dict[str, float | None] = {}
    for second in seconds:
        for row in second.by_cell:
            p = None if row.p_for_cell is None else min(1.0, row.p_for_cell * len(seconds))
            known = found.get(row.cell)
            found[row.cell] = p if known is None else known if p is None else min(p, known)
    return found
