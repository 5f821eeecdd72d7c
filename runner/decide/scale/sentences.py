"""What the distractor sensitivity shows, in words that do not say more than its back-test carries."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from runner.base.figures import whole_percent
from runner.eval_set.shapes.scale import ScaleCell, ScaleFactor

ERRORS = 2
"""A gap counts as wider than the method's error from this many times that error on."""


def sentences(factors: Sequence[ScaleFactor], cells: Sequence[ScaleCell], baseline: str) -> list[str]:
    """One sentence for every factor above 1, and one on how far to trust them; none for a cell alone.

    Cells come by their present mean, best first, their points in the order of `factors`.
    """
    if len(cells) < 2:
        return []
    now = [row.factor for row in factors].index(1.0)
    said = [
        f"With {row.factor:g} times the distractors {_order(cells, baseline, now, j)}; {cells[0].cell} stays best in "
        f"{whole_percent(row.best_stays)} of resamples."
        for j, row in enumerate(factors)
        if row.factor > 1
    ]
    return [*said, _trust(cells)]


def _order(cells: Sequence[ScaleCell], baseline: str, now: int, j: int) -> str:
    pairs = list(combinations(cells, 2))
    swapped = [(a, b) for a, b in pairs if _gap(a, b, j) < 0 < _gap(a, b, now)]
    if swapped:
        news = _news(cells, baseline, now, j) or [_overtakes(*swapped[0], j)]
        return f"{len(swapped)} of {len(pairs)} pairs of cells change places: {', '.join(news)}"
    text = f"the order of the {len(cells)} cells holds"
    if cells[0].back_test is None:
        return text
    wide = sum(_is_wide(a, b, j) for a, b in pairs)
    return f"{text}, for {wide} of {len(pairs)} pairs by more than twice the method's error"


def _news(cells: Sequence[ScaleCell], baseline: str, now: int, j: int) -> list[str]:
    """The changes that matter most: a new best cell, and cells that cross the baseline."""
    best = min(cells, key=lambda cell: (cell.points[j].rank, cell.cell))
    said = [_overtakes(cells[0], best, j)] if _gap(cells[0], best, j) < 0 else []
    base = next(cell for cell in cells if cell.cell == baseline)
    for cell in cells:
        if _gap(cell, base, now) * _gap(cell, base, j) < 0 and {cell.cell, baseline} != {best.cell, cells[0].cell}:
            verb = "rises above" if _gap(cell, base, j) > 0 else "falls below"
            said.append(f"{cell.cell} {verb} the baseline{_hedge(cell, base, j)}")
    return said


def _overtakes(ahead: ScaleCell, other: ScaleCell, j: int) -> str:
    return f"{other.cell} overtakes {ahead.cell}{_hedge(ahead, other, j)}"


def _hedge(one: ScaleCell, other: ScaleCell, j: int) -> str:
    if one.back_test is None:
        return ""
    shown = ";" if _is_wide(one, other, j) else ", not shown:"
    return f" (by {abs(_gap(one, other, j)):.4f}{shown} the method's error there is {_error(one, other, j):.4f})"


def _trust(cells: Sequence[ScaleCell]) -> str:
    tests = [cell.back_test for cell in cells if cell.back_test is not None]
    if not tests:
        return "The collection is too small for a back-test: how far this method errs here is not known."
    least, most = min(test.bias for test in tests), max(test.bias for test in tests)
    return (
        f"Asked for the present nDCG@10 from a tenth of the collection, the method answers {_much(least)} to "
        f"{_much(most)}, cell by cell on average; nothing here checks it beyond 10 times."
    )


def _much(bias: float) -> str:
    return f"{abs(bias):.4f} too {'low' if bias < 0 else 'high'}"


def _is_wide(one: ScaleCell, other: ScaleCell, j: int) -> bool:
    return abs(_gap(one, other, j)) > ERRORS * _error(one, other, j)


def _error(one: ScaleCell, other: ScaleCell, j: int) -> float:
    if one.back_test is None or other.back_test is None:
        return 0.0
    gaps = np.subtract(one.back_test.errors, other.back_test.errors)
    return float(np.log10(one.points[j].factor) * np.sqrt((gaps**2).mean()))


def _gap(one: ScaleCell, other: ScaleCell, j: int) -> float:
    return one.points[j].mean - other.points[j].mean
