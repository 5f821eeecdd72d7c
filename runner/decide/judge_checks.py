"""What shows that a judge cannot be trusted, each check by its name: the page says which fail.

Agreement alone does not: a judge and its copy agree in everything, and two readers of one mind in most. `sources`,
`tau` and `gate` need no second reader. No check sees a judge who errs alike on every list: it moves no order of cells.
"""

from collections.abc import Iterator
from typing import Literal

from runner.base.figures import round4
from runner.decide.two_level import LEAST_READINGS
from runner.eval_set.shapes.results import Results

Check = Literal["copy", "agreement", "favour", "sources", "tau", "gate"]

LEAST_ALIKE = 0.5
"""Of the pairs that either reader calls relevant, that both should; below it they part more often than they agree."""

LEAST_TAU = 0.3
"""Between the cells' order by source documents and by nDCG@10; eight rehearsals had .70 to .94."""


def failed_checks(results: Results) -> list[Check]:
    """Return the checks of the judges that fail, the most telling first."""
    return list(_failed(results))


def _failed(results: Results) -> Iterator[Check]:
    seconds, alpha = results.judging.seconds if results.judging else [], results.plan.significance.alpha
    # Whoever repeats most reasons, or parts over no grade where many pairs are relevant, may not have read.
    if any(2 * one.copied > one.pairs or (one.same == one.pairs and one.relevant >= LEAST_READINGS) for one in seconds):
        yield "copy"
    if any(one.alike.value is not None and one.alike.value < LEAST_ALIKE for one in seconds):
        yield "agreement"
    # Either side may be favoured, each tested at half of alpha.
    favours = [p for one in seconds for row in one.by_cell.values() for p in (row.p_for_cell, row.p_for_baseline)]
    if any(p is not None and p <= alpha / 2 for p in favours):
        yield "favour"
    if results.sources:
        # The best cell by grades finds source documents worse than the baseline, beyond chance.
        found, tau = results.sources.cells, results.sources.tau
        best = found[results.cells[0].cell]
        if best.difference and best.difference.high is not None and round4(best.difference.high) < 0:
            yield "sources"
        # Grades that put all cells level have no order, though source documents have one.
        if tau < LEAST_TAU if tau is not None else len({row.mrr.value for row in found.values()}) > 1:
            yield "tau"
    baseline = next(row for row in results.cells if row.test is None)
    if baseline.gate.verdict != "pass" or not all(control.behaves for control in results.controls):
        yield "gate"
