import csv
import io
import json
import sys

import numpy as np
import pytest
from scipy import stats

from runner.base.canonical import file_sha256, json_bytes, read_json, sha256, write_atomic
from runner.base.errors import BackendError, InputError, IntegrityError
from runner.base.records import SCORE_UNIT
from runner.commands.version import export
from runner.eval_set.labels import append_labels, label_prefix
from runner.eval_set.lock import write_lock
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.version import load_corpus
from runner.report.export import COLUMNS, MANIFEST, Reading, harmless, readings, tables, write_tables
from runner.score.score import MEASURES
from tests.conftest import called
from tests.support.full_results import big_results, full_receipt
from tests.support.judge_cases import label

EMPTY = ["--source=demo", "--format=csv", "--output="]
ORIGIN = {"results_sha256": "ab" * 32}
HOSTILE = ('=HYPERLINK("x")', "\uff1d1", "+1", "-q1", "@sum", "\tx", "\rx", "a,b", 'a"b', "a\nb", "é\u202e")


@pytest.fixture(name="found", scope="module")
def _found():
    return big_results(3, 4, 5)


@pytest.fixture(name="rows", scope="module")
def _rows(found):
    readings = [
        Reading("q001", "d1", "https://example.org/d1", scored=True, judge="ann", model="", round=1, grade=2),
        Reading("q001", "d1", "https://example.org/d1", scored=False, judge="bob", model="model-b", round=2, grade=0),
        Reading("q002", "gone", "", scored=True, judge="", model="", round=None, grade=1),
    ]
    return tables(found, full_receipt(found), readings)


@pytest.fixture(name="scored")
def _scored(version, found):
    """A version whose record holds results over its own manifest and labels, and a receipt."""
    documents = [row.doc_id for row in load_corpus(version.corpus_path)[1]]
    prompt = file_sha256(version.judge_path)
    first = [label("q01", doc_id, number % 4, "ann", "model-a") for number, doc_id in enumerate(documents)]
    second = [label("q01", documents[0], 3, "bob", ""), label("q01", documents[0], 1, "ann", "model-a", 2)]
    append_labels(version.labels_path, [one.model_copy(update={"prompt_sha256": prompt}) for one in (*first, *second)])
    made = found.model_copy(
        update={
            "corpus": found.corpus.model_copy(update={"manifest_sha256": file_sha256(version.corpus_path)}),
            "labels": found.labels.model_copy(update=label_prefix(version.labels_path).model_dump()),
        }
    )
    (version.record / "results.json").write_bytes(json_bytes(made.model_dump()))
    (version.record / "receipt.json").write_bytes(json_bytes(full_receipt(found).model_dump()))
    return version


def exported(version, folder, *further, form="csv"):
    where = f"--eval-set-path={version.folder.parent}"
    return called(export, "--source=demo", where, f"--format={form}", f"--output={folder}", *further)


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_t_test_effect_and_holm_are_scipys_and_stepwise_over_the_preregistered_cells(found, rows):
    baseline = np.array(next(row for row in found.cells if row.test is None).scores["ndcg@10"].per_query)
    made = {row["cell"]: row for row in rows["cells"]}
    ps = sorted((row.test.p, row.cell) for row in found.cells if row.test is not None)
    reached = 0.0
    for left, (p, cell) in zip(range(len(ps), 0, -1), ps, strict=True):
        gains = (np.array(next(r for r in found.cells if r.cell == cell).scores["ndcg@10"].per_query) - baseline) / 1e9
        reached = max(reached, min(1.0, left * p))
        assert made[cell]["p_holm"] == pytest.approx(reached)
        assert made[cell]["cohens_d"] == pytest.approx(gains.mean() / gains.std(ddof=1))
        assert made[cell]["p_t"] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue, abs=1e-9)


def test_a_cell_has_one_row_with_the_figures_of_results_json(found, rows):
    assert [row["cell"] for row in rows["cells"]] == [one.cell for one in found.cells]
    for place, (row, one) in enumerate(zip(rows["cells"], found.cells, strict=True), start=1):
        assert (row["place"], row["role"], row["gate"]) == (place, one.role, one.gate.verdict)
        assert row["ndcg@10_mean"] == one.scores["ndcg@10"].mean
        assert row.get("p_adjusted") == (one.test and one.test.p_adjusted)
        assert row.get("difference_ndcg@10_low") == (one.test and one.differences["ndcg@10"].low)
        assert row["embed_seconds"] == 91.5
    assert {row["retrieval"] for row in rows["cells"]} == {"dense"}


