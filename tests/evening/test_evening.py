"""The evening from nothing to a locked decision: every state, every exit, in order."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from runner.base.canonical import slug
from runner.base.errors import InputError, InputNeeded, IntegrityError, NegativeVerdict
from runner.commands.main import called
from runner.decide.sample_size import too_few
from runner.embed.backends import LocalBackend
from runner.eval_set.lock import verify_lock
from runner.eval_set.runs import has_arms, read_run
from runner.eval_set.version import Version, load_queries, load_results
from runner.evening.evening import Evening
from runner.evening.exploration import Exploration
from runner.judge.answers import Importer
from runner.retrieve import make_runs
from tests.support.evening_process import CHOICE, few_draws_in_plans, judged
from tests.support.small_set import answers, fake_encoders, make_version, write_corpus, write_queries
from tests.support.tiny_reranker import tiny_folder, tiny_reranker


@pytest.fixture(autouse=True)
def few_draws() -> Iterator[None]:
    """New plans draw little: what is claimed here is not what the figures are."""
    with few_draws_in_plans():
        yield


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus")


def evening(version: Version, corpus: Path | None = None, **more: object) -> Evening:
    kind = Exploration if "cells" in more else Evening
    return kind(version, corpus, backend=LocalBackend(fake_encoders), **more)


def test_every_state_stops_with_what_is_missing_and_the_command_that_brings_it(tmp_path, corpus, capsys):
    bills = make_version(tmp_path)
    with pytest.raises(InputNeeded, match=r"(?s)^demo v1: your turn.*✓ 16 documents.*→ no queries yet") as stopped:
        evening(bills, corpus, options="run demo").run()
    assert stopped.value.ways[-1] == "bin/per-source-eval.py run demo"
    assert any("queries add demo" in way for way in stopped.value.ways)
    assert (bills.folder / "plan.yaml").exists()
    assert (bills.folder / "rehearsal" / "plan.yaml").exists()
    assert (bills.folder / "corpus.jsonl").exists()
    assert len(list((bills.work / "reading").glob("[0-9]*.md"))) == 16
    assert not bills.preregistration_path.exists()

    write_queries(bills.folder)
    with pytest.raises(
        InputNeeded,
        match=r"(?s)✓ 8 of 8 cells.*→ \d+ of \d+ pairs to judge.*labels import demo .*--judge=NAME --person",
    ) as stopped:
        evening(bills).run()
    assert bills.preregistration_path.exists()
    assert too_few(25) in capsys.readouterr().err
    example = next(line for line in str(stopped.value).splitlines() if line.startswith("     {"))
    assert any("these grades count for the decision of demo v1" in note for note in stopped.value.notes)
    assert any("run demo" in note and "--try" in note for note in stopped.value.notes)
    assert set(json.loads(example)) == {"batch", "query_id", "doc_id", "grade", "reason"}

    judged(bills, slice(0, 1))
    with pytest.raises(InputNeeded, match=r"✓ \d+ pairs judged"):
        evening(bills).run()
    provisional = bills.work / "provisional" / "results.html"
    assert b"provisional" in provisional.read_bytes().lower()
    assert not (bills.record / "results.json").exists()
    where = f"--eval-set-path={bills.folder.parent}"
    assert too_few(25) not in capsys.readouterr().err
    assert called(["view", "demo", where]) == 0
    assert capsys.readouterr() == (f"{provisional.resolve().as_uri()}\n", "")

    judged(bills)
    assert called(["view", "demo", where]) == 0
    assert "grades" in capsys.readouterr().err
    labels = bills.labels_path.read_bytes()
    bills.labels_path.unlink()
    with pytest.raises(InputNeeded, match="no results page yet"):  # nothing of the provisional one is judged any more
        called(["view", "demo", where])
    bills.labels_path.write_bytes(labels)
    with pytest.raises(InputNeeded, match=r"choose demo .*'CELL' --reason 'WHY' --by NAME") as stopped:
        evening(bills).run()
    assert any("labels double demo" in note for note in stopped.value.notes), "nobody read a pair twice"
    assert not (bills.record / "decision.json").exists()
    answer = evening(bills, choice=CHOICE).run()
    assert f"chosen is {load_results(bills).outcome.recommended} (candidate)" in answer
    assert str(bills.record / "results.html") in answer
    assert verify_lock(bills.record)
    assert evening(bills).run() == answer


@pytest.mark.slow
def test_queries_with_and_without_a_stratum_stand_in_one_set(tmp_path, corpus):
    version = make_version(tmp_path)
    write_queries(version.folder)
    rows = yaml.safe_load(version.queries_path.read_text())
    for row in rows["queries"][:9]:
        row["stratum"] = "north"
    version.queries_path.write_text(yaml.safe_dump(rows, sort_keys=False))
    with pytest.raises(InputNeeded, match="to judge"):
        evening(version, corpus).run()
    judged(version)
    assert "chosen is" in evening(version, choice=CHOICE).run()


@pytest.mark.slow
def test_an_exploration_decides_nothing_and_leaves_the_version_alone(decided, tmp_path, monkeypatch):
    version = decided
    tiny = tiny_reranker(tiny_folder(tmp_path / "tiny"))
    monkeypatch.setattr(make_runs, "reranker_for", lambda name: tiny)
    cross = "rerank(bm25,ms-marco-minilm-l6) x recursive_v1"
    before = {path: path.read_bytes() for path in sorted(version.folder.rglob("*")) if path.is_file()}
    both = "sum(bm25,minilm-l6-v2) x recursive_v1"
    answer = evening(version, cells=["minilm-l6-v2 x recursive_v1", "bm25 x recursive_v1", both, cross]).run()
    assert "nothing is decided" in answer
    assert {path: path.read_bytes() for path in sorted(version.folder.rglob("*")) if path.is_file()} == before
    [results] = version.work.glob("explorations/*/results.json")
    timed = json.loads(results.with_name("receipt.json").read_text())["cells"]
    assert set(timed) <= {row["cell"] for row in json.loads(results.read_text())["cells"]} | {"aa"}
    rows = {row["cell"]: row for row in json.loads(results.read_text())["cells"]}
    assert all(timed[cell]["index_bytes"] > 0 for cell in rows), "also where a run was taken from the record"
    assert rows["minilm-l6-v2 x recursive_v1"]["role"] == "exploratory"
    assert has_arms(results.parent / f"runs/{slug(both)}.tsv.bz2")
    assert rows[cross]["provenance"]["encoder"]["model"] == "cross-encoder/ms-marco-MiniLM-L6-v2"
    assert rows[cross]["provenance"]["truncation"]["tokens"] > 0
    paths = [results.parent / f"runs/{slug(name)}.tsv.bz2" for name in ("bm25 x recursive_v1", cross)]
    ids = [query.id for query in load_queries(version.queries_path)]
    runs = [read_run(path, "", ids).hits for path in paths]
    spans = [{(query, hit.doc_id): hit.span for query, hits in run.items() for hit in hits} for run in runs]
    assert spans[0].keys() == spans[1].keys()
    assert all(span == spans[1][pair] for pair, span in spans[0].items() if span and spans[1][pair])
    assert runs[0] != runs[1]
    assert rows["minilm-l6-v2 x fixed_token_512_50"]["role"] == "baseline"
    assert all(low <= high for low, high in (row["bounds"] for row in rows.values()))


def test_a_query_blind_corpus_gets_no_decision(waiting):
    for path in answers(waiting):
        rows = [json.loads(line) | {"grade": 1} for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        Importer(waiting).take_file(path, judge="same", model="", judged_on="2026-01-31")
    with pytest.raises(NegativeVerdict, match="null gate"):
        evening(waiting, choice=CHOICE).run()
    assert not (waiting.record / "decision.json").exists()


def test_a_run_that_was_edited_or_exchanged_stops_scoring_and_locking(decided):
    version = decided
    cell, other = "bm25 x whole_doc", "minilm-l6-v2 x fixed_token_256_25"
    kinds = (Version.run_path, Version.chunk_run_path, Version.cell_path)
    whole = {kind: kind(version, cell).read_bytes() for kind in kinds}
    (version.record / "lock.json").unlink()

    version.chunk_run_path(cell).write_bytes(whole[Version.chunk_run_path] + b"x\n")
    with pytest.raises(IntegrityError, match=r"chunks\.tsv\.bz2 is not the run of bm25 x whole_doc"):
        evening(version).run()

    (version.record / "decision.json").unlink()
    for kind in kinds:
        kind(version, cell).write_bytes(kind(version, other).read_bytes())
    with pytest.raises(IntegrityError, match="is not the run of bm25 x whole_doc"):
        evening(version, choice=CHOICE).run()

    for kind, content in whole.items():
        kind(version, cell).write_bytes(content)
    assert "chosen is" in evening(version, choice=CHOICE).run()


def test_the_noise_floor_of_another_baseline_is_made_again(waiting):
    before = waiting.cell_path("aa").read_bytes()
    facts = json.loads(before) | {"cell": "minilm-static-384 x fixed_token_512_50"}
    waiting.cell_path("aa").write_bytes(json.dumps(facts).encode())
    with pytest.raises(InputNeeded):
        evening(waiting).run()
    assert waiting.cell_path("aa").read_bytes() == before


def test_the_live_feed_is_asked_once_with_the_plans_sample_and_never_again(tmp_path, monkeypatch):
    asked = []

    def fetch(source, folder, request, say):
        asked.append((source, request.size, request.seed))
        write_corpus(folder)

    monkeypatch.setattr("samplers.feeds.fetch.fetch", fetch)
    version = make_version(tmp_path)
    with pytest.raises(InputNeeded, match=r"(?s)16 documents.*no queries yet"):
        evening(version, live=True).run()
    with pytest.raises(InputNeeded, match="no queries yet"):
        evening(version, live=True).run()
    sample = version.plan(rehearsal=False).sample
    assert asked == [("demo", sample.size, sample.seed)]
    assert (version.work / "live").is_dir()


def test_a_report_on_the_corpus_is_kept_beside_the_archive(waiting):
    report = json.loads((waiting.work / "readiness.json").read_bytes())
    assert (report["documents"], report["quarantined"]) == (16, [])
    assert report["near_duplicate_clusters"] == 0


@pytest.mark.parametrize("place", ["nowhere", "empty", "file.txt"])
def test_a_mistyped_path_opens_no_version(tmp_path, place):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no corpus")
    version = make_version(tmp_path)
    with pytest.raises(InputError):
        evening(version, tmp_path / place).run()
    assert not version.plan_path(rehearsal=False).exists()
    assert not version.folder.exists() or list(version.folder.iterdir()) == []


def test_a_sample_that_the_plan_no_longer_asks_for_is_told_before_anybody_writes_queries(tmp_path, corpus):
    version = make_version(tmp_path)
    with pytest.raises(InputNeeded):
        evening(version, corpus).run()
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("seed: 2026}", "seed: 7}", 1))
    with pytest.raises(InputError, match=r"asks for a sample of 500 \(seed 7\), .* is one of 500 \(seed 2026\)"):
        evening(version, corpus).run()
