import json
import random
import subprocess
import sys
from pathlib import Path

import falsify_eval.cli
import pytest
import pytrec_eval

from runner.base.places import CHECKOUT
from runner.base.records import Hit, Run
from runner.commands import grade as grade_command
from runner.commands import main as cli
from runner.commands.grade import bench_lines, run_lines
from runner.eval_set.trec import WHOLE, TrecRun, trec_qrels_bytes, trec_run_bytes
from runner.tools.grade.grade import grade_bench, grade_run
from runner.tools.grade.sample_bench import sample_bench
from tests.conftest import called

SCRIPT = CHECKOUT / "bin" / "per-source-eval.py"
BAD_ROW = {"retrieved": ["c", "b"], "gold": "a"}


@pytest.fixture
def falsify_bench(tmp_path, capsys):
    """The arguments that grade the bench which falsify-eval's quickstart writes."""
    with pytest.raises(SystemExit) as done:
        falsify_eval.cli.main(["quickstart", str(tmp_path)])
    assert done.value.code == 0
    capsys.readouterr()
    return ["--input", str(tmp_path / "bench.jsonl"), "--pool", str(tmp_path / "pool.txt")]


def bench_files(folder, rows, pool):
    """The arguments that grade these rows over this pool."""
    (folder / "bench.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "pool.txt").write_text("\n".join(pool), encoding="utf-8")
    return ["-i", str(folder / "bench.jsonl"), "-p", str(folder / "pool.txt")]


@pytest.fixture
def failing_bench(tmp_path):
    """The arguments that grade a bench of an engine which never finds anything."""
    return bench_files(tmp_path, [{**BAD_ROW, "gold": gold} for gold in "adef" * 5], "abcdefghij")


def graded(capsys, *arguments):
    """Exit code, stdout and stderr of `grade`."""
    code = cli.main(["grade", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_defaults_are_falsify_evals_but_for_twenty_times_the_draws(falsify_bench, capsys):
    found = json.loads(graded(capsys, *falsify_bench, "--json")[1])
    assert [found[name] for name in ("metric", "n_trials", "tau", "seed")] == ["ndcg@5", 1000, 0.05, 2026]
    assert found["real_mean"] == 0.855686251


def test_a_gate_that_is_not_passed_is_exit_1_in_every_form(failing_bench, capsys):
    code, out, err = graded(capsys, *failing_bench, "--metric", "recall@2", "--json")
    found = json.loads(out)
    assert (code, found["gate_passes"], found["verdict"], err) == (1, False, "fail", "")
    code, out, err = graded(capsys, *failing_bench, "--metric", "recall@2")
    assert (code, err) == (1, "")
    for reason in found["reasons"]:
        assert reason in out
    assert f"−{-found['deltas']['C']:.4f}" in out


def test_insufficient_is_neither_pass_nor_fail(tmp_path, capsys):
    code, out, _ = graded(capsys, *bench_files(tmp_path, [{**BAD_ROW, "gold": "c"}], "abcdef"), "-m", "mrr@2")
    assert code == 1
    assert "? INSUFFICIENT: mrr@2 1.0000" in out
    assert "mrr@2 of 1 query: 1.0000" in out
    assert "one query has none" in out


def test_a_table_shows_every_null_with_its_sign(falsify_bench, capsys):
    code, out, _ = graded(capsys, *falsify_bench)
    assert code == 0
    for line in (
        "ndcg@5 of 50 queries: 0.8557",
        "  C random retrieval            0.2457   +0.6100      +0.5240 to +0.6960  0.0010  ✓",
        "✓ PASS: ndcg@5 0.8557; asked of each null: p ≤ 0.05 and Δ ≥ τ = 0.05",
    ):
        assert line in out.splitlines()


def test_nothing_that_a_gate_says_can_steer_the_terminal():
    bench, pool = sample_bench()
    result = grade_bench(bench, "ndcg@5", pool) | {"warnings": ["\x1b[31m"], "reasons": ["\x1b[32m"]}
    assert all(line.isprintable() for line in bench_lines(result))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--input", "b"],
        ["--input", "b", "--pool", "p", "--run", "r", "--qrels", "q"],
        ["--input", "b", "--pool", "p", "--qrels", "q"],
        ["--demo", "--pool", "p"],
        ["--demo", "--json"],
        ["--run", "b", "--qrels", "p", "--metric", "mrr@5"],
        ["--sample", "s", "--seed", "2"],
        ["--case-study", "c", "--demo"],
        ["--input", "-", "--pool", "-"],
        ["--input", "b", "--pool", "p", "--n-trials", "many"],
        ["--input", "b", "--pool", "p", "--seed", "-1"],
    ],
)
def test_flags_that_make_no_sense_are_a_usage_error(capsys, arguments):
    assert called("grade", *arguments)[0] == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--metric", "map@5"], "bench.jsonl cannot be graded: unknown metric 'map'"),
        (["--tau", "nan"], ": --tau is nan"),
        (["--tau", "2"], ": --tau is 2"),
        (["--n-trials", "0"], ": --n-trials is 0"),
        (["--n-trials", "18"], ": --n-trials is 18"),
        (["--n-trials", "9999999"], "9,999,999 draws of each null would not fit into memory; give --n-trials 1000000"),
    ],
)
def test_settings_that_cannot_be_are_exit_2(falsify_bench, capsys, arguments, complaint):
    code, out, err = graded(capsys, *falsify_bench, *arguments)
    assert (code, out) == (2, "")
    assert complaint in err


