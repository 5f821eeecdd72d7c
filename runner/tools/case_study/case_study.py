"""A case study: an external evaluation's engines, and broken predictors made from them, through both null gates.

Beside each stands what a plain table of scores would have hidden of it: sentences that follow from figures alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.base.canonical import JSON, file_sha256, read_json
from runner.base.errors import InputError, IntegrityError
from runner.base.figures import round4
from runner.base.given_files import display, printable
from runner.base.progress import say
from runner.base.records import Document, Qrels, Query, Run
from runner.base.schema import checked
from runner.decide.cell_results import single_gold_verdicts
from runner.eval_set.collection import published_qrels
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.lock import verified
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_cell_file, load_corpus, load_queries, newest_version
from runner.gate.diagnosis import cause, diagnosis
from runner.gate.graded_gate import GradedGate
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison, mean
from runner.tools.case_study.zoo import Broken, zoo_of
from runner.tools.case_study.zoo_lists import TABLE, Material, Report, run_of

_NULL = ("name", "mean", "delta", "p", "verdict")
_LEFT_OUT: Any = {"reasons": True, "nulls": {"__all__": {"smallest_p"}}}
"""What rows hold of the one gate's verdict, and what they leave out of the other's."""


@dataclass(frozen=True)
class Subject:
    """A collection and the engines that were run on it.

    `sha256` has a digest per file of the collection. `engines` are runs by cell, the plan's baseline among them;
    `dense` names one of them, or is "". `chunks` counts each document's chunks, by cell.
    """

    name: str
    sha256: Mapping[str, str]
    plan: Plan
    queries: Sequence[Query]
    qrels: Qrels
    document_texts: Mapping[str, str]
    document_lengths: Mapping[str, int]
    engines: Mapping[str, Run]
    chunks: Mapping[str, Mapping[str, int]]
    dense: str

    @cached_property
    def material(self) -> Material:
        """What the zoo is made of: the baseline is the engine that gets broken."""
        return Material(
            query_texts={query.query_id: query.text for query in self.queries},
            document_texts=self.document_texts,
            qrels=self.qrels,
            strata={query.query_id: query.stratum for query in self.queries},
            relevant_grade=self.plan.relevant_grade,
            engine=self.engines[self.plan.baseline],
            dense=self.engines[self.dense] if self.dense else None,
            seed=self.plan.null_gate.seed,
        )


def study(subject: Subject) -> dict[str, JSON]:
    """The collection's facts, the gate's settings, and a row per system, best reported nDCG@10 first, as plain values.

    In a row, `reported` are the system's own means if it reports any, else `scores`; `difference` is nDCG@10 less
    the baseline's; `zero` counts queries whose nDCG@10 is 0.
    """
    material = subject.material
    zoo = {broken.name: broken for broken in zoo_of(material)}
    lists = {name: broken.lists(material) for name, broken in zoo.items()}
    runs = {**subject.engines, **{name: run_of(name, material, found) for name, found in lists.items()}}
    comparison = Comparison(
        plan=subject.plan,
        queries=subject.queries,
        runs=runs,
        qrels=subject.qrels,
        facts={},
        registered=frozenset(),
        document_lengths=subject.document_lengths,
        published=True,
    )
    gate = GradedGate.over(comparison)
    differences = dict(zip(runs, comparison.differences("ndcg@10"), strict=True))
    rows = []
    for done, (name, run) in enumerate(runs.items(), start=1):
        say(f"{done} of {len(runs)}: {name}")
        broken = zoo.get(name)
        report = broken.report(material, lists[name]) if broken and broken.report else None
        difference = {part: getattr(differences[name], part) for part in ("mean", "low", "high")}
        figures = _figures(subject, comparison, gate, run, report)
        rows.append({**_who(name, broken), **figures, "difference": difference})
    rows = ranked(rows)
    return {
        "collection": {
            "name": subject.name,
            "documents": len(subject.document_lengths),
            "queries": len(subject.queries),
            "sha256": dict(subject.sha256),
            "judged_pairs": sum(map(len, subject.qrels.values())),
            "neighbours_sharing": neighbours_sharing(subject),
        },
        "gate": subject.plan.null_gate.model_dump(),
        "baseline": subject.plan.baseline,
        "systems": [{**row, "hidden": hidden(row, rows, len(subject.queries))} for row in rows],
    }


def _who(name: str, broken: Broken | None) -> dict[str, JSON]:
    told = {field: getattr(broken, field, "") for field in ("broken", "met", "expected", "caught_by")}
    return {"name": name, "kind": "broken" if broken else "engine", **told}


def _figures(
    subject: Subject, comparison: Comparison, gate: GradedGate, run: Run, report: Report | None
) -> dict[str, JSON]:
    """What is measured of a run; zoo members return whole documents, so that each document counts as one chunk."""
    values = {measure: score_matrix([comparison.scores[run.cell]], measure)[0] for measure in TABLE}
    scores = {measure: mean(row) for measure, row in values.items()}
    verdict = gate.judge(run, subject.chunks.get(run.cell) or dict.fromkeys(subject.document_lengths, 1))
    return {
        "scores": scores,
        "reported": dict(report) if report else scores,
        "zero": int((values["ndcg@10"] == 0).sum()),
        "graded": {
            "verdict": verdict.verdict,
            "nulls": [{field: getattr(null, field) for field in _NULL} for null in verdict.nulls],
        },
        "single_gold": [found.model_dump(exclude=_LEFT_OUT) for found in single_gold_verdicts(comparison, run)],
        "cause": cause(run, verdict),
        "diagnosis": diagnosis(run, verdict),
    }


def neighbours_sharing(subject: Subject) -> int:
    """How many queries share a relevant document with the next one, the last with the first."""
    ids = [query.query_id for query in subject.queries]
    relevant = [{d for d, grade in subject.qrels.get(query_id, {}).items() if grade > 0} for query_id in ids]
    return sum(bool(own & after) for own, after in zip(relevant, [*relevant[1:], *relevant[:1]], strict=True))


def read_subject(folder: Path) -> Subject:
    """The collection, from the archive, and every cell of the results in a version folder of an external evaluation.

    InputError for any other folder and for what is missing; IntegrityError if results.json was made from other files.
    """
    results, collection = _results(folder)
    version = newest_version(results.source, folder.resolve().parent)
    if version.folder != folder.resolve():
        raise InputError(f"{display(folder)} is not the newest version beside it. Give {display(version.folder)}.")
    _check_inputs(version, results)
    plan = results.plan
    qrels = published_qrels(version)
    lengths = {row.doc_id: row.n_chars for row in load_corpus(version.corpus_path)[1]}
    if not any(grade and doc_id in lengths for grades in qrels.values() for doc_id, grade in grades.items()):
        raise InputError(
            f"{display(version.qrels_path)}: no document of the corpus is relevant, so nothing can be found."
        )
    queries = load_queries(version.queries_path)
    query_ids = [query.query_id for query in queries]
    facts = {cell: _cell_file(version, cell) for cell in plan.cells}
    return Subject(
        name=collection.name,
        sha256={name: getattr(collection, f"{name}_sha256") for name in ("corpus", "queries", "qrels")},
        plan=plan,
        queries=queries,
        qrels=qrels,
        document_texts={d.doc_id: _reading(d) for d in corpus_documents(version, None)},
        document_lengths=lengths,
        engines={cell: read_run(version.run_path(cell), cell, query_ids) for cell in plan.cells},
        chunks={cell: dict(zip(lengths, found.chunks_per_document, strict=True)) for cell, found in facts.items()},
        dense=next((cell for cell, found in facts.items() if found.encoder and not found.bm25), ""),
    )


def _results(folder: Path) -> tuple[Results, CollectionFacts]:
    path = folder / "results.json"
    if not path.is_file():
        raise InputError(
            f"{display(folder)} has no results.json. Give the version folder of an external evaluation, as a run with "
            "--source=beir writes it."
        )
    results = checked(Results, read_json(verified(path)), path)
    if results.collection is None:
        raise InputError(f"{display(path)} is {results.kind}, and not of an external collection with published qrels.")
    return results, results.collection


def _check_inputs(version: Version, results: Results) -> None:
    known = {
        (version.qrels_path, results.labels.sha256),
        (version.corpus_path, results.corpus.manifest_sha256),
        *((version.queries_path, row.provenance.queries_sha256) for row in results.cells),
    }
    for path, digest_then in sorted(known):
        if file_sha256(path) != digest_then:
            raise IntegrityError(
                f"{display(path)} is not the file that results.json was made from. Restore it, or run the driver again "
                "to make results.json from it."
            )


def _cell_file(version: Version, cell: str) -> CellFile:
    """A cell's own file, whose run is the one that it names."""
    path, run = version.cell_path(cell), version.run_path(cell)
    facts = load_cell_file(path)
    if facts.cell != cell or file_sha256(run) != facts.run_sha256:
        raise IntegrityError(
            f"{display(run)} is not the run of {printable(cell)} that {display(path)} should name. Restore both, or "
            f"delete {display(path)} and run the driver again{', with --trec-run FILE' if facts.imported else ''}."
        )
    return facts


