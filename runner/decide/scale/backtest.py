"""How far the extrapolation errs where the answer is known: from a tenth of the collection to all of it."""

from collections.abc import Mapping

import numpy as np

from runner.base.records import Ints
from runner.decide.scale.law import DEPTH, Counts, Law
from runner.decide.scale.places import Floats, Lists, Places
from runner.eval_set.shapes.scale import ScaleBackTest

SUBSAMPLES = 10
TIMES = 10
LEAST_DOCUMENTS = 200
"""Below this a tenth is under 20 documents, too few to stand for a collection."""


def counts(places: Places, above: Ints, distractors: Ints) -> Counts:
    """What a law is fitted to; a document that a list not cut leaves out is below all that could count."""
    known = places.listed | places.cut
    return Counts(np.where(known, above, DEPTH), distractors[places.queries], places.listed)


def extrapolated(law: Law, places: Places, above: Ints, distractors: Ints, factor: float) -> tuple[Floats, Floats]:
    """What each document adds to its query's nDCG@10 with `factor` times the distractors, and its slopes (2, rows).

    A document missing from the list adds nothing, as it adds nothing now.
    """
    weights = np.where(places.listed, places.weights, 0.0)
    values, slopes = law.expected(above, places.before, distractors[places.queries], factor)
    return weights * values, weights * slopes


def back_tests(
    places: Mapping[str, Places], lists: Mapping[str, Lists], distractors: Ints, n_documents: int, *, seed: int
) -> dict[str, ScaleBackTest]:
    """Every cell's errors over SUBSAMPLES draws of a tenth of the documents, the same ones for every cell.

    A query's relevant documents are always kept. Empty if there are fewer than LEAST_DOCUMENTS documents.
    """
    if n_documents < LEAST_DOCUMENTS:
        return {}
    generator = np.random.default_rng(np.random.PCG64(seed))
    errors: dict[str, list[float]] = {cell: [] for cell in places}
    for _ in range(SUBSAMPLES):
        kept = np.zeros(n_documents, np.bool_)
        kept[generator.choice(n_documents, n_documents // TIMES, replace=False)] = True
        for cell, place in places.items():
            errors[cell].append(_error(place, lists[cell].above(place, kept), distractors))
    return {cell: _back_test(np.array(found)) for cell, found in errors.items()}


def _error(places: Places, above: Ints, distractors: Ints) -> float:
    most = np.zeros_like(distractors)
    np.maximum.at(most, places.queries, above)
    fewer = np.maximum(np.rint(distractors / TIMES).astype(np.int64), most)
    law = Law(counts(places, above, fewer))
    predicted, _ = extrapolated(law, places, above, fewer, TIMES)
    return float((predicted.sum() - places.values.sum()) / places.n_queries)


def _back_test(errors: Floats) -> ScaleBackTest:
    return ScaleBackTest(errors=errors.tolist(), bias=float(errors.mean()), error=float(np.sqrt((errors**2).mean())))
