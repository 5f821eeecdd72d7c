"""The production substrate beside a decided version, end to end over the small set and encoders without weights."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from runner.base.canonical import file_sha256, json_bytes, read_json, slug
from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.places import CHECKOUT
from runner.base.records import Chunk, Document, Hit, Run, Span
from runner.base.store import Store
from runner.commands import main as cli
from runner.decide.compared import Recorded
from runner.decide.decide import Choice
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import embed
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.lock import report_folders, verify_lock
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.version import Version, load_queries
from runner.evening.post_bulk import post_bulk
from runner.report.page_frame import LONGEST_TEXT
from runner.report.post_bulk_page import post_bulk_page
from runner.retrieve.variants import cut_rows
from runner.substrate.database import open_substrate
from runner.substrate.measure import INDEX_RECALL_FLOORS, arm_result, compared_findings, measured
from runner.substrate.record import counterparts
from runner.substrate.record import decided as decided_record
from runner.substrate.search import ARMS, BINARY, EXACT, KEYWORD, SUM
from runner.substrate.shapes import ArmResult, FindingResult, IndexRecallResult, PostBulk, Quantisation
from tests.support.evening_process import run
from tests.support.outline import Outline
from tests.support.packed import unpacked
from tests.support.small_set import fake_encoders, make_version
from tests.support.substrate_builder import MODEL, Build, build, edit

CHOSEN = "minilm-l6-v2 x fixed_token_512_50"
FILLERS = 1500
"""Documents outside the eval set: only among more chunks than the binary index proposes can it miss one."""


@pytest.fixture(name="evening", scope="module")
def _evening(tmp_path_factory):
    """A folder with a version whose baseline was chosen, and is locked."""
    folder = tmp_path_factory.mktemp("decided")
    run(folder, Choice(CHOSEN, "tests", "a test"))
    return folder


@pytest.fixture(name="decided")
def _decided(evening, tmp_path):
    """A copy of the decided version that a test may add to."""
    shutil.copytree(evening, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


@pytest.fixture(name="filling", scope="module")
def _filling(evening):
    """What the bulk embedding of the chosen cell puts into a substrate."""
    return filling(make_version(evening))


def filling(version: Version, fillers: int = 0, chunker: str = "fixed_token_512_50") -> Build:
    documents = list(corpus_documents(version, None))
    chunks = chunk_corpus(documents, chunker)
    texts = {document.doc_id: document for document in documents}
    readings = [chunk.reading(texts[chunk.doc_id]) for chunk in chunks]
    rows = np.asarray(embed(Store(version.cache), fake_encoders("minilm-l6-v2"), readings, "document").rows)
    for number in range(fillers):
        documents.append(Document(f"filler-{number:04d}", f"filler number {number}", "", "s", f"f{number}", ""))
        chunks.append(Chunk(f"filler-{number:04d}", 0, Span(0, 8), "", 2))
    noise = np.random.default_rng(np.random.PCG64(5)).standard_normal((fillers, rows.shape[1])).astype(np.float32)
    # Halfway to a real chunk, so that they crowd around what queries look for.
    near = rows[np.arange(fillers) % len(rows)] + 0.1 * noise
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    return Build(documents, chunks, np.concatenate([rows, near]), source="demo")


def substrate(folder: Path, made: Build, *faults: str) -> Path:
    """A database as production would have filled it with the chosen model, but for the faults named."""
    path = build(folder / "substrate.db", replace(made, faults=faults))
    spec = fake_encoders("minilm-l6-v2").spec
    for table, prefix in (("demo_chunks", "embedded_"), ("chunk_embedding_jobs", "")):
        for column, given, new in (("model_id", MODEL[0], spec.model), ("model_version", MODEL[1], spec.revision)):
            edit(path, f"UPDATE {table} SET {prefix}{column} = ? WHERE {prefix}{column} = ?", (new, given))
    return path


def reports(version: Version) -> list[Path]:
    return sorted((version.record / "post-bulk").iterdir())


def report(version: Version) -> PostBulk:
    return PostBulk.model_validate(read_json(reports(version)[-1] / "post_bulk.json"))


def newest_page(version: Version) -> str:
    return (reports(version)[-1] / "post-bulk.html").read_text(encoding="utf-8")


def named(name: str, version: Version) -> FindingResult:
    return next(finding for finding in report(version).findings if finding.name == name)


def bytes_below(folder: Path) -> dict[str, str]:
    """Every file of a version but its post-bulk reports, by digest."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {p.relative_to(folder).as_posix(): file_sha256(p) for p in files if "post-bulk" not in p.parts}


