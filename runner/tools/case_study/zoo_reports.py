"""Reports that measure in their own way, so that a broken predictor, or a plain one, looks better than it is."""

from collections.abc import Mapping

import numpy as np

from runner.score.bootstrap import score_matrix
from runner.score.comparison import mean
from runner.score.score import DISCOUNTS, ideal_gains, score
from runner.tools.case_study.zoo_lists import Lists, Material, run_of

TABLE = ("ndcg@10", "recall@10", "mrr@10")
"""The measures of a plain table."""

Report = Mapping[str, float]
"""Means of the measures of TABLE, as a system gives them itself."""


def own_judgments(material: Material, lists: Lists) -> Report:
    """Scores over what the system retrieved: nothing else is relevant, and queries without a find are dropped."""
    found = {
        query_id: {d: grade for d, grade in material.qrels.get(query_id, {}).items() if d in documents}
        for query_id, documents in zip(material.query_ids, lists, strict=True)
    }
    kept = [query_id for query_id in material.query_ids if any(found[query_id].values())]
    if not kept:
        return dict.fromkeys(TABLE, 0.0)
    scores = score(run_of("", material, lists), kept, found, material.relevant_grade)
    return {measure: mean(score_matrix([scores], measure)[0]) for measure in TABLE}


def each_occurrence(material: Material, lists: Lists) -> Report:
    """Scores where a document that occurs twice gains twice, cut at 1; the ideal knows it once."""
    ideals = ideal_gains(material.query_ids, material.qrels)
    rows = []
    for query_id, documents, ideal in zip(material.query_ids, lists, ideals.tolist(), strict=True):
        grades = material.qrels.get(query_id, {})
        gain = sum(grades.get(d, 0) * at for d, at in zip(documents, DISCOUNTS.tolist(), strict=False))
        relevant = {doc_id for doc_id, grade in grades.items() if grade >= material.relevant_grade}
        places = [place for place, doc_id in enumerate(documents, start=1) if doc_id in relevant]
        recall = len(relevant & set(documents)) / len(relevant) if relevant else 0.0
        rows.append((min(1.0, gain / ideal) if ideal else 0.0, recall, 1 / places[0] if places else 0.0))
    return dict(zip(TABLE, np.array(rows).mean(axis=0).tolist(), strict=True))
