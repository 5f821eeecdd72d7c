"""The nulls of the graded gate, one row each: what it scores, how its failure reads, and the controls it catches."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints, Qrels
from runner.gate.graded_nulls import (
    ROWS_AT_ONCE,
    draw_documents,
    generator_for,
    greatest,
    most_retrieved,
    nearest,
    permutation_groups,
    permutations,
    permuted_totals,
    random_totals,
    shuffled_totals,
    shuffles,
)
from runner.gate.qrels_table import DEPTH, QrelsTable, document_column, qrels_table
from runner.score.score import units

CONTROL_DRAWS = 200
"""Runs of a random predictor: of one alone nothing follows, since it may pass by chance."""

_ENOUGH = 20
"""Queries in which a made-up neighbour is set against its null."""

_Made = TypeVar("_Made")


class GradedSet:
    """What nulls and controls are made from: the qrels of one eval set, its corpus and its strata.

    `strata` names each query's stratum; `document_lengths` holds every document of the corpus, in characters; `texts`
    are what the queries ask, if that is at hand. Of it `groups` are the positions of the queries that exchange their
    qrels, `corpus` the documents' numbers in `table`, `lengths` a column. ValueError for no queries and for less than
    one draw.
    """

    def __init__(
        self,
        query_ids: Sequence[str],
        qrels: Qrels,
        strata: Mapping[str, str],
        document_lengths: Mapping[str, int],
        draws: int,
        seed: int,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        if not query_ids or draws < 1:
            raise ValueError(f"a null gate needs queries and draws, got {len(query_ids)} queries and {draws} draws")
        self.table = qrels_table(query_ids, qrels, document_lengths)
        self.groups = permutation_groups([strata[query_id] for query_id in query_ids])
        self.corpus = np.flatnonzero(document_column(self.table, dict.fromkeys(document_lengths, 1)))
        self.lengths = document_column(self.table, document_lengths)
        self.texts = None if texts is None else [texts[query_id] for query_id in query_ids]
        self.draws, self.seed = draws, seed
        self._made: dict[Hashable, Any] = {}

    def generator(self, stream: str) -> np.random.Generator:
        """The random numbers of one purpose."""
        return generator_for(self.seed, stream)

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What does not depend on the run, made when it is first asked for."""
        if key not in self._made:
            self._made[key] = make()
        made: _Made = self._made[key]
        return made


class Drawn(NamedTuple):
    """Sums over the queries (draws,) of nDCG@10 by chance; `least` is the p of the best real outcome."""

    totals: Ints
    least: float


class Fixed(NamedTuple):
    """One system's nDCG@10 by query (queries,), and the queries in which it could differ from the run's own."""

    scores: Ints
    compared: NDArray[np.bool_]


Outcome = Callable[[GradedSet, Ints, Mapping[str, int]], Drawn | Fixed]
"""What a null scores against rankings, by the chunks of each document: by chance, or as one system."""

Predictor = Callable[[GradedSet], Iterable[Ints]]
"""Rankings (queries, places) of a system that ignores the query; several where it is drawn."""


@dataclass(frozen=True, slots=True)
class Null:
    """A system that knows nothing of the query, and what it means if a run does no better.

    `what` says what it scores. `found` and `likely` are the clauses of a diagnosis, `likely_if_worse` the second where
    the run does even worse than chance. Every one of `controls` must fail against it. `p_alone` is for a null that
    rearranges the run's own lists: no floor of a difference is asked, since how much its arrangement is worth depends
    on the set, and one that could not have shown anything is not held against a run. `by_texts` needs what is asked.
    """

    name: str
    what: str
    outcome: Outcome
    found: str
    likely: str
    likely_if_worse: str = ""
    controls: Mapping[str, Predictor] = field(default_factory=dict)
    p_alone: bool = False
    by_texts: bool = False


def _permuted(of: GradedSet, rankings: Ints, chunks: Mapping[str, int]) -> Drawn:
    """Each ranking under another query's whole qrels, within the stratum; a list good for everybody gains nothing."""
    stream = "permuted qrels"
    assigned = of.once(stream, lambda: permutations(of.groups, of.draws, of.generator(stream)))
    least = of.once("assignments", lambda: 1 / _assignments(of.table, of.groups))
    return Drawn(permuted_totals(of.table, rankings, assigned), least)


