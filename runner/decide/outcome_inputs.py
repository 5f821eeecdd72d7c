"""What the outcome is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.base.figures import round4
from runner.decide.tiers import not_ruled_out
from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, NoiseFloor
from runner.score.expected_loss import Beliefs


@dataclass(frozen=True, slots=True)
class OutcomeInputs:
    """What the outcome rests on: `cells` ranked, best nDCG@10 first; `beliefs` in the order of `challengers`.

    `false_alarm` is how often criterion 5 would flag some cell if all equalled the baseline, None if it stands alone.
    """

    plan: Plan
    cells: Sequence[CellResult]
    controls: Sequence[ControlResult]
    noise_floor: NoiseFloor | None
    unjudged: int
    n_queries: int
    challengers: Sequence[str]
    beliefs: Beliefs | None
    false_alarm: float | None

    @property
    def best(self) -> CellResult | None:
        """The cell of greatest nDCG@10 beside the baseline; None if the baseline stands alone."""
        return next((row for row in self.cells if row.test is not None), None)

    @property
    def worth_of_knowing(self) -> float:
        """What the best choice is expected to gain over the baseline, at four places, if somebody knew which it is.

        Of the cells that could be chosen; 0 if there are none, or nothing is believed of them.
        """
        places = {cell: place for place, cell in enumerate(self.challengers)}
        left = [places[row.cell] for row in self.cells if row.cell in places and not_ruled_out(row)]
        return round4(self.beliefs.best(sorted(left))) if self.beliefs is not None else 0.0

    @property
    def baseline(self) -> CellResult:
        """The baseline's row."""
        return next(row for row in self.cells if row.cell == self.plan.baseline)
