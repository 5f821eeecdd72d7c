"""A public collection that is small enough for every test: a document for each order of the sixteen short bills."""

import json
from pathlib import Path

import yaml

from runner.embed.backends import LocalBackend
from runner.eval_set.catalog import SOURCES
from runner.eval_set.plan import default_plan_text
from runner.eval_set.version import Version, open_version
from runner.evening.external import ExternalEvaluation
from tests.support.small_set import BILLS, LOOSE, QUERIES, fake_encoders, few_draws

CELLS = ("bm25 x whole_doc", "bm25-plain x whole_doc", "minilm-l6-v2 x whole_doc", "sum(bm25,minilm-l6-v2) x whole_doc")


def documents() -> list[dict[str, str]]:
    return [
        {"_id": f"d{number}-{place}", "title": title, "text": order}
        for number, title, _, *orders in BILLS
        for place, order in enumerate(orders, start=1)
    ]


def qrels() -> dict[str, dict[str, int]]:
    """Grade 2 for a document that holds most of the query's words, 1 for one that holds some."""
    found: dict[str, dict[str, int]] = {}
    for place, (_, text) in enumerate(QUERIES, start=1):
        wanted = set(text.lower().split()) - LOOSE
        for document in documents():
            share = len(wanted & set(f"{document['title']} {document['text']}".lower().split())) / len(wanted)
            if share >= 0.3:
                found.setdefault(f"q{place}", {})[document["_id"]] = 2 if share >= 0.6 else 1
    return found


def write_collection(folder: Path, *, rows=None, judged=None, queries=None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    given = queries or {f"q{place}": text for place, (_, text) in enumerate(QUERIES, start=1)}
    write_jsonl(folder / "corpus.jsonl", documents() if rows is None else rows)
    write_jsonl(folder / "queries.jsonl", [{"_id": query_id, "text": text} for query_id, text in given.items()])
    lines = ["query-id\tcorpus-id\tscore"]
    for query_id, grades in (qrels() if judged is None else judged).items():
        lines += [f"{query_id}\t{doc_id}\t{grade}" for doc_id, grade in grades.items()]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_jsonl(path: Path, rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def external_version(tmp_path: Path, *, cells=CELLS, size: int | None = None) -> Version:
    """A version with a plan of few draws; the command line finds it with --eval-set-path=tmp_path/external."""
    folder = tmp_path / "external"
    version = open_version(folder, folder / ".work", tmp_path / ".cache", SOURCES["beir"])
    plan = yaml.safe_load(few_draws(default_plan_text(version.source, rehearsal=False)))
    plan["cells"] = list(cells)
    if size:
        plan["sample"]["size"] = size
    version.folder.mkdir(parents=True, exist_ok=True)
    version.plan_path(rehearsal=False).write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    return version


def evaluate(version: Version, collection: Path | None, *runs: Path) -> str:
    return ExternalEvaluation(version, collection, trec_runs=runs, backend=LocalBackend(fake_encoders)).run()
