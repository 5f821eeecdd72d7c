"""A case study: BM25 on a public collection, and every cheater, through both null gates, as one Markdown table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.base.errors import InputError
from runner.base.figures import signed
from runner.base.given_files import display, printable
from runner.base.progress import say
from runner.base.records import RUN_DEPTH, Chunk, Hit, Run, Span
from runner.base.terminal import MARKS
from runner.eval_set.corpus import read_external
from runner.eval_set.trec import WHOLE, TrecRun
from runner.gate.cheaters import CHEATERS, Exam, Lists
from runner.retrieve.bm25 import bm25_run
from runner.retrieve.ranking import without_own
from runner.tools.grade.grade import ALPHA, TAU, grade_run
from runner.tools.markdown import escaped, table

ENGINES = ("bm25", "bm25-plain", "bm25-okapi")
"""The first one is the engine that cheaters break."""

DRAWS = 2000
_HEAD = ["system", "nDCG@10", "Recall@10", "gate", "refused by", "nulls A to D", "over D", "what it does"]
_MANY = 3


def case_study(folder: Path) -> str:
    """Return what a collection in BEIR's layout is, and a table of its systems, best nDCG@10 first."""
    collection = read_external(folder)
    if collection.missing_documents:
        shown = ", ".join(map(printable, collection.missing_documents[:_MANY]))
        raise InputError(f"{display(folder)}: the qrels name documents that corpus.jsonl lacks, such as {shown}.")
    texts = {
        document.doc_id: f"{document.title}\n{document.text}" if document.title else document.text
        for document in collection.documents
    }
    # Whole documents, so that nothing but the ranking differs between the systems.
    chunks = [Chunk(doc_id, 0, Span(0, len(text)), "", 0) for doc_id, text in texts.items()]
    ranked_by = {name: bm25_run(name, name, collection.queries, chunks, list(texts.values())).run for name in ENGINES}
    runs = {f"**{name}**": Run(name, without_own(run.hits, collection.own)) for name, run in ranked_by.items()}
    (first, *_) = runs.values()
    exam = Exam(
        grades=[
            {doc_id: grade for doc_id, grade in grades.items() if grade > 0} for grades in collection.qrels.values()
        ],
        pool=sorted(texts),
        strata=[""] * len(collection.queries),
        engine=[[hit.doc_id for hit in hits] for hits in first.hits.values()],
        texts=texts,
        asked=list(collection.queries.values()),
    )
    # Without strata the source prior is the popularity list over again.
    cheaters = [row for row in CHEATERS.values() if row.name != "source-prior"]
    runs |= {row.name: _run(row.name, list(collection.queries), row.lists(exam)) for row in cheaters}
    lengths = {doc_id: len(text) for doc_id, text in texts.items()}
    graded = {}
    for number, (name, run) in enumerate(runs.items(), start=1):
        say(f"{number} of {len(runs)}: {name.strip('*')}")
        ranked = TrecRun(run, frozenset(texts), ())
        graded[name] = grade_run(ranked, collection.qrels, lengths, n_trials=DRAWS, lengths=lengths)
    best_first = sorted(graded, key=lambda name: (-graded[name]["gate"]["real"], name))
    refused = sum(not graded[row.name]["gate_passes"] for row in cheaters)
    return "\n".join(
        [
            f"{escaped(collection.name)}: {len(texts):,} documents, {len(collection.queries):,} queries, "
            f"{sum(map(len, collection.qrels.values())):,} judged pairs. Engines are in bold; {ENGINES[0]} is the one "
            f"that gets broken. Asked of each null: p of at most {ALPHA:g} in {DRAWS:,} draws, and a difference of at "
            f"least {TAU:g}. The gate refuses {refused} of {len(cheaters)} cheaters.",
            "",
            table(_HEAD, (list(_row(name, graded[name])) for name in best_first)).rstrip(),
        ]
    )


def _run(name: str, query_ids: list[str], lists: Lists) -> Run:
    """Make a run of lists, of a repeated document the first place."""
    hits = {}
    for query_id, documents in zip(query_ids, lists, strict=True):
        distinct = list(dict.fromkeys(documents))[:RUN_DEPTH]
        hits[query_id] = tuple(Hit(doc_id, float(-rank), WHOLE) for rank, doc_id in enumerate(distinct))
    return Run(name, hits)


def _row(name: str, graded: dict[str, Any]) -> Iterator[str]:
    gate, single = graded["gate"], graded["single_gold"]
    yield name
    yield f"{gate['real']:.4f}"
    yield f"{graded['scores']['recall@10']:.4f}"
    yield _verdict(gate["verdict"])
    failed = [null["name"] for null in gate["nulls"] if null["verdict"] == "fail"]
    yield ", ".join(failed) if len(failed) < _MANY else f"{len(failed)} of {len(gate['nulls'])} nulls"
    yield _verdict(single["verdict"]) if single else ""
    yield signed(single["deltas"]["D"], 4) if single else ""
    cheater = CHEATERS.get(name)
    yield "" if cheater is None else cheater.broken + (f"; may pass: {cheater.passes}" if cheater.passes else "")


def _verdict(verdict: str) -> str:
    return f"{MARKS[verdict]} {verdict}"
