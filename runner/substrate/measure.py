"""What the substrate answers to a version's queries, and the report that it makes beside the record."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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
from runner.eval_set.version import load_queries
from runner.retrieve.variants import cut_rows
from runner.substrate.checks import Checks, Expected, check_substrate
from runner.substrate.database import Substrate
from runner.substrate.record import Decided, arm_results, counterparts, documents, quantisation, record
from runner.substrate.search import IndexRecall, Search, index_recall, latencies, percentiles, search_runs
from runner.substrate.shapes import ModelFacts, PostBulk, SubstrateFacts
from runner.substrate.texts import Cut
from runner.substrate.verdict import compared_findings, limits


@dataclass(frozen=True)
class Answers:
    """What the searches found, arm by arm.

    `runs` search the record's documents alone, all else everything; `wide_runs` then keep these documents.
    """

    runs: Mapping[str, Run]
    wide_runs: Mapping[str, Run]
    recall: IndexRecall
    times: CellTimes


@dataclass(frozen=True)
class Searched:
    """What came out of a substrate, and the seconds by stage."""

    facts: SubstrateFacts
    model: ModelFacts
    checks: Checks
    answers: Answers
    seconds: dict[str, float]


def search_substrate(known: Decided, substrate: Substrate, version_before: str | None) -> Searched:
    """Checks, runs, index recall and latencies; the substrate was last seen in `version_before`."""
    version, spec = known.version, known.encoder.spec
    dim = int(known.cut or spec.dim)
    if dim != substrate.dim:
        raise InputError(
            f"The substrate's vectors have {substrate.dim} dimensions, and those of {spec.name} have {dim}: they "
            "were made by another encoder. Give the database that this decision filled."
        )
    seconds: dict[str, float] = {}
    vectors = partial(_vectors, Store(version.cache), known)
    sample = documents(version)
    model = _model(known, substrate)
    with _timed(seconds, "checks"):
        cut = Cut(known.chunker, chunk_corpus(sample, known.chunker))
        expected = Expected(model.model_id, model.revision, cut, version_before)
        checks = check_substrate(substrate, sample, expected, embed=partial(vectors, side="document"))
    texts = {query.query_id: query.text for query in load_queries(version.queries_path)}
    with _timed(seconds, "queries"):
        search = Search(texts, vectors(list(texts.values()), side="query"), [document.doc_id for document in sample])
    facts = SubstrateFacts(
        version=substrate.version,
        chunks=substrate.count_chunks(),
        dim=substrate.dim,
        metric=substrate.metric,
        tokenizer=substrate.tokenizer,
    )
    return Searched(facts, model, checks, _answers(substrate, search, seconds), seconds)


def report(known: Decided, found: Searched) -> PostBulk:
    """post_bulk.json."""
    version, plan = known.version, known.results.plan
    beside = record(known)
    cells = counterparts(beside.cells, known.encoder.spec.name, known.chunker, known.cut)
    arms = arm_results(beside, found.answers.runs, cells)
    lost = quantisation(beside, found.answers.wide_runs, found.answers.recall)
    return PostBulk(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        kind="rehearsal" if known.decision.kind == "rehearsal" else "production",
        chosen=known.decision.chosen,
        model=found.model,
        substrate=found.facts,
        plan=plan,
        queries=[query.query_id for query in beside.queries],
        arms=arms,
        quantisation=lost,
        coverage=found.checks.coverage,
        findings=[*found.checks.findings, *compared_findings(arms, lost, plan)],
        limits=limits(arms, found.checks.coverage, known.chunker, n_queries=len(beside.queries)),
        results_sha256=file_sha256(version.results_path),
        lock_sha256=file_sha256(version.record / LOCK_NAME),
    )


def _answers(substrate: Substrate, search: Search, seconds: dict[str, float]) -> Answers:
    everything = replace(search, restricted=False)
    with _timed(seconds, "runs"):
        runs = search_runs(substrate, search)
        wide_runs = _kept(search_runs(substrate, everything), frozenset(search.doc_ids))
    with _timed(seconds, "index recall"):
        recall = index_recall(substrate, everything)
    with _timed(seconds, "latency"):
        times = {arm: _milliseconds(values) for arm, values in latencies(substrate, everything).items()}
    return Answers(runs, wide_runs, recall, times)


def _kept(runs: Mapping[str, Run], doc_ids: frozenset[str]) -> dict[str, Run]:
    """The runs without the documents that were not sampled, which nobody could grade."""
    return {
        arm: Run(arm, {query: tuple(hit for hit in hits if hit.doc_id in doc_ids) for query, hits in run.hits.items()})
        for arm, run in runs.items()
    }


def _vectors(store: Store, known: Decided, texts: Sequence[str], side: PromptSide) -> NDArray[np.float32]:
    rows = np.asarray(embed(store, known.encoder, texts, side).rows)
    return cut_rows(rows, int(known.cut)) if known.cut else rows


def _model(known: Decided, substrate: Substrate) -> ModelFacts:
    """The expected model, by its hub id or the catalogue's name, whichever more chunks carry."""
    spec = known.encoder.spec
    accepted = (spec.hub_id, spec.name)
    carried = "SELECT embedded_model_id, count(*) FROM {chunks} WHERE embedded_model_id IN (?, ?) GROUP BY 1"
    counts = dict(substrate.rows(carried, accepted))
    return ModelFacts(
        encoder=spec.name,
        revision=spec.revision,
        model_id=max(accepted, key=lambda name: counts.get(name, 0)),
        of_baseline=known.of_baseline,
    )


def _milliseconds(values: Sequence[float]) -> dict[str, float]:
    found = percentiles(values)
    return {f"p{share}_ms": round(1000 * value, 3) for share, value in found.items()} | {"calls": len(values)}


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    say(f"substrate: {stage}")
    started = perf_counter()
    yield
    seconds[stage] = perf_counter() - started
