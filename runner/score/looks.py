"""Planned looks: how much of alpha each may spend, when none is worth a further one, and what unplanned ones are worth.

A version may plan to look at its results after some of its queries and to stop there if a gain is shown. Testing at
alpha each time would find a gain that is not there in 10 % of evenings with three looks, so alpha is spent: little at
first, most of it at the end (Lan & DeMets 1983, O'Brien-Fleming type).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

from runner.base.records import SCORE_UNIT
from runner.eval_set.shapes.plan import Plan
from runner.score.power import least_shown

FUTILE_GAIN = 0.05
"""The true gain, in nDCG@10, that a look allows every cell before it gives up."""

FUTILE_CHANCE = 0.1
"""Below this chance of being confirmed at the last look, with that gain on all queries to come, a cell is hopeless."""

BETS = tuple(round(0.05 + 0.1 * step, 2) for step in range(10))
"""Stakes of the betting process, equally weighted: 0.05, 0.15, ... 0.95 of the wealth on each query."""

MOST_EVIDENCE = 1e6
"""E-values are not told apart above this."""

_PLACES = 9


@dataclass(frozen=True, slots=True)
class Look:
    """One of the planned looks: its number from 1, of how many, and its alpha beside that of all and of the last one.

    It judges the first `queries` of those `planned`, of which looks before it judged the first `before`.
    """

    number: int
    of: int
    before: int
    queries: int
    planned: int
    alpha: float
    alpha_of_all: float
    alpha_of_last: float

    @classmethod
    def of_plan(cls, looks: Sequence[int], number: int, alpha: float) -> Self:
        """Look `number` of a plan whose looks come after so many queries each."""
        each = alphas(looks, alpha)
        before = looks[number - 2] if number > 1 else 0
        return cls(number, len(looks), before, looks[number - 1], looks[-1], each[number - 1], alpha, each[-1])

    @property
    def name(self) -> str:
        """As messages say it: "look 2 of 3"."""
        return f"look {self.number} of {self.of}"

    @property
    def is_last(self) -> bool:
        """Whether all queries are judged by then."""
        return self.number == self.of

    def adjusted(self, p: float) -> float:
        """`p` so that it is at most the alpha of all looks exactly if it was at most this look's; 1 at the most."""
        return min(1.0, p * self.alpha_of_all / self.alpha) if self.alpha else 1.0


def look_after(plan: Plan, kept: Sequence[str]) -> Look | None:
    """The planned look that follows those that are kept; None if no looks are planned."""
    return Look.of_plan(plan.looks, len(kept) + 1, plan.significance.alpha) if plan.looks else None


def alphas(looks: Sequence[int], alpha: float) -> list[float]:
    """What each look may spend, at nine places; their sum is `alpha`.

    By look k, after n_k of N queries, 2 - 2 Phi(z / sqrt(n_k / N)) is spent in all, where z is the normal quantile of
    1 - alpha / 2. A look is tested at what it adds: the chances of a false claim at each look then sum to alpha at
    most, whatever their dependence. The joint boundary of Lan & DeMets, which allows for it, would leave the last of
    looks at 25, 50 and 100 queries .048 instead of .044: about 1 point of power, for which nothing is integrated here.

    >>> alphas([25, 50, 100], 0.05)
    [8.8575e-05, 0.005486022, 0.044425403]
    """
    z = NormalDist().inv_cdf(1 - alpha / 2)
    spent = [round(math.erfc(z / math.sqrt(2 * look / looks[-1])), _PLACES) for look in looks[:-1]]
    return [round(now - before, _PLACES) for before, now in zip([0.0, *spent], [*spent, alpha], strict=True)]


def chance_at_last(gain: float, sd: float, look: Look, min_gain: float, share: float = 1.0) -> float:
    """The chance that a cell with this mean gain so far is confirmed at the last look if its true gain is FUTILE_GAIN.

    Conditional power by the normal approximation, at the SD seen so far. The mean over all queries must reach both
    `min_gain` and what the cell's `share` of the last look's alpha asks for.
    """
    left = look.planned - look.queries
    expected = (look.queries * gain + left * FUTILE_GAIN) / look.planned
    z = NormalDist().inv_cdf(1 - share * look.alpha_of_last)
    asked = max(min_gain, least_shown(look.planned, sd, z))
    scatter = sd * math.sqrt(left) / look.planned
    if not scatter:
        return float(expected >= asked)
    return NormalDist().cdf((expected - asked) / scatter)


def e_value(differences: Iterable[int], share: float = 1.0) -> float:
    """How much a bettor who starts with 1 has after betting on a gain in every query; `differences` in units of 1e-9.

    If the mean difference is 0 or less, queries drawn one after another make this exceed 1 / alpha with probability
    alpha at most, at whichever number of queries one stops and however often one looked (Ville 1939; Waudby-Smith &
    Ramdas 2024). So queries that nobody planned may be added and 20 or more still shows a gain at 5 %. Its price: the
    bets know nothing of the scatter, so below 50 queries it shows only gains that nobody would doubt. With `share` of
    alpha, of which several cells each have a part, the value is multiplied by it. At most MOST_EVIDENCE.

    >>> round(e_value([100_000_000] * 50), 1)
    24.9
    """
    gains = [difference / SCORE_UNIT for difference in differences]
    wealth = math.fsum(math.prod(1 + bet * gain for gain in gains) for bet in BETS) / len(BETS)
    return min(share * wealth, MOST_EVIDENCE)
