import subprocess
import sys

import pytest
import yaml

from runner import cli, eval_set
from runner.canonical import file_sha256, json_bytes, write_atomic
from runner.decision_schemas import Chosen, Decision
from runner.dry_run import RECORDED
from runner.eval_set import CHECKOUT
from runner.labels import append_labels
from runner.lock import write_lock
from runner.records import Hit, Run, Span
from runner.run_files import run_bytes
from tests.small_set import begin, make_version, query_rows, write_plans, write_queries
from tests.test_eval_set import label

HEAVY = ("torch", "modal", "pandas", "scipy", "bm25s", "tiktoken", "lxml", "sentence_transformers", "rank_bm25")


@pytest.fixture(name="dry_run")
def _dry_run(tmp_path, monkeypatch, capsys):
    """Exit code and lines of a dry run, after a check that it wrote nothing."""
    monkeypatch.setenv(eval_set.CACHE_VARIABLE, str(tmp_path / ".cache"))

    def run(*arguments):
        before = tree(tmp_path)
        where = f"--eval-set-path={tmp_path / 'eval-sets' / 'demo'}"
        code = cli.main(["--source=demo", "--dry-run", where, *arguments])
        assert tree(tmp_path) == before
        said = capsys.readouterr()
        assert code in (0, 1) or not said.out
        return code, said.out.splitlines(), said.err

    return run


def tree(folder):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def decided(version):
    decision = Decision(
        schema_version=1,
        source="demo",
        version=1,
        kind="rehearsal" if version.rehearsal else "production",
        tier="baseline kept",
        chosen=Chosen(
            cell="bm25 x whole_doc",
            standing="no candidate",
            retrieval="bm25",
            encoder="",
            encoder_revision="",
            chunker="whole_doc",
        ),
        baseline="minilm-l6-v2 x fixed_token_512_50",
        candidates=[],
        rationale="r",
        decided_by="me",
        reason="cheap",
        decided_on="2026-01-31",
        results_sha256="ab" * 32,
    )
    (version.record / "decision.json").write_bytes(json_bytes(decision.model_dump()))


def run_every_cell(version):
    """Cells whose runs find one document for the first query and nothing for the others."""
    hits = {row["id"]: () for row in query_rows()} | {"q01": (Hit("BILLS-117hr101ih", 1.0, Span(0, 9)),)}
    for cell in version.plan().cells:
        write_atomic(version.run_path(cell), run_bytes(Run(cell, hits)))
        write_atomic(version.cell_path(cell), b"{}")


def nothing(tmp_path):
    make_version(tmp_path)


def plans(tmp_path):
    write_plans(make_version(tmp_path))


def corpus(tmp_path):
    begin(tmp_path).queries_path.unlink()


def few_queries(tmp_path):
    rows = {"schema_version": 1, "queries": query_rows()[:24]}
    begin(tmp_path).queries_path.write_text(yaml.safe_dump(rows))


def queries(tmp_path):
    begin(tmp_path)


def one_cell(tmp_path):
    version = begin(tmp_path)
    run_every_cell(version)
    version.cell_path("bm25 x whole_doc").unlink()


def cells(tmp_path):
    run_every_cell(begin(tmp_path))


def labels(tmp_path):
    version = begin(tmp_path)
    run_every_cell(version)
    judged = label("q01", "BILLS-117hr101ih")
    append_labels(version.labels_path, [judged.model_copy(update={"prompt_sha256": file_sha256(version.judge_path)})])


def decision_without_lock(tmp_path):
    labels(tmp_path)
    decided(make_version(tmp_path))


def lock_without_decision(tmp_path):
    labels(tmp_path)
    write_lock(make_version(tmp_path).record)


STATES = {
    nothing: "undecided: no corpus is sampled yet",
    plans: "undecided: no corpus is sampled yet",
    corpus: "undecided: 16 documents are sampled, no queries are written yet",
    few_queries: "undecided: 24 queries; at least 25 are needed",
    queries: "undecided: 9 of 9 cells are not run yet",
    one_cell: "undecided: 1 of 9 cells are not run yet",
    cells: "undecided: 1 of 1 pairs are not judged yet",
    labels: "undecided: everything is there; run without --dry-run",
    decision_without_lock: "undecided: what was chosen is not locked yet; run without --dry-run",
    lock_without_decision: "undecided: everything is there; run without --dry-run",
}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_the_last_line_says_what_is_missing_and_shares_no_word_with_the_other_one(tmp_path, dry_run, state):
    state(tmp_path)
    code, lines, _ = dry_run()
    assert code == 1
    assert lines[-1] == STATES[state]
    assert not set(RECORDED.split()) & set(lines[-1].replace(";", " ").replace(":", " ").lower().split())
    assert not any(RECORDED in line for line in lines)


