"""Results of a given size, seeded: as many documents and words as a real evening leaves, all invented."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from runner.base.records import BM25Cell, parse_cell
from runner.eval_set.shapes.cell import Lengths, Truncation
from runner.eval_set.shapes.decision import Embedded, Receipt
from runner.eval_set.shapes.lists import (
    FurtherReading,
    ListedDocument,
    PairShown,
    QueryLists,
    RankedLists,
    RecallCurve,
    RecallPoint,
    ShownPassage,
)
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.tests import MeasureResult, NullResult
from runner.score.score import MEASURES
from tests.support import example_panel
from tests.support.example_results import BASELINE, PLAN, results, row, scale

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
NULLS = ("permuted qrels", "random retrieval", "most retrieved", "length sorted", "shuffled top 10")
CONSTANT = ("most retrieved", "length sorted")
RANKS, TOKENS = (1, 2, 3, 5, 10, 20, 30, 50, 100), (512, 1024, 2048, 4096, 8192)

POOL = 1.1
"""Documents of a query's pool over depth times the square root of the cells: ten of depth 30 leave about a hundred."""

_SYLLABLES = (
    *("ba", "cor", "del", "fen", "gra", "hol", "in", "ket", "lum", "mor", "nes", "per", "quo", "ral", "ster", "vig"),
)