def process(stream, *arguments):
    command = [sys.executable, str(SCRIPT), "grade", *arguments]
    return subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, check=False, text=True)


def test_an_answer_that_cannot_be_written_is_exit_5():
    with Path("/dev/full").open("wb") as full:
        done = process(full, "--demo")
    assert done.returncode == 5
    assert done.stderr.startswith("per-source-eval: The answer cannot be written (No space left on device).")
    assert done.stderr.count("\n") == 1


def collection(n_queries=25, seed=1, quality=0.8):
    """A run of `n_queries` queries over 200 documents and its qrels; scores rise by `quality` where relevant."""
    rng = random.Random(seed)
    doc_ids = [f"d{number:03}" for number in range(200)]
    hits, qrels = {}, {}
    for number in range(n_queries):
        relevant = {doc_id: rng.choice([1, 2, 3]) for doc_id in rng.sample(doc_ids, 4)}
        qrels[f"q{number}"] = {**relevant, **{doc_id: 0 for doc_id in rng.sample(doc_ids, 5) if doc_id not in relevant}}
        scored = sorted(((rng.random() + quality * (doc_id in relevant), doc_id) for doc_id in doc_ids), reverse=True)
        hits[f"q{number}"] = tuple(Hit(doc_id, score, WHOLE) for score, doc_id in scored[:100])
    return found(hits), qrels


def found(hits):
    return TrecRun(Run("r", hits), frozenset(hit.doc_id for row in hits.values() for hit in row), ())


def files(folder, run, qrels):
    (folder / "run").write_bytes(trec_run_bytes(run.run))
    (folder / "qrels").write_bytes(trec_qrels_bytes(qrels))
    return ["--run", str(folder / "run"), "--qrels", str(folder / "qrels")]


