"""The judges of a version, and what their disagreement leaves of each cell."""

from collections.abc import Callable, Sequence

from runner.decide.judge_noise.ppi import powered
from runner.decide.judge_noise.two_level import two_level
from runner.decide.other_judges import judge_shortfalls, under_other_judges
from runner.eval_set.labels import scored
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.results import JudgePanel
from runner.judge.agreement.double_graded import doubles
from runner.judge.agreement.panel import agreement
from runner.score.comparison import Comparison

Doubts = Callable[[str], list[str]]
"""What the judges leave of a cell, in words of `tiers.shortfalls`; empty where they uphold it."""


def judge_panel(comparison: Comparison, labels: Sequence[Label]) -> JudgePanel:
    """Agreement, the decision under noise and under every judge, and what people's grades say."""
    twice = doubles(labels)
    return JudgePanel(
        agreement=agreement(labels, comparison.runs, comparison.query_ids, comparison.plan),
        noise=two_level(comparison, twice, seed=comparison.plan.bootstrap.seed) if twice else None,
        others=under_other_judges(comparison, labels),
        people=powered(comparison, labels),
    )


def doubts(panel: JudgePanel, labels: Sequence[Label], alpha: float) -> Doubts:
    """What keeps a cell that is confirmed by its scores from being confirmed, as a function of the cell.

    Grades of a model that too few second readings check uphold nothing: else fewer readings would confirm more.
    """
    favoured = _favoured(panel)
    unchecked = []
    if any(label.model for label in scored(labels).values()) and (panel.noise is None or panel.noise.unknown):
        unchecked = ["was judged by a model that nobody checked (labels double)"]
    return lambda cell: unchecked + judge_shortfalls(cell, panel.noise, panel.others, favoured, alpha)


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