def _random(of: GradedSet, rankings: Ints, chunks: Mapping[str, int]) -> Drawn:
    """Documents drawn by their number of chunks: a longer one has more chances to hold the best chunk."""
    weights = document_column(of.table, chunks)
    if not weights.any():
        raise ValueError("no document of the corpus has a chunk, so none can be drawn")
    stream = "random retrieval"
    totals = of.once(
        (stream, weights.tobytes()), lambda: random_totals(of.table, weights, of.draws, of.generator(stream))
    )
    return Drawn(totals, 0.0 if of.table.ideal.any() else 1.0)


def _shuffled(of: GradedSet, rankings: Ints, chunks: Mapping[str, int]) -> Drawn:
    """The run's own ten in random order."""
    stream = "shuffled top 10"
    orders = of.once(stream, lambda: shuffles(len(of.table.query_ids), of.draws, of.generator(stream)))
    return Drawn(shuffled_totals(of.table, rankings, orders), 1 / _orders(of.table, rankings))


def _for_all(of: GradedSet, documents: Ints) -> Fixed:
    """The same list for every query."""
    return Fixed(of.table.scores(documents[None])[0], np.ones(len(of.table.query_ids), np.bool_))


def _nearest_query(of: GradedSet, rankings: Ints, chunks: Mapping[str, int]) -> Fixed:
    """The run's list for the nearest query; its own for a query whose nearest one is after the same documents.

    A run that answers by the nearest query's list gives that one's neighbour here, so often the query itself.
    """
    neighbours, strangers = of.once("neighbours", lambda: _neighbours(of))
    lists = np.where(strangers[:, None], rankings[neighbours], rankings)
    return Fixed(of.table.own_scores(lists), strangers)


def _neighbours(of: GradedSet) -> tuple[Ints, NDArray[np.bool_]]:
    """The nearest query of each, and whether there is one that shares no relevant document."""
    assert of.texts is not None
    found = nearest(of.texts)
    relevant = [set(of.table.documents[rows].tolist()) for rows in of.table.rows_of]
    strangers = [place >= 0 and relevant[place].isdisjoint(own) for own, place in zip(relevant, found, strict=True)]
    return found, np.array(strangers, np.bool_)


def _neighbours_answers(of: GradedSet) -> list[Ints]:
    """What is relevant for the nearest query, best first; no predictor if too few have one to be told from."""
    neighbours, strangers = of.once("neighbours", lambda: _neighbours(of))
    if strangers.sum() < _ENOUGH:
        return []
    answers = answers_of(of)
    return [np.where(neighbours[:, None] >= 0, answers[neighbours], -1)]


def answers_of(of: GradedSet) -> Ints:
    """Each query's graded documents, by grade, then doc_id."""
    rows_of = (rows[np.argsort(-of.table.grades[rows], kind="stable")][:DEPTH] for rows in of.table.rows_of)
    return as_rankings([of.table.documents[rows] for rows in rows_of])


def _constant(of: GradedSet) -> list[Ints]:
    """The document that gains most when it is all that every query gets."""
    scores = units(of.table.grades / of.table.ideal[of.table.queries])
    return [as_rankings([greatest(_summed(of.table, scores))[:1]] * len(of.table.query_ids))]


def _popularity(of: GradedSet) -> list[Ints]:
    """The ten documents with the greatest sum of grades."""
    return [_greatest_of_group(of.table, [np.arange(len(of.table.query_ids))])]


def _source_prior(of: GradedSet) -> list[Ints]:
    """Those ten of the query's own stratum (strata of one query taken together, as for the permuted qrels)."""
    return [_greatest_of_group(of.table, of.groups)]


def _random_control(of: GradedSet) -> Iterator[Ints]:
    """Ten documents of the corpus."""
    evenly = np.bincount(of.corpus, minlength=len(of.table.numbers))
    return _drawn_lists(evenly, len(of.table.query_ids), of.generator("random control"))


def _marginal_matched(of: GradedSet) -> Iterator[Ints]:
    """Ten documents by their share of the summed grades."""
    graded = _summed(of.table, of.table.grades)
    return _drawn_lists(graded, len(of.table.query_ids), of.generator("marginal-matched control"))