def test_a_healthy_substrate_has_no_fault_and_scores_as_the_record_does_query_by_query(decided, filling, tmp_path):
    before, path = bytes_below(decided.folder), substrate(tmp_path, filling)
    said = post_bulk(decided, path, encoders=fake_encoders)
    found = report(decided)
    assert said.startswith("demo v1: No fault was found: vec0 bq + rescore scores ")
    assert said.endswith(f"page: {reports(decided)[-1] / 'post-bulk.html'}")
    assert found.faults == []
    rows = {row.arm: row for row in found.arms}
    assert tuple(rows) == ARMS
    for arm in (EXACT, BINARY):
        assert rows[arm].beside.cell == CHOSEN
        assert rows[arm].scores == rows[arm].beside.scores
        assert rows[arm].beside.test.p == 1
    summed = "sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1"
    assert (rows[KEYWORD].beside.cell, rows[SUM].beside.cell) == ("bm25 x whole_doc", summed)
    results = read_json(decided.record / "results.json")
    recorded = next(row for row in results["cells"] if row["cell"] == CHOSEN)
    assert rows[EXACT].scores["ndcg@10"].per_query == recorded["scores"]["ndcg@10"]["per_query"]
    assert [recall.mean for recall in found.quantisation.recall] == [1, 1]
    assert bytes_below(decided.folder) == before
    document = (CHECKOUT / "docs" / "tools.md").read_text(encoding="utf-8")
    names = [finding.name for finding in found.findings]
    assert len(names) == len(set(names)) > 10
    assert [name for name in names if f"`{name}`" not in document] == [], "the operator's document says what to do"
    post_bulk(decided, path, encoders=fake_encoders)
    first, second = reports(decided)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", first.name)
    assert second.name == f"{first.name}-2"
    for name in ("post_bulk.json", *(f"runs/{slug(arm)}.tsv.bz2" for arm in ARMS)):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_substrate_in_another_version_than_last_time_is_noted_and_no_fault(decided, filling, tmp_path):
    path = substrate(tmp_path, filling)
    post_bulk(decided, path, encoders=fake_encoders)
    edit(path, "UPDATE substrate_meta SET value = '2026-12'")
    post_bulk(decided, path, encoders=fake_encoders)
    note = named("substrate version", decided)
    assert (note.fault, note.count) == (False, 1)
    assert note.sentence == "The substrate's version is '2026-12', not '2026-11'."
    (reports(decided)[-1] / "post_bulk.json").write_bytes(b"{}")
    with pytest.raises(IntegrityError, match=r"post_bulk\.json: changed"):
        post_bulk(decided, path, encoders=fake_encoders)


def test_reports_are_in_the_order_of_their_days_and_numbers(tmp_path):
    names = ["2026-02-01", "2026-02-01-2", "2026-02-01-10", "2026-11-03"]
    for name in (*reversed(names), "notes", ".tmp-report", "2026-02-01-x"):
        (tmp_path / "post-bulk" / name).mkdir(parents=True)
    assert [path.name for path in report_folders(tmp_path)] == names


