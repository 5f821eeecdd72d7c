"""Would a system that knows nothing of the query have scored as well? One gate, for graded and single-gold benches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from runner.base.figures import round4
from runner.base.records import Ints, Qrels, Run, Verdict
from runner.eval_set.asked import topic_of
from runner.eval_set.shapes.gate import GateVerdict, NullResult
from runner.gate.bench import Floats, bench_of, permutation_groups
from runner.gate.blindness import blindness
from runner.gate.nulls import BY_NAME, GATES, GRADED, Drawn, Judged, Null, Trials
from runner.score.comparison import Comparison
from runner.score.score import units

DOTS = 40
"""Order statistics of a null's draws that are kept for a picture; each stands for a fortieth of them."""


class Gate:
    """The nulls over one bench; it serves for every run of it.

    A null is passed with p <= alpha and delta >= tau; one of the order alone with p <= alpha. What is not passed is
    "insufficient" if a better engine would not pass either (runner/gate/better.py), else "fail". `overall` says what
    the nulls make together. A system whose rankings have nothing to do with the query passes "permuted qrels" with a
    probability of at most alpha. Unjudged documents count 0.
    """

    def __init__(
        self, trials: Trials, nulls: Sequence[Null] = GRADED, *, tau: float, alpha: float, spare: int = 1
    ) -> None:
        self.trials, self.bench, self.nulls = trials, trials.bench, nulls
        self.tau, self.alpha, self.spare = tau, alpha, spare

    @classmethod
    def of(
        cls,
        query_ids: Sequence[str],
        qrels: Qrels,
        strata: Mapping[str, str],
        document_lengths: Mapping[str, int],
        *,
        draws: int,
        tau: float,
        alpha: float,
        seed: int,
        nulls: Sequence[Null] = GRADED,
        weights: Sequence[int] | None = None,
    ) -> Self:
        """Return the gate of graded judgments over a corpus, whose documents are the keys of `document_lengths`.

        `query_ids` are what was asked, `strata` are by topic.
        """
        topic_ids = [topic_of(query_id) for query_id in query_ids]
        numbers = {topic: number for number, topic in enumerate(dict.fromkeys(topic_ids))}
        topics = [numbers[topic] for topic in topic_ids]
        groups = [np.flatnonzero(np.isin(topics, group)) for group in permutation_groups([strata[t] for t in numbers])]
        bench = bench_of(query_ids, qrels, document_lengths, groups, topics=topics, weights=weights)
        return cls(Trials(bench, draws, seed), nulls, tau=tau, alpha=alpha)

    @classmethod
    def over(cls, comparison: Comparison) -> Self:
        """Return the gate of the set that is compared, by its plan's settings."""
        settings = comparison.plan.null_gate
        weights = comparison.asked_weights
        return cls.of(
            [*weights],
            comparison.grades_of_asked,
            comparison.strata,
            comparison.document_lengths,
            weights=[*weights.values()],
            draws=settings.draws,
            tau=settings.tau,
            alpha=settings.alpha,
            seed=settings.seed,
            nulls=GATES[settings.nulls],
        )

    def judge(self, run: Run, document_chunks: Mapping[str, int]) -> GateVerdict:
        """Return the verdict on a run over a corpus whose documents are cut into so many chunks.

        KeyError if the run misses a query; ValueError if it, or `document_chunks`, names a document that the
        corpus does not have, and where no document has a chunk.
        """
        return self.verdict(self.bench.rankings(run), self.bench.column(document_chunks))

    def verdict(self, rankings: Ints, chunks: Ints) -> GateVerdict:
        """Return the verdict on rankings (queries, depth) over documents of so many chunks (documents,)."""
        own = self.bench.own_scores(rankings)
        nulls = [result for result, _ in self.results(rankings, own, chunks)]
        real = self.bench.total(own) / self.bench.whole
        return GateVerdict(real=real, nulls=nulls, verdict=overall(nulls, self.spare))

    def blind(self, run: Run) -> float:
        """Return the share of queries whose list in the run does not depend on the query (runner/gate/blindness.py)."""
        return blindness(self.bench, self.bench.rankings(run))

    def trial(self, rankings: Ints, chunks: Ints) -> tuple[float, bool]:
        """Return the mean score of rankings, and whether they pass.

        No null is looked at if their mean is below tau: no null's mean is below 0, so none can be beaten by tau. Else
        the nulls are, until more are missed than may be spared, which no verdict on these can make good.
        """
        own = self.bench.own_scores(rankings)
        real = self.bench.total(own) / self.bench.whole
        if round4(real) < self.tau:
            return real, False
        judged, missed = Judged(rankings, rankings, chunks), list[Null]()
        counted = [null for null in self.nulls if not null.p_alone]
        for null in counted:
            if not self._passes(null, self._set_against(null, judged, own)):
                missed.append(null)
            if len(missed) > self.spare:
                return real, False
        return real, len(missed) < len(counted) and not any(self._could_pass(null, judged) for null in missed)

    def results(self, rankings: Ints, own: Floats, chunks: Ints) -> Iterator[tuple[NullResult, Floats]]:
        """Yield each null's result, and each query's score less what the null scores, on average where it is drawn.

        `own` (queries,) are the scores of the rankings.
        """
        judged = Judged(rankings, rankings, chunks)
        for null in self.nulls:
            against = self._set_against(null, judged, own)
            result = self._result(null, against)
            if not self._passes(null, against):
                verdict: Verdict = "fail" if self._could_pass(null, judged) else "insufficient"
                result = result.model_copy(update={"verdict": verdict})
            yield result, against.differences

    def _could_pass(self, null: Null, judged: Judged) -> bool:
        """Return whether every engine that does better than the run would pass the null."""
        return all(self._lets_pass(null, judged, better(self.bench, judged.run)) for better in null.better)

    def _lets_pass(self, null: Null, judged: Judged, rankings: Ints) -> bool:
        """Return whether rankings in place of the judged run's would pass the nulls of that run."""
        return self._passes(null, self._set_against(null, judged._replace(rankings=rankings)))

    def _passes(self, null: Null, against: "_Against") -> bool:
        """Return whether p and delta suffice, both at the four places that a page shows."""
        return round4(against.p) <= self.alpha and (null.p_alone or round4(against.delta) >= self.tau)

    def _set_against(self, null: Null, judged: Judged, own: Floats | None = None) -> "_Against":
        """Set the judged rankings, which score `own`, against what the null scores."""
        own = self.bench.own_scores(judged.rankings) if own is None else own
        outcome = null.outcome(self.trials, judged)
        return self._drawn(own, outcome) if isinstance(outcome, Drawn) else self._fixed(own, outcome)

    def _drawn(self, own: Floats, drawn: Drawn) -> "_Against":
        real, whole, weights = self.bench.total(own), self.bench.whole, self.bench.weights
        # The real outcome is one of the draws (Phipson & Smyth 2010).
        p = self._p(int((drawn.totals >= real).sum()))
        if drawn.expected is None:
            mean = int(drawn.totals.sum()) / (len(drawn.totals) * whole)
            return _Against(mean, real / whole - mean, p, own - mean, drawn)
        n = int(weights.sum())
        mean = float((drawn.expected * weights).sum()) / n
        return _Against(mean, float((own * weights).sum()) / n - mean, p, own - drawn.expected, drawn)

    def _fixed(self, own: Floats, scores: Floats) -> "_Against":
        """Set the scores against one system: the one-sided sign-flip test of the differences to it.

        Flipping the signs of some differences leaves a sum at least as great where those flipped do not add up to
        more than 0.
        """
        real, theirs = units(own), units(scores)
        flipped = np.zeros(self.trials.draws, np.int64)
        for difference, flips in zip((real - theirs) * self.bench.weights, self.trials.flips, strict=True):
            flipped += difference * flips
        mean = self.bench.total(scores) / self.bench.whole
        delta = self.bench.total(own) / self.bench.whole - mean
        return _Against(mean, delta, self._p(int((flipped <= 0).sum())), own - scores)

    def _p(self, n_as_good: int) -> float:
        return (1 + n_as_good) / (1 + self.trials.draws)

    def _result(self, null: Null, against: "_Against") -> NullResult:
        low = high = against.mean
        dots: list[float] = []
        if against.drawn is not None:
            draws = len(against.drawn.totals)
            ordered = np.sort(against.drawn.totals) / self.bench.whole
            # 2.5 % of the draws at either end.
            outside = draws // 40
            low, high = ordered[[outside, draws - 1 - outside]].tolist()
            if against.drawn.expected is None:
                dots = ordered[(2 * np.arange(DOTS) + 1) * draws // (2 * DOTS)].tolist()
        mean, delta, p = against[:3]
        return NullResult(name=null.name, mean=mean, low=low, high=high, dots=dots, delta=delta, p=p, verdict="pass")


class _Against(NamedTuple):
    """What a null scores on average, by how much it is beaten, p, and each query's difference to it."""

    mean: float
    delta: float
    p: float
    differences: Floats
    drawn: Drawn | None = None


def overall(nulls: Iterable[NullResult], spare: int) -> Verdict:
    """Return the verdict of all nulls together: "fail" if one fails, "pass" if no more than `spare` are insufficient.

    If none is passed, nothing was tested, and the whole is "insufficient". A null of the order alone counts for nothing
    here.
    """
    n_passed = n_insufficient = 0
    for null in nulls:
        if null.name in BY_NAME and BY_NAME[null.name].p_alone:
            continue
        if null.verdict == "fail":
            return "fail"
        n_passed += null.verdict == "pass"
        n_insufficient += null.verdict == "insufficient"
    return "pass" if n_passed and n_insufficient <= spare else "insufficient"