def test_every_score_of_a_query_is_a_row_and_their_mean_is_exact(found, rows):
    assert len(rows["queries"]) == len(found.queries) * len(found.cells) * len(MEASURES)
    for one in found.cells:
        values = [row["value"] for row in rows["queries"] if row["cell"] == one.cell and row["measure"] == "recall@10"]
        assert [round(value * SCORE_UNIT) for value in values] == one.scores["recall@10"].per_query
        assert [repr(value) for value in values] == [repr(round(value, 9)) for value in values]


def test_hits_name_documents_and_hold_no_text(found, rows):
    lists = found.lists
    assert len(rows["hits"]) == len(found.queries) * len(found.cells) * lists.depth
    first, hit = rows["hits"][0], lists.queries[0].hits[found.cells[0].cell][0]
    pair = lists.queries[0].documents[hit[0]]
    assert (first["rank"], first["start"], first["end"]) == (1, *hit[1:])
    assert (first["doc_id"], first["grade"]) == (lists.documents[pair.document].doc_id, pair.grade)
    written = json.dumps(rows)
    assert all(pair.reason not in written for query in lists.queries for pair in query.documents)


def test_every_line_of_labels_is_a_judgment_with_its_model_and_round(scored, tmp_path):
    assert exported(scored, tmp_path / "out")[0] == 0
    lines = [json.loads(line) for line in scored.labels_path.read_text(encoding="utf-8").splitlines()]
    written = read_csv(tmp_path / "out" / "judgments.csv")
    said = [[row[name] for name in ("query", "doc_id", "judge", "model", "round", "grade")] for row in written]
    fields = ("query_id", "doc_id", "judge", "model", "round", "grade")
    assert said == [[str(line[name]) for name in fields] for line in lines]
    assert [row["scored"] for row in written] == ["True"] * (len(lines) - 2) + ["False"] * 2
    urls = {row.doc_id: row.url for row in load_corpus(scored.corpus_path)[1]}
    assert [row["url"] for row in written] == [urls[row["doc_id"]] for row in written]


def test_labels_that_came_after_the_results_are_not_exported_and_edited_ones_are_refused(scored, tmp_path):
    before = scored.labels_path.read_bytes()
    document = load_corpus(scored.corpus_path)[1][0].doc_id
    later = label("q02", document, 1, "ann", "").model_copy(update={"prompt_sha256": file_sha256(scored.judge_path)})
    append_labels(scored.labels_path, [later])
    assert exported(scored, tmp_path / "out")[0] == 0
    assert {row["query"] for row in read_csv(tmp_path / "out" / "judgments.csv")} == {"q01"}
    scored.labels_path.write_bytes(before.replace(b'"grade": 1', b'"grade": 2', 1))
    code, said = exported(scored, tmp_path / "out")
    assert (code, "labels.jsonl is not what" in said) == (4, True)


def test_the_judgments_of_a_collection_are_its_qrels_and_name_documents_that_it_has_not(version, found):
    write_atomic(version.qrels_path, b"q1 0 gone 2\n")
    facts = found.labels.model_copy(update={"sha256": sha256(version.qrels_path.read_bytes())})
    corpus = found.corpus.model_copy(update={"manifest_sha256": file_sha256(version.corpus_path)})
    made = found.model_copy(update={"labels": facts, "corpus": corpus, "collection": CollectionFacts.model_construct()})
    (one,) = readings(version, made)
    assert one == Reading("q1", "gone", "", scored=True, judge="", model="", round=None, grade=2)
    with pytest.raises(IntegrityError, match=r"qrels\.txt is not what"):
        readings(version, made.model_copy(update={"labels": found.labels}))


def test_a_pair_that_nobody_judged_has_hits_and_no_judgment(found):
    query = found.lists.queries[0]
    blank = [pair.model_copy(update={"grade": None, "judge": "", "readings": []}) for pair in query.documents]
    lists = found.lists.model_copy(update={"queries": [query.model_copy(update={"documents": blank})]})
    made = tables(found.model_copy(update={"lists": lists}), None, [])
    assert made["judgments"] == []
    assert {row["grade"] for row in made["hits"]} == {None}


