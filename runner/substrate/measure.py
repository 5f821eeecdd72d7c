"""What the substrate answers to a version's queries, and the report that it makes beside the record."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import file_sha256
from runner.base.errors import InputError
from runner.base.progress import say
from runner.base.records import PromptSide, Run
from runner.base.store import Store
from runner.decide.receipt import CellTimes
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import embed
from runner.eval_set.door import LOCK_NAME
from runner.retrieve.variants import cut_rows
from runner.substrate.checks import Expected, check_substrate
from runner.substrate.database import Substrate
from runner.substrate.record import Decided, arm_result, counterparts, documents, quantisation
from runner.substrate.search import Searches
from runner.substrate.shapes import ModelFacts, PostBulk
from runner.substrate.verdict import compared_findings


@dataclass(frozen=True)
class Measured:
    """The report, the runs over the record's documents alone, and what differs from machine to machine."""

    report: PostBulk
    runs: Mapping[str, Run]
    times: CellTimes
    seconds: dict[str, float]


def measured(known: Decided, substrate: Substrate, version_before: str | None) -> Measured:
    """Return checks, scores, index recall and latencies; the substrate was last seen in `version_before`."""
    version, record, spec = known.version, known.record, known.encoder.spec
    dim = int(known.cut or spec.dim)
    if dim != substrate.facts.dim:
        raise InputError(
            f"The substrate's vectors have {substrate.facts.dim} dimensions, and those of {spec.name} have {dim}: they "
            "were made by another encoder. Give the database that this decision filled."
        )
    seconds: dict[str, float] = {}
    store = Store(version.cache)

    def vectors(texts: Sequence[str], side: PromptSide = "document") -> NDArray[np.float32]:
        rows = np.asarray(embed(store, known.encoder, texts, side).rows)
        return cut_rows(rows, dim) if known.cut else rows

    sample = documents(version)
    model = _model(known, substrate)
    with _timed(seconds, "checks"):
        chunks = chunk_corpus(sample, known.chunker)
        expected = Expected(model.model_id, model.revision, known.chunker, chunks, version_before)
        findings, coverage = check_substrate(substrate, sample, expected, embed=vectors)
    with _timed(seconds, "queries"):
        texts = {query.id: query.text for query in record.queries}
        doc_ids = [document.doc_id for document in sample]
        within = Searches(substrate, texts, vectors(list(texts.values()), "query"), doc_ids)
    everywhere = replace(within, restricted=False)
    with _timed(seconds, "runs"):
        runs, wide_runs = within.runs(), _kept(everywhere.runs(), frozenset(doc_ids))
    with _timed(seconds, "index recall"):
        recall = everywhere.index_recall()
    with _timed(seconds, "latency"):
        times = {arm: milliseconds(spent) for arm, spent in everywhere.latencies().items()}
    beside = counterparts(record.cells, spec.name, known.chunker, known.cut)
    arms = [arm_result(record, arm, run, beside.get(arm)) for arm, run in runs.items()]
    lost = quantisation(record, wide_runs, recall)
    report = PostBulk(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        kind="rehearsal" if known.decision.kind == "rehearsal" else "production",
        chosen=known.decision.chosen,
        model=model,
        substrate=substrate.facts,
        plan=record.plan,
        queries=list(texts),
        arms=arms,
        quantisation=lost,
        coverage=coverage,
        findings=[*findings, *compared_findings(arms, lost, record.plan.significance.alpha)],
        results_sha256=file_sha256(version.results_path),
        lock_sha256=file_sha256(version.record / LOCK_NAME),
    )
    return Measured(report, runs, times, seconds)


def _kept(runs: Mapping[str, Run], doc_ids: frozenset[str]) -> dict[str, Run]:
    """Return the runs without the documents that were not sampled, which nobody could grade."""
    return {
        arm: Run(arm, {query: tuple(hit for hit in hits if hit.doc_id in doc_ids) for query, hits in run.hits.items()})
        for arm, run in runs.items()
    }


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


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return how many calls there were, and what 50, 95 and 99 % of them stay within, interpolated linearly."""
    shares = (50, 95, 99)
    within = np.percentile(seconds, shares).tolist()
    times = {f"p{share}_ms": round(1000 * value, 3) for share, value in zip(shares, within, strict=True)}
    return times | {"calls": len(seconds)}


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    say(f"substrate: {stage}")
    started = perf_counter()
    yield
    seconds[stage] = perf_counter() - started
