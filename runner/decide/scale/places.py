"""Where a run puts the relevant documents of its queries, and how many distractors stand above each of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Ints, Qrels, Run
from runner.score.score import DISCOUNTS, ideal_gains, units

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Places:
    """The relevant documents of all queries in one run, a row each: query by query, down the list, missing ones last.

    `above` counts distractors (documents without gain) that stand higher, `before` relevant ones; of a document that
    the list does not hold, `above` is the number of distractors that it does hold, and a missing document of higher
    gain counts as standing before one of lower. `weights` are gains by the query's ideal. `cut` are missing documents
    of lists that go on below their end: every list as long as the run's longest. A missing document of a shorter list
    was not retrieved at all.
    """

    queries: Ints
    above: Ints
    before: Ints
    weights: Floats
    listed: Flags
    cut: Flags
    n_queries: int

    @property
    def values(self) -> Floats:
        """What each document adds to its query's nDCG@10 now."""
        return np.where(self.listed, self.weights * discounts(self.before + self.above), 0.0)

    def per_query(self, values: Floats) -> Floats:
        """The sums of the documents' values by query."""
        sums: Floats = np.bincount(self.queries, values, self.n_queries).astype(np.float64)
        return sums

    def ndcg(self) -> Ints:
        """The run's nDCG@10 by query in units of 1e-9."""
        return units(self.per_query(self.values))


@dataclass(frozen=True)
class Lists:
    """The lists of one run for drawing from: `documents` (queries, depth) as numbers, 0 after a list's end.

    `distractors` (queries, depth) marks those without gain; `columns` is each row of Places's place in its list, the
    last column for a missing document.
    """

    documents: Ints
    distractors: Flags
    columns: Ints

    def above(self, places: Places, kept: Flags) -> Ints:
        """The distractors that still stand above each document if only those of `kept` (by number) are left."""
        counts = np.cumsum(kept[self.documents] & self.distractors, axis=1, dtype=np.int32)
        return counts[places.queries, self.columns].astype(np.int64)


def discounts(places: Ints) -> Floats:
    """What a grade counts at places counted from 0; nothing from the eleventh on."""
    padded = np.append(DISCOUNTS, 0.0)
    found: Floats = padded[np.minimum(places, len(DISCOUNTS))]
    return found


def placed(
    runs: Mapping[str, Run], query_ids: Sequence[str], qrels: Qrels
) -> tuple[dict[str, Places], dict[str, Lists], int]:
    """Places and lists of every run, and how many different documents the lists name; KeyError for a missing query."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    relevant = [{doc_id: gain for doc_id, gain in qrels.get(q, {}).items() if gain > 0} for q in query_ids]
    ideals = ideal_gains(query_ids, qrels).tolist()
    places, lists = {}, {}
    for cell, run in runs.items():
        places[cell], lists[cell] = _placed(run, query_ids, relevant, ideals, numbers)
    return places, lists, len(numbers)


def _placed(
    run: Run,
    query_ids: Sequence[str],
    relevant: Sequence[Mapping[str, int]],
    ideals: Sequence[float],
    numbers: Mapping[str, int],
) -> tuple[Places, Lists]:
    longest = max((len(hits) for hits in run.hits.values()), default=0)
    documents = np.zeros((len(query_ids), RUN_DEPTH), np.int64)
    distractors = np.zeros((len(query_ids), RUN_DEPTH), np.bool_)
    rows: list[tuple[int, int, int, float, bool, bool, int]] = []
    for query, (query_id, gains, ideal) in enumerate(zip(query_ids, relevant, ideals, strict=True)):
        hits = run.hits[query_id][:RUN_DEPTH]
        names = list(map(attrgetter("doc_id"), hits))
        documents[query, : len(names)] = list(map(numbers.__getitem__, names))
        found = [place for place, name in enumerate(names) if name in gains]
        distractors[query, : len(names)] = True
        distractors[query, found] = False
        for before, place in enumerate(found):
            rows.append((query, place - before, before, gains[names[place]] / ideal, True, False, place))
        missing = sorted((gains[name] for name in gains.keys() - set(names)), reverse=True)
        below, cut = len(names) - len(found), len(hits) >= min(longest, RUN_DEPTH)
        for before, gain in enumerate(missing, start=len(found)):
            rows.append((query, below, before, gain / ideal, False, cut, RUN_DEPTH - 1))
    columns = np.array(rows, np.float64).reshape(-1, 7).T
    queries, above, befores, in_list = (column.astype(np.int64) for column in columns[[0, 1, 2, 6]])
    places = Places(queries, above, befores, columns[3], columns[4] > 0, columns[5] > 0, len(query_ids))
    return places, Lists(documents, distractors, in_list)
