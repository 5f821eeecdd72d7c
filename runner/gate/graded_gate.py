"""Would a system that knows nothing of the query have scored as well? Five nulls on graded qrels.

"permuted qrels": each ranking under another query's whole qrels, within the stratum, so that a list which is good for
everybody gains nothing. "random retrieval": documents drawn by their number of chunks, since a longer document has
more chances to hold the best chunk. "most retrieved" and "length sorted": one list for every query, of the documents
that the run itself retrieves most often, or of the longest. "shuffled top 10": the run's own ten in random order.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from runner.base.figures import round4
from runner.base.records import SCORE_UNIT, Ints, Qrels, Run, Verdict
from runner.eval_set.shapes.tests import GateVerdict, Null, NullResult
from runner.gate.graded_nulls import (
    generator_for,
    greatest,
    most_retrieved,
    permutation_groups,
    permutations,
    permuted_totals,
    random_totals,
    shuffled_totals,
    shuffles,
)
from runner.gate.qrels_table import QrelsTable, document_column, qrels_table
from runner.score.comparison import Comparison

DOTS = 40
"""Order statistics of a null's draws that are kept for a picture; each stands for a fortieth of them."""


class Spread(NamedTuple):
    """How a null's draws are spread, in [0, 1]; the fields are NullResult's."""

    mean: float
    sd: float
    low: float
    median: float
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
) -> GateVerdict:
    """The run's mean nDCG@10 against each null; see GradedGate, which serves for many runs."""
    gate = GradedGate(query_ids, qrels, strata, document_lengths, draws=draws, tau=tau, alpha=alpha, seed=seed)
    return gate.judge(run, document_chunks)


