"""Would a system that knows nothing of the query have scored as well? The nulls of runner/gate/nulls.py on qrels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from runner.base.figures import round4
from runner.base.records import SCORE_UNIT, Ints, Qrels, Run, Verdict
from runner.eval_set.shapes.gate import GateVerdict, NullResult
from runner.gate.nulls import BY_NAME, GATES, GRADED, Drawn, Fixed, GradedSet, Null
from runner.score.comparison import Comparison

DOTS = 40
"""Order statistics of a null's draws that are kept for a picture; each stands for a fortieth of them."""


class Spread(NamedTuple):
    """How a null's draws are spread, in [0, 1]."""

    mean: float
    low: float
    high: float
    dots: list[float]


def graded_gate(
    run: Run,
    query_ids: Sequence[str],
    qrels: Qrels,
    strata: Mapping[str, str],
    document_chunks: Mapping[str, int],
    document_lengths: Mapping[str, int],
    *,
    draws: int,
    tau: float,
    alpha: float,
    seed: int,
    texts: Mapping[str, str] | None = None,
) -> GateVerdict:
    """The run's mean nDCG@10 against each null; see GradedGate, which serves for many runs.

    With the queries' `texts` there is one null more, "nearest query".
    """
    graded = GradedSet(query_ids, qrels, strata, document_lengths, draws, seed, texts)
    return GradedGate(graded, tau=tau, alpha=alpha).judge(run, document_chunks)


class GradedGate:
    """The gate of one eval set; what does not depend on the run is drawn once and is alike for all runs.

    A null is passed with p <= alpha and delta >= tau; one of the order alone with p <= alpha. A null is
    "insufficient" if no outcome could have reached alpha: too few draws, or too few queries that could have shown
    anything. The whole is "fail" where a null fails, else "insufficient" where one is, else "pass". A system whose
    rankings have nothing to do with the query passes "permuted qrels", and so the whole, with a probability of at most
    alpha.

    Unjudged documents count 0. Controls are made from `graded`; without its texts, nulls `by_texts` are left out.
    """

    def __init__(self, graded: GradedSet, *, tau: float, alpha: float, nulls: Sequence[Null] = GRADED) -> None:
        self.graded = graded
        self.nulls = [null for null in nulls if graded.texts is not None or not null.by_texts]
        self.table = graded.table
        self.alpha = alpha
        self._draws, self._tau = graded.draws, tau
        n_queries = len(self.table.query_ids)
        self._whole = n_queries * SCORE_UNIT
        self._flipped = graded.generator("sign flips").integers(2, size=(n_queries, graded.draws), dtype=np.int8)

    @classmethod
    def over(cls, comparison: Comparison) -> Self:
        """The gate of the set that is compared, by its plan's settings; it serves for every run of it."""
        settings = comparison.plan.null_gate
        graded = GradedSet(
            comparison.query_ids,
            comparison.qrels,
            comparison.strata,
            comparison.document_lengths,
            settings.draws,
            settings.seed,
            comparison.texts,
        )
        return cls(graded, tau=settings.tau, alpha=settings.alpha, nulls=GATES[settings.nulls])

    def judge(self, run: Run, document_chunks: Mapping[str, int]) -> GateVerdict:
        """The verdict on a run over a corpus whose documents are cut into so many chunks.

        KeyError if the run misses a query; ValueError if it, or `document_chunks`, names a document that the
        corpus does not have, and where no document has a chunk.
        """
        rankings = self.table.rankings(run)
        own = self.table.own_scores(rankings)
        nulls = list(self._nulls(rankings, own, document_chunks))
        return GateVerdict(
            real=int(own.sum()) / self._whole,
            nulls=nulls,
            verdict=_overall(nulls),
        )

    def trial(self, rankings: Ints, document_chunks: Mapping[str, int]) -> tuple[float, bool]:
        """The mean nDCG@10 of rankings (queries, places) of the table's documents, and whether they pass.

        Nothing is looked at beyond the first null that keeps them from passing, and no null if their mean is below
        tau: no null's mean is below 0, so none can be beaten by tau.
        """
        own = self.table.own_scores(rankings)
        real = int(own.sum()) / self._whole
        if round4(real) < self._tau:
            return real, False
        return real, not any(map(_stands_against, self._nulls(rankings, own, document_chunks)))

    def _nulls(self, rankings: Ints, own: Ints, document_chunks: Mapping[str, int]) -> Iterator[NullResult]:
        for null in self.nulls:
            outcome = null.outcome(self.graded, rankings, document_chunks)
            yield self._drawn(null, own, outcome) if isinstance(outcome, Drawn) else self._fixed(null, own, outcome)

    def _drawn(self, null: Null, own: Ints, drawn: Drawn) -> NullResult:
        totals = drawn.totals
        ordered = np.sort(totals) / self._whole
        outside = self._draws // 40
        low, high = ordered[[outside, self._draws - 1 - outside]].tolist()
        dots = ordered[(2 * np.arange(DOTS) + 1) * self._draws // (2 * DOTS)].tolist()
        mean = int(totals.sum()) / (self._draws * self._whole)
        at_least_as_good = int((totals >= own.sum()).sum())
        spread = Spread(mean, low, high, dots)
        return self._result(null, own, spread, at_least_as_good, drawn.least)

    def _fixed(self, null: Null, own: Ints, fixed: Fixed) -> NullResult:
        """The verdict on one system: the one-sided sign-flip test of the differences to it.

        Flipping the signs of some differences leaves a sum at least as great where those flipped do not add up to
        more than 0. At best every query compared beats the list, but for those that it answers ideally and those
        without a relevant document.
        """
        scores = fixed.scores
        flipped = np.zeros(self._draws, np.int64)
        for difference, flips in zip(own - scores, self._flipped, strict=True):
            flipped += difference * flips
        beatable = int(((self.table.ideal > 0) & (scores < SCORE_UNIT) & fixed.compared).sum())
        mean = int(scores.sum()) / self._whole
        spread = Spread(mean, mean, mean, [])
        return self._result(null, own, spread, int((flipped <= 0).sum()), 0.5**beatable)

    def _result(self, null: Null, own: Ints, spread: Spread, at_least_as_good: int, least: float) -> NullResult:
        """Like every threshold, tau and alpha are compared at the four places a page shows."""
        smallest_p = max(least, 1 / (1 + self._draws))
        p = max(smallest_p, (1 + at_least_as_good) / (1 + self._draws))
        delta = int(own.sum()) / self._whole - spread.mean
        verdict: Verdict = "pass"
        if round4(p) > self.alpha or (not null.p_alone and round4(delta) < self._tau):
            verdict = "fail"
        if round4(smallest_p) > self.alpha:
            verdict = "insufficient"
        return NullResult(name=null.name, **spread._asdict(), delta=delta, p=p, smallest_p=smallest_p, verdict=verdict)


def _stands_against(null: NullResult) -> bool:
    """Whether a null keeps a run from passing; a top ten whose order cannot matter is not held against it."""
    return null.verdict == "fail" or (null.verdict == "insufficient" and not BY_NAME[null.name].p_alone)


def _overall(nulls: Sequence[NullResult]) -> Verdict:
    verdicts = {null.verdict for null in nulls if _stands_against(null)}
    return "fail" if "fail" in verdicts else "insufficient" if verdicts else "pass"
