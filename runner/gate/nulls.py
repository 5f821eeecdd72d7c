"""The nulls of both gates, one row each: what it scores, how its failure reads, and the controls it catches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints
from runner.gate.bench import Bench, Floats
from runner.gate.better import Better, halfway, own_best, own_halfway, perfect
from runner.gate.draws import (
    ROWS_AT_ONCE,
    draw_documents,
    generator_for,
    greatest,
    most_retrieved,
    permutations,
    random_totals,
    shuffled_totals,
)

BETTER: Sequence[Better] = (halfway, perfect)
"""By which a graded null is told from one that nobody could pass."""

CONTROL_DRAWS = 200
"""Runs of a random predictor: of one alone nothing follows, since it may pass by chance."""


class Trials:
    """The draws over one bench; what does not depend on the run is drawn once and is alike for all runs.

    ValueError for less than one draw.
    """

    def __init__(self, bench: Bench, draws: int, seed: int) -> None:
        if draws < 1:
            raise ValueError(f"a null gate needs draws, got {draws} draws")
        self.bench, self.draws, self.seed = bench, draws, seed
        self._random: dict[bytes, Ints] = {}

    def generator(self, stream: str) -> np.random.Generator:
        """Return the random numbers of one purpose."""
        return generator_for(self.seed, stream)

    @cached_property
    def permuted(self) -> NDArray[np.int32]:
        """Whose judgments each query gets (queries, draws), within its group; wordings of a topic exchange together."""
        topics = self.bench.topics
        groups = [np.unique(topics[group]) for group in self.bench.groups]
        assigned = permutations(groups, self.draws, self.generator("permuted qrels"))
        first = np.unique(topics, return_index=True)[1].astype(np.int32)
        return first[assigned][topics]

    @cached_property
    def flips(self) -> NDArray[np.int8]:
        """Whether each query's difference changes its sign (queries, draws), that of all wordings of a topic alike."""
        size = (len(np.unique(self.bench.topics)), self.draws)
        return self.generator("sign flips").integers(2, size=size, dtype=np.int8)[self.bench.topics]

    def random(self, weights: Ints) -> Ints:
        """Return the sums (draws,) over lists drawn by the weights of documents."""
        key = weights.tobytes()
        if key not in self._random:
            if not weights.any():
                raise ValueError("no document of the corpus has a chunk, so none can be drawn")
            generator = self.generator("random retrieval")
            self._random[key] = random_totals(self.bench, weights, self.draws, generator)
        return self._random[key]


class Drawn(NamedTuple):
    """Sums over the queries (draws,), in units, by chance; `expected` (queries,) if it is known exactly."""

    totals: Ints
    expected: Floats | None = None


class Judged(NamedTuple):
    """What stands before a null: `rankings` to be beaten, the `run` in question and the chunks of each document.

    They differ if a better engine is set against the nulls of a run.
    """

    rankings: Ints
    run: Ints
    chunks: Ints


Outcome = Callable[[Trials, Judged], Drawn | Floats]
"""What a null scores: by chance, or as one system with a score by query (queries,)."""

Predictor = Callable[[Trials], Iterable[Ints]]
"""Rankings (queries, depth) of a system that ignores the query; several where it is drawn."""


@dataclass(frozen=True, slots=True)
class Null:
    """A system that knows nothing of the query, and what it means if a run does no better.

    `what` says what it scores. `found` and `likely` are the clauses of a diagnosis, `likely_if_worse` the second where
    the run does even worse than chance. Every one of `controls` must fail against it. A null that one of the `better`
    engines would not pass either says nothing of the run. `p_alone` is for a null that rearranges the run's own lists:
    no floor of a difference is asked, since how much its arrangement is worth depends on the set, and it stands against
    no run: on some sets a working engine orders its first ten no better than chance.
    """

    name: str
    what: str
    outcome: Outcome
    found: str = ""
    likely: str = ""
    likely_if_worse: str = ""
    controls: Mapping[str, Predictor] = field(default_factory=dict)
    better: Sequence[Better] = (perfect,)
    p_alone: bool = False


