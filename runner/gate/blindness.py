"""How many queries get a list that does not depend on them, estimated from how well other queries' lists serve them.

A list that is found for a query serves it better than the list of another query does. One that is found for nobody, be
it the same for all, one of three, drawn at random or shuffled, serves it better than another list as often as worse.
So with a share b of such queries, a query's own list wins against another one with a probability of 1 - b / 2, ties
counted half, if the other lists win whenever they can. A list that depends on its query and yet finds nothing for it
counts as blind too: judgments cannot tell the two apart.
"""

import numpy as np

from runner.base.records import Ints
from runner.gate.bench import Bench
from runner.score.score import units

_AT_ONCE = 1 << 20


def blindness(bench: Bench, rankings: Ints) -> float:
    """Return the estimated share of queries whose ranking does not depend on the query, 0 to 1.

    Lists are compared with those of the other queries of their stratum. Queries without a relevant document are left
    out; 0 if none is left.
    """
    own, topics = units(bench.own_scores(rankings)), bench.topics
    wins = np.full(len(own), np.nan)
    for group in bench.groups:
        if len(group) < 2:
            continue
        halves = np.zeros(len(group), np.int64)
        at_once = max(1, _AT_ONCE // len(own))
        for start in range(0, len(group), at_once):
            rows = group[start : start + at_once]
            others = units(bench.scores(rankings[rows])[:, group])
            # A list is not compared with itself, nor with that of another wording.
            apart = topics[rows][:, None] != topics[group]
            halves += (apart * (2 * (others < own[group]) + (others == own[group]))).sum(axis=0)
        n_others = (topics[group][:, None] != topics[group]).sum(axis=0)
        wins[group] = np.divide(halves, 2 * n_others, out=np.full(len(group), np.nan), where=n_others > 0)
    compared = wins[(bench.ideal > 0) & ~np.isnan(wins)]
    return min(1.0, 2 * (1 - float(compared.mean()))) if len(compared) else 0.0
