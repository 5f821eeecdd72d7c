"""A case study: BM25 on a public collection, and every cheater, through the graded null gate, as one Markdown table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.base.errors import InputError
from runner.base.given_files import display, printable
from runner.base.progress import say
from runner.base.records import RUN_DEPTH, SCORE_UNIT, Chunk, Hit, Qrels, Run, Span
from runner.base.terminal import MARKS
from runner.eval_set.corpus import read_external
from runner.eval_set.shapes.gate import GateVerdict
from runner.eval_set.trec import WHOLE
from runner.gate.cheaters import CHEATERS, Exam, Lists
from runner.gate.gate import Gate
from runner.retrieve.bm25 import bm25_run
from runner.retrieve.ranking import without_own
from runner.score.score import score
from runner.tools.grade.grade import ALPHA, SEED, TAU
from runner.tools.markdown import escaped, table

ENGINES = ("bm25", "bm25-plain", "bm25-okapi")
"""The first one is the engine that cheaters break."""

DRAWS = 2000
_HEAD = ["system", "nDCG@10", "Recall@10", "gate", "refused by", "what it does"]
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
    settings: dict[str, Any] = {"draws": DRAWS, "tau": TAU, "alpha": ALPHA, "seed": SEED}
    gate = Gate.of(list(collection.qrels), collection.qrels, dict.fromkeys(collection.qrels, ""), lengths, **settings)
    found = {}
    for number, (name, run) in enumerate(runs.items(), start=1):
        say(f"{number} of {len(runs)}: {name.strip('*')}")
        found[name] = gate.judge(run, dict.fromkeys(texts, 1))
    best_first = sorted(found, key=lambda name: (-found[name].real, name))
    rows = (list(_row(name, found[name], runs[name], collection.qrels)) for name in best_first)
    refused = sum(found[row.name].verdict != "pass" for row in cheaters)
    return "\n".join(
        [
            f"{escaped(collection.name)}: {len(texts):,} documents, {len(collection.queries):,} queries, "
            f"{sum(map(len, collection.qrels.values())):,} judged pairs. Engines are in bold; {ENGINES[0]} is the one "
            f"that gets broken. Asked of each null: p of at most {ALPHA:g} in {DRAWS:,} draws, and a difference of at "
            f"least {TAU:g}. The gate refuses {refused} of {len(cheaters)} cheaters.",
            "",
            table(_HEAD, rows).rstrip(),
        ]
    )


def _run(name: str, query_ids: list[str], lists: Lists) -> Run:
    """Make a run of lists, of a repeated document the first place."""
    hits = {}
    for query_id, documents in zip(query_ids, lists, strict=True):
        distinct = list(dict.fromkeys(documents))[:RUN_DEPTH]
        hits[query_id] = tuple(Hit(doc_id, float(-rank), WHOLE) for rank, doc_id in enumerate(distinct))
    return Run(name, hits)


def _row(name: str, gate: GateVerdict, run: Run, qrels: Qrels) -> Iterator[str]:
    recalls = score(run, list(qrels), qrels, relevant_grade=1).values["recall@10"]
    yield name
    yield f"{gate.real:.4f}"
    yield f"{sum(recalls) / len(recalls) / SCORE_UNIT:.4f}"
    yield f"{MARKS[gate.verdict]} {gate.verdict}"
    failed = [null.name for null in gate.nulls if null.verdict == "fail"]
    yield ", ".join(failed) if len(failed) < _MANY else f"{len(failed)} of {len(gate.nulls)} nulls"
    cheater = CHEATERS.get(name)
    yield "" if cheater is None else cheater.broken + (f"; may pass: {cheater.passes}" if cheater.passes else "")
