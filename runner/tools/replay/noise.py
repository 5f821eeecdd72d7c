"""How far nDCG@10 moves when nothing but rounding moves: by documents that score almost alike changing places."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Qrels, Run
from runner.score.score import DISCOUNTS, ideal_gains

DRAWS = 1000

Floats = NDArray[np.float64]


class Noise(NamedTuple):
    """What rounding explains: the farthest that any draw moved the mean over queries, and one query.

    `score_shift` is the root mean square change of a score that was seen, `rounding` the most that can be rounding.
    """

    mean: float
    query: float
    score_shift: float
    rounding: float


NONE = Noise(0.0, 0.0, 0.0, 0.0)


def noise(recorded: Run, replayed: Run, query_ids: Sequence[str], qrels: Qrels, rounding: float, seed: int) -> Noise:
    """How far nDCG@10 moves if as much noise as was seen is added to recorded scores; 0 if that exceeds `rounding`.

    A document that the run does not retrieve never comes in: it would have to pass ninety others.
    """
    shift = _score_shift(recorded, replayed)
    if shift > rounding:
        return Noise(0.0, 0.0, shift, rounding)
    scores, gains = _in_reach(*_tables(recorded, query_ids, qrels), shift)
    ideal = ideal_gains(query_ids, qrels)
    scale = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    before = _ndcg(np.broadcast_to(np.arange(scores.shape[1]), scores.shape), gains, scale)
    generator = np.random.default_rng(np.random.PCG64(seed))
    mean = query = 0.0
    for _ in range(DRAWS):
        moved = scores + generator.normal(0.0, shift, scores.shape)
        changes = _ndcg(np.argsort(-moved, axis=1, kind="stable"), gains, scale) - before
        mean, query = max(mean, abs(float(changes.mean()))), max(query, float(np.abs(changes).max()))
    return Noise(mean, query, shift, rounding)


def largest(noises: Iterable[Noise]) -> Noise:
    """The largest of each figure; NONE if there are none."""
    found = list(noises)
    return Noise(*map(max, zip(*found, strict=True))) if found else NONE


def _score_shift(recorded: Run, replayed: Run) -> float:
    """Root mean square change of a document's score, over those that both runs retrieve for a query; 0 for none."""
    changes = []
    for query_id, hits in recorded.hits.items():
        scores = {hit.doc_id: hit.score for hit in replayed.hits[query_id]}
        changes += [scores[hit.doc_id] - hit.score for hit in hits if hit.doc_id in scores]
    return float(np.sqrt(np.mean(np.square(changes)))) if changes else 0.0


def _tables(run: Run, query_ids: Sequence[str], qrels: Qrels) -> tuple[Floats, Floats]:
    """Scores down each ranking and their grades, (queries, RUN_DEPTH); -inf and 0 if a ranking is shorter."""
    scores = np.full((len(query_ids), RUN_DEPTH), -np.inf)
    gains = np.zeros_like(scores)
    for row, query_id in enumerate(query_ids):
        judged, hits = qrels.get(query_id, {}), run.hits[query_id]
        scores[row, : len(hits)] = [hit.score for hit in hits]
        gains[row, : len(hits)] = [judged.get(hit.doc_id, 0) for hit in hits]
    return scores, gains


def _in_reach(scores: Floats, gains: Floats, sd: float) -> tuple[Floats, Floats]:
    """The columns that may come among the first ten: no draw of noise is twelve times its deviation."""
    depth = len(DISCOUNTS)
    width = max(depth, int((scores >= scores[:, depth - 1 : depth] - 12 * sd).sum(axis=1).max()))
    return scores[:, :width], gains[:, :width]


def _ndcg(order: NDArray[np.intp], gains: Floats, scale: Floats) -> Floats:
    first = np.take_along_axis(gains, order[:, : len(DISCOUNTS)], axis=1)
    values: Floats = (first * DISCOUNTS).sum(axis=1) * scale
    return values
