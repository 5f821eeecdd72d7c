"""Invented pools, cells that find things in them and judges that grade them, for tests and simulations of agreement."""

from typing import NamedTuple

import numpy as np
import pytest

from runner.base.records import Hit, Run, Span
from runner.judge.agreement.double_graded import Double

BASELINE = "cell 0"
EQUAL = (0.8,) * 10
UNEQUAL = (0.5, 2.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2)
"""How much a cell's ranking heeds relevance, the baseline's first: cell 1 finds far better documents than that."""


class World(NamedTuple):
    """Pooled pairs: their query, what they are worth (0 to 3), and which cells have them in their first ten."""

    query: np.ndarray
    worth: np.ndarray
    found: np.ndarray

    @property
    def runs(self):
        return {
            f"cell {cell}": Run(
                f"cell {cell}", {f"q{query}": self._hits(cell, query) for query in np.unique(self.query)}
            )
            for cell in range(len(self.found))
        }

    def _hits(self, cell, query):
        pairs = np.flatnonzero((self.query == query) & self.found[cell])
        return tuple(Hit(f"d{pair}", 1.0, Span(0, 1)) for pair in pairs)


def world(generator, qualities=EQUAL, *, queries=25, documents=100, depth=18):
    """Cells of these qualities, whose rankings of a query's documents have much of their error in common."""
    parts = []
    for query in range(queries):
        worthless = generator.beta(6, 4)
        worth = generator.choice(4, size=documents, p=[worthless, *((1 - worthless) * np.array([0.5, 0.3, 0.2]))])
        shared = generator.normal(size=documents)
        own = generator.normal(size=(len(qualities), documents))
        scores = np.outer(qualities, worth) + np.sqrt(0.6) * shared + np.sqrt(0.4) * own
        places = np.argsort(np.argsort(-scores, axis=1), axis=1)
        pooled = (places < depth).any(axis=0)
        parts.append((np.full(pooled.sum(), query), worth[pooled], places[:, pooled] < 10))
    query, worth, found = zip(*parts, strict=True)
    return World(np.concatenate(query), np.concatenate(worth), np.hstack(found))


def read(generator, worth, share=0.3):
    """Grades of a judge who is one off in a share of the pairs, up or down, as far as the scale goes."""
    wrong = np.where(generator.random(worth.shape) < share, generator.choice([-1, 1], worth.shape), 0)
    return np.clip(worth + wrong, 0, 3)


def harsh(generator, worth):
    """As `read`, and then one less."""
    return np.clip(read(generator, worth) - 1, 0, 3)


def favouring(generator, world, cell, read=read):
    """As `read`, and then one more for everything in the cell's first ten."""
    return np.clip(read(generator, world.worth) + world.found[cell], 0, 3)


def read_twice(generator, world, first, second, share):
    """A share of the pairs, spread evenly over first grades and queries, with both grades."""
    order, step = np.lexsort((world.query, first)), 1 / share
    chosen = order[np.arange(generator.random() * step, len(order), step).astype(int)]
    return [
        Double(f"q{world.query[i]}", f"d{i}", int(first[i]), int(second[i]), "first", "second", "", "")
        for i in sorted(chosen)
    ]


def test_a_share_of_the_pairs_is_read_twice_evenly_over_grades_and_queries():
    generator = np.random.default_rng(1)
    pool = world(generator)
    first, second = read(generator, pool.worth), harsh(generator, pool.worth)
    twice = read_twice(generator, pool, first, second, 0.1)
    assert abs(len(twice) - len(first) / 10) <= 1
    assert len({double.doc_id for double in twice}) == len(twice)
    assert np.bincount([double.first for double in twice]) == pytest.approx(np.bincount(first) / 10, abs=1)


def test_every_cell_of_the_world_has_ten_hits_a_query_and_the_pools_hold_about_forty():
    pool = world(np.random.default_rng(2))
    assert {len(hits) for run in pool.runs.values() for hits in run.hits.values()} == {10}
    assert 35 <= len(pool.query) / 25 <= 45
