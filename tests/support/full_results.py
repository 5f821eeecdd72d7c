"""Results in which every section of the page has something: the cells of a source, seeded scores, invented figures."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from runner.base.canonical import json_bytes, sha256
from runner.base.records import BM25Cell, HybridCell, parse_cell
from runner.decide.tiers import meets_criterion_5
from runner.eval_set import catalog
from runner.eval_set.plan import default_cells
from runner.eval_set.shapes.cell import BackendRecord, Provenance, Truncation
from runner.eval_set.shapes.decision import Decision, Receipt
from runner.eval_set.shapes.gate import GateVerdict, NullResult
from runner.eval_set.shapes.lists import (
    FurtherReading,
    ListedDocument,
    PairShown,
    QueryLists,
    RankedLists,
    ShownPassage,
)
from runner.eval_set.shapes.paired import Difference, MeasureResult
from runner.eval_set.shapes.plan import Sample
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, CorpusFacts, LabelFacts, NoiseFloor, Outcome, Results
from runner.report import results_page
from tests.support import example_panel
from tests.support.example_results import BASELINE, CHUNKS, FILES, PLAN, RULE, control, gate, results, row


def page(
    found: Results, receipt: Receipt | None, decision: Decision | None = None, lists: RankedLists | None = None
) -> bytes:
    """The page of what such results, and these lists or those of `full_lists`, are written as."""
    listed = full_lists(found) if lists is None else lists
    return results_page.page(json_bytes(found.model_dump()), json_bytes(listed.model_dump()), receipt, decision)


def full_lists(found: Results) -> RankedLists:
    """Four documents a query, all of which every cell finds but the last; the first is relevant and read twice."""
    return _lists([row.cell for row in found.cells], [query.id for query in found.queries])


NEEDS = (
    "Which bills create a grant program for repairing rural bridges?",
    "H.R. 1234 section 3 definitions",
    "authority of the Secretary to waive matching requirements",
    "help for former soldiers who breathed poisonous smoke overseas",
    "penalties for late reporting of suspicious transactions",
)
NULLS = {
    "permuted qrels": 0.0312,
    "random retrieval": 0.0048,
    "most retrieved": 0.0291,
    "length sorted": 0.0103,
    "shuffled top 10": 0.3521,
}
"""Null systems by name, with the mean that each is given here."""

CONSTANT = ("most retrieved", "length sorted")
COMPARED = ("ndcg@10", "recall@10", "mrr")
MEASURES = (*COMPARED, "recall@100", "mrr@10")


def full_results(
    *,
    kind: str = "production",
    unjudged: int = 0,
    tier: str = "candidate",
    n_queries: int = 30,
    source: str = "us_code",
    names: Sequence[str] = (),
) -> Results:
    """The default cells of a source, or these, every one with everything that a cell of its kind has."""
    cells = [*names] or default_cells(catalog.SOURCES[source], rehearsal=kind == "rehearsal")
    generator = np.random.default_rng(np.random.PCG64(7))
    ease = generator.beta(2, 1.4, n_queries)

    def values(shift: float) -> np.ndarray:
        return np.rint(np.clip(ease + shift + generator.normal(0, 0.12, n_queries), 0, 1) * 1e9).astype(np.int64)

    shifts = [0.01 * ((5 * index + 6 if names else index) % 11) - 0.05 for index in range(len(cells))]
    table = {cell: {name: values(by) for name in MEASURES} for cell, by in zip(cells, shifts, strict=True)}
    rows = [_cell(cell, number, table[cell], table[cells[0]], kind, unjudged) for number, cell in enumerate(cells)]
    rows.sort(key=lambda one: (-one.scores["ndcg@10"].mean, one.cell))
    best = next((one.cell for one in rows if one.meets_criterion_5), cells[-1])
    ids = [f"q{number:02d}" for number in range(1, n_queries + 1)]
    bare = results(row(BASELINE), kind=kind, unjudged=unjudged)
    plan = {"source": source, "baseline": cells[0], "cells": cells, "sample": Sample(size=750, seed=2026)}
    same = Difference(mean=0.0, low=0.0, high=0.0, wins=0, ties=n_queries, losses=0)
    return bare.model_copy(
        update={
            "plan": bare.plan.model_copy(update={**plan, "pool_depth": 30}),
            "digests": {name: sha256(name) for name in FILES},
            "queries": [_query(number, name) for number, name in enumerate(ids, start=1)],
            "corpus": _corpus(),
            "labels": _labels(unjudged),
            "cells": rows,
            "controls": [
                control("oracle", passes=1, bound=1).model_copy(update={"mean": 1.0}),
                control("random", draws=200, passes=2, bound=20).model_copy(update={"mean": 0.01}),
            ],
            "noise_floor": NoiseFloor(difference=same, max_change=0.0),
            "judging": example_panel.panel(cells, cells[0]),
            "sources": example_panel.sources(cells, cells[0]),
            "spans": example_panel.spans(cells, cells[0], n_queries),
            "previous": example_panel.previous(cells),
            "outcome": _outcome(best, "no decision" if unjudged else tier),
        }
    )


def full_receipt(found: Results, **changes: Any) -> Receipt:
    """A receipt of these: the first eight cells of the plan and the baseline once more were embedded here."""
    embedded = [*found.plan.cells[:8], "aa"]
    measured = {"embed_seconds": 91.5, "retrieve_seconds": 0.812, "index_bytes": 12_345_678.0}
    receipt = Receipt(
        schema_version=1,
        finished_on="2026-11-22T21:40:03+00:00",
        tool_version="0.1.0",
        python="3.11.9",
        platform="Linux-6.1.0-x86_64-with-glibc2.36",
        cpu_count=2,
        libraries={"numpy": "2.4.6", "bm25s": "0.3.16", "torch": "2.13.0"},
        seconds={"corpus": 12.031, "cells": 1804.5, "score": 3.25},
        cells=dict.fromkeys(embedded, measured) | {"bm25 x whole_doc": {"retrieve_seconds": 0.4}},
        backends={cell: BackendRecord.model_validate(backend()) for cell in embedded},
        spend=None,
    )
    return receipt.model_copy(update=changes)


def backend(name: str = "local", served: dict[str, str] | None = None, **identity: Any) -> dict[str, Any]:
    versions = {"sentence-transformers": "6.2.0", "torch": "2.13.0"}
    facts = {"name": name, "device": "cpu", "dtype": "float32", "versions": versions} | identity
    return {"name": name, "identity": facts, "served": served or {"device": "cpu"}}


def _cell(
    cell: str, number: int, own: dict[str, np.ndarray], base: dict[str, np.ndarray], kind: str, unjudged: int
) -> CellResult:
    judged = np.full(len(own["mrr"]), 9 * 10**8 if unjudged else 10**9, np.int64)
    scores = {name: _measure(values) for name, values in {**own, "judged@10": judged}.items()}
    differences = {name: _difference(own[name], base[name]) for name in COMPARED}
    gain, recall, mean = differences["ndcg@10"].mean, differences["recall@10"].mean, scores["ndcg@10"].mean
    late = kind == "exploration"
    made = row(cell, gain, recall, role="exploratory" if late else "preregistered", half=0.07)
    further: dict[str, Any] = {"role": "baseline", "test": None, "recall_bound": None, "expected": None, "short_of": []}
    if number:
        test = {"p": 0.0312, "p_adjusted": 0.1734, "p_gain": 0.0611, "bar": 0.04, "sd": 0.1312}
        ends = {"simultaneous": [gain - 0.07, gain + 0.07], "interval": [gain - 0.04, gain + 0.04]}
        assert made.test is not None
        further = {
            "test": made.test.model_copy(update={**test, **ends}),
            "recall_bound": [recall - 0.05, recall + 0.05],
            "short_of": ["is not told from chance (p 0.061, bar 0.04)"],
        }
    return made.model_copy(
        update={
            **further,
            "scores": scores,
            "differences": differences,
            "meets_criterion_5": number > 0 and meets_criterion_5(gain, recall, RULE),
            "confirmed": False,
            "diagnosis": "",
            "single_gold": {"recall@10": _single_gold()},
            "gate": _gate(mean),
            "unjudged": unjudged // 11,
            "bounds": [mean, min(mean + 0.03 * bool(unjudged), 1.0)],
            "provenance": _provenance(cell, made.provenance, 3000 + 700 * number, 0.04 * (number % 3)),
        }
    )


def _measure(values: np.ndarray) -> MeasureResult:
    mean, half = float(values.mean()) / 1e9, 1.96 * float(values.std()) / 1e9 / len(values) ** 0.5
    low, high = max(mean - half, 0.0), min(mean + half, 1.0)
    return MeasureResult(mean=mean, low=low, high=high, per_query=values.tolist())


def _difference(values: np.ndarray, baseline: np.ndarray) -> Difference:
    paired = values - baseline
    mean, half = float(paired.mean()) / 1e9, 1.96 * float(paired.std()) / 1e9 / len(paired) ** 0.5
    wins, losses = int((paired > 0).sum()), int((paired < 0).sum())
    counts = {"wins": wins, "ties": len(paired) - wins - losses, "losses": losses}
    return Difference(mean=mean, low=mean - half, high=mean + half, **counts)


def _gate(real: float) -> Any:
    bare = gate("pass")
    nulls = [
        bare.nulls[0].model_copy(
            update={
                "name": name,
                "mean": mean,
                "low": mean * 0.5,
                "high": mean * 1.6,
                "dots": [] if name in CONSTANT else [round(mean * (0.5 + place / 40), 9) for place in range(40)],
                "delta": real - mean,
            }
        )
        for name, mean in NULLS.items()
    ]
    return bare.model_copy(update={"real": real, "nulls": nulls})


def _single_gold() -> GateVerdict:
    names = ("permuted gold", "uniform gold", "random retrieval", "marginal-matched gold")
    figures = {"mean": 0.05, "low": 0.02, "high": 0.08, "dots": [], "delta": 0.5, "p": 1 / 2001, "verdict": "pass"}
    nulls = [NullResult.model_validate({"name": name, **figures}) for name in names]
    return GateVerdict(real=0.55, nulls=nulls, verdict="pass")


def _provenance(name: str, bare: Provenance, n_chunks: int, share: float) -> Provenance:
    cell, lost = parse_cell(name), round(share * n_chunks * 430)
    health = {"count": n_chunks, "tokens_p50": 431, "tokens_p95": 512, "chunks_per_document_max": 214}
    made: dict[str, Any] = {"chunks": CHUNKS.model_copy(update=health)}
    if not isinstance(cell, BM25Cell):
        spec = catalog.ENCODERS[cell.encoder]
        facts = {"model": spec.model, "revision": spec.revision, "max_tokens": spec.max_tokens, "dim": spec.dim}
        made["encoder"] = {"encoder": cell.encoder, **facts, "method": "forward pass of the whole model"}
        made["probe"] = {"paraphrase_min": 0.6123, "stranger_max": 0.2034, "digest": sha256("probe")}
        made["truncation"] = Truncation(
            tokens=n_chunks * 430,
            lost=lost,
            share=lost / (n_chunks * 430),
            chunks_cut=lost // 90,
        )
    if isinstance(cell, BM25Cell | HybridCell):
        made["bm25"] = {"library": "bm25s", "k1": 1.5, "b": 0.75, "stop words": "Lucene's 33 English stop words"}
    return bare.model_copy(
        update={**made, "run_sha256": sha256(f"{name} run"), "method": "exact cosine over all chunks"}
    )


def _lists(cells: Sequence[str], query_ids: Sequence[str]) -> RankedLists:
    again = FurtherReading(judge="reader-b", model="", round=1, grade=1, reason="names no grant")
    pairs = [
        PairShown(
            document=place,
            grade=grade,
            judge="" if grade is None else "reader-a",
            reason="" if grade is None else f"reason {place}",
            spans=[[10, 90]] if grade == 3 else [],
            readings=[again] if grade == 3 else [],
            passages=[],
        )
        for place, grade in enumerate((3, 1, 0, None))
    ]
    hits = {cell: [[(place + turn) % 3, 0, 100] for place in range(3)] for turn, cell in enumerate(cells)}
    return RankedLists(
        depth=3,
        texts=False,
        documents=[
            ListedDocument(doc_id=f"d{place}", url=f"https://www.example.gov/d{place}", title="") for place in range(4)
        ],
        queries=[QueryLists(id=name, relevant=1, documents=pairs, hits=hits) for name in query_ids],
    )


def _query(number: int, name: str) -> QueryRow:
    return QueryRow(
        id=name,
        text=NEEDS[number % len(NEEDS)],
        kind=("topic", "citation", "authority", "paraphrase")[number % 4],
        origin=("person", "claude", "harvested")[number % 3],
        source_document="d3" if number in (3, 4) else "",
    )


def _corpus() -> CorpusFacts:
    strata = {f"title {number:02d}/{length}": 5 * number for number in (5, 26, 42) for length in ("long", "short")}
    unread = {"file": "usc/title-42/chapter-7.xml", "reason": "no body: neither main nor legis-body"}
    return CorpusFacts.model_validate(
        {
            "n_read": 1903,
            "n_chars": 61_204_377,
            "quarantined": [unread],
            "strata": strata,
            "archive_sha256": sha256("archive"),
        }
    )


def _labels(unjudged: int) -> LabelFacts:
    return LabelFacts(
        lines=4211,
        sha256=sha256("labels"),
        pairs=4180,
        pool_pairs=4180 + unjudged,
        unjudged_pairs=unjudged,
        judges={"reader-a": 4180, "reader-b": 31},
        models=["judge-model-1"],
        grades={"0": 3100, "1": 611, "2": 320, "3": 180},
    )


def _outcome(best: str, tier: Any) -> Outcome:
    return Outcome(
        tier=tier,
        barred_by="unjudged" if tier == "no decision" else None,
        recommended=best,
        false_alarm=0.6134,
    )


NAMES = (
    BASELINE,
    "minilm-l6-v2 x section_aware_bills_v1",
    "minilm-l6-v2 x fixed_token_1024_100",
    "minilm-l6-v2 x fixed_token_256_25",
    "minilm-static-384 x fixed_token_512_50",
    "minilm-static-384 x section_aware_bills_v1",
    "bm25 x whole_doc",
    "bm25 x fixed_token_512_50",
    "bm25>minilm-l6-v2 x section_aware_bills_v1",
    "rrf(bm25,minilm-l6-v2) x section_aware_bills_v1",
)


def big_results(queries: int, cells: int) -> Results:
    """Results of so many queries and cells."""
    names = [NAMES[number] if number < len(NAMES) else f"{NAMES[number % 6]}-{number}" for number in range(cells)]
    return full_results(n_queries=queries, names=names, source="demo").model_copy(update={"previous": None})


@cache
def big_scored(queries: int, cells: int, depth: int, *, passages: bool = False) -> tuple[Results, RankedLists]:
    """Results, and lists of such a depth: as many words as a real evening leaves; with passages as of our own texts."""
    found = big_results(queries, cells)
    # Ten cells of depth 30 leave about a hundred documents a query.
    pool = round(1.1 * depth * cells**0.5)
    grades = sorted(((0, 0, 0, 1, 2, 3)[place % 6] for place in range(pool)), reverse=True)
    hits = {
        row.cell: [[(11 * number + rank) % pool, 900 * rank, 900 * rank + 400] for rank in range(depth)]
        for number, row in enumerate(found.cells)
    }
    pairs = [_wordy_pair(place, grade, (3 if grade else 1) * passages) for place, grade in enumerate(grades)]
    documents = [
        ListedDocument(
            doc_id=f"BILLS-118hr{number}ih",
            url=f"https://example.org/bills/118/hr{number}",
            title=_words(6).title() if passages else "",
        )
        for number in range(1, max(750, pool) + 1)
    ]
    relevant = sum(grade >= PLAN.relevant_grade for grade in grades)
    lists = [QueryLists(id=query.id, relevant=relevant, documents=pairs, hits=hits) for query in found.queries]
    return found, RankedLists(depth=depth, texts=passages, documents=documents, queries=lists)


def _words(count: int) -> str:
    return " ".join(("vigorously", "inspected", "levees", "hold", "till", "springtime")[n % 6] for n in range(count))


def _wordy_pair(document: int, grade: int, passages: int) -> PairShown:
    again = FurtherReading(judge="second-judge", model="a-model", round=1, grade=grade, reason=_words(10))
    return PairShown(
        document=document,
        grade=grade,
        judge="first-judge",
        reason=_words(16),
        spans=[[0, 300]] if grade else [],
        readings=[again] if document % 10 == 0 else [],
        passages=[ShownPassage(start=900 * n, end=900 * n + 480, text=_words(55)) for n in range(passages)],
    )