GRADED = (
    Null(
        "permuted qrels",
        "each ranking is scored against another query's judgments, within its stratum, so that a list which suits "
        "everybody gains nothing",
        _permuted,
        "rankings fit other queries' judgments {how} their own",
        "labels may belong to other queries, or the run to other queries' text",
        "scores may be sorted worst first",
        {"marginal-matched": _marginal_matched, "source-prior": _source_prior},
    ),
    Null(
        "random retrieval",
        "documents are drawn by their number of chunks",
        _random,
        "documents drawn at random do {how} the run",
        "its vectors or its index may belong to another corpus",
        controls={"random": _random_control},
    ),
    Null(
        "most retrieved",
        "the ten documents that this cell finds most often, for every query, compared query by query",
        lambda of, rankings, chunks: _for_all(of, most_retrieved(rankings)),
        "giving every query the documents retrieved most often does {how} the run",
        "a few documents crowd out the others whatever is asked",
        controls={"constant": _constant, "popularity": _popularity},
    ),
    Null(
        "length sorted",
        "the longest documents for every query, compared query by query",
        lambda of, rankings, chunks: _for_all(of, greatest(of.lengths)),
        "giving every query the longest documents does {how} the run",
        "what is relevant may be so by its length alone",
    ),
    Null(
        "shuffled top 10",
        "the cell's own first ten in random order, which tests the ranking and not what was found",
        _shuffled,
        "the first ten documents in random order do {how} in the run's own",
        "scores may be constant, or lost on the way to the ranking",
        "scores may be sorted worst first",
        p_alone=True,
    ),
    Null(
        "nearest query",
        "each query gets what this cell finds for the query most like it in words, where the two share no relevant "
        "document, compared query by query",
        _nearest_query,
        "giving queries what was found for the query most like them does {how} the run",
        "it may answer other queries than it was given",
        controls={"nearest query": _neighbours_answers},
        p_alone=True,
        by_texts=True,
    ),
)
"""In the order in which they are reported; the first that fails is the most telling."""

GATES: Mapping[str, tuple[Null, ...]] = {"graded v1": GRADED}
"""The nulls of each gate that a plan may name; a gate that was named once keeps its nulls."""

BY_NAME: Mapping[str, Null] = {null.name: null for nulls in GATES.values() for null in nulls}


def as_rankings(lists: Sequence[Ints]) -> Ints:
    """Lists of documents as rankings (queries, places), -1 past a list's end."""
    rankings = np.full((len(lists), DEPTH), -1, np.int64)
    for row, documents in enumerate(lists):
        rankings[row, : len(documents)] = documents
    return rankings


def _assignments(table: QrelsTable, groups: Sequence[Ints]) -> int:
    qrels = [(table.documents[rows].tobytes(), table.grades[rows].tobytes()) for rows in table.rows_of]
    return math.prod(_arrangements(qrels[query] for query in group.tolist()) for group in groups)


def _orders(table: QrelsTable, rankings: Ints) -> int:
    graded = zip(table.own_grades(rankings), rankings >= 0, strict=True)
    return math.prod(_arrangements(grades[found].tolist()) for grades, found in graded)


def _arrangements(items: Iterable[Hashable]) -> int:
    """In how many distinguishable orders the items can stand, where equal ones are alike."""
    counts = Counter(items).values()
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


def _greatest_of_group(table: QrelsTable, groups: Iterable[Ints]) -> Ints:
    lists = [np.empty(0, np.int64)] * len(table.query_ids)
    for group in groups:
        popular = greatest(_summed(table, np.where(np.isin(table.queries, group), table.grades, 0)))
        for query in group.tolist():
            lists[query] = popular
    return as_rankings(lists)


def _summed(table: QrelsTable, values: Ints) -> Ints:
    totals = np.zeros(len(table.numbers), np.int64)
    np.add.at(totals, table.documents, values)
    return totals


def _drawn_lists(weights: Ints, n_queries: int, generator: np.random.Generator) -> Iterator[Ints]:
    turn = max(1, ROWS_AT_ONCE // n_queries)
    for start in range(0, CONTROL_DRAWS, turn):
        n_draws = min(turn, CONTROL_DRAWS - start)
        yield from draw_documents(weights, n_draws * n_queries, generator).reshape(n_draws, n_queries, -1)
