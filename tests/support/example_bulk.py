"""A report on the substrate over invented results: a search beside a cell of the record, and one without."""

from runner.base.canonical import json_bytes, sha256
from runner.eval_set.shapes.paired import Difference
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
from tests.support.example_results import BASELINE, BETTER, SHA, SPARSE, decision, row


def report(found):
    difference = Difference(mean=-0.01, low=-0.04, high=0.02, wins=2, ties=20, losses=3)
    scores, test = row(SPARSE).scores, row(BETTER).test
    scores |= dict.fromkeys(("recall@100", "mrr@10"), scores["recall@10"])
    differences = dict.fromkeys(("ndcg@10", "recall@10", "mrr"), difference)
    beside = Beside(cell=BASELINE, scores=scores, differences=differences, test=test)
    searched = {"scores": scores, "unjudged": 1, "bounds": [0.4, 0.7], "run_sha256": SHA}
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
        arms=[ArmResult(arm="vec0 exact", beside=beside, **searched), ArmResult(arm="fts5", beside=None, **searched)],
        quantisation=Quantisation(recall=[recall], difference=difference, test=test),
        coverage=CoverageResult(documents=3, with_chunks=2, characters=10, covered=9),
        findings=[FindingResult(name="torn", fault=True, count=2, of=9, sentence="Two are torn.", examples=["c1"])],
        results_sha256=sha256(json_bytes(found.model_dump())),
        lock_sha256=SHA,
    )
