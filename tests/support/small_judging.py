"""A small set on its way to a judge and back."""

import json

from runner.base.records import Span
from runner.eval_set.batches import Shown
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.version import load_queries
from runner.judge.answers import Importer
from runner.judge.prep_labels import export_batches

MODEL = "claude-sonnet-4-6"
"""The first judge of the small set's plan."""


def everything(version):
    """Every query against every document of the small set."""
    queries, documents = load_queries(version.queries_path), corpus_documents(version, None)
    return [(query.id, document.doc_id) for query in queries for document in documents]


def show_whole(document, topics, times):
    """What is shown of a short document."""
    return [Shown((Span(0, len(document.text)),))] * len(topics)


def show_part(document, topics, times):
    """Fifty characters of a document, or three times as many."""
    return [Shown((Span(0, 50 * times),), f"the first {50 * times}")] * len(topics)


def export(version, pairs, kind="batch", show=show_whole):
    """Batches of these pairs, whole documents unless told otherwise."""
    documents = {document.doc_id: document for document in corpus_documents(version, None)}
    return export_batches(version, pairs, documents, show, kind)


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
