import json
import shutil

import pytest
import pytrec_eval

from runner.base.canonical import slug
from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.places import CACHE_VARIABLE
from runner.base.records import SCORE_UNIT
from runner.commands import main as cli
from runner.eval_set.version import load_results
from runner.report.sentences import found, weaknesses
from tests.conftest import called
from tests.support.outline import Outline
from tests.support.packed import unpacked
from tests.support.small_collection import CELLS, documents, evaluate, external_version, qrels, write_collection

TREC_NAMES = {"ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "recall@100": "recall_100", "mrr": "recip_rank"}


def trec_scores(version, cell):
    """What trec_eval makes of the exported files."""
    with (version.folder / "trec" / "qrels.txt").open(encoding="utf-8") as stream:
        judged = pytrec_eval.parse_qrel(stream)
    with version.trec_path(cell).open(encoding="utf-8") as stream:
        run = pytrec_eval.parse_run(stream)
    return pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recall.10,100", "recip_rank"}).evaluate(run)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A collection evaluated once; tests read it."""
    place = tmp_path_factory.mktemp("evaluated")
    collection = write_collection(place / "collection")
    version = external_version(place)
    evaluate(version, collection)
    return version, collection


def test_every_cell_is_scored_as_trec_eval_scores_its_exported_run(evaluated):
    version, _ = evaluated
    results = load_results(version)
    assert {row.cell for row in results.cells} == set(CELLS)
    for row in results.cells:
        expected = trec_scores(version, row.cell)
        for place, query in enumerate(results.queries):
            for measure, name in TREC_NAMES.items():
                value = expected.get(query.id, {}).get(name, 0.0)
                assert row.scores[measure].per_query[place] / SCORE_UNIT == pytest.approx(value, abs=1e-9)


@pytest.mark.shared
def test_a_query_s_own_document_is_left_out_of_its_list_and_said(shared, tmp_path, capsys):
    collection = shared / "cases" / "beir-identical-ids"
    version = external_version(tmp_path, cells=["bm25 x whole_doc", "minilm-l6-v2 x whole_doc"])
    evaluate(version, collection)
    assert "queries whose own document is left out of their list: 30" in capsys.readouterr().err
    results = load_results(version)
    assert results.collection.own_documents == 30
    assert results.cells[0].scores["ndcg@10"].mean == pytest.approx(0.910, abs=0.0005)
    for row in results.cells:
        listed = (line.split("\t") for line in unpacked(version.run_path(row.cell)).splitlines()[1:])
        assert all(query_id != doc_id for query_id, doc_id, *_ in listed)
    # Another system's run is cut in the same way, and it is said.
    deep = tmp_path / "deep.run"
    ids = [f"{kind}{place:02}" for kind in "abc" for place in range(30)] + [f"x{place}" for place in range(100)]
    known = {row.split('"_id": "')[1].split('"')[0] for row in (collection / "corpus.jsonl").read_text().splitlines()}
    named = [doc_id for doc_id in ids if doc_id in known]
    lines = [f"a00 Q0 {doc_id} {rank} {-rank} deep" for rank, doc_id in enumerate(named, start=1)]
    deep.write_text("\n".join(lines) + "\n")
    evaluate(version, collection, deep)
    said = capsys.readouterr().err
    assert "1 queries have themselves as a document" in said
    assert "a00\ta01\t" in unpacked(version.run_path("trec:deep"))


def test_importing_the_exported_runs_reproduces_every_figure(evaluated, tmp_path):
    version, collection = evaluated
    again = external_version(tmp_path, cells=["bm25 x whole_doc"])
    evaluate(again, collection, *(version.trec_path(cell) for cell in CELLS[1:]))
    own = {row.cell: row for row in load_results(version).cells}
    imported = {row.cell: row for row in load_results(again).cells}
    assert set(imported) == {CELLS[0], *(f"trec:{slug(cell)}" for cell in CELLS[1:])}
    assert imported[CELLS[0]] == own[CELLS[0]]
    for cell in CELLS[1:]:
        copy = imported[f"trec:{slug(cell)}"]
        assert copy.scores == own[cell].scores
        assert copy.differences == own[cell].differences
        assert copy.gate.nulls == own[cell].gate.nulls
        assert copy.single_gold == own[cell].single_gold
        assert (copy.test, copy.recall_bound) == (own[cell].test, own[cell].recall_bound)
        assert copy.provenance.imported is not None


def test_nothing_is_decided(evaluated):
    version, _ = evaluated
    results = load_results(version)
    assert results.outcome.tier == "compared"
    assert "nothing is decided" in found(results)
    assert not (version.folder / "decision.json").exists()
    assert all(row.test.p_adjusted is not None for row in results.cells if row.role == "compared")
    assert set(results.digests) == {"corpus.jsonl", "lists.json.bz2", "queries.yaml"}
    for row in results.cells:
        assert (row.meets_criterion_5, row.confirmed, row.short_of) == (False, False, [])
    page = (version.folder / "results.html").read_text()
    assert "leads." in page.partition("<h1>")[2].partition("</h1>")[0]
    for word in ("Criterion 5", "preregistered", "None", "labels.jsonl"):
        assert word not in page, word


def test_another_collection_is_refused_and_nothing_moves(evaluated, tmp_path):
    version, _ = evaluated
    before = (version.folder / "results.json").read_bytes()
    with pytest.raises(InputError, match="corpus differ"):
        evaluate(version, write_collection(tmp_path, rows=[*documents(), {"_id": "new", "text": "More."}]))
    assert (version.folder / "results.json").read_bytes() == before


def test_a_sample_keeps_every_judged_document_and_says_so(tmp_path):
    best = {query_id: dict([max(grades.items(), key=lambda pair: pair[1])]) for query_id, grades in qrels().items()}
    judged = {doc_id for grades in best.values() for doc_id in grades}
    assert len(judged) < 40
    version = external_version(tmp_path, cells=CELLS[:1], size=46)
    evaluate(version, write_collection(tmp_path / "c", judged=best))
    results = load_results(version)
    kept = {json.loads(line)["doc_id"] for line in (version.folder / "corpus.jsonl").read_text().splitlines()[1:]}
    assert judged <= kept
    assert results.corpus.documents == len(kept) == 46
    assert any("Only 46 of 48 documents" in weakness for weakness in weaknesses(results))


def test_a_sample_smaller_than_what_is_judged_is_refused(tmp_path):
    with pytest.raises(InputError, match="are judged, and a sample keeps them all"):
        evaluate(external_version(tmp_path, size=3), write_collection(tmp_path / "c"))


def test_queries_without_an_answer_stay_in_every_mean(tmp_path):
    judged = qrels() | {"q21": {documents()[0]["_id"]: 0}}
    version = external_version(tmp_path, cells=CELLS[:2])
    evaluate(version, write_collection(tmp_path / "c", judged=judged))
    results = load_results(version)
    place = [query.id for query in results.queries].index("q21")
    for row in results.cells:
        values = row.scores["ndcg@10"].per_query
        assert values[place] == 0
        assert row.scores["ndcg@10"].mean == pytest.approx(sum(values) / len(results.queries) / SCORE_UNIT)


def test_hostile_names_and_queries_are_shown_and_never_interpreted(tmp_path):
    evil = "<script>alert(1)</script> & growers of apples"
    queries = {f"q{place}": f"{evil} {place}" for place in range(1, 26)}
    collection = write_collection(tmp_path / "<u>bold", queries=queries, judged={q: {"d101-1": 1} for q in queries})
    version = external_version(tmp_path, cells=CELLS[:1])
    with pytest.raises(NegativeVerdict):
        evaluate(version, collection)
    assert load_results(version).outcome.tier == "no decision"
    page = Outline((version.folder / "results.html").read_text())
    tags = [tag for tag, _ in page.elements]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert "u" not in tags
    assert tags.count("script") == 1, "the page's own"
    assert any("<script>alert(1)</script>" in text for text in page.text)
    assert any("<u>bold" in text for text in page.text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--source=beir", "WHERE", "--rehearse"], "never decided"),
        (["--source=beir", "WHERE", "--cells", "bm25 x whole_doc"], "never decided"),
        (["--source=beir", "WHERE", "--try"], "never decided"),
        (["--source=demo", "--trec-run", "x.run"], "--trec-run belongs to an external collection"),
        (["--source=beir"], "Which collection of beir?"),
        (["--source=beir", "--corpus-path=loop"], "cannot be used"),
    ],
)
def test_a_command_line_that_makes_no_sense_of_a_collection_is_refused(evaluated, tmp_path, monkeypatch, given, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    where = f"--eval-set-path={evaluated[0].folder.parent}"
    code, message = called(*(where if word == "WHERE" else word for word in given))
    assert (code, said in message) == (2, True)


def test_another_sample_than_was_drawn_is_refused(evaluated_collection, tmp_path):
    shutil.copytree(evaluated_collection, tmp_path, dirs_exist_ok=True)
    version = external_version(tmp_path, cells=CELLS[:1])
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("size: 1000000", "size: 48"))
    with pytest.raises(InputError, match=r"sample is 48 .* and 1000000 .* was drawn"):
        evaluate(version, None)


