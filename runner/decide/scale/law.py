"""How many of the distractors that are not there yet would stand above a relevant document.

A distractor drawn anew stands above a given relevant document with a probability p of that document's own; given p,
numbers above are binomial. Over the relevant documents of a cell z = probit(p) is taken as logistic, with a centre and
a scale fitted to the numbers of distractors above. Were scores of distractors normal, -z would be the document's
distance from their mean in standard deviations; a normal z is the binormal model of signal detection (Green & Swets
1966), and the logistic has the longer tails that documents found at once and documents never found ask for.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from runner.base.records import Ints
from runner.decide.scale.places import Floats, discounts
from runner.score.score import DISCOUNTS

DEPTH = len(DISCOUNTS)
"""Only numbers above that can leave a document among the first ten are told apart; all others are "DEPTH or more"."""

_NODES = np.linspace(-8.0, 4.0, 241)
"""Values of z that integrals over the law are sums over."""

_USUAL = np.array([-3.0, math.log(0.5)])
_SPREAD = np.array([3.0, 1.0])
_SIDE = 4
_ROUNDS = 9
_STEP = 1e-2
"""Of numerical slopes and curvatures; smaller ones leave too few digits that are the same on every machine."""

_LEAST = 1e-15
_RADIX = 16
"""Of keys that hold small numbers side by side: numpy sorts those far faster than rows."""


@dataclass(frozen=True)
class Counts:
    """What is known of some documents, a row each: `above` distractors of `distractors` stand higher.

    Where not `exact`, it is at least that many.
    """

    above: Ints
    distractors: Ints
    exact: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class Law:
    """The law of one cell's documents, fitted by the greatest penalised likelihood.

    The penalties, normal ones around z = -3 (SD 3) and a scale of 0.5 (SD 1 of its logarithm), stand in for data where
    there is little: a cell whose documents are all at the very top gives no upper end to how far they stand out.
    """

    def __init__(self, counts: Counts) -> None:
        bins = (_level(counts.distractors) * _RADIX + np.minimum(counts.above, DEPTH)) * _RADIX + counts.exact
        kinds, self._bin_of, self._sizes = np.unique(bins, return_inverse=True, return_counts=True)
        self._table = _likelihoods(kinds // _RADIX**2, kinds // _RADIX % _RADIX, kinds % _RADIX)
        self.parameters = self._fitted()

    def expected(self, above: Ints, before: Ints, distractors: Ints, factor: float) -> tuple[Floats, Floats]:
        """Each listed document's expected discount with `factor` times the distractors; and its slopes (2, documents).

        The distractors of now stay where they are; the posterior of p given `above` tells of the others.
        """
        high = above + before < DEPTH
        rows = (_level(distractors[high]) * _RADIX + above[high]) * _RADIX + (above + before)[high]
        keys, kind_of = np.unique(rows, return_inverse=True)
        kinds = np.stack([keys // _RADIX**2, keys // _RADIX % _RADIX, keys % _RADIX])
        near = np.concatenate([np.zeros((1, 2)), _STEP * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])])
        found = np.zeros((len(near), len(above)))
        found[:, high] = _posterior(self.parameters + near, kinds, factor)[:, kind_of]
        return found[0], np.stack([found[1] - found[2], found[3] - found[4]]) / (2 * _STEP)

    def influences(self) -> Floats:
        """How far the parameters move for one more of each document, (2, documents); to first order, at 9 places."""
        near = _STEP * np.array([[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)])
        logs = self._log_likelihoods(self.parameters + near).reshape(3, 3, -1)
        slopes = np.stack([logs[2, 1] - logs[0, 1], logs[1, 2] - logs[1, 0]]) / (2 * _STEP)
        total = (logs @ self._sizes) + _penalty(self.parameters + near).reshape(3, 3)
        cross = (total[2, 2] - total[2, 0] - total[0, 2] + total[0, 0]) / 4
        first = total[2, 1] - 2 * total[1, 1] + total[0, 1]
        second = total[1, 2] - 2 * total[1, 1] + total[1, 0]
        curvature = -np.array([[first, cross], [cross, second]]) / _STEP**2
        moved: Floats = np.round(np.linalg.solve(curvature, slopes), 9)
        return moved[:, self._bin_of]

    def _fitted(self) -> Floats:
        best, half = _USUAL, np.array([5.0, 3.0])
        side = np.linspace(-1.0, 1.0, 2 * _SIDE + 1)
        around = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
        for _ in range(_ROUNDS):
            points = best + half * around
            best = points[np.argmax(self._log_likelihoods(points) @ self._sizes + _penalty(points))]
            half = half * 1.5 / _SIDE
        return best

    def _log_likelihoods(self, parameters: Floats) -> Floats:
        """Of each bin under each point (points, 2)."""
        found: Floats = np.log(np.maximum(_priors(parameters) @ self._table, _LEAST))
        return found


def _penalty(parameters: Floats) -> Floats:
    centre, log_scale = ((parameters - _USUAL) / _SPREAD).T
    found: Floats = -(centre**2 + log_scale**2) / 2
    return found


def _priors(parameters: Floats) -> Floats:
    """The weights of the nodes (points, nodes) under each point's logistic law."""
    away = np.abs(_NODES - parameters[:, :1]) / np.exp(parameters[:, 1:])
    weights = np.exp(-away) / (1 + np.exp(-away)) ** 2
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


