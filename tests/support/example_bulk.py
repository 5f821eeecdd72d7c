"""Results of 25 queries, cell by cell as a test gives them, and a report on the substrate made over them."""

from runner.base.canonical import json_bytes, sha256
from runner.base.records import SCORE_UNIT
from runner.eval_set.shapes.paired import Difference, MeasureResult
from runner.eval_set.shapes.queries import QueryRow
from runner.substrate.shapes import (
    ArmResult,
    Beside,
    CoverageResult,
    FindingResult,
    IndexRecallResult,
    ModelFacts,
    PostBulk,
    Quantisation,
    SubstrateFacts,
)
from tests.support.example_results import BASELINE, BETTER, SHA, SPARSE, decision, results, row

N = 25
FLAT = [50] * N
MOVED = [50] * 10 + [60] * 10 + [20] + [50] * 4
FAULT = FindingResult(name="torn chunks", fault=True, count=2, of=9, sentence="Two are torn.", examples=["c1"])


def asked(number=N, *, changed=()):
    return [
        QueryRow(id=f"q{n:02d}", text=f"{'another' if n in changed else 'a'} need {n}", kind="topic", origin="person")
        for n in range(number)
    ]


def scored(cell, per_query, **named):
    """A row whose nDCG@10 has these values by query, in hundredths."""
    values = [value * SCORE_UNIT // 100 for value in per_query]
    level = sum(values) / (len(values) * SCORE_UNIT)
    found = row(cell, **named)
    measure = MeasureResult(mean=level, low=level - 0.1, high=level + 0.1, per_query=values)
    run = sha256(repr(per_query))
    return found.model_copy(
        update={
            "scores": found.scores | {"ndcg@10": measure},
            "provenance": found.provenance.model_copy(update={"run_sha256": run}),
        }
    )


def made(*rows, number=1, kind="production", **changes):
    """A result over N queries; `changes` are of its fields, `plan` and `labels` of these."""
    found = results(*(rows or (scored(BASELINE, FLAT), scored(BETTER, FLAT, gain=0.03))), kind=kind)
    plan = found.plan.model_copy(update={"version": number, **changes.pop("plan", {})})
    labels = found.labels.model_copy(update=changes.pop("labels", {}))
    corpus = found.corpus.model_copy(update=changes.pop("corpus", {}))
    given = {"queries": asked(), "plan": plan, "labels": labels, "corpus": corpus, **changes}
    return found.model_copy(update=given)


def _searched(per_query):
    found = scored(SPARSE, per_query).scores
    return found | dict.fromkeys(("recall@100", "mrr@10"), found["recall@10"])


def arm(name, per_query, cell=None, unjudged=0):
    scores = _searched(per_query)
    difference = Difference(mean=-0.01, low=-0.04, high=0.02, wins=2, ties=20, losses=3)
    test = row(BETTER).test
    beside = cell and Beside(
        cell=cell,
        scores=_searched(FLAT),
        differences=dict.fromkeys(("ndcg@10", "recall@10", "mrr"), difference),
        test=test,
    )
    return ArmResult(arm=name, scores=scores, unjudged=unjudged, bounds=[0.4, 0.7], run_sha256=SHA, beside=beside)


def report(found, *arms, findings=()):
    difference = Difference(mean=-0.01, low=-0.04, high=0.02, wins=2, ties=20, losses=3)
    recall = IndexRecallResult(depth=10, mean=0.99, least=0.8, worst=[], floor=0.95)
    return PostBulk(
        schema_version=1,
        source="demo",
        version=found.version,
        kind="production",
        chosen=decision(found).chosen,
        model=ModelFacts(encoder="e", revision="r", model_id="hub/e", of_baseline=False),
        substrate=SubstrateFacts(version="7", chunks=9, dim=4, metric="cosine", tokenizer="porter"),
        plan=found.plan,
        queries=[query.id for query in found.queries],
        arms=list(arms) or [arm("vec0 exact", MOVED, BASELINE), arm("vec0 bq + rescore", FLAT, BASELINE, unjudged=3)],
        quantisation=Quantisation(recall=[recall], difference=difference, test=row(BETTER).test),
        coverage=CoverageResult(documents=3, with_chunks=2, characters=10, covered=9),
        findings=list(findings),
        results_sha256=sha256(json_bytes(found.model_dump())),
        lock_sha256=SHA,
    )
