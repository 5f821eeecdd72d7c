import json
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pandas
import pytest
from pandas.testing import assert_frame_equal

from runner import evaluate
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.eval_set.given import given_collection, given_documents
from runner.eval_set.version import load_results, newest_version
from tests.support.few import few  # noqa: F401  # a fixture
from tests.support.loopback import Loopback, Request, Wire, as_json, served
from tests.support.small_collection import documents, external_version, qrels, write_collection
from tests.support.small_collection import evaluate as run_beir
from tests.support.small_set import QUERIES

CELLS = ("bm25 x whole_doc", "bm25-plain x whole_doc")
DOCUMENTS = {row["_id"]: {"title": row["title"], "text": row["text"]} for row in documents()}
ASKED = {f"q{place}": text for place, (_, text) in enumerate(QUERIES, start=1)}
JUDGED = qrels()


def shared_words(query: str) -> list[str]:
    wanted = set(query.lower().split())
    found = {name: len(wanted & set(row["text"].lower().split())) for name, row in DOCUMENTS.items()}
    return sorted(found, key=lambda name: (-found[name], name))[:12]


LISTS = {query_id: shared_words(text) for query_id, text in ASKED.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def found(folder):
    return evaluate(DOCUMENTS, ASKED, JUDGED, CELLS, retrievers={"My words": shared_words}, folder=folder)


def test_the_figures_are_those_of_the_command_over_the_same_collection(found, tmp_path):
    lines = [
        f"{query_id} Q0 {doc_id} {rank} {-rank} my-words\n"
        for query_id, ids in LISTS.items()
        for rank, doc_id in enumerate(ids, start=1)
    ]
    (tmp_path / "mine.run").write_text("".join(lines))
    version = external_version(tmp_path, cells=CELLS)
    run_beir(version, write_collection(tmp_path / "c"), tmp_path / "mine.run")
    theirs = load_results(version)
    assert [row.cell for row in found.results.cells] == [row.cell for row in theirs.cells]
    for own, other in zip(found.results.cells, theirs.cells, strict=True):
        assert own.model_copy(update={"provenance": None}) == other.model_copy(update={"provenance": None})
    assert found.results.plan == theirs.plan
    assert found.results.labels.sha256 == theirs.labels.sha256
    for name in ("corpus.jsonl", "lists.json.bz2"):
        assert found.results.digests[name] == theirs.digests[name]


@pytest.mark.slow
def test_tables_lists_and_files_in_are_the_same_as_dicts_and_functions(found, tmp_path):
    rows = [
        {"query_id": query, "doc_id": doc, "grade": grade} for query in JUDGED for doc, grade in JUDGED[query].items()
    ]
    (tmp_path / "mine.qrels").write_text("".join(f"{r['query_id']} 0 {r['doc_id']} {r['grade']}\n" for r in rows))
    own = [{"id": row["_id"], "title": row["title"], "text": row["text"]} for row in documents()]
    table, asked = pandas.DataFrame(own), pandas.DataFrame({"id": ASKED.keys(), "text": ASKED.values()})
    by_table = evaluate(table, asked, pandas.DataFrame(rows), CELLS, retrievers={"My words": LISTS})
    by_file = evaluate(own, ASKED, tmp_path / "mine.qrels", CELLS, retrievers={"My words": LISTS})
    for other in (by_table, by_file):
        assert other.results == found.results


def test_the_tables_out_are_those_of_export(found):
    ranking, cells = found.table(), found.table("cells")
    assert_frame_equal(ranking, cells[list(ranking.columns)])
    assert ranking["cell"].tolist() == [row.cell for row in found.results.cells]
    scores = found.table("scores").query("measure == 'ndcg@10'").groupby("cell")["value"].mean()
    assert scores[ranking["cell"]].tolist() == pytest.approx(ranking["ndcg@10_mean"].tolist(), abs=1e-9)


def test_where_documents_rank_that_queries_were_written_from_stands_beside_judgments():
    source = {query_id: LISTS[query_id][place] for place, query_id in enumerate(list(JUDGED)[:10])}
    queries = {name: {"text": text, "document": source.get(name, "")} for name, text in ASKED.items()}
    found = evaluate(DOCUMENTS, queries, JUDGED, CELLS, retrievers={"mine": LISTS})
    ranks = [LISTS[query_id].index(doc_id) + 1 for query_id, doc_id in source.items()]
    row = found.table().set_index("cell").loc["trec:mine"]
    assert sum(bool(query.source_document) for query in found.results.queries) == 10
    assert row["source_first_ten"] == pytest.approx(sum(rank <= 10 for rank in ranks) / 10)
    assert row["source_mrr"] == pytest.approx(sum(1 / rank for rank in ranks) / 10, abs=1e-8)
    assert "source_mrr" not in evaluate(DOCUMENTS, ASKED, JUDGED, CELLS).table()


def test_two_cells_are_compared_by_query_and_a_retriever_by_its_own_name(found):
    one, other = found.compare("My words", CELLS[0]), found.compare(CELLS[0], "trec:my-words")
    means = {row.cell: row.scores["ndcg@10"].mean for row in found.results.cells}
    assert one.paired.difference == pytest.approx(means["trec:my-words"] - means[CELLS[0]])
    assert (one.paired.difference, one.paired.p) == (-other.paired.difference, other.paired.p)
    with pytest.raises(InputError, match="none of its cells"):
        found.compare("unheard of", CELLS[0])


def test_the_drawing_has_a_row_per_cell_and_the_page_is_the_record_s(found, folder, tmp_path):
    drawn = ElementTree.fromstring(found.plot()._repr_svg_())
    said = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {row.cell for row in found.results.cells} <= said
    page = found.html(tmp_path / "page.html").read_bytes()
    version = newest_version("beir", folder)
    assert page == (version.record / "results.html").read_bytes()
    assert found.verdict in repr(found).replace("\n  ", " ")


DOC = {"a": "the ferry leaves at midnight", "b": "a lorry above nine tons is weighed"}
ASK = {"q1": "when does the ferry leave", "q2": "which lorry is weighed"}
GOLD = {"q1": {"a": 2}, "q2": {"b": 1}}

WRONG = {
    "no documents": (({}, ASK, GOLD), {}, "no documents"),
    "documents that are not there": (("a ferry", ASK, GOLD), {}, "a ferry is not a folder"),
    "a text that is no text": (({**DOC, "c": 3}, ASK, GOLD), {}, "row 3: text: .*found 3"),
    "an id twice": (({**DOC, 1: "x", "1": "y"}, ASK, GOLD), {}, "1 is there twice"),
    "half a character": (({**DOC, "c": "\ud800"}, ASK, GOLD), {}, "surrogate"),
    "no queries": ((DOC, {}, GOLD), {}, "no queries"),
    "a query without text": ((DOC, {**ASK, "q3": ""}, GOLD), {}, "q3 has no text"),
    "no qrels": ((DOC, ASK, {}), {}, "There are no qrels"),
    "an unknown query": ((DOC, ASK, {**GOLD, "q9": {"a": 1}}), {}, "1 queries .* q9"),
    "an unknown document": ((DOC, ASK, {**GOLD, "q2": {"z": 1}}), {}, "1 documents .* z"),
    "a grade that is none": ((DOC, ASK, {"q1": {"a": "good"}, "q2": {"b": 1}}), {}, "'good'"),
    "qrels without grades": ((DOC, ASK, {"q1": ["a"]}), {}, "not grades by document"),
    "no cells": ((DOC, ASK, GOLD, []), {}, "No cells"),
    "a cell without its chunker": ((DOC, ASK, GOLD, ["bm25 x by_magic"]), {}, "by_magic"),
    "a grade of relevance": ((DOC, ASK, GOLD), {"relevant_grade": 7}, "relevant_grade"),
    "a sample of nothing": ((DOC, ASK, GOLD), {"sample_size": 0}, "sample_size"),
    "no name": ((DOC, ASK, GOLD), {"name": " "}, "name is empty"),
    "two of one name": ((DOC, ASK, GOLD), {"retrievers": {"A": {"q1": ["a"]}, "a": {"q1": ["b"]}}}, "name a"),
    "a retriever that is none": ((DOC, ASK, GOLD), {"retrievers": {"mine": 3}}, "mine is 3"),
    "an unknown hit": ((DOC, ASK, GOLD), {"retrievers": {"mine": lambda _: ["a", "z"]}}, "q1: 'z', at rank 2"),
    "a hit twice": ((DOC, ASK, GOLD), {"retrievers": {"mine": lambda _: ["a", "b", "a"]}}, "document a is .* twice"),
    "hits in a set": ((DOC, ASK, GOLD), {"retrievers": {"mine": lambda _: {"a", "b"}}}, "mine, query q1: returned"),
    "hits as keys": ((DOC, ASK, GOLD), {"retrievers": {"mine": lambda _: DOC.keys()}}, "mine, query q1: returned"),
    "cells in a set": ((DOC, ASK, GOLD, {*CELLS}), {}, "cells is a set"),
    "nothing relevant": ((DOC, ASK, {"q1": {"a": 0}, "q2": {"b": -1}}), {}, "No query has a relevant document"),
    "no list": ((DOC, ASK, GOLD), {"retrievers": {"mine": lambda _: None}}, "returned None"),
    "an unknown query's hits": ((DOC, ASK, GOLD), {"retrievers": {"mine": {"q9": ["a"]}}}, "mine answers 1 queries"),
}


@pytest.mark.parametrize(("given", "options", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_error_that_names_it(given, options, said):
    with pytest.raises(InputError, match=said):
        evaluate(*given, **options)


def test_what_pandas_says_is_missing_is_an_empty_title_and_numbers_are_ids():
    columns = {"id": [1, 2], "text": [*DOC.values()], "title": pandas.array([None, "Lorries"], dtype="string")}
    table = pandas.DataFrame(columns)
    judged = {"q1": {1: 2.0}, "q2": {np.int64(2): 1}}
    found = given_collection(given_documents(table), ASK, judged, "x")
    same = {"1": {"text": DOC["a"]}, "2": {"text": DOC["b"], "title": "Lorries"}}
    assert found == given_collection(given_documents(same), ASK, {"q1": {"1": 2}, "q2": {"2": 1}}, "x")
    assert [document.title for document in found.documents] == ["", "Lorries"]


def test_a_baseline_that_means_nothing_is_a_verdict_and_no_exception():
    nothing = evaluate(DOC, ASK, GOLD)
    assert nothing.results.outcome.tier == "no decision"
    assert nothing.verdict


def test_a_retriever_that_leaves_queries_out_is_named_and_no_file_of_ours(capsys):
    evaluate(DOCUMENTS, ASKED, JUDGED, retrievers={"mine": {"q1": LISTS["q1"]}})
    said = [line for line in capsys.readouterr().err.splitlines() if "score 0" in line]
    assert [line.partition(":")[0] for line in said] == ["retriever mine"]


def test_without_pandas_the_extra_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"per-source-eval\[export\]"):
        found.table()


@pytest.mark.slow
def test_the_import_is_light():
    heavy = "torch transformers sentence_transformers pandas bm25s lxml scipy tiktoken httpx"
    code = f"import sys; from runner import evaluate; print([m for m in '{heavy}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Model(Loopback):
    """An LLM that rewords a question by repeating it."""

    def answer(self, request: Request) -> Wire:
        assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", "Bearer secret")
        return as_json({"choices": [{"message": {"content": request.body["messages"][1]["content"]}}]})


@pytest.mark.slow
def test_the_example_validates_a_rag_retriever_that_asks_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "text": row["text"]} for name, row in DOCUMENTS.items()]
    Path("handbook.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    asked = [{"id": name, "text": ASKED[name], "answer": max(JUDGED[name], key=JUDGED[name].get)} for name in JUDGED]
    Path("questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    example = runpy.run_path(str(CHECKOUT / "examples" / "rag_retriever.py"))
    with served(Model()) as model, example["CLIENT"]:
        said = {"LLM_URL": f"{model.url}/v1", "LLM_MODEL": "any", "LLM_API_KEY": "secret", "NO_PROXY": "127.0.0.1"}
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        example["main"]("handbook.jsonl", "questions.jsonl")
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("rag less bm25: ") for line in printed)
    assert printed[-1] == "rag.html"
    page = Path("rag.html").read_bytes()
    assert b"trec:rag" in page
    assert b"secret" not in page
