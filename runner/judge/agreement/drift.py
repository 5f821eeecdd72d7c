"""Whether a judge repeats itself: pairs planted once more in later batches.

A model that is asked the same words at temperature 0 should repeat itself; where it does not, the service changed what
serves it. A person who grows tired or strict is seen here too.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import comb

import numpy as np

from runner.eval_set.shapes.judges import JudgeDrift, RepeatShare
from runner.judge.agreement.alike import left_open
from runner.judge.agreement.double_graded import Repeat
from runner.judge.agreement.kappa import confusion, kappa
from runner.score.flips import exact_p, flipped
from runner.score.sign_flip import EXACT_UP_TO

DRAWS = 10_000


def drifts(repeats: Sequence[Repeat], *, seed: int, confidence: float = 0.95) -> list[JudgeDrift]:
    """One entry a judge with repeated readings, by name."""
    ordered = sorted(repeats, key=lambda repeat: repeat.judge)
    return [
        _drift(judge, list(rows), seed, confidence) for judge, rows in groupby(ordered, key=lambda repeat: repeat.judge)
    ]


def _drift(judge: str, repeats: Sequence[Repeat], seed: int, confidence: float) -> JudgeDrift:
    table = confusion((repeat.first, repeat.again) for repeat in repeats)
    shifts: Counter[str] = Counter()
    for repeat in repeats:
        shifts[repeat.query_id] += repeat.again - repeat.first
    whole, quadratic = _share(repeats), float(kappa(table, 2))
    halves = _halves(repeats)
    return JudgeDrift(
        judge=judge,
        repeats=whole.repeats,
        queries=len(shifts),
        confusion=table.tolist(),
        quadratic=None if np.isnan(quadratic) else quadratic,
        exact=whole.exact,
        shift=whole.shift,
        p_shift=sign_flip_p(list(shifts.values()), seed),
        early=_share(halves[0]) if halves else None,
        late=_share(halves[1]) if halves else None,
        p_change=fisher_p(*map(_same, halves)) if halves else None,
        left_open=left_open(_same(repeats)[0], len(repeats), confidence),
    )


def _halves(repeats: Sequence[Repeat]) -> tuple[list[Repeat], list[Repeat]] | None:
    """The repeats of the earlier and of the later half of the batches that hold any; None for a single batch."""
    batches = sorted({repeat.again_batch for repeat in repeats})
    if len(batches) < 2:
        return None
    late = batches[(len(batches) + 1) // 2]
    return [r for r in repeats if r.again_batch < late], [r for r in repeats if r.again_batch >= late]


def _share(repeats: Sequence[Repeat]) -> RepeatShare:
    same, changed = _same(repeats)
    shift = sum(repeat.again - repeat.first for repeat in repeats) / len(repeats)
    return RepeatShare(repeats=len(repeats), exact=same / (same + changed), shift=shift)


def _same(repeats: Sequence[Repeat]) -> tuple[int, int]:
    """How many were graded as before, and how many not."""
    same = sum(repeat.first == repeat.again for repeat in repeats)
    return same, len(repeats) - same


def sign_flip_p(values: Sequence[int], seed: int) -> float:
    """Two-sided p of "their mean is 0"; exact up to EXACT_UP_TO values other than 0, else (1 + b) / (1 + draws)."""
    if sum(map(bool, values)) <= EXACT_UP_TO:
        return exact_p(values)
    sums = flipped(np.array([values], np.int64), draws=DRAWS, seed=seed).sums[0]
    extreme = int((np.abs(sum(values) - 2 * sums) >= abs(sum(values))).sum())
    return (1 + extreme) / (1 + len(sums))


def fisher_p(early: tuple[int, int], late: tuple[int, int]) -> float:
    """Fisher's exact two-sided p that the share of the first of two counts is the same early and late.

    >>> round(fisher_p((1, 9), (11, 3)), 6)
    0.002759
    """
    first, size, n = early[0] + late[0], sum(early), sum(early) + sum(late)
    ways = {k: comb(first, k) * comb(n - first, size - k) for k in range(min(first, size) + 1)}
    return sum(way for way in ways.values() if way <= ways[early[0]]) / sum(ways.values())