def test_a_report_is_whole_and_locked_and_its_runs_are_those_it_names(decided, filling, tmp_path):
    post_bulk(decided, substrate(tmp_path, filling), encoders=fake_encoders)
    (folder,) = reports(decided)
    found = report(decided)
    runs = {f"runs/{slug(row.arm)}.tsv.bz2": row.run_sha256 for row in found.arms}
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == {
        *("lock.json", "post_bulk.json", "post-bulk.html", "receipt.json"),
        *runs,
    }
    lock = verify_lock(folder)
    assert {name: lock.files[name] for name in runs} == runs
    read_run(folder / "runs" / f"{slug(EXACT)}.tsv.bz2", EXACT, found.queries)
    receipt = Receipt.model_validate(read_json(folder / "receipt.json"))
    assert {"apsw", "sqlite-vec"} <= set(receipt.libraries)
    assert (folder / "post-bulk.html").read_bytes() == post_bulk_page(found, receipt)
    rehearsed = post_bulk_page(found.model_copy(update={"kind": "rehearsal"}), receipt).decode()
    assert "<title>REHEARSAL: demo version 1, production substrate</title>" in rehearsed
    (folder / "post-bulk.html").write_text("edited", encoding="utf-8")
    with pytest.raises(IntegrityError, match=r"post-bulk\.html: changed") as raised:
        verify_lock(folder)
    assert str(raised.value).startswith("A report changed:")
    way_out = f"Restore it (git checkout -- {folder}), or delete it and make a new report with --post-bulk."
    assert str(raised.value).endswith(way_out)


def test_a_report_that_is_not_as_its_lock_says_has_its_own_way_out(decided, filling, tmp_path, capsys):
    path = substrate(tmp_path, filling)
    post_bulk(decided, path, encoders=fake_encoders)
    (folder,) = reports(decided)
    (folder / ".DS_Store").write_bytes(b"")
    verify = ["verify", "--source=demo", f"--eval-set-path={decided.folder.parent}"]
    assert cli.main(verify) == 0
    others = [folder / "runs" / "vec0-better.tsv", folder / "none"]
    others[0].write_bytes(b"")
    others[1].symlink_to(tmp_path / "none")
    with pytest.raises(IntegrityError) as raised:
        verify_lock(folder)
    for other in others:
        assert f"\n  {other}: not in the report's lock; move it away\n" in str(raised.value)
        other.unlink()
    (folder / "lock.json").write_bytes(b"{}")
    assert cli.main(verify) == 4
    said = capsys.readouterr().err
    assert "make a new report with --post-bulk" in said
    assert "next version" not in said
    (folder / "lock.json").unlink()
    with pytest.raises(IntegrityError, match=r"has lost its lock\.json\. Restore it \(git"):
        post_bulk(decided, path, encoders=fake_encoders)
    shutil.rmtree(folder)
    post_bulk(decided, path, encoders=fake_encoders)


PLANTED = ("stale model", "missing vectors", "changed documents", "FTS index stale", "FTS tokenizer mismatch")


def test_planted_faults_are_named_by_the_verdict_and_by_the_page_and_by_no_passage(decided, filling, tmp_path):
    before = bytes_below(decided.folder)
    with pytest.raises(NegativeVerdict) as raised:
        post_bulk(decided, substrate(tmp_path, filling, *PLANTED), encoders=fake_encoders)
    assert set(PLANTED) <= {finding.name for finding in report(decided).faults}
    sentence = re.search(r'<p class="sentence">(.+?)</p>', newest_page(decided))[1]
    assert sentence.startswith("The substrate has ")
    for fault in PLANTED:
        assert fault in sentence
        assert f"  {fault}: " in str(raised.value)
    (folder,) = reports(decided)
    assert str(folder / "post-bulk.html") in str(raised.value)
    assert bytes_below(decided.folder) == before
    files = [path for path in folder.rglob("*") if path.is_file()]
    written = "".join(unpacked(path) if path.suffix == ".bz2" else path.read_text() for path in files)
    for document in filling.documents:
        words = document.text.split()
        for start in range(0, len(words) - 5, 5):
            assert " ".join(words[start : start + 5]) not in written


