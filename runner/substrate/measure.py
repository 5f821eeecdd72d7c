"""What the substrate answers to a version's queries, and the report that it makes beside the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import file_sha256, sha256
from runner.base.errors import InputError
from runner.base.figures import p_text, round4
from runner.base.progress import say
from runner.base.records import PromptSide, Run
from runner.base.store import Store
from runner.decide.cell_results import unjudged_hits
from runner.decide.compared import Recorded
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import embed
from runner.eval_set.asked import asked
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.runs import run_bytes
from runner.retrieve.variants import cut_rows
from runner.substrate.checks import Expected, check_substrate
from runner.substrate.database import Substrate
from runner.substrate.record import Decided, counterparts
from runner.substrate.search import BINARY, EXACT, IndexRecall, Searches
from runner.substrate.shapes import (
    ArmResult,
    Beside,
    FindingResult,
    IndexRecallResult,
    ModelFacts,
    PostBulk,
    Quantisation,
    finding,
)

INDEX_RECALL_FLOORS = {10: 0.95, 100: 0.9}
"""Mean index recall by depth below which quantisation loses more than rescoring is there to bring back."""


@dataclass(frozen=True)
class Measured:
    """The report, and the runs over the record's documents alone."""

    report: PostBulk
    runs: Mapping[str, Run]


def measured(known: Decided, substrate: Substrate, version_before: str | None) -> Measured:
    """Return checks, scores and index recall; the substrate was last seen in `version_before`."""
    record, spec = known.record, known.encoder.spec
    version, plan = record.version, record.results.plan
    dim = int(known.cut or spec.dim)
    if dim != substrate.facts.dim:
        raise InputError(
            f"The substrate's vectors have {substrate.facts.dim} dimensions, and those of {spec.name} have {dim}: they "
            "were made by another encoder. Give the database that this decision filled."
        )
    store = Store(version.cache)

    def vectors(texts: Sequence[str], side: PromptSide = "document") -> NDArray[np.float32]:
        rows = np.asarray(embed(store, known.encoder, texts, side).rows)
        return cut_rows(rows, dim) if known.cut else rows

    sample = corpus_documents(version, version.embedded_corpus)
    model = _model(known, substrate)
    say("substrate: checks")
    chunks = chunk_corpus(sample, known.chunker)
    expected = Expected(model.model_id, model.revision, known.chunker, chunks, version_before)
    findings = check_substrate(substrate, sample, expected, embed=vectors)
    say("substrate: queries")
    texts = {one.id: one.text for one in asked(record.queries)}
    doc_ids = [document.doc_id for document in sample]
    within = Searches(substrate, texts, vectors(list(texts.values()), "query"), doc_ids)
    everywhere = replace(within, restricted=False)
    runs, wide_runs = within.runs(), everywhere.runs()
    say("substrate: index recall")
    recall = everywhere.index_recall()
    cells = [row.cell for row in record.results.cells]
    beside = counterparts(cells, spec.name, known.chunker, known.cut)
    arms = [arm_result(record, arm, run, beside.get(arm)) for arm, run in runs.items()]
    lost = _quantisation(record, wide_runs, frozenset(doc_ids), recall)
    report = PostBulk(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        kind="rehearsal" if known.decision.kind == "rehearsal" else "production",
        chosen=known.decision.chosen,
        model=model,
        substrate=substrate.facts,
        plan=plan,
        queries=list(texts),
        arms=arms,
        quantisation=lost,
        findings=[*findings, *compared_findings(arms, lost, plan.significance.alpha)],
        results_sha256=file_sha256(version.results_path),
        lock_sha256=file_sha256(version.record / LOCK_NAME),
    )
    return Measured(report, runs)


def _model(known: Decided, substrate: Substrate) -> ModelFacts:
    """Return the expected model, by its hub id or the catalogue's name, whichever more chunks carry."""
    spec = known.encoder.spec
    accepted = (spec.model, spec.name)
    carried = "SELECT embedded_model_id, count(*) FROM {chunks} WHERE embedded_model_id IN (?, ?) GROUP BY 1"
    counts: dict[str, int] = dict(substrate.rows(carried, accepted))
    return ModelFacts(
        encoder=spec.name,
        revision=spec.revision,
        model_id=max(accepted, key=lambda name: counts.get(name, 0)),
        of_baseline=known.of_baseline,
    )


