import csv
import sys

import pytest

from runner.base.canonical import json_bytes
from runner.base.errors import InputError
from runner.base.records import SCORE_UNIT
from runner.eval_set.given import given_queries
from runner.eval_set.labels import load_labels
from runner.eval_set.runs import packed
from runner.eval_set.version import load_queries
from runner.judge.answers import _csv_answers
from runner.queries.query_file import read_queries
from runner.report.export import TABLES, table, write_tables
from tests.conftest import called
from tests.support.full_results import big_scored
from tests.support.small_set import make_version

FOUND, LISTS = big_scored(3, 4, 5)


@pytest.fixture(name="scored")
def _scored(version):
    (version.record / "results.json").write_bytes(json_bytes(FOUND.model_dump()))
    version.lists_path.write_bytes(packed(json_bytes(LISTS.model_dump())))
    return version


def exported(version, folder, *further):
    where = f"--eval-set-path={version.folder.parent}"
    return called("export", "--source=demo", where, f"--output={folder}", *further)


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_cell_has_one_row_with_the_figures_of_results_json():
    rows = table(FOUND, LISTS, "cells").to_dict("records")
    assert [row["cell"] for row in rows] == [one.cell for one in FOUND.cells]
    for place, (row, one) in enumerate(zip(rows, FOUND.cells, strict=True), start=1):
        assert (row["place"], row["role"], row["gate"]) == (place, one.role, one.gate.verdict)
        assert row["ndcg@10_mean"] == one.scores["ndcg@10"].mean
        source = FOUND.sources.cells[one.cell]
        assert (row["source_first_ten"], row["source_mrr_low"]) == (source.first_ten.value, source.mrr.low)
        if one.test is None:
            assert row["p_adjusted"] != row["p_adjusted"]
            assert row["source_difference"] != row["source_difference"]
        else:
            assert row["p_adjusted"] == one.test.p_adjusted
            assert row["difference_ndcg@10_low"] == one.differences["ndcg@10"].low
            assert [row["simultaneous_low"], row["simultaneous_high"]] == list(one.test.simultaneous)


def test_every_score_of_a_query_is_a_row_and_their_mean_is_exact():
    rows = table(FOUND, LISTS, "scores").query("measure == 'recall@10'")
    for one in FOUND.cells:
        values = rows[rows["cell"] == one.cell]["value"].tolist()
        assert [round(value * SCORE_UNIT) for value in values] == one.scores["recall@10"].per_query
        assert values == [round(value, 9) for value in values]


def test_hits_name_documents_and_a_pair_that_nobody_judged_has_no_grade():
    rows = table(FOUND, LISTS, "hits")
    assert len(rows) == len(FOUND.queries) * len(FOUND.cells) * LISTS.depth
    first, hit = rows.iloc[0], LISTS.queries[0].hits[FOUND.cells[0].cell][0]
    pair = LISTS.queries[0].documents[hit[0]]
    assert (first["rank"], first["start"], first["end"]) == (1, *hit[1:])
    assert (first["doc_id"], first["grade"]) == (LISTS.documents[pair.document].doc_id, pair.grade)
    blank = [
        pair.model_copy(update={"grade": None, "judge": "", "readings": []}) for pair in LISTS.queries[0].documents
    ]
    unjudged = LISTS.model_copy(update={"queries": [LISTS.queries[0].model_copy(update={"documents": blank})]})
    assert table(FOUND, unjudged, "hits")["grade"].isna().all()
    none = table(FOUND, LISTS.model_copy(update={"queries": []}), "hits")
    assert (len(none), list(none.columns)) == (0, list(rows.columns))


def test_files_hold_every_row_and_no_column_less(scored, tmp_path):
    n_rows = write_tables(scored, tmp_path)
    for name in TABLES:
        written, frame = read_csv(tmp_path / f"{name}.csv"), table(FOUND, LISTS, name)
        assert not written or set(written[0]) == set(frame.columns)
        assert len(written) == len(frame) == n_rows[tmp_path / f"{name}.csv"]
    assert {row["grade"] for row in read_csv(tmp_path / "hits.csv")} <= {"", "0", "1", "2", "3"}