def test_no_row_names_a_column_that_its_table_has_not_got(rows):
    assert list(rows) == list(COLUMNS)
    for name, columns in COLUMNS.items():
        assert {column for row in rows[name] for column in row} <= set(columns)


def test_what_a_spreadsheet_would_run_is_text(tmp_path, rows):
    planted = [row | {"doc_id": text} for row, text in zip(rows["hits"], HOSTILE, strict=False)]
    write_tables(rows | {"hits": planted}, tmp_path, "csv", ORIGIN)
    read = [row["doc_id"] for row in read_csv(tmp_path / "hits.csv")]
    assert read == [f"'{text}" if text[0] in "=\uff1d+-@\t\r\n" else text for text in HOSTILE]
    assert harmless("BILLS-1") == "BILLS-1"


def test_a_figure_below_zero_stays_a_figure(tmp_path, rows):
    write_tables(rows, tmp_path, "csv", ORIGIN)
    written = read_csv(tmp_path / "cells.csv")
    for row, made in zip(written, rows["cells"], strict=True):
        mean = made.get("difference_ndcg@10_mean")
        assert row["difference_ndcg@10_mean"] == ("" if mean is None else repr(mean))
    assert any(row["difference_ndcg@10_mean"].startswith("-") for row in written)


def test_parquet_holds_the_same_values_with_their_types(tmp_path, rows):
    from pyarrow import parquet

    write_tables(rows, tmp_path, "parquet", ORIGIN)
    for name, columns in COLUMNS.items():
        table = parquet.read_table(tmp_path / f"{name}.parquet")
        assert table.column_names == list(columns)
        kinds = {"string": "string", "Int64": "int64", "Float64": "double", "boolean": "bool"}
        assert [str(kind).removeprefix("large_") for kind in table.schema.types] == [kinds[k] for k in columns.values()]
        assert table.to_pylist() == [{column: row.get(column) for column in columns} for row in rows[name]]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_without_a_row_keep_their_columns(tmp_path, form):
    counts = write_tables({name: [] for name in COLUMNS}, tmp_path, form, ORIGIN)
    assert set(counts.values()) == {0}
    if form == "csv":
        assert (tmp_path / "hits.csv").read_bytes().decode() == ",".join(COLUMNS["hits"]) + "\r\n"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_same_results_are_the_same_bytes(tmp_path, rows, form):
    for folder in ("a", "b"):
        write_tables(rows, tmp_path / folder, form, ORIGIN)
    for name in COLUMNS:
        assert (tmp_path / "a" / f"{name}.{form}").read_bytes() == (tmp_path / "b" / f"{name}.{form}").read_bytes()


def test_an_export_takes_the_place_of_an_earlier_one_and_lies_beside_the_other_format(tmp_path, rows):
    write_tables(rows, tmp_path, "csv", ORIGIN)
    write_tables(rows, tmp_path, "parquet", ORIGIN)
    write_tables(rows | {"hits": []}, tmp_path, "csv", {"results_sha256": "cd" * 32})
    assert read_csv(tmp_path / "hits.csv") == []
    files = read_json(tmp_path / MANIFEST)["files"]
    assert len(files) == 2 * len(COLUMNS)
    assert files["hits.csv"]["results_sha256"] == "cd" * 32
    assert files["hits.parquet"]["results_sha256"] == "ab" * 32


@pytest.mark.parametrize("edited", [False, True])
def test_a_file_that_no_export_wrote_or_that_was_edited_since_is_left_alone(tmp_path, rows, edited):
    if edited:
        write_tables(rows, tmp_path, "csv", ORIGIN)
    (tmp_path / "queries.csv").write_text("mine", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"queries\.csv exists and is not as an export wrote it"):
        write_tables(rows | {"cells": []}, tmp_path, "csv", ORIGIN)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("done", range(1, 5))
def test_an_export_that_was_cut_short_is_finished_by_the_next_one(tmp_path, rows, monkeypatch, done):
    write_tables(rows, tmp_path, "csv", ORIGIN)
    seen = []

    def full(path, data):
        seen.append(path)
        if len(seen) > done:
            raise OSError(28, "No space left on device")
        write_atomic(path, data)

    changed = {name: found[:1] for name, found in rows.items()}
    with monkeypatch.context() as patch:
        patch.setattr("runner.report.export.write_atomic", full)
        with pytest.raises(BackendError, match="disk is full"):
            write_tables(changed, tmp_path, "csv", ORIGIN)
    assert set(write_tables({name: [] for name in COLUMNS}, tmp_path, "csv", ORIGIN).values()) == {0}
    assert all(len(entry) == 3 for entry in read_json(tmp_path / MANIFEST)["files"].values())