def test_a_binary_index_that_misses_what_exact_search_finds_is_a_quantisation_loss(decided, evening, tmp_path):
    made = filling(make_version(evening), FILLERS)
    with pytest.raises(NegativeVerdict, match="quantisation loss"):
        post_bulk(decided, substrate(tmp_path, made, "quantisation differs"), encoders=fake_encoders)
    found, fault = report(decided), named("quantisation loss", decided)
    assert found.quantisation.difference.mean < 0
    assert f" among all changes by {found.quantisation.difference.mean:+.4f} " in fault.sentence
    first = found.quantisation.recall[0]
    assert first.mean < INDEX_RECALL_FLOORS[10] == first.floor
    page = newest_page(decided)
    assert f"{first.mean:.4f} <strong>below</strong>" in page


def test_the_catalogues_name_of_the_model_is_accepted_and_a_mixture_is_not(decided, filling, tmp_path):
    path = substrate(tmp_path, filling)
    for table, column in (("demo_chunks", "embedded_model_id"), ("chunk_embedding_jobs", "model_id")):
        edit(path, f"UPDATE {table} SET {column} = 'minilm-l6-v2'")
    post_bulk(decided, path, encoders=fake_encoders)
    assert report(decided).model.model_id == "minilm-l6-v2"
    edit(path, "UPDATE demo_chunks SET embedded_model_id = ? WHERE chunk_id = 1", (fake_spec().model,))
    with pytest.raises(NegativeVerdict, match="stale model"):
        post_bulk(decided, path, encoders=fake_encoders)


def fake_spec():
    return fake_encoders("minilm-l6-v2").spec


HOSTILE = "\x1b[31m</td><script>alert(1)</script>\u202e"


def test_what_a_hostile_substrate_holds_is_shown_and_never_interpreted(decided, filling, tmp_path):
    path = substrate(tmp_path, filling)
    edit(path, "UPDATE demo_chunks SET embedded_model_id = ? WHERE chunk_id < 4", (HOSTILE,))
    edit(path, "UPDATE demo_chunks SET document_id = ? || document_id WHERE chunk_id = 5", (HOSTILE,))
    edit(path, "UPDATE demo_chunks SET text = ? WHERE chunk_id = 6", (HOSTILE + "a secret passage",))
    edit(path, "UPDATE substrate_meta SET value = ?", (HOSTILE + "v" * LONGEST_TEXT * 2,))
    with pytest.raises(NegativeVerdict) as raised:
        post_bulk(decided, path, encoders=fake_encoders)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", str(raised.value))
    page = newest_page(decided)
    assert "\x1b" not in page
    assert "\u202e" not in page
    elements = Outline(page).elements
    assert "script" not in {tag for tag, _ in elements}
    given = [attribute for _, attributes in elements for attribute in attributes.items()]
    assert not [name for name, _ in given if name in ("src", "srcset") or name.startswith("on")]
    assert all(value.startswith("#") for name, value in given if name == "href")
    assert "&lt;script&gt;alert(1)" in page
    assert "a secret passage" not in page
    assert "v" * (LONGEST_TEXT + 1) not in page


