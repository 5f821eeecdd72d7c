"""What the outcome is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, NoiseFloor


@dataclass(frozen=True, slots=True)
class OutcomeInputs:
    """What the outcome rests on; `false_alarm` and `best_gain_corrected` are None if the baseline stands alone.

    `cells` are ranked, best nDCG@10 first.
    """

    plan: Plan
    cells: Sequence[CellResult]
    controls: Sequence[ControlResult]
    noise_floor: NoiseFloor | None
    unjudged: int
    n_queries: int
    false_alarm: float | None
    best_gain_corrected: float | None

    @property
    def best(self) -> CellResult | None:
        """The cell of greatest nDCG@10 beside the baseline; None if the baseline stands alone."""
        return next((row for row in self.cells if row.test is not None), None)

    @property
    def baseline(self) -> CellResult:
        """The baseline's row."""
        return next(row for row in self.cells if row.cell == self.plan.baseline)
