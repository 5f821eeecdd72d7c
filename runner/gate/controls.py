"""Made-up predictors whose verdict is known: a gate that fails the oracle or passes a cheater decides nothing."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from runner.base.records import Ints
from runner.eval_set.shapes.results import ControlResult
from runner.eval_set.shapes.tests import Control
from runner.gate.graded_gate import GradedGate
from runner.gate.graded_nulls import ROWS_AT_ONCE, draw_documents, generator_for, greatest
from runner.gate.qrels_table import DEPTH, QrelsTable
from runner.score.score import units

DRAWS = 200
"""Runs of a random predictor: of one alone nothing follows, since it may pass by chance."""

_CHANCE = 0.001


def controls(gate: GradedGate, document_chunks: Mapping[str, int]) -> list[ControlResult]:
    """Six predictors through the gate of an eval set: the oracle must pass, the five that ignore the query must not.

    "oracle" returns the documents by grade; "constant" the one document that serves all queries best; "popularity"
    the ten with the greatest sum of grades; "source-prior" those ten of the query's own stratum (strata of one query
    taken together, as for the permuted qrels); "random" ten of the corpus; "marginal-matched" ten by their share of
    the summed grades. "random" and "marginal-matched" are drawn DRAWS times and may pass as often as chance lets
    them: more passes than `bound` have a probability of at most 0.001. "insufficient" is not a pass.
    """
    table, n_queries = gate.table, len(gate.table.query_ids)
    everybody = np.arange(n_queries)
    evenly = np.bincount(gate.corpus, minlength=len(table.numbers))
    graded = _summed_grades(table, everybody)
    predictors: dict[Control, Iterable[Ints]] = {
        "oracle": [_oracle(table, gate.corpus)],
        "constant": [_rankings([_best_document(table)] * n_queries)],
        "popularity": [_source_prior(table, [everybody])],
        "random": _drawn(evenly, n_queries, generator_for(gate.seed, "random control")),
        "marginal-matched": _drawn(graded, n_queries, generator_for(gate.seed, "marginal-matched control")),
        "source-prior": [_source_prior(table, gate.groups)],
    }
    return [_result(gate, name, runs, document_chunks) for name, runs in predictors.items()]


def most_by_chance(draws: int, share: float) -> int:
    """The least number that so many independent draws exceed with a probability of at most 0.001."""
    more = 0.0
    for count in range(draws, 0, -1):
        more += math.comb(draws, count) * share**count * (1 - share) ** (draws - count)
        if more > _CHANCE:
            return count
    return 0


def _result(gate: GradedGate, name: Control, runs: Iterable[Ints], document_chunks: Mapping[str, int]) -> ControlResult:
    means, verdicts = zip(*(gate.trial(run, document_chunks) for run in runs), strict=True)
    draws, passes = len(verdicts), sum(verdicts)
    honest = name == "oracle"
    bound = most_by_chance(draws, gate.alpha) if draws > 1 else int(honest)
    return ControlResult(
        name=name,
        expected="pass" if honest else "fail",
        mean=sum(means) / draws,
        draws=draws,
        passes=passes,
        bound=bound,
        behaves=passes >= bound if honest else passes <= bound,
    )


def _oracle(table: QrelsTable, corpus: Ints) -> Ints:
    """Each query's graded documents by grade, then doc_id, and others of the corpus down to the tenth place."""
    lists = []
    for rows in table.rows_of:
        graded = table.documents[rows][np.argsort(-table.grades[rows], kind="stable")]
        others = np.setdiff1d(corpus[: DEPTH + len(graded)], graded)
        lists.append(np.concatenate((graded, others))[:DEPTH])
    return _rankings(lists)


def _best_document(table: QrelsTable) -> Ints:
    """The document that gains most when it is all that every query gets."""
    scores = units(table.grades / table.ideal[table.queries])
    return greatest(_summed(table, scores))[:1]


def _source_prior(table: QrelsTable, groups: Iterable[Ints]) -> Ints:
    """The ten documents with the greatest sum of grades in each query's group."""
    lists = [np.empty(0, np.int64)] * len(table.query_ids)
    for group in groups:
        popular = greatest(_summed_grades(table, group))
        for query in group.tolist():
            lists[query] = popular
    return _rankings(lists)


def _summed_grades(table: QrelsTable, group: Ints) -> Ints:
    return _summed(table, np.where(np.isin(table.queries, group), table.grades, 0))


def _summed(table: QrelsTable, values: Ints) -> Ints:
    """Sums by document of a value for each pair."""
    totals = np.zeros(len(table.numbers), np.int64)
    np.add.at(totals, table.documents, values)
    return totals


def _drawn(weights: Ints, n_queries: int, generator: np.random.Generator) -> Iterator[Ints]:
    turn = max(1, ROWS_AT_ONCE // n_queries)
    for start in range(0, DRAWS, turn):
        n_draws = min(turn, DRAWS - start)
        yield from draw_documents(weights, n_draws * n_queries, generator).reshape(n_draws, n_queries, -1)


def _rankings(lists: Sequence[Ints]) -> Ints:
    rankings = np.full((len(lists), DEPTH), -1, np.int64)
    for row, documents in enumerate(lists):
        rankings[row, : len(documents)] = documents
    return rankings
