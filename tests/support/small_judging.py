"""A small set on its way to a judge and back."""

import json

from runner.base.records import Span
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.version import load_queries
from runner.judge.answers import Importer

MODEL = "claude-sonnet-4-6"
"""The first judge of the small set's plan."""


def everything(version):
    """Every query against every document of the small set, the first hundred characters as evidence."""
    queries = {query.id: query for query in load_queries(version.queries_path)}
    documents = {document.doc_id: document for document in corpus_documents(version, None)}
    missing = {(query_id, doc_id): (Span(0, 100),) for query_id in queries for doc_id in documents}
    return missing, queries, documents


def rows(paths):
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def give(version, *answers, name="answers.jsonl", ending="\n", head=b"", judge="j", model=MODEL):
    """What importing a file of these answers says."""
    path = version.work / name
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + ending for one in answers)
    path.write_bytes(head + text.encode())
    return Importer(version).take_file(path, judge=judge, model=model, judged_on="2026-01-31")


def answer(query_id="q01", doc_id="BILLS-117hr101ih", grade=2, **fields):
    """An answer as a judge writes it."""
    return {"query_id": query_id, "doc_id": doc_id, "grade": grade, **fields}
