"""The shape of the null gate in results.json, of a cell and of the controls."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.records import Verdict
from runner.base.schema import Count, FrozenModel

ORACLE = "oracle"
"""The control that knows the judgments."""


class NullResult(FrozenModel):
    """One null (a row of runner/gate/nulls.py) against the real score, all in [0, 1].

    `low` and `high` are the 2.5 and 97.5 % quantiles of the draws (order statistics); `delta` is real less mean; `p`
    is (1 + draws at least as good) / (1 + draws). A null without draws ("most retrieved", "length sorted") is one
    system: low and high are its mean, and p is that of flipping the signs of the differences to it.
    `dots` stand for the draws in equal parts, ascending; a null without draws, or of one right answer, has none.
    """

    name: str
    mean: float
    low: float
    high: float
    dots: list[float]
    delta: float
    p: float
    verdict: Verdict


class GateVerdict(FrozenModel):
    """A cell's score against every null, and what they make together (`overall` of runner/gate/gate.py)."""

    real: float
    nulls: Annotated[list[NullResult], Field(min_length=1)]
    verdict: Verdict


class ControlResult(FrozenModel):
    """A made-up predictor through the gate: `passes` of `draws` passed.

    "oracle" must pass, `bound` times or more; every other one is a cheater, and may pass `bound` times at most.
    """

    name: str
    mean: float
    draws: Count
    passes: Count
    bound: Count

    @property
    def expected(self) -> Literal["pass", "fail"]:
        """What it must do."""
        return "pass" if self.name == ORACLE else "fail"

    @property
    def behaves(self) -> bool:
        """Whether it passes as often as it must, or no more often than it may."""
        return self.passes >= self.bound if self.expected == "pass" else self.passes <= self.bound