def test_queries_and_grades_come_out_as_they_are_taken_in(decided_evening, tmp_path):
    version = make_version(decided_evening)
    rows = write_tables(version, tmp_path)
    queries, labels = load_queries(version.queries_path), load_labels(version.labels_path)
    known = {"text", "plain", "paraphrased", "id", "source_document", "note"}
    assert [row.model_dump(include=known) for row in read_queries(tmp_path / "queries.csv")] == [
        row.model_dump(include=known) for row in queries
    ]
    wanted = given_queries(tmp_path / "queries.csv").wanted
    assert {name: [document for _, document in own] for name, own in wanted.items()} == {
        query.id: [query.source_document] * bool(query.source_document) for query in queries
    }
    answers = [(row["query_id"], row["doc_id"], row["grade"]) for _, row in _csv_answers(tmp_path / "grades.csv")]
    assert answers == [(label.query_id, label.doc_id, label.grade) for label in labels]
    assert rows[tmp_path / "grades.csv"] == len(labels) > 0


def test_texts_that_a_spreadsheet_would_calculate_are_inert_and_numbers_stay(scored, tmp_path):
    hostile = "=cmd|'/c calc'!A0"
    queries = [row.model_copy(update={"note": hostile}) for row in FOUND.queries]
    changed = FOUND.model_copy(update={"queries": queries})
    (scored.record / "results.json").write_bytes(json_bytes(changed.model_dump()))
    write_tables(scored, tmp_path)
    assert {row["note"] for row in read_csv(tmp_path / "queries.csv")} == {f"'{hostile}"}
    assert {row.note for row in read_queries(tmp_path / "queries.csv")} == {hostile}
    assert set(table(changed, LISTS, "queries")["note"]) == {hostile}
    differences = [row["difference_ndcg@10_mean"] for row in read_csv(tmp_path / "cells.csv")]
    assert not any(text.startswith("'") for text in differences)


def test_a_file_that_is_there_is_refused_before_any_is_written(scored, tmp_path):
    (tmp_path / "queries.csv").write_text("mine", encoding="utf-8")
    for output in (tmp_path, tmp_path / "queries.csv"):
        with pytest.raises(InputError, match=r"queries\.csv exists already"):
            write_tables(scored, output)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["queries.csv"]


def test_csv_needs_no_package_and_a_data_frame_names_the_missing_one(scored, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pandas", "pyarrow")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="needs the package pandas"):
        table(FOUND, LISTS, "hits")
    assert len(write_tables(scored, tmp_path / "out")) == len(TABLES) + 1


def test_the_command_writes_every_table_and_says_where(scored, tmp_path, capsys):
    assert exported(scored, tmp_path / "out", "--version=1") == (0, "")
    said = capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.csv" for name in (*TABLES, "grades")}
    assert f"{tmp_path / 'out' / 'cells.csv'}: 4 rows" in said
    code, message = exported(scored, tmp_path / "out", "--version=9")
    assert (code, "has no version 9; there: 1" in message) == (2, True)


def test_the_command_asks_for_a_run_where_nothing_is_scored(version, tmp_path):
    code, said = exported(version, tmp_path / "out")
    assert (code, "`run` makes it" in said) == (2, True)


def test_nothing_is_written_into_a_record(scored, tmp_path):
    (tmp_path / "link").symlink_to(scored.record)
    for place in (scored.folder.parent, scored.folder, scored.record / "out", tmp_path / "link" / "out"):
        code, said = exported(scored, place)
        assert (code, "only a run writes there" in said) == (2, True)
    assert not list(scored.folder.parent.rglob("*.csv"))


@pytest.mark.parametrize("given", [["demo"], ["demo", "--output="]])
def test_a_place_is_asked_for(given, capsys):
    assert called("export", *given)[0] == 2
    assert "--output" in capsys.readouterr().err