@pytest.mark.parametrize("name", ["qrels.txt", "queries.yaml", "corpus.jsonl"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_was_edited_or_lost_is_named_with_the_way_out(evaluated_collection, tmp_path, name, is_gone):
    shutil.copytree(evaluated_collection, tmp_path, dirs_exist_ok=True)
    collection, version = tmp_path / "collection", external_version(tmp_path, cells=CELLS[:1])
    before = (version.folder / "results.json").read_bytes()
    path = version.folder / name
    if is_gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(IntegrityError, match=rf"{name} is gone, or not what was made .* --corpus-path FOLDER"):
        evaluate(version, collection)
    version.collection_path.unlink()
    evaluate(version, collection)
    assert (version.folder / "results.json").read_bytes() == before


def test_an_empty_document_is_named_without_a_path_of_this_machine(tmp_path):
    rows = [*documents(), {"_id": "empty", "title": "", "text": ""}]
    written = []
    for name in ("a", "b"):
        version = external_version(tmp_path / name, cells=CELLS[:1])
        evaluate(version, write_collection(tmp_path / name / "c", rows=rows))
        written.append((version.folder / "results.json").read_bytes())
    assert written[0] == written[1]
    assert b'"corpus.jsonl:49"' in written[0]


def test_the_command_makes_anew_what_was_lost_and_removes_exports_of_cells_that_left_the_plan(
    tmp_path, monkeypatch, capsys
):
    collection, version = write_collection(tmp_path / "c"), external_version(tmp_path, cells=CELLS[:2])
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / ".cache"))
    given = ["--source=beir", f"--corpus-path={collection}", f"--eval-set-path={version.folder.parent}"]
    assert cli.main(given) == 0
    assert "nothing is decided" in capsys.readouterr().out
    before = (version.folder / "results.json").read_bytes()
    for folder in (version.work, version.cache, version.folder / "cells"):
        shutil.rmtree(folder)
    assert cli.main(given) == 0
    assert (version.folder / "results.json").read_bytes() == before
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace(f"- {CELLS[1]}\n", ""))
    assert cli.main(given) == 0
    assert [run.name for run in (version.folder / "trec").glob("*.run")] == [version.trec_path(CELLS[0]).name]


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(("name", "stemmed", "plain"), [("scifact", 0.6863, 0.6613), ("nfcorpus", 0.3210, 0.3063)])
def test_public_collections_agree_with_reference_runs_of_bm25s(shared, tmp_path, name, stemmed, plain):
    version = external_version(tmp_path, cells=CELLS[:2])
    evaluate(version, shared / "bench" / name)
    means = {row.cell: row.scores["ndcg@10"].mean for row in load_results(version).cells}
    assert means == pytest.approx({"bm25 x whole_doc": stemmed, "bm25-plain x whole_doc": plain}, abs=0.003)
