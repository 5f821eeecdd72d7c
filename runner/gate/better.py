"""Engines that do better than a run: a null that one of these would not pass either says nothing of the run."""

from collections.abc import Callable, Sequence

import numpy as np

from runner.base.records import Ints
from runner.gate.bench import Bench

Better = Callable[[Bench, Ints], Ints]
"""Rankings (queries, depth) of an engine that does better than the rankings given."""


def perfect(bench: Bench, rankings: Ints) -> Ints:
    """Return the rankings of an engine that knows the judgments."""
    return bench.perfect()


def halfway(bench: Bench, rankings: Ints) -> Ints:
    """Return the rankings with every graded document halfway up; what a ranking lacks comes from just below its end."""
    rows = (rows[np.argsort(-bench.grades[rows], kind="stable")] for rows in bench.rows_of)
    graded = [bench.documents[best_first].tolist() for best_first in rows]
    return _moved(bench, rankings, graded)


def own_halfway(bench: Bench, rankings: Ints) -> Ints:
    """Return the rankings with those of their own documents that are graded halfway up."""
    own = bench.own_grades(rankings) > 0
    return _moved(bench, rankings, [row[graded].tolist() for row, graded in zip(rankings, own, strict=True)])


def own_best(bench: Bench, rankings: Ints) -> Ints:
    """Return the rankings' own documents, best grade first; what is past a list's end stays there."""
    grades = np.where(rankings >= 0, bench.own_grades(rankings), -1)
    return np.take_along_axis(rankings, np.argsort(-grades, axis=1, kind="stable"), axis=1)


def moved_up(ranking: Sequence[int], relevant: Sequence[int], below: int) -> list[int]:
    """Return a ranking with its relevant documents halfway up, from rank r to ceil(r / 2).

    In order of rank, each takes the first free place from there on; the others keep their order. A relevant document
    that the ranking lacks has rank `below`, in the order given.

    >>> moved_up([11, 12, 13, 14, 15, 16], [16, 13], 7)
    [11, 13, 16, 12, 14, 15]
    >>> moved_up([11, 12, 13, 14], [14, 19], 5)
    [11, 14, 19, 12, 13]
    """
    ranks = {document: rank for rank, document in enumerate(ranking, 1) if document in relevant}
    ranks |= {document: below for document in relevant if document not in ranks}
    places: dict[int, int] = {}
    for document, rank in ranks.items():
        place = (rank + 1) // 2
        while place in places:
            place += 1
        places[place] = document
    moved: list[int] = []
    others = iter([document for document in ranking if document not in ranks])
    # A short list has gaps above what comes from below: the next document closes them.
    for place in range(1, max([len(ranking) + len(ranks), *places]) + 1):
        moved += [places[place]] if place in places else [document for document in [next(others, -1)] if document >= 0]
    return moved


def _moved(bench: Bench, rankings: Ints, relevant: Sequence[Sequence[int]]) -> Ints:
    lists = (
        moved_up([document for document in ranking if document >= 0], graded, bench.depth + 1)
        for ranking, graded in zip(rankings.tolist(), relevant, strict=True)
    )
    return bench.lists([np.array(moved[: bench.depth], np.int64) for moved in lists])
