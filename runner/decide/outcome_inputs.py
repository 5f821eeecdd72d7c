"""What the outcome is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, NoiseFloor
from runner.score.winners_curse import CorrectedGain, FalseAlarms


@dataclass(frozen=True, slots=True)
class OutcomeInputs:
    """What the outcome rests on; `best_gain_corrected` is None if the baseline stands alone.

    `cells` are ranked, best nDCG@10 first; `false_alarms` are in the order of `challengers`.
    """

    plan: Plan
    cells: Sequence[CellResult]
    controls: Sequence[ControlResult]
    noise_floor: NoiseFloor | None
    unjudged: int
    n_queries: int
    challengers: Sequence[str]
    false_alarms: FalseAlarms
    best_gain_corrected: CorrectedGain | None

    @property
    def best(self) -> CellResult | None:
        """The cell of greatest nDCG@10 beside the baseline; None if the baseline stands alone."""
        return next((row for row in self.cells if row.test is not None), None)

    @property
    def false_alarm(self) -> float | None:
        """How often criterion 5 would flag some cell if all equalled the baseline; None if it stands alone."""
        return self.false_alarms.some if self.challengers else None

    def own_false_alarm(self, cell: str) -> float:
        """How often criterion 5 would flag this cell if it equalled the baseline."""
        return self.false_alarms.each[list(self.challengers).index(cell)]

    @property
    def baseline(self) -> CellResult:
        """The baseline's row."""
        return next(row for row in self.cells if row.cell == self.plan.baseline)