def test_a_run_is_graded_from_its_files(tmp_path, capsys):
    run, qrels = collection()
    arguments = files(tmp_path, run, qrels)
    code, out, err = graded(capsys, *arguments, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    means = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(
        {q: {hit.doc_id: hit.score for hit in hits} for q, hits in run.run.hits.items()}
    )
    expected = sum(row["ndcg_cut_10"] for row in means.values()) / len(qrels)
    assert result["scores"]["ndcg@10"] == pytest.approx(expected, abs=1e-8)
    assert result["gate"]["real"] == result["scores"]["ndcg@10"]
    assert result["interval"][0] < result["gate"]["real"] < result["interval"][1]
    assert (result["n_trials"], result["gate_passes"]) == (1000, True)
    assert [null["name"] for null in result["gate"]["nulls"]][:2] == ["permuted qrels", "random retrieval"]


def test_queries_without_ranking_stay_and_those_without_qrels_go():
    run, qrels = collection(n_queries=20)
    whole = grade_run(run, qrels, n_trials=99)
    hits = {q: row for q, row in run.run.hits.items() if q not in ("q3", "q4")} | {"x": run.run.hits["q3"]}
    part = grade_run(found(hits)._replace(contradicted=("q0",)), {**qrels, "q9": {}}, n_trials=99)
    assert part["n_queries"] == whole["n_queries"] == 20
    lost = sum(grade_run(run, {q: qrels[q]}, n_trials=1)["scores"]["ndcg@10"] for q in ("q3", "q4", "q9"))
    assert part["scores"]["ndcg@10"] == pytest.approx(whole["scores"]["ndcg@10"] - lost / 20, abs=1e-8)
    for warning in (
        "2 queries (q3, q4) of the qrels without a ranking: score 0, as in trec_eval -c",
        "1 query (x) of the run without qrels: left out",
        "1 query (q0) in which a better rank has a lower score: scores decide, as in trec_eval",
    ):
        assert warning in part["warnings"]
    assert len(whole["warnings"]) == 1
    assert "documents at ranks 1 to 10 are not judged" in whole["warnings"][0]


def test_a_run_that_reads_no_query_fails_and_says_why():
    run, qrels = collection(quality=0)
    result = grade_run(run, qrels, n_trials=199)
    assert (result["verdict"], result["gate_passes"]) == ("fail", False)
    lines = run_lines(result)
    assert lines[-len(result["reasons"]) - 1].startswith("✗ FAIL")


@pytest.mark.parametrize("grade", [0, -1])
def test_nothing_relevant_is_exit_2(tmp_path, capsys, grade):
    run, qrels = collection(n_queries=3)
    nothing = {query_id: dict.fromkeys(grades, grade) for query_id, grades in qrels.items()}
    code, out, err = graded(capsys, *files(tmp_path, run, nothing))
    assert (code, out) == (2, "")
    assert "no query has a relevant document" in err
    code, out, err = graded(capsys, *bench_files(tmp_path, [{**BAD_ROW, "rel": 0}] * 3, "abcdef"))
    assert (code, out) == (2, "")
    assert "no query has a relevant document" in err


def test_equal_scores_and_queries_without_a_relevant_document_are_counted():
    run, qrels = collection(n_queries=5)
    tied = {query_id: tuple(Hit(hit.doc_id, 1.0, WHOLE) for hit in run.run.hits[query_id]) for query_id in ("q1", "q2")}
    nothing = {"q3": dict.fromkeys(qrels["q3"], 0)}
    warned = grade_run(found({**run.run.hits, **tied}), {**qrels, **nothing}, n_trials=19)["warnings"]
    for counted in ("1 query (q3) of the qrels without a relevant document", "2 queries (q1, q2) with equal scores"):
        assert any(warning.startswith(counted) for warning in warned)


def test_ids_that_do_not_fit_together_are_exit_2(tmp_path, capsys):
    run, qrels = collection(n_queries=3)
    other = {f"{query_id}x": grades for query_id, grades in qrels.items()}
    with pytest.raises(ValueError, match="no query in common; the first of each is q0 and q0x"):
        grade_run(run, other)
    (tmp_path / "pool.txt").write_text("d000\nd001\n", encoding="utf-8")
    code, _, err = graded(capsys, *files(tmp_path, run, qrels), "--pool", str(tmp_path / "pool.txt"))
    assert code == 2
    assert "the pool lacks" in err
    unknown = {query_id: {f"x{doc_id}": 1 for doc_id in grades} for query_id, grades in qrels.items()}
    assert "as none is judged, ids may differ in form" in grade_run(run, unknown, n_trials=9)["warnings"][0]


@pytest.mark.parametrize("settings", [{"tau": float("nan")}, {"tau": 1.5}, {"n_trials": 0}])
def test_settings_of_a_run_that_cannot_be_are_refused(settings):
    run, qrels = collection(n_queries=2)
    with pytest.raises(ValueError):
        grade_run(run, qrels, **settings)


def test_draws_are_bounded_before_anything_is_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(grade_command, "_MOST_DRAWS", 100)
    arguments = files(tmp_path, *collection(n_queries=5))
    for more, said in ((["--n-trials", "21"], "21 draws"), ([], "1,000 draws")):
        code, _, err = graded(capsys, *arguments, *more)
        assert code == 2
        assert f"{said} of each null would not fit into memory; give --n-trials 20 or fewer." in err