def test_a_run_that_dies_at_any_file_leaves_nothing_half_written(decided, filling, tmp_path, monkeypatch):
    path = substrate(tmp_path, filling)
    replace_file, before = Path.replace, bytes_below(decided.folder)
    searched = []

    def once(*arguments):
        searched[:] = searched or [measured(*arguments)]
        return searched[0]

    monkeypatch.setattr("runner.evening.post_bulk.measured", once)

    class Killed(BaseException):
        pass

    for name in (f"{slug(KEYWORD)}.tsv.bz2", "post_bulk.json", "receipt.json", "post-bulk.html", "lock.json"):

        def dying(self, target, name=name):
            if Path(target).name == name:
                raise Killed
            return replace_file(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", dying)
            patch.setattr(shutil, "rmtree", lambda folder, **_: None)  # a process that is killed tidies nothing up
            with pytest.raises(Killed):
                post_bulk(decided, path, encoders=fake_encoders)
        assert [found.name for found in reports(decided)] == [".tmp-report"], name
    post_bulk(decided, path, encoders=fake_encoders)
    (folder,) = reports(decided)
    assert verify_lock(folder)
    assert bytes_below(decided.folder) == before


def test_a_record_that_changes_meanwhile_has_no_report(decided, filling, tmp_path):
    path = substrate(tmp_path, filling)

    def spoiling(name):
        (decided.record / "labels.jsonl").write_bytes(b"")
        return fake_encoders(name)

    with pytest.raises(IntegrityError, match=r"labels\.jsonl: changed"):
        post_bulk(decided, path, encoders=spoiling)
    assert not (decided.record / "post-bulk").exists() or reports(decided) == []


def test_a_version_without_a_locked_decision_is_one_clear_error(ready, tmp_path):
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    for rehearsal in (False, True):
        version = make_version(tmp_path, rehearsal=rehearsal)
        with pytest.raises(InputError, match="is not decided and locked yet") as raised:
            post_bulk(version, tmp_path / "none.db", encoders=fake_encoders)
        assert str(raised.value).endswith(" --rehearse") == rehearsal
        assert f"run demo --eval-set-path={tmp_path / 'eval-sets' / 'demo'}" in str(raised.value)


def test_the_vectors_of_a_cut_cell_are_held_to_their_length(decided, filling, tmp_path):
    known = replace(decided_record(decided, fake_encoders), cut="24")
    path = substrate(tmp_path, replace(filling, vectors=cut_rows(filling.vectors, 24)))
    with open_substrate(path, "demo") as opened:
        found = measured(known, opened, None).report
        with pytest.raises(InputError, match="have 24 dimensions, and those of minilm-l6-v2 have 48"):
            measured(replace(known, cut=""), opened, None)
    assert found.faults == []
    (decided.record / "results.json").write_bytes(b"{}")
    with pytest.raises(IntegrityError, match=r"results\.json: changed"):  # before any database is opened
        post_bulk(decided, tmp_path / "none.db", encoders=fake_encoders)


def test_a_chosen_cell_without_an_encoder_has_its_vectors_held_to_the_baselines(decided, filling, tmp_path):
    """The decision is exchanged with its lock, as one that BM25 won would be."""
    decision = read_json(decided.record / "decision.json")
    decision["chosen"] |= {
        "cell": "bm25 x whole_doc",
        "retrieval": "bm25",
        "chunker": "whole_doc",
        "encoder": "",
        "encoder_revision": "",
    }
    (decided.record / "decision.json").write_bytes(json_bytes(decision))
    (decided.record / "lock.json").unlink()
    from runner.eval_set.lock import write_lock

    write_lock(decided.record)
    post_bulk(decided, substrate(tmp_path, filling), encoders=fake_encoders)
    found = report(decided)
    assert found.model.of_baseline
    assert found.model.encoder == "minilm-l6-v2"
    assert next(row for row in found.arms if row.arm == EXACT).beside.cell == CHOSEN
    page = newest_page(decided)
    assert "the chosen cell has none" in page


CELLS = [
    *("bm25 x whole_doc", "b x one", "sum(bm25,a) x two", "bm25>a x one", "a x two", "a x one"),
    *("sum(bm25,a) x one", "bm25-okapi x whole_doc"),
]
STORED = [*CELLS, "a@bit x one", "a@256 x one"]


@pytest.mark.parametrize(
    ("given", "exact", "binary", "fused"),
    [
        ((CELLS, "a", "one"), "a x one", "a x one", "sum(bm25,a) x one"),
        ((CELLS, "a", "three"), "a x two", "a x two", "sum(bm25,a) x two"),
        ((CELLS, "b", "one"), "b x one", "b x one", None),
        ((["b x one"], "a", "one"), None, None, None),
        ((STORED, "a", "one"), "a x one", "a@bit x one", "sum(bm25,a) x one"),
        ((STORED, "a", "one", "256"), "a@256 x one", "a@256 x one", "sum(bm25,a) x one"),
    ],
)
def test_an_arm_stands_beside_the_cell_of_its_encoder_chunker_and_vectors(given, exact, binary, fused):
    keyword = "bm25 x whole_doc" if "bm25 x whole_doc" in given[0] else None
    wanted = {EXACT: exact, BINARY: binary, KEYWORD: keyword, SUM: fused}
    assert counterparts(*given) == {arm: cell for arm, cell in wanted.items() if cell}


def hand_made(
    monkeypatch, version: Version, found: dict[str, list[str]], grades: dict[str, int]
) -> tuple[list[ArmResult], float]:
    """The rows of arms that retrieve the same list for every query, beside a cell that retrieves the first grade."""
    queries = load_queries(version.queries_path)
    ranked = {arm: tuple(Hit(doc, 9.0 - n, Span(0, 1)) for n, doc in enumerate(docs)) for arm, docs in found.items()}
    runs = {arm: Run(arm, {query.id: hits for query in queries}) for arm, hits in ranked.items()}
    recorded = Run(CHOSEN, {query.id: (Hit(next(iter(grades)), 1.0, Span(0, 1)),) for query in queries})
    plan = version.plan(rehearsal=False)
    record = Recorded(version, SimpleNamespace(plan=plan), queries, {query.id: grades for query in queries})
    monkeypatch.setattr(Recorded, "run", lambda record, cell: recorded)
    return [arm_result(record, arm, run, CHOSEN) for arm, run in runs.items()], plan.significance.alpha


NOTHING_LOST = Quantisation.model_construct(
    recall=[IndexRecallResult(depth=10, mean=1.0, floor=0.95)],
    difference=Difference(mean=0.0, low=0.0, high=0.0, wins=0, ties=1, losses=0),
    test=SimpleNamespace(p=1.0),
)


def test_a_lower_score_that_unjudged_hits_could_explain_is_no_fault(monkeypatch, version):
    rows, alpha = hand_made(
        monkeypatch, version, {EXACT: ["unjudged", "good"], BINARY: ["bad", "good"]}, {"good": 3, "bad": 0}
    )
    holes, judged = rows
    assert (holes.unjudged, judged.unjudged) == (25, 0)
    assert holes.scores["ndcg@10"].mean == judged.scores["ndcg@10"].mean < 1
    assert holes.bounds == [pytest.approx(0.6309, abs=1e-4), 1.0]
    assert judged.bounds[0] == judged.bounds[1]
    (loss,) = [finding for finding in compared_findings(rows, NOTHING_LOST, alpha) if finding.fault]
    assert (loss.name, loss.count, loss.of) == ("vector scores below the record", 1, 2)
    assert loss.sentence.endswith("vec0 bq + rescore -0.3691 to minilm-l6-v2 x fixed_token_512_50 (p 0.0010).")


def test_full_text_is_never_held_to_the_records_score(monkeypatch, version):
    rows, alpha = hand_made(monkeypatch, version, {KEYWORD: ["bad"], SUM: ["bad"]}, {"good": 3, "bad": 0})
    assert rows[0].beside.differences["ndcg@10"].mean == -1
    assert not any(finding.fault for finding in compared_findings(rows, NOTHING_LOST, alpha))


@pytest.mark.parametrize(("mean", "fault"), [(0.9499, True), (0.94996, False), (0.95, False)])
def test_the_floor_of_index_recall_is_compared_at_the_four_places_of_the_page(mean, fault):
    recall = IndexRecallResult(depth=10, mean=mean, floor=INDEX_RECALL_FLOORS[10])
    lost = NOTHING_LOST.model_copy(update={"recall": [recall]})
    found = compared_findings([], lost, 0.05)
    assert [finding.fault for finding in found] == [fault, False]