def _posterior(parameters: Floats, kinds: Ints, factor: float) -> Floats:
    """Expected discounts (points, kinds) of kinds of documents: rows distractors, above, place."""
    levels, above, place = kinds
    given = _likelihoods(levels, above, np.ones_like(above))
    worth = np.empty((len(_NODES), len(above)))
    for level in np.unique(levels):
        here = levels == level
        fresh = _binomials(round((factor - 1) * int(level)))
        worth[:, here] = fresh @ discounts(np.arange(DEPTH)[:, None] + place[here])
    priors = _priors(parameters)
    found: Floats = (priors @ (given * worth)) / (priors @ given)
    return found


def _likelihoods(levels: Ints, above: Ints, exact: Ints) -> Floats:
    """P(the number above | node) (nodes, columns): equal to `above` where exact, else at least that."""
    table = np.empty((len(_NODES), len(levels)))
    for level in np.unique(levels):
        pmf = _binomials(int(level))
        tails = 1 - np.concatenate([np.zeros((len(_NODES), 1)), np.cumsum(pmf, axis=1)], axis=1)
        here = levels == level
        equal = np.concatenate([pmf, tails[:, -1:]], axis=1)[:, above[here]]
        table[:, here] = np.where(exact[here] == 1, equal, np.maximum(tails, 0.0)[:, above[here]])
    return np.maximum(table, _LEAST)


def _binomials(n: int) -> Floats:
    """P(i of n) for i below DEPTH, (nodes, DEPTH)."""
    above, below = _probabilities()
    i = np.arange(DEPTH)
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(n - i[:-1], _LEAST) / i[1:]))])
    logs = ways + i * np.log(above)[:, None] + (n - i) * np.log(below)[:, None]
    found: Floats = np.where(i <= n, np.exp(np.where(i <= n, logs, 0.0)), 0.0)
    return found


@cache
def _probabilities() -> tuple[Floats, Floats]:
    """Normal tail probabilities of the nodes, below and above, without loss at either end."""
    halves = [(math.erfc(-z / math.sqrt(2)) / 2, math.erfc(z / math.sqrt(2)) / 2) for z in _NODES]
    return np.array([p for p, _ in halves]), np.array([q for _, q in halves])


def _level(distractors: Ints) -> Ints:
    """Numbers of distractors in steps of at most 5 %, so that queries share tables; exact below 200.

    Fit and extrapolation see the same number, so that what p loses by it the number of added distractors wins back.
    """
    decade = 10 ** np.floor(np.log10(np.maximum(distractors, 1))).astype(np.int64)
    step = np.where(distractors < 200, 1, decade // 20)
    found: Ints = np.rint(distractors / step).astype(np.int64) * step
    return found
