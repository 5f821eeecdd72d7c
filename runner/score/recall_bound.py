"""How far Recall@10 may have fallen: a bound that holds for any differences, at any number of queries.

Most differences in Recall@10 are exactly 0, and a loss is rare and large. A test that infers the scatter from such a
sample finds none where it saw no loss. The bound by betting (Waudby-Smith & Ramdas 2024, section 4) infers nothing:
it takes differences to lie in [-1, 1] and no more.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from runner.base.figures import round4
from runner.base.records import SCORE_UNIT, Ints, RecallState
from runner.score.flips import Weights, counted

_BETS = ((1.0, 0.8), (0.9, 0.05), (0.75, 0.05), (0.5, 0.05), (0.25, 0.05))
"""Parts of the capital that are staked on every query, and how the first capital is spread over them.

Staking all of it bounds most tightly while no query loses, and is ruined by one that loses everything; the other
stakes then hold.
"""


def recall_bounds(changes: Ints, *, alpha: float, weights: Weights = None) -> list[list[float]]:
    """Return bounds of the mean of each row (rows, queries), in units of 1e-9, each at 1 - alpha by itself.

    Of a weighted mean, a query's stake is in proportion to its weight: what all of them are expected to win is then in
    proportion to the weighted mean less the one that is bet on, and 1 + x is at most e^x.

    ValueError for an alpha outside of (0, 1).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha {alpha} must lie in (0, 1)")
    own = counted(weights, changes.shape[1])
    stakes = (own / max(own, default=1)).tolist()
    return [_bounds(row, stakes, alpha) for row in changes.tolist()]


def _bounds(changes: Sequence[int], stakes: Sequence[float], alpha: float) -> list[float]:
    return [_lower(changes, stakes, alpha), -_lower([-change for change in changes], stakes, alpha)]


def recall_state(bound: Sequence[float], margin: float) -> RecallState:
    """Return whether a mean falls by more than `margin`, by its bounds, at the four places that a page shows."""
    low, high = map(round4, bound)
    if low > -round4(margin):
        return "shown not to fall"
    return "shown to fall" if high < -round4(margin) else "open"


def _lower(changes: Sequence[int], stakes: Sequence[float], alpha: float) -> float:
    """Return the least mean not refuted, to a whole unit: that at which betting on more makes less than 1 / alpha.

    If the mean were m, no stake could be expected to grow capital, so it passes 1 / alpha with a chance of alpha at
    most (Ville 1939). Capital falls as m rises.
    """
    counts, units = Counter(zip(changes, stakes, strict=True)), range(-SCORE_UNIT + 1, SCORE_UNIT)
    # Capital falls as the mean that is bet on rises, so the first that is not refuted can be searched for.
    place = bisect_left(units, True, key=lambda mean: _capital(counts, mean) < 1 / alpha)
    return units[place] / SCORE_UNIT if 0 < place < len(units) else -1.0 if not place else 1.0


def _capital(changes: Counter[tuple[int, float]], mean: int) -> float:
    """Return what betting that the mean is above `mean` makes of 1."""
    return sum(weight * _grown(changes, mean, stake) for stake, weight in _BETS)


def _grown(changes: Counter[tuple[int, float]], mean: int, stake: float) -> float:
    """Return what 1 grows to with one stake all along; at most e^700, which is as good as infinite."""
    factors = [
        (1 + stake * own * (change - mean) / (SCORE_UNIT + mean), count) for (change, own), count in changes.items()
    ]
    # One loss of everything that was staked ends it.
    if min(factor for factor, _ in factors) <= 0:
        return 0.0
    return math.exp(min(700.0, sum(count * math.log(factor) for factor, count in factors)))