class GradedGate:
    """The gate of one eval set; what does not depend on the run is drawn once and is alike for all runs.

    A null is passed with p <= alpha and delta >= tau; "shuffled top 10" with p <= alpha alone, since how much order
    is worth depends on how many documents are relevant. A null is "insufficient" where no outcome could have reached
    alpha: too few draws, or too few queries that could have shown anything. The whole is "fail" where a null fails,
    else "insufficient" where one is, else "pass"; a top ten of one grade, whose order cannot matter, stands against
    nothing. A system whose rankings have nothing to do with the query passes "permuted qrels", and so the whole, with
    a probability of at most alpha.

    Unjudged documents count 0. `strata` names each query's stratum; `document_lengths` holds every document of the
    corpus, in characters. ValueError for no queries and for less than one draw. Controls are made from `table`, the
    qrels; `groups`, the positions of the queries that exchange them; and `corpus`, the numbers of its documents.
    """

    def __init__(
        self,
        query_ids: Sequence[str],
        qrels: Qrels,
        strata: Mapping[str, str],
        document_lengths: Mapping[str, int],
        *,
        draws: int,
        tau: float,
        alpha: float,
        seed: int,
    ) -> None:
        if not query_ids or draws < 1:
            raise ValueError(f"a null gate needs queries and draws, got {len(query_ids)} queries and {draws} draws")
        self.table = qrels_table(query_ids, qrels, document_lengths)
        self.groups = permutation_groups([strata[query_id] for query_id in query_ids])
        self.corpus = np.flatnonzero(document_column(self.table, dict.fromkeys(document_lengths, 1)))
        self.alpha, self.seed = alpha, seed
        self._draws, self._tau = draws, tau
        self._whole = len(query_ids) * SCORE_UNIT
        self._assigned = permutations(self.groups, draws, generator_for(seed, "permuted qrels"))
        self._least_permuted = 1 / _assignments(self.table, self.groups)
        self._longest = greatest(document_column(self.table, document_lengths))
        flips = generator_for(seed, "sign flips")
        self._flipped = flips.integers(2, size=(len(query_ids), draws), dtype=np.int8)
        self._random: dict[bytes, Ints] = {}

    @classmethod
    def over(cls, comparison: Comparison) -> Self:
        """The gate of the set that is compared, by its plan's settings; it serves for every run of it."""
        settings = comparison.plan.null_gate
        return cls(
            comparison.query_ids,
            comparison.qrels,
            comparison.strata,
            comparison.document_lengths,
            draws=settings.draws,
            tau=settings.tau,
            alpha=settings.alpha,
            seed=settings.seed,
        )

    def judge(self, run: Run, document_chunks: Mapping[str, int]) -> GateVerdict:
        """The verdict on a run over a corpus whose documents are cut into so many chunks.

        KeyError where the run misses a query; ValueError where it, or `document_chunks`, names a document that the
        corpus does not have, and where no document has a chunk.
        """
        rankings = self.table.rankings(run)
        own = self.table.own_scores(rankings)
        nulls = list(self._nulls(rankings, own, document_chunks))
        return GateVerdict(
            cell=run.cell,
            measure="ndcg@10",
            real=int(own.sum()) / self._whole,
            draws=self._draws,
            tau=self._tau,
            alpha=self.alpha,
            nulls=nulls,
            verdict=_overall(nulls),
        )

    def trial(self, rankings: Ints, document_chunks: Mapping[str, int]) -> tuple[float, bool]:
        """The mean nDCG@10 of rankings (queries, places) of the table's documents, and whether they pass.

        Nothing is looked at beyond the first null that keeps them from passing, and no null where their mean is below
        tau: no null's mean is below 0, so none can be beaten by tau.
        """
        own = self.table.own_scores(rankings)
        real = int(own.sum()) / self._whole
        if round4(real) < self._tau:
            return real, False
        return real, not any(map(_stands_against, self._nulls(rankings, own, document_chunks)))

    def _nulls(self, rankings: Ints, own: Ints, document_chunks: Mapping[str, int]) -> Iterator[NullResult]:
        permuted = permuted_totals(self.table, rankings, self._assigned)
        yield self._drawn("permuted qrels", own, permuted, self._least_permuted, self._tau)
        nothing_relevant = 0.0 if self.table.ideal.any() else 1.0
        yield self._drawn("random retrieval", own, self._random_totals(document_chunks), nothing_relevant, self._tau)
        yield self._constant("most retrieved", own, most_retrieved(rankings))
        yield self._constant("length sorted", own, self._longest)
        shuffled = shuffled_totals(self.table, rankings, self._shuffles)
        yield self._drawn("shuffled top 10", own, shuffled, 1 / _orders(self.table, rankings), None)

    @cached_property
    def _shuffles(self) -> NDArray[np.int8]:
        generator = generator_for(self.seed, "shuffled top 10")
        return shuffles(len(self.table.query_ids), self._draws, generator)

    def _random_totals(self, document_chunks: Mapping[str, int]) -> Ints:
        weights = document_column(self.table, document_chunks)
        if not weights.any():
            raise ValueError("no document of the corpus has a chunk, so none can be drawn")
        key = weights.tobytes()
        if key not in self._random:
            generator = generator_for(self.seed, "random retrieval")
            self._random[key] = random_totals(self.table, weights, self._draws, generator)
        return self._random[key]

    def _drawn(self, name: Null, own: Ints, totals: Ints, least: float, tau: float | None) -> NullResult:
        """The verdict on a null of which `totals` (draws,) are outcomes; `least` is the p of the best real outcome."""
        ordered = np.sort(totals) / self._whole
        outside = self._draws // 40
        low, median, high = ordered[[outside, (self._draws - 1) // 2, self._draws - 1 - outside]].tolist()
        dots = ordered[(2 * np.arange(DOTS) + 1) * self._draws // (2 * DOTS)].tolist()
        mean = int(totals.sum()) / (self._draws * self._whole)
        at_least_as_good = int((totals >= own.sum()).sum())
        spread = Spread(mean, float(ordered.std()), low, median, high, dots)
        return self._result(name, own, spread, at_least_as_good, least, tau)

    def _constant(self, name: Null, own: Ints, documents: Ints) -> NullResult:
        """The verdict on a list that every query gets: the one-sided sign-flip test of the differences to it.

        Flipping the signs of some differences leaves a sum at least as great where those flipped do not add up to
        more than 0. At best every query beats the list, but for those that it answers ideally and those without a
        relevant document.
        """
        scores = self.table.scores(documents[None])[0]
        flipped = np.zeros(self._draws, np.int64)
        for difference, flips in zip(own - scores, self._flipped, strict=True):
            flipped += difference * flips
        beatable = int(((self.table.ideal > 0) & (scores < SCORE_UNIT)).sum())
        mean = int(scores.sum()) / self._whole
        spread = Spread(mean, 0.0, mean, mean, mean, [])
        return self._result(name, own, spread, int((flipped <= 0).sum()), 0.5**beatable, self._tau)

    def _result(
        self,
        name: Null,
        own: Ints,
        spread: Spread,
        at_least_as_good: int,
        least: float,
        tau: float | None,
    ) -> NullResult:
        """Like every threshold, tau and alpha are compared at the four places a page shows."""
        smallest_p = max(least, 1 / (1 + self._draws))
        p = max(smallest_p, (1 + at_least_as_good) / (1 + self._draws))
        delta = int(own.sum()) / self._whole - spread.mean
        verdict: Verdict = "pass"
        if round4(p) > self.alpha or (tau is not None and round4(delta) < tau):
            verdict = "fail"
        if round4(smallest_p) > self.alpha:
            verdict = "insufficient"
        return NullResult(
            name=name,
            **spread._asdict(),
            delta=delta,
            p=p,
            smallest_p=smallest_p,
            verdict=verdict,
        )


def _assignments(table: QrelsTable, groups: Sequence[Ints]) -> int:
    """How many different ways there are to hand a group's qrels around, over all groups."""
    qrels = [(table.documents[rows].tobytes(), table.grades[rows].tobytes()) for rows in table.rows_of]
    return math.prod(_arrangements(qrels[query] for query in group.tolist()) for group in groups)


def _orders(table: QrelsTable, rankings: Ints) -> int:
    """How many different orders of grades the rankings' documents have, over all queries."""
    graded = zip(table.own_grades(rankings), rankings >= 0, strict=True)
    return math.prod(_arrangements(grades[found].tolist()) for grades, found in graded)


def _arrangements(items: Iterable[Hashable]) -> int:
    """In how many distinguishable orders the items can stand, where equal ones are alike."""
    counts = Counter(items).values()
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


def _stands_against(null: NullResult) -> bool:
    """Whether a null keeps a run from passing; a top ten whose order cannot matter is not held against it."""
    return null.verdict == "fail" or (null.verdict == "insufficient" and null.name != "shuffled top 10")


def _overall(nulls: Sequence[NullResult]) -> Verdict:
    verdicts = {null.verdict for null in nulls if _stands_against(null)}
    return "fail" if "fail" in verdicts else "insufficient" if verdicts else "pass"
