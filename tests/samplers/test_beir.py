import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.eval_set.corpus import read_external
from samplers.sources.beir import read_collection
from tests.support.small_collection import documents, qrels, write_collection
from tests.support.small_set import QUERIES


def anything_fits(title: str) -> bool:
    return True


def read(folder):
    return read_collection(folder, title_fits=anything_fits)


def refused(folder) -> str:
    with pytest.raises(InputError) as caught:
        read(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_document_and_every_judged_query_is_kept(tmp_path):
    collection = read(write_collection(tmp_path / "c"))
    assert [d.doc_id for d in collection.documents] == sorted(row["_id"] for row in documents())
    assert list(collection.queries) == list(qrels())
    assert collection.qrels == qrels()
    assert (collection.name, collection.split, collection.missing_documents, collection.empty) == (
        "c",
        "qrels.tsv",
        (),
        {},
    )


def test_queries_of_other_splits_are_left_out_and_counted(tmp_path):
    judged = {"q2": {"d101-1": 1}, "q1": {"d102-1": 0}}
    collection = read(write_collection(tmp_path, judged=judged))
    assert list(collection.queries) == ["q1", "q2"]  # in the order of queries.jsonl
    assert collection.n_unjudged_queries == len(QUERIES) - 2


def test_a_query_with_nothing_relevant_and_a_judged_document_that_is_missing_stay(tmp_path):
    judged = {"q1": {"d101-1": 0}, "q2": {"d101-1": -1}, "q3": {"d103-1": 1, "gone": 1}}
    collection = read(write_collection(tmp_path, judged=judged))
    assert collection.qrels == judged | {"q2": {}}
    assert collection.missing_documents == ("gone",)


def test_a_title_that_does_not_fit_opens_the_text(tmp_path):
    long = "frost " * 60
    rows = [{"_id": "d101-1", "title": long, "text": "Body."}, {"_id": "d2", "title": "Short", "text": "Body."}]
    first, second = read_external(
        write_collection(tmp_path, rows=rows, judged={"q1": {"d101-1": 1}, "q2": {"d101-1": 1}})
    ).documents
    assert (first.title, first.text) == ("", f"{long.strip()} Body.")
    assert (second.title, second.text) == ("Short", "Body.")


def test_a_document_of_a_title_alone_is_its_title_and_an_empty_one_is_named(tmp_path):
    rows = [
        {"_id": "d101-1", "title": "Only a title", "text": " "},
        {"_id": "none", "title": "", "text": ""},
        {"_id": "bare", "text": "No title field."},
    ]
    collection = read(
        write_collection(tmp_path, rows=rows, judged={"q1": {"d101-1": 1, "none": 1}, "q2": {"d101-1": 1}})
    )
    assert {d.doc_id: (d.title, d.text) for d in collection.documents} == {
        "bare": ("", "No title field."),
        "d101-1": ("", "Only a title"),
    }
    assert collection.empty == {"none": "corpus.jsonl:2"}
    assert collection.missing_documents == ()  # it is there, but nothing can find it


def test_text_is_made_nfc(tmp_path):
    rows = [{"_id": "d101-1", "title": "Cafe\u0301", "text": "re\u0301sume\u0301"}]
    (document,) = read(
        write_collection(tmp_path, rows=rows, judged={"q1": {"d101-1": 1}, "q2": {"d101-1": 1}})
    ).documents
    assert (document.title, document.text) == ("Café", "résumé")


def test_an_equal_document_counts_once_and_another_text_of_one_id_is_refused(tmp_path):
    rows = documents()
    assert read(write_collection(tmp_path / "equal", rows=[*rows, rows[0]])).n_duplicates == 1
    other = refused(write_collection(tmp_path / "other", rows=[*rows, rows[0] | {"text": "Another."}]))
    assert "corpus.jsonl:49" in other
    assert "d101-1" in other


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"title": "t", "text": "x"}, "_id is null"),
        ({"_id": 7, "text": "x"}, "_id is 7"),
        ({"_id": "a b", "text": "x"}, "white space"),
        ({"_id": "a", "text": ["x"]}, "text is a list"),
        ({"_id": "a", "title": None, "text": "x"}, "title is null"),
        ([1], "object"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(tmp_path, row, said):
    folder = write_collection(tmp_path)
    with (folder / "corpus.jsonl").open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    message = refused(folder)
    assert "corpus.jsonl:49" in message
    assert said in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1\td101-1", "2 columns"),
        ("q1 0 d101-1 1", "1 columns"),
        ("q1\td101-2\tgood", "not a"),
        ("q1\td101-2\t0.5", "not a"),
        ("q1\td101-2\tnan", "not a"),
        ("q1\td101-2\t99999", "not a"),
        ("q1\td101-1\t1", "with two grades"),
        ("q1\ta b\t1", "white space"),
        ("q1\t\t1", "an id is empty"),
    ],
)
def test_a_wrong_line_of_the_qrels_is_named(tmp_path, line, said):
    folder = write_collection(tmp_path)
    n_lines = len((folder / "qrels.tsv").read_text().splitlines())
    with (folder / "qrels.tsv").open("a") as stream:
        stream.write(line + "\n")
    message = refused(folder)
    assert f"qrels.tsv:{n_lines + 1}:" in message
    assert said in message


