"""At which mix of what is asked another cell would be recommended."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from runner.decide.tiers import greatest_gain, meets_criterion_5
from runner.eval_set.mix import Mix, weigh
from runner.eval_set.shapes.queries import LITERAL_KINDS, WORDINGS
from runner.eval_set.shapes.results import REGISTERED, CellResult, Turning, What
from runner.score.comparison import Comparison, mean
from runner.score.expected_gain import expected_gain


def turnings(comparison: Comparison, cells: Sequence[CellResult], recommended: str) -> Iterator[Turning]:
    """Yield, for citations among all that is asked and for plain wordings among both, the shares that turn the choice.

    Shares are tried in steps of a hundredth, nearest first; kinds of either side keep their proportions. What cannot
    vary, as there is none or nothing else, is left out; so is all where no other cell may be recommended.
    """
    mix = comparison.mix
    allowed = [row.cell for row in cells if row.role in REGISTERED and row.gate.verdict == "pass" and not row.unjudged]
    allowed = [cell for cell in allowed if cell in comparison.challengers]
    if not allowed:
        return
    sides: Mapping[What, tuple[Collection[str], Collection[str]]] = {
        "citations": (LITERAL_KINDS, [*mix]),
        "plain wordings": (WORDINGS[:1], WORDINGS),
    }
    for what, (own, among) in sides.items():
        ours, all_of_it = (sum((mix.get(name, Fraction()) for name in names), Fraction()) for names in (own, among))
        if not 0 < ours < all_of_it:
            continue
        now, found = 100 * ours / all_of_it, []
        for shares in (range(math.ceil(now) - 1, -1, -1), range(math.floor(now) + 1, 101)):
            turns = (x / 100 for x in shares if _chosen(comparison, allowed, _moved(mix, own, among, x)) != recommended)
            found.append(next(turns, None))
        yield Turning(what=what, now=float(now) / 100, below=found[0], above=found[1])


def _moved(mix: Mix, own: Collection[str], among: Collection[str], percent: int) -> Mix:
    """Return the mix with so many hundredths of what `among` have for `own`."""
    ours, others = (
        sum((share for name, share in mix.items() if name in among and (name in own) == inside), Fraction())
        for inside in (True, False)
    )
    part = Fraction(percent, 100) * (ours + others)
    grown = {True: part / ours, False: (ours + others - part) / others}
    return {name: share * grown[name in own] if name in among else share for name, share in mix.items()}


def _chosen(comparison: Comparison, allowed: Sequence[str], mix: Mix) -> str:
    """Return what would be recommended under a mix, of the baseline, the incumbent and the cells that are allowed."""
    plan, weighing = comparison.plan, weigh(comparison.queries, mix)
    counted = [place for place in comparison.counted if weighing.topics[place]]
    weights = [weighing.topics[place] for place in counted]
    ndcg, recall = (
        comparison.of_topics([plan.baseline, plan.in_place, *allowed], measure, weighing.wordings)[:, counted]
        for measure in ("ndcg@10", "recall@10")
    )
    differences = zip(allowed, (ndcg - ndcg[0])[2:], (recall - recall[0])[2:], strict=True)
    # A single topic says nothing of how differences scatter.
    eligible = [
        cell
        for cell, gain, change in differences
        if len(counted) > 1 and meets_criterion_5(mean(gain, weights), mean(change, weights), plan.rule)
    ]
    gains = {
        cell: expected_gain(cell, row, plan, weights, over=plan.incumbent)
        for cell, row in zip(allowed, (ndcg - ndcg[1])[2:], strict=True)
        if cell in eligible and cell != plan.incumbent
    }
    return greatest_gain(eligible, gains, plan)