def _permuted(trials: Trials, judged: Judged) -> Drawn:
    """Return each ranking under another query's whole judgments, within the group."""
    return Drawn(trials.bench.exchanged(judged.rankings, trials.permuted)[0])


def _random(trials: Trials, judged: Judged) -> Drawn:
    """Return documents drawn by their number of chunks: a longer one has more chances to hold the best chunk."""
    return Drawn(trials.random(judged.chunks))


def _shuffled(trials: Trials, judged: Judged) -> Drawn:
    """Return the own first documents in random order."""
    generator = trials.generator("shuffled top 10")
    return Drawn(shuffled_totals(trials.bench, judged.rankings, trials.draws, generator))


def _for_all(trials: Trials, documents: Ints) -> Floats:
    """Return the same list for every query."""
    scores: Floats = trials.bench.scores(documents[None])[0]
    return scores


def _single_labels(bench: Bench, group: Ints) -> tuple[Ints, Ints]:
    """Return a query for each gold label of the group (labels,), and the number of each query's label (queries,)."""
    # A label is the document that is right; a query without one has the empty label.
    golds = [bench.documents[bench.rows_of[query]].tobytes() for query in group.tolist()]
    numbers = {gold: number for number, gold in enumerate(dict.fromkeys(golds))}
    own = np.array([numbers[gold] for gold in golds], np.int64)
    return group[np.unique(own, return_index=True)[1]], own


def _exchanged_labels(trials: Trials, judged: Judged) -> Drawn:
    """Null A: gold labels exchanged by a permutation of the distinct ones, which may leave some in place."""
    generator = trials.generator("permuted gold")

    def labels(n_labels: int, own: Ints) -> Ints:
        return generator.permuted(np.tile(np.arange(n_labels), (trials.draws, 1)), axis=1)[:, own].T

    return _relabelled(trials, judged, labels)


def _even_labels(trials: Trials, judged: Judged) -> Drawn:
    """Null B: each query's gold drawn from the distinct labels."""
    generator = trials.generator("uniform gold")
    return _relabelled(
        trials, judged, lambda n_labels, own: generator.integers(n_labels, size=(len(own), trials.draws))
    )


def _relabelled(trials: Trials, judged: Judged, labels: Callable[[int, Ints], Ints]) -> Drawn:
    """Give each query a label of its group: `labels` draws their numbers (queries of the group, draws)."""
    assigned = np.zeros((len(trials.bench.query_ids), trials.draws), np.int32)
    among = []
    for group in trials.bench.groups:
        of_label, own = _single_labels(trials.bench, group)
        assigned[group] = of_label[labels(len(of_label), own)]
        among.append(of_label)
    return Drawn(*trials.bench.exchanged(judged.rankings, assigned, among))


def _frequent_labels(trials: Trials, judged: Judged) -> Drawn:
    """Null D: each query's gold drawn from the golds as often as they occur."""
    generator = trials.generator("marginal-matched gold")
    assigned = np.zeros((len(trials.bench.query_ids), trials.draws), np.int32)
    for group in trials.bench.groups:
        assigned[group] = group[generator.integers(len(group), size=(len(group), trials.draws))]
    return Drawn(*trials.bench.exchanged(judged.rankings, assigned, trials.bench.groups))


def _random_lists(trials: Trials, judged: Judged) -> Drawn:
    """Null C: each query's list drawn from the pool."""
    return Drawn(*trials.bench.random_lists(trials.draws, trials.generator("random lists")))


def _constant(trials: Trials) -> list[Ints]:
    """Return the document that gains most when it is all that every query gets."""
    bench = trials.bench
    # What a document alone at rank 1 gains, over all queries that want it.
    gains = np.rint(bench.grades / bench.ideal[bench.queries] * SCORE_UNIT).astype(np.int64)
    return [bench.lists([greatest(bench.summed(gains), 1)] * len(bench.query_ids))]


def _popularity(trials: Trials) -> list[Ints]:
    """Return the documents with the greatest sum of grades."""
    return [_greatest_of_group(trials.bench, [np.arange(len(trials.bench.query_ids))])]