@pytest.mark.parametrize("content", ["[]", '{"files": []}', '{"files": {"hits.csv": 1}}'])
def test_a_list_of_exported_files_that_is_none_is_refused(tmp_path, rows, content):
    (tmp_path / MANIFEST).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="no list of exported files"):
        write_tables(rows, tmp_path, "csv", ORIGIN)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, rows):
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="is a file"):
        write_tables(rows, tmp_path / "out", "csv", ORIGIN)


@pytest.mark.parametrize(("package", "form"), [("pandas", "csv"), ("pyarrow", "parquet")])
def test_a_missing_package_is_named_and_nothing_is_written(tmp_path, rows, monkeypatch, package, form):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"needs the package {package}"):
        write_tables(rows, tmp_path / "out", form, ORIGIN)
    assert not (tmp_path / "out").exists()


def test_the_command_writes_every_table_and_says_where(scored, tmp_path, capsys):
    assert exported(scored, tmp_path / "out") == (0, "")
    said = capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [MANIFEST, *(f"{name}.csv" for name in COLUMNS)]
    )
    assert f"{tmp_path / 'out' / 'cells.csv'}: 4 rows" in said


def test_the_command_does_without_a_receipt(scored, tmp_path):
    (scored.record / "receipt.json").unlink()
    assert exported(scored, tmp_path / "out")[0] == 0
    assert {row["embed_seconds"] for row in read_csv(tmp_path / "out" / "cells.csv")} == {""}


def test_the_command_asks_for_a_run_where_nothing_is_scored(version, tmp_path):
    code, said = exported(version, tmp_path / "out")
    assert code == 2
    assert "run the driver first" in said


@pytest.mark.parametrize("place", ["", "v1", "v1/rehearsal/out", "elsewhere"])
def test_nothing_is_written_into_a_record(scored, place):
    code, said = exported(scored, scored.folder.parent / place)
    assert code == 2
    assert "only a run writes there" in said
    assert not list(scored.folder.parent.rglob("*.csv"))


def test_a_link_into_the_record_is_seen_through(scored, tmp_path):
    (tmp_path / "link").symlink_to(scored.record)
    code, said = exported(scored, tmp_path / "link" / "out")
    assert code == 2
    assert "only a run writes there" in said


def test_a_record_that_changed_since_its_lock_is_not_exported(scored, tmp_path):
    (scored.record / "decision.json").write_bytes(b"{}")
    write_lock(scored.record)
    (scored.record / "results.json").write_bytes(b"{}")
    code, said = exported(scored, tmp_path / "out")
    assert code == 4
    assert "results.json: changed" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", [["--source=demo"], ["--source=demo", "--format=xlsx", "--output=x"], EMPTY])
def test_format_and_output_are_asked_for(given, capsys):
    with pytest.raises(SystemExit) as stop:
        export(given)
    assert stop.value.code == 2
    assert ("--output" if given == EMPTY else "--format") in capsys.readouterr().err


def test_the_csv_is_plain_utf_8_with_a_comma_and_one_kind_of_line_end(tmp_path, rows):
    write_tables(rows, tmp_path, "csv", ORIGIN)
    content = (tmp_path / "cells.csv").read_bytes()
    assert not content.startswith(b"\xef\xbb\xbf")
    assert content.count(b"\n") == content.count(b"\r\n") == 5
    assert next(csv.reader(io.StringIO(content.decode()))) == list(COLUMNS["cells"])


def test_a_receipt_of_a_machine_names_where_vectors_were_made(found):
    receipt = full_receipt(found)
    assert isinstance(receipt, Receipt)
    assert {row["backend"] for row in tables(found, receipt, [])["cells"]} == {"local"}
    assert {row.get("backend") for row in tables(found, None, [])["cells"]} == {None}


def test_a_version_is_asked_for_by_its_number(scored, tmp_path):
    assert exported(scored, tmp_path / "out", "--version=1")[0] == 0
    code, said = exported(scored, tmp_path / "out", "--version=9")
    assert (code, "has no version 9; there: 1" in said) == (2, True)
