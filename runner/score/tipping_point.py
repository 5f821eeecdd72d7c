"""How wrong the judge would have to be for a gain to be gone: errors of the judge, of which p says nothing.

Asked of the pairs that either list has among its first ten. Of a topic in two wordings both pairs of lists count, and
one grade stands in all of them. In each of them the judge may be one grade off, up or down, whichever hurts the cell (a
lower grade also lowers the ideal, and so can raise nDCG). Pairs are put wrong one by one, always the one that takes
most from the mean difference as it then is, until that is not above 0; another order, or pairs that neither list has,
may do with fewer. Errors that do not follow one list need many more pairs than that.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from operator import mul
from typing import NamedTuple

from runner.base.records import SCORE_UNIT, Qrels, Run
from runner.eval_set.asked import topic_of
from runner.eval_set.shapes.paired import TippingPoint
from runner.score.flips import Weights, counted
from runner.score.score import DISCOUNTS

_BY_RANK: list[float] = DISCOUNTS.tolist()


class _Pair(NamedTuple):
    """A judged document that one of two lists has, and what a grade of it counts in each list."""

    grade: int
    discounts: list[float]


class _Error(NamedTuple):
    """A pair that the judge got wrong by `step`, and what that adds to the difference of its query, in units."""

    effect: int
    query: int
    pair: int
    step: int


def tipping_point(
    run: Run, baseline: Run, query_ids: Sequence[str], qrels: Qrels, highest_grade: int, weights: Weights = None
) -> TippingPoint | None:
    """Return in how many pairs the judge would have to be wrong for the run to lose its gain in nDCG@10.

    `query_ids` are what was asked, `qrels` by topic. None if there is no gain.
    """
    topics: dict[str, list[tuple[int, list[Mapping[str, int]]]]] = {}
    for query_id, weight in zip(query_ids, counted(weights, len(query_ids)).tolist(), strict=True):
        topics.setdefault(topic_of(query_id), []).append((weight, [run.ranks[query_id], baseline.ranks[query_id]]))
    queries = [_Query(wordings, qrels.get(topic, {}), highest_grade) for topic, wordings in topics.items()]
    total = sum(query.difference() for query in queries)
    if total <= 0:
        return None
    n_pairs, n_wrong = sum(len(query.pairs) for query in queries), 0
    # An error changes what further ones do in its own query alone.
    worst = [query.worst(number) for number, query in enumerate(queries)]
    heapify(worst)
    while total > 0 and worst[0].effect < 0:
        error = worst[0]
        total += error.effect
        n_wrong += 1
        queries[error.query].make(error)
        heapreplace(worst, queries[error.query].worst(error.query))
    return TippingPoint(wrong=n_wrong if total <= 0 else None, pairs=n_pairs)


def _discount(rank: int | None) -> float:
    return _BY_RANK[rank] if rank is not None and rank < len(_BY_RANK) else 0.0


class _Query:
    """The lists of a topic under grades that the judge gets wrong one by one; `pairs` are those still as judged.

    Of each wording the cell's list stands before the baseline's, and `signs` is what each list's nDCG counts.
    """

    def __init__(
        self, wordings: Sequence[tuple[int, Sequence[Mapping[str, int]]]], grades: Mapping[str, int], highest: int
    ) -> None:
        self.counts = [0] * (highest + 1)
        self.signs = [sign * weight for weight, _ in wordings for sign in (1, -1)]
        self.gains = [0.0] * len(self.signs)
        self.pairs: list[_Pair] = []
        lists = [ranks for _, both in wordings for ranks in both]
        for doc_id, grade in grades.items():
            # A grade below 0 is that of no judgment.
            if grade < 0:
                continue
            self.counts[grade] += 1
            pair = _Pair(grade, [_discount(ranks.get(doc_id)) for ranks in lists])
            self._gain(pair, grade)
            if any(pair.discounts):
                self.pairs.append(pair)

    def difference(self) -> int:
        """Return the cell's nDCG less the baseline's, each in whole units, by the weights of the wordings."""
        best_first = (grade for grade in range(len(self.counts) - 1, 0, -1) for _ in range(self.counts[grade]))
        ideal = sum(grade * discount for grade, discount in zip(best_first, _BY_RANK, strict=False))
        scores = (round(gain / ideal * SCORE_UNIT) if ideal else 0 for gain in self.gains)
        return sum(map(mul, self.signs, scores))

    def worst(self, number: int) -> _Error:
        """Return the error that lowers the difference most, of equal ones the first; one of effect 0 if none does."""
        now, worst = self.difference(), _Error(0, number, 0, 0)
        for place, pair in enumerate(self.pairs):
            for step in (-1, 1):
                if 0 <= pair.grade + step < len(self.counts):
                    before = [*self.counts], [*self.gains]
                    self._move(pair, step)
                    worst = min(worst, _Error(self.difference() - now, number, place, step))
                    self.counts, self.gains = before
        return worst

    def make(self, error: _Error) -> None:
        """Take the pair's grade as wrong from here on."""
        self._move(self.pairs.pop(error.pair), error.step)

    def _move(self, pair: _Pair, step: int) -> None:
        self.counts[pair.grade] -= 1
        self.counts[pair.grade + step] += 1
        self._gain(pair, step)

    def _gain(self, pair: _Pair, grade: int) -> None:
        for number, discount in enumerate(pair.discounts):
            self.gains[number] += grade * discount