def arm_result(record: Recorded, arm: str, run: Run, cell: str | None) -> ArmResult:
    """Return the scores of an arm's run, beside those of the record's cell if it has one."""
    runs = {arm: run} if cell is None else {arm: run, cell: record.run(cell)}
    comparison = record.comparison(runs, cell or arm)
    scores = comparison.means
    beside = None
    if cell is not None:
        differences, test = comparison.differences[arm], comparison.tests[arm]
        beside = Beside(cell=cell, scores=scores[cell], differences=differences, test=test)
    unjudged, bounds = unjudged_hits(comparison, run)
    return ArmResult(
        arm=arm,
        scores=scores[arm],
        unjudged=unjudged,
        bounds=bounds,
        run_sha256=sha256(run_bytes(run)),
        beside=beside,
    )


def _quantisation(
    record: Recorded, runs: Mapping[str, Run], doc_ids: frozenset[str], recall: IndexRecall
) -> Quantisation:
    """Return what the binary index loses against exact search over the same vectors; `runs` are over all of them."""
    # Without the documents that were not sampled, which nobody could grade.
    graded = {
        arm: Run(arm, {query: tuple(hit for hit in hits if hit.doc_id in doc_ids) for query, hits in run.hits.items()})
        for arm, run in runs.items()
        if arm in (EXACT, BINARY)
    }
    comparison = record.comparison(graded, EXACT)
    recalls = [
        IndexRecallResult(depth=depth, mean=sum(recall[depth]) / len(recall[depth]), floor=floor)
        for depth, floor in INDEX_RECALL_FLOORS.items()
    ]
    return Quantisation(
        recall=recalls,
        difference=comparison.differences[BINARY]["ndcg@10"],
        test=comparison.tests[BINARY],
    )


def compared_findings(arms: Sequence[ArmResult], lost: Quantisation, alpha: float) -> list[FindingResult]:
    """Return the two findings that searching adds to the checks of the tables."""
    return [_quantisation_loss(lost), _score_loss(arms, alpha)]


def _quantisation_loss(lost: Quantisation) -> FindingResult:
    """Return a fault if the mean index recall lies below its floor at either depth, whatever it costs in nDCG@10."""
    short = [recall for recall in lost.recall if round4(recall.mean) < recall.floor]
    shares = " and ".join(f"{recall.mean:.4f} of the first {recall.depth}" for recall in lost.recall)
    floors = " and ".join(f"{recall.floor:g} at {recall.depth}" for recall in lost.recall)
    sentence = (
        f"The binary index with rescoring keeps {shares} chunks of exact search (at least {floors} is asked for); "
        f"nDCG@10 of the eval set's documents among all changes by {lost.difference.mean:+.4f} "
        f"(p {p_text(lost.test.p)})."
    )
    return finding("quantisation loss", len(short), len(lost.recall), sentence=sentence)


def _score_loss(arms: Sequence[ArmResult], alpha: float) -> FindingResult:
    """Return a fault if a vector arm scores below the record's cell beyond chance, were its unjudged hits perfect too.

    Full text and fusion are not held to this: FTS5 ranks chunks by its own words, which is another method.
    """
    vectors = [(arm, arm.beside) for arm in arms if arm.arm in (EXACT, BINARY) and arm.beside is not None]
    short = [
        f"{arm.arm} {beside.differences['ndcg@10'].mean:+.4f} to {beside.cell} (p {p_text(beside.test.p)})"
        for arm, beside in vectors
        if _falls_short(arm, beside, alpha)
    ]
    sentence = "No search of the vectors scores below the record's cell beyond chance and unjudged hits."
    if short:
        listed = "; ".join(short)
        sentence = f"nDCG@10 is below the record's, and would be if every unjudged hit were perfect: {listed}."
    return finding("vector scores below the record", len(short), len(vectors), sentence=sentence)


def _falls_short(arm: ArmResult, beside: Beside, alpha: float) -> bool:
    is_less = beside.differences["ndcg@10"].mean < 0 and round4(beside.test.p) <= alpha
    return is_less and round4(arm.bounds[1]) < round4(beside.scores["ndcg@10"].mean)


def verdict(report: PostBulk) -> str:
    """Return every fault by name, or that there is none, what the figures are and what was not checked."""
    if names := [fault.name for fault in report.faults]:
        counted = "1 fault" if len(names) == 1 else f"{len(names)} faults"
        return f"The substrate has {counted}: {'; '.join(names)}."
    arm = next(row for row in report.arms if row.arm == BINARY)
    beside = ""
    if arm.beside is not None:
        beside = f", beside {arm.beside.scores['ndcg@10'].mean:.4f} of {arm.beside.cell} in the record"
    kept = report.quantisation.recall[0]
    return (
        f"No fault was found: {BINARY} scores {arm.scores['ndcg@10'].mean:.4f} nDCG@10{beside}, and keeps "
        f"{kept.mean:.4f} of the first {kept.depth} chunks of exact search. Texts and cuts were checked of the eval "
        "set's documents alone."
    )