def _source_prior(trials: Trials) -> list[Ints]:
    """Return those of the query's own stratum (strata of one query taken together, as for the permuted judgments)."""
    return [_greatest_of_group(trials.bench, trials.bench.groups)]


def _greatest_of_group(bench: Bench, groups: Iterable[Ints]) -> Ints:
    lists = [np.empty(0, np.int64)] * len(bench.query_ids)
    for group in groups:
        popular = greatest(bench.summed(np.where(np.isin(bench.queries, group), bench.grades, 0)), bench.depth)
        for query in group.tolist():
            lists[query] = popular
    return bench.lists(lists)


def _random_control(trials: Trials) -> Iterator[Ints]:
    """Return documents of the corpus."""
    evenly = np.bincount(trials.bench.corpus, minlength=len(trials.bench.numbers))
    return _drawn_lists(evenly, trials.bench, trials.generator("random control"))


def _marginal_matched(trials: Trials) -> Iterator[Ints]:
    """Return documents by their share of the summed grades."""
    graded = trials.bench.summed(trials.bench.grades)
    return _drawn_lists(graded, trials.bench, trials.generator("marginal-matched control"))


def _drawn_lists(weights: Ints, bench: Bench, generator: np.random.Generator) -> Iterator[Ints]:
    n_queries = len(bench.query_ids)
    at_once = max(1, ROWS_AT_ONCE // n_queries)
    for start in range(0, CONTROL_DRAWS, at_once):
        n_draws = min(at_once, CONTROL_DRAWS - start)
        yield from draw_documents(weights, n_draws * n_queries, bench.depth, generator).reshape(n_draws, n_queries, -1)


GRADED: Sequence[Null] = (
    Null(
        "permuted qrels",
        "each ranking is scored against another query's judgments, within its stratum, so that a list which suits "
        "everybody gains nothing",
        _permuted,
        "rankings fit other queries' judgments {how} their own",
        "labels may belong to other queries, or the run to other queries' text",
        "scores may be sorted worst first",
        {"marginal-matched": _marginal_matched, "source-prior": _source_prior},
        BETTER,
    ),
    Null(
        "random retrieval",
        "documents are drawn by their number of chunks",
        _random,
        "documents drawn at random do {how} the run",
        "its vectors or its index may belong to another corpus",
        controls={"random": _random_control},
        better=BETTER,
    ),
    Null(
        "most retrieved",
        "the ten documents that this cell finds most often, for every query, compared query by query",
        lambda trials, judged: _for_all(trials, most_retrieved(judged.run)),
        "giving every query the documents retrieved most often does {how} the run",
        "a few documents crowd out the others whatever is asked",
        controls={"constant": _constant, "popularity": _popularity},
        better=BETTER,
    ),
    Null(
        "length sorted",
        "the longest documents for every query, compared query by query",
        lambda trials, judged: _for_all(trials, greatest(trials.bench.lengths, trials.bench.depth)),
        "giving every query the longest documents does {how} the run",
        "what is relevant may be so by its length alone",
        better=BETTER,
    ),
    Null(
        "shuffled top 10",
        "the cell's own first ten in random order, which tests the ranking and not what was found",
        _shuffled,
        "the first ten documents in random order do {how} in the run's own",
        "these queries do not show that the order is worth anything, or scores are lost on the way to the ranking",
        "scores may be sorted worst first",
        better=(own_halfway, own_best),
        p_alone=True,
    ),
)
"""In the order in which they are reported; the first that fails is the most telling."""

SINGLE_GOLD: Mapping[str, Null] = {
    "A": Null("permuted gold", "gold labels exchanged with one another", _exchanged_labels),
    "B": Null("uniform gold", "each query's gold drawn from the distinct labels", _even_labels),
    "C": Null("random retrieval", "each query's list drawn from the pool", _random_lists),
    "D": Null("marginal-matched gold", "each query's gold drawn as often as it is right", _frequent_labels),
}
"""falsify-eval's four, for benches with one right answer per query, by their letters."""

GATES: Mapping[str, Sequence[Null]] = {"graded v1": GRADED}
"""The nulls of each gate that a plan may name."""

BY_NAME: Mapping[str, Null] = {null.name: null for nulls in GATES.values() for null in nulls}