def _reading(document: Document) -> str:
    """What an encoder reads of a whole document."""
    return f"{document.title}\n{document.text}" if document.title else document.text


_WEAK = 0.05
"""A score that a reader takes for that of a weak engine; below it a table gives a system away by itself."""
_MANY = 3


def ranked(rows: Sequence[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The rows as a table of reported scores has them: best nDCG@10 at four places first, equal ones by name."""
    return sorted(rows, key=lambda row: (-round4(row["reported"]["ndcg@10"]), row["name"]))


def hidden(row: dict[str, JSON], rows: Sequence[dict[str, JSON]], n_queries: int) -> str:
    """What a table does not say of a system, in clauses; "nothing: ..." if it says all. `rows` are `ranked`."""
    if row["kind"] == "engine":
        return _of_engine(row)
    said = [_inflated(row), _place(row, rows), _twin(row, rows), _zeros(row, rows, n_queries), _four(row)]
    return "; ".join(filter(None, said)) or f"nothing: {reported(row):.4f} gives it away"


def reported(row: dict[str, JSON]) -> float:
    """The nDCG@10 that a table would show."""
    return round4(row["reported"]["ndcg@10"])


def measured(row: dict[str, JSON]) -> float:
    """The nDCG@10 over all queries and all judgments."""
    return round4(row["scores"]["ndcg@10"])


def fails(row: dict[str, JSON]) -> list[str]:
    """The nulls of the graded gate that the system fails."""
    return [null["name"] for null in row["graded"]["nulls"] if null["verdict"] == "fail"]


def refused_by(row: dict[str, JSON]) -> str:
    """The nulls of the graded gate that the system fails: by name if they are one or two, else how many."""
    failed, nulls = fails(row), row["graded"]["nulls"]
    return ", ".join(failed) if len(failed) < _MANY else f"{len(failed)} of {len(nulls)} nulls"


def _of_engine(row: dict[str, JSON]) -> str:
    if row["graded"]["verdict"] == "pass":
        return "nothing: it reads the queries"
    return f"that it cannot be told from: {', '.join(fails(row))}" if fails(row) else "that nothing could be shown"


def _inflated(row: dict[str, JSON]) -> str:
    if reported(row) == measured(row):
        return ""
    return f"reports {reported(row):.4f}; over all queries and judgments it scores {measured(row):.4f}"


def _place(row: dict[str, JSON], rows: Sequence[dict[str, JSON]]) -> str:
    """How the reported score compares with those of real engines."""
    engines = [other for other in rows if other["kind"] == "engine"]
    below = [other for other in engines if reported(other) < reported(row)]
    if below:
        return (
            f"a table ranks it above {len(below)} of {len(engines)} real engines, {below[0]['name']} "
            f"({reported(below[0]):.4f}) among them"
        )
    return f"{reported(row):.4f} looks like a weak engine" if reported(row) >= _WEAK else ""


def _twin(row: dict[str, JSON], rows: Sequence[dict[str, JSON]]) -> str:
    """A clause if a refused system finds exactly as much as a real engine, so that recall cannot tell them apart."""
    found = round4(row["scores"]["recall@10"])
    if row["graded"]["verdict"] == "pass" or not found:
        return ""
    twins = (r["name"] for r in rows if r["kind"] == "engine" and round4(r["scores"]["recall@10"]) == found)
    return next((f"its Recall@10 is that of {name}" for name in twins), "")


def _zeros(row: dict[str, JSON], rows: Sequence[dict[str, JSON]], n_queries: int) -> str:
    """A clause if a system that passes scores 0 on most queries, and on more than any real engine."""
    engines = [other["zero"] for other in rows if other["kind"] == "engine"]
    if row["graded"]["verdict"] == "pass" and row["zero"] > max(n_queries // 2, *engines):
        return f"{row['zero']} of {n_queries} queries score 0"
    return ""


def _four(row: dict[str, JSON]) -> str:
    """A clause if nulls A to D, which look for the answer alone, pass what the graded gate refuses."""
    passed = row["single_gold"] and all(found["verdict"] == "pass" for found in row["single_gold"])
    return "nulls A to D pass it" if passed and row["graded"]["verdict"] != "pass" else ""


def tally(study: dict[str, JSON]) -> str:
    """How many engines and broken predictors the graded gate passed and refused."""
    groups = {kind: [row for row in study["systems"] if row["kind"] == kind] for kind in ("engine", "broken")}
    passed = {kind: [row for row in rows if row["graded"]["verdict"] == "pass"] for kind, rows in groups.items()}
    engines, broken = len(groups["engine"]), len(groups["broken"])
    return (
        f"The gate passes {len(passed['engine'])} of {engines} real engines and refuses "
        f"{broken - len(passed['broken'])} of {broken} broken predictors."
    )
