"""A TREC run file of another system, with everything that such files hold, as a cell."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

from runner.base.canonical import file_sha256
from runner.base.errors import InputError, IntegrityError
from runner.eval_set.runs import read_run
from runner.eval_set.version import load_cell_file, load_corpus, load_queries
from runner.retrieve.imported_runs import import_runs, imported_cells
from tests.support.packed import repack
from tests.support.small_collection import CELLS, documents, evaluate, external_version, qrels, write_collection

IDS = [row["_id"] for row in documents()]


@pytest.fixture
def version(evaluated_collection, tmp_path):
    shutil.copytree(evaluated_collection, tmp_path, dirs_exist_ok=True)
    return external_version(tmp_path, cells=CELLS[:1])


def write_run(path, rankings, tag="mine"):
    """Rankings of (document, score), query by query."""
    path.write_text(
        "".join(
            f"{query_id} Q0 {doc_id} {rank} {score} {tag}\n"
            for query_id, hits in rankings.items()
            for rank, (doc_id, score) in enumerate(hits, start=1)
        )
    )
    return path


def everywhere(hits):
    return dict.fromkeys(qrels(), hits)


def imported(version, path):
    import_runs(version, [path])
    (cell,) = imported_cells(version)
    run = read_run(version.run_path(cell), cell, [query.id for query in load_queries(version.queries_path)])
    return run, load_cell_file(version.cell_path(cell)).imported


def refused(version, *paths) -> str:
    before = sorted(version.record.rglob("*"))
    with pytest.raises(InputError) as caught:
        import_runs(version, paths)
    assert sorted(version.record.rglob("*")) == before
    return str(caught.value)


def test_ties_put_the_greater_document_id_first_and_are_counted(version, tmp_path):
    hits = [(IDS[0], 0.5), (IDS[2], 0.5 + 1e-9), (IDS[1], 0.5), (IDS[3], 0.1)]
    run, facts = imported(version, write_run(tmp_path / "run", everywhere(hits)))
    expected = [*sorted(IDS[:3], reverse=True), IDS[3]]
    assert all([hit.doc_id for hit in found] == expected for found in run.hits.values())
    assert facts.ties == 3 * len(qrels())


def test_a_missing_query_scores_nothing_and_one_of_another_split_is_left_out(version, tmp_path):
    rankings = everywhere([(IDS[0], 1.0)]) | {"other": [(IDS[1], 1.0)]}
    first = next(iter(rankings))
    del rankings[first]
    run, facts = imported(version, write_run(tmp_path / "run", rankings))
    assert run.hits[first] == ()
    assert "other" not in run.hits
    assert (facts.queries_missing, facts.queries_left_out) == (1, 1)


def test_scores_decide_where_ranks_contradict_them(version, tmp_path, capsys):
    run, _ = imported(version, write_run(tmp_path / "run", everywhere([(IDS[0], 0.1), (IDS[1], 0.9)])))
    assert [hit.doc_id for hit in next(iter(run.hits.values()))] == [IDS[1], IDS[0]]
    assert f"in {len(qrels())} queries ranks contradict scores" in capsys.readouterr().err


def test_documents_outside_of_a_sample_are_left_out_and_counted(tmp_path, capsys):
    best = {query_id: dict([max(grades.items(), key=lambda pair: pair[1])]) for query_id, grades in qrels().items()}
    sampled = external_version(tmp_path, cells=CELLS[:1], size=46)
    evaluate(sampled, write_collection(tmp_path / "collection", judged=best))
    kept = [row.doc_id for row in load_corpus(sampled.corpus_path)[1]]
    outside = sorted(set(IDS) - set(kept))
    hits = [(doc_id, 9.0) for doc_id in outside] + [(kept[0], 1.0)]
    run, _ = imported(sampled, write_run(tmp_path / "run", dict.fromkeys(best, hits)))
    assert all([hit.doc_id for hit in found] == kept[:1] for found in run.hits.values())
    assert len(outside) == 2
    assert "2 documents are not in the sample and were left out" in capsys.readouterr().err


def test_an_empty_document_may_be_in_a_run_and_a_stranger_may_not(tmp_path):
    rows = [*documents(), {"_id": "empty", "title": "", "text": ""}]
    whole = external_version(tmp_path, cells=CELLS[:1])
    evaluate(whole, write_collection(tmp_path / "collection", rows=rows))
    run, _ = imported(whole, write_run(tmp_path / "a", everywhere([("empty", 2.0), (IDS[0], 1.0)])))
    assert {hit.doc_id for hits in run.hits.values() for hit in hits} == {IDS[0]}
    both = write_run(tmp_path / "b", everywhere([("empty", 2.0), ("stranger", 1.5), (IDS[0], 1.0)]))
    assert "names 2 documents" in refused(whole, both)


@pytest.mark.parametrize(
    ("rankings", "tag", "said"),
    [
        (
            everywhere([(IDS[0], 2.0), ("stranger", 1.0)]),
            "mine",
            "names 1 documents that the collection does not have, stranger among them",
        ),
        ({"x": [(IDS[0], 1.0)]}, "mine", "answers none of the"),
        (everywhere([("x", 1.0)]), "mine", "does not have, x among them"),
        *((everywhere([(IDS[0], 1.0)]), tag, "tag (column 6)") for tag in ("...", "_", "日本", "x" * 101)),
    ],
)
def test_a_run_of_something_else_and_a_tag_without_a_letter_are_errors(version, tmp_path, rankings, tag, said):
    assert said in refused(version, write_run(tmp_path / "run", rankings, tag=tag))


def test_two_files_of_one_tag_are_an_error_and_neither_is_taken(version, tmp_path):
    paths = [write_run(tmp_path / name, everywhere([(IDS[0], 1.0)])) for name in "ab"]
    assert "Two of the run files have the tag of trec:mine" in refused(version, *paths)


def test_a_wrong_file_keeps_the_others_out(version, tmp_path):
    good = write_run(tmp_path / "a", everywhere([(IDS[0], 1.0)]))
    bad = write_run(tmp_path / "b", everywhere([("x", 1.0)]), tag="other")
    refused(version, good, bad)
    assert imported_cells(version) == []


@pytest.mark.parametrize(("tag", "cell"), [("BM25+RM3", "trec:bm25-rm3"), ("My_Run.2", "trec:my_run.2")])
def test_the_tag_names_the_cell(version, tmp_path, tag, cell):
    import_runs(version, [write_run(tmp_path / "run", everywhere([(IDS[0], 1.0)]), tag=tag)])
    assert imported_cells(version) == [cell]


def test_a_later_file_of_one_tag_takes_the_earlier_ones_place(version, tmp_path):
    imported(version, write_run(tmp_path / "run", everywhere([(IDS[0], 1.0)])))
    run, facts = imported(version, write_run(tmp_path / "run", everywhere([(IDS[1], 1.0)])))
    assert next(iter(run.hits.values()))[0].doc_id == IDS[1]
    assert facts.file_sha256 == file_sha256(tmp_path / "run")


def test_no_more_than_a_runs_depth_is_kept(version, tmp_path, monkeypatch):
    monkeypatch.setattr("runner.retrieve.imported_runs.RUN_DEPTH", 10)
    run, _ = imported(version, write_run(tmp_path / "run", everywhere([(doc_id, 1.0) for doc_id in IDS])))
    assert all([hit.doc_id for hit in found] == sorted(IDS, reverse=True)[:10] for found in run.hits.values())


def test_an_imported_run_is_on_the_page_with_its_test(version, tmp_path):
    perfect = {q: sorted(grades.items(), key=lambda pair: -pair[1]) for q, grades in qrels().items()}
    said = evaluate(version, None, write_run(tmp_path / "run", perfect, tag="oracle"))
    assert "trec:oracle" in said
    page = (version.folder / "results.html").read_text()
    assert "trec:oracle" in page
    assert "imported from a TREC run file" in page


def test_an_edited_run_is_found(version, tmp_path):
    import_runs(version, [write_run(tmp_path / "run", everywhere([(IDS[0], 2.0), (IDS[1], 1.0)]))])
    path = version.run_path("trec:mine")
    repack(path, IDS[0], IDS[2])
    with pytest.raises(IntegrityError, match="import the run again"):
        evaluate(version, None)


def test_two_tags_that_make_one_name_are_two_systems(version, tmp_path):
    import_runs(version, [write_run(tmp_path / "a", everywhere([(IDS[0], 1.0)]), tag="ties")])
    again = write_run(tmp_path / "b", everywhere([(IDS[1], 1.0)]), tag="TIES")
    assert "The tag TIES makes the name trec:ties, which ties has already" in refused(version, again)


def test_what_is_no_file_of_text_is_refused_with_a_way_out(version, tmp_path):
    assert "Save the run first" in refused(version, Path("-"))
    assert "none.run does not exist" in refused(version, tmp_path / "none.run")
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refused(version, tmp_path / "pipe"), "before it is read"
    (tmp_path / "run.gz").write_bytes(gzip.compress(b"q1 Q0 d101-1 1 1.0 mine\n"))
    assert "is compressed. Unpack it first." in refused(version, tmp_path / "run.gz")