def test_the_last_line_of_a_locked_decision_is_exactly_that_it_is_recorded(tmp_path, dry_run):
    version = begin(tmp_path)
    decided(version)
    write_lock(version.record)
    code, lines, _ = dry_run()
    assert code == 0
    assert lines[-1] == "decision recorded"
    assert lines[-2] == "demo v1: chosen is bm25 x whole_doc (no candidate). Decided by me: cheap."
    assert not any("undecided" in line for line in lines)


def test_a_rehearsals_decision_does_not_decide_the_record(tmp_path, dry_run):
    version = begin(tmp_path, rehearsal=True)
    decided(version)
    write_lock(version.record)
    code, lines, _ = dry_run()
    assert code == 1
    assert lines[-1] == "undecided: 9 of 9 cells are not run yet"
    _, lines, _ = dry_run("--rehearse")
    assert "never counts as a decision" in lines[-2]


def test_the_plan_that_would_be_written_is_shown(tmp_path, dry_run):
    _, lines, _ = dry_run()
    plan = make_version(tmp_path).plan_path(rehearsal=False)
    assert lines[0] == "demo v1"
    assert lines[1] == f"plan: {plan} does not exist yet; the first run writes this one:"
    assert '    - "minilm-l6-v2 x section_aware_bills_v1"' in lines


def test_cells_cost_and_the_smallest_visible_difference_are_shown(tmp_path, dry_run):
    begin(tmp_path)
    _, lines, _ = dry_run()
    assert "plan: 9 cells, pool depth 30, baseline minilm-l6-v2 x fixed_token_512_50" in lines
    assert "  rrf(bm25,minilm-l6-v2) x section_aware_bills_v1" in lines
    assert "cost: $0.00 (local encoders; judging by file)" in lines
    assert "encoders: minilm-l6-v2, minilm-static-384" in lines
    assert "corpus: 16 of 16 documents, 0 quarantined" in lines
    assert any(line.startswith("queries: 25; smallest difference") and "0.088" in line for line in lines)


def test_a_broken_plan_is_told_with_every_criterion(tmp_path, dry_run):
    version = begin(tmp_path)
    path = version.plan_path(rehearsal=False)
    path.write_text(
        path.read_text().replace("pool_depth: 30", "pool_depth: 1").replace("source: demo", "source: bills")
    )
    code, lines, errors = dry_run()
    assert (code, lines) == (2, [])
    assert "pool_depth: 1" in errors
    assert "the plan is for 'bills'" in errors


def test_a_changed_file_of_a_locked_version_exits_4(tmp_path, dry_run):
    version = begin(tmp_path)
    decided(version)
    write_lock(version.record)
    write_queries(version.folder).write_bytes(b"schema_version: 1\n")
    code, lines, errors = dry_run()
    assert (code, lines) == (4, [])
    assert "queries.yaml: changed" in errors


@pytest.mark.parametrize("state", ["nothing", "everything"])
def test_a_dry_run_loads_nothing_heavy(tmp_path, state):
    if state == "everything":
        version = begin(tmp_path)
        decided(version)
        write_lock(version.record)
    loaded = modules("--source=demo", "--dry-run", f"--eval-set-path={tmp_path / 'eval-sets' / 'demo'}")
    assert "runner.dry_run" in loaded
    assert not set(HEAVY) & loaded


@pytest.mark.parametrize("arguments", [("--help",), ("labels", "--help"), ("render", "--help"), ("verify", "--help")])
def test_help_loads_nothing_heavy(arguments):
    loaded = modules(*arguments)
    assert "runner.cli" in loaded
    assert not set(HEAVY) & loaded


def modules(*arguments):
    """Names of the modules that a command line has loaded by its end, top-level names and dotted ones."""
    program = (
        "import sys\n"
        "from runner.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())