@cache
def big_results(queries: int, cells: int, depth: int, *, passages: bool = False, seed: int = 1) -> Results:
    """Results of so many queries and cells, and lists of such a depth; with passages as a page of our own texts has.

    Scores are drawn, and the means, intervals and tests beside them are not computed from them.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    names = [NAMES[number] if number < len(NAMES) else f"{NAMES[number % 6]}-{number}" for number in range(cells)]
    base = results(*(row(name, gain=(number % 7 - 3) / 40) for number, name in enumerate(names)))
    rows = [
        QueryRow(id=f"q{number:03}", text=_words(generator, 14).capitalize() + "?", kind="topic", origin="hand")
        for number in range(1, queries + 1)
    ]
    made = [_grown(generator, one, queries) for one in base.cells]
    lists = _lists(generator, rows, [one.cell for one in made], depth, passages=passages)
    curve = RecallCurve(by_rank=_below_ceiling(lists), by_tokens=_points(TOKENS))
    made = [one.model_copy(update={"curve": curve}) for one in made]
    return base.model_copy(
        update={
            "queries": rows,
            "cells": made,
            "judging": example_panel.panel(names, BASELINE),
            "spans": example_panel.spans(names, BASELINE, queries),
            "slices": example_panel.slices(names),
            "scale": scale(*(one.cell for one in made)),
            "lists": lists,
        }
    )


def big_receipt(found: Results) -> Receipt:
    """A receipt in which every cell has its times and its size."""
    measured = {"embed_seconds": 61.25, "retrieve_seconds": 4.5, "index_bytes": 31_000_000.0}
    local = Embedded(name="local", identity={"batch": 32}, served={}, parity_sha256=None)
    return Receipt(
        schema_version=2,
        finished_on="2026-01-02",
        tool_version="1",
        python="3",
        platform="a machine",
        cpu_count=2,
        libraries={"numpy": "2"},
        seconds={"runs": 99.0},
        cells={one.cell: measured for one in found.cells},
        backends={one.cell: local for one in found.cells if not one.cell.startswith("bm25 x")},
        spend=None,
    )


def _words(generator: np.random.Generator, count: int) -> str:
    picked = generator.integers(len(_SYLLABLES), size=(count, 3))
    return " ".join("".join(_SYLLABLES[number] for number in word) for word in picked)


def _grown(generator: np.random.Generator, one: CellResult, queries: int) -> CellResult:
    """The cell with everything that a dense one has, and a score for every query."""
    mean = one.scores["ndcg@10"].mean
    scores = {
        name: MeasureResult(
            mean=mean,
            low=mean - 0.1,
            high=mean + 0.1,
            per_query=generator.integers(0, 1_000_000_000, size=queries, endpoint=True).tolist(),
        )
        for name in MEASURES
    }
    null = one.gate.nulls[0]
    nulls = [
        NullResult.model_validate(
            null.model_dump()
            | {"name": name, "dots": [] if name in CONSTANT else np.sort(generator.random(40)).tolist()}
        )
        for name in NULLS
    ]
    cut = Truncation(
        tokens=400_000,
        tokens_p50=430,
        tokens_p95=540,
        tokens_max=611,
        lost=9_000,
        share=0.0225,
        chunks=900,
        chunks_cut=90,
        lengths=Lengths(width=32, limit=512, counts=generator.integers(0, 90, size=20).tolist()),
    )
    return one.model_copy(
        update={
            "scores": scores,
            "differences": one.differences | {"mrr": one.differences["ndcg@10"]},
            "gate": one.gate.model_copy(update={"nulls": nulls}),
            "pool": example_panel.cell_pool(),
            "provenance": one.provenance.model_copy(update=_reading(one.cell, cut)),
        }
    )


def _reading(name: str, cut: Truncation) -> dict[str, Any]:
    """What a cell with an encoder says of it; nothing of one without."""
    cell = parse_cell(name)
    if isinstance(cell, BM25Cell):
        return {"bm25": {"library": "bm25s", "k1": 1.5, "b": 0.75}, "method": "BM25 over whole documents"}
    facts = {"encoder": cell.encoder, "hub_id": "an/encoder", "revision": "ab" * 20, "max_tokens": 512, "dim": 384}
    return {"encoder": facts, "truncation": cut, "method": "exact cosine over all chunks"}


def _points(at: tuple[int, ...], most: Sequence[float] = (1.0,) * len(RANKS)) -> list[RecallPoint]:
    """Points that rise from a fifth to nine tenths of `most`, which nothing exceeds."""
    means = [share * limit for share, limit in zip(np.linspace(0.2, 0.9, len(at)).tolist(), most, strict=False)]
    return [
        RecallPoint(at=place, mean=mean, low=max(0.0, mean - 0.1), high=min(mean + 0.1, limit))
        for place, mean, limit in zip(at, means, most, strict=False)
    ]


def _below_ceiling(lists: RankedLists) -> list[RecallPoint]:
    """Recall by rank, as much of it as there are relevant documents to find."""
    relevant = [query.relevant for query in lists.queries if query.relevant]
    return _points(RANKS, [sum(min(rank, count) / count for count in relevant) / len(lists.queries) for rank in RANKS])


def _lists(
    generator: np.random.Generator, queries: list[QueryRow], cells: list[str], depth: int, *, passages: bool
) -> RankedLists:
    pool = round(POOL * depth * len(cells) ** 0.5)
    documents = [
        ListedDocument(
            doc_id=f"BILLS-118hr{number}ih",
            url=f"https://example.org/bills/118/hr{number}",
            title=_words(generator, 6).title() if passages else "",
        )
        for number in range(1, max(750, pool) + 1)
    ]
    return RankedLists(
        depth=depth,
        texts=passages,
        documents=documents,
        queries=[_query(generator, one, cells, len(documents), pool, depth, passages=passages) for one in queries],
    )


def _query(
    generator: np.random.Generator,
    query: QueryRow,
    cells: list[str],
    documents: int,
    pool: int,
    depth: int,
    *,
    passages: bool,
) -> QueryLists:
    listed = generator.choice(documents, size=pool, replace=False).tolist()
    grades = sorted(generator.choice([0, 0, 0, 1, 2, 3], size=pool).tolist(), reverse=True)
    ends = generator.integers(500, 40_000, size=(len(cells), depth)).tolist()
    return QueryLists(
        id=query.id,
        relevant=sum(grade >= PLAN.relevant_grade for grade in grades),
        documents=[
            _pair(generator, place, grade, passages=passages) for place, grade in zip(listed, grades, strict=True)
        ],
        hits={
            cell: [
                [place, end - 400, end]
                for place, end in zip(generator.permutation(pool)[:depth].tolist(), ends[number], strict=True)
            ]
            for number, cell in enumerate(cells)
        },
    )


def _pair(generator: np.random.Generator, document: int, grade: int, *, passages: bool) -> PairShown:
    again = FurtherReading(judge="second-judge", model="a-model", round=1, grade=grade, reason=_words(generator, 10))
    start = int(generator.integers(0, 30_000))
    shown = [
        ShownPassage(start=start + 900 * number, end=start + 900 * number + 480, text=_words(generator, 55))
        for number in range((3 if grade else 1) if passages else 0)
    ]
    return PairShown(
        document=document,
        grade=grade,
        judge="first-judge",
        reason=_words(generator, 16).capitalize() + ".",
        spans=[[start, start + 300]] if grade else [],
        readings=[again] if generator.random() < 0.1 else [],
        passages=shown,
    )