def test_a_judged_query_without_text_is_named(tmp_path):
    folder = write_collection(tmp_path)
    with (folder / "qrels.tsv").open("a") as stream:
        stream.write("q99\td101-1\t1\n")
    assert "lacks 1 of" in refused(folder)


def test_qrels_without_a_header_are_read_from_their_first_line(tmp_path):
    folder = write_collection(tmp_path)
    path = folder / "qrels.tsv"
    before = read(folder).qrels
    path.write_text(path.read_text().partition("\n")[2])
    assert read(folder).qrels == before


def test_files_that_are_missing_are_all_named(tmp_path):
    assert "is not a folder" in refused(tmp_path / "none")
    (tmp_path / "queries.jsonl").write_text("")
    assert "no corpus.jsonl and no qrels/test.tsv or qrels.tsv" in refused(tmp_path)


def test_two_files_of_qrels_are_a_question(tmp_path):
    folder = write_collection(tmp_path)
    (folder / "qrels").mkdir()
    (folder / "qrels.tsv").rename(folder / "qrels" / "test.tsv")
    assert read(folder).split == "qrels/test.tsv"
    (folder / "qrels.tsv").write_text("q1\td101-1\t1\nq2\td101-1\t1\n")
    assert "both" in refused(folder)


def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path):
    folder = write_collection(tmp_path)
    (folder / "qrels.tsv").unlink()
    os.mkfifo(folder / "qrels.tsv")
    assert "qrels" in refused(folder)


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_bytes_are_a_collection_or_one_message(tmp_path_factory, lines):
    folder = write_collection(tmp_path_factory.mktemp("c"))
    with (folder / "corpus.jsonl").open("ab") as stream:
        stream.writelines(line + b"\n" for line in lines)
    message = ""
    try:
        n_read = len(read(folder).documents)
    except InputError as error:
        message, n_read = str(error), 0
    assert n_read >= len(documents()) or "corpus.jsonl" in message


@pytest.mark.shared
def test_scifact_is_read_whole(shared):
    collection = read_external(shared / "bench" / "scifact")
    assert (len(collection.documents), len(collection.queries)) == (5183, 300)
    assert sum(map(len, collection.qrels.values())) == 339
    assert (collection.empty, collection.missing_documents, collection.n_unjudged_queries) == ({}, (), 0)


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        ({"q1": {"x": 1}, "q2": {"x": 1}}, "belong together"),
        ({"q1": {"d101-1": 1}}, "judges 1 queries; at least 2"),
    ],
)
def test_qrels_of_another_collection_or_of_one_query_are_refused(tmp_path, judged, said):
    assert said in refused(write_collection(tmp_path, judged=judged))
