import re
import subprocess
import sys

import pytest
import yaml

from runner.base import places
from runner.base.canonical import file_sha256, json_bytes, write_atomic
from runner.base.places import CHECKOUT
from runner.base.records import Chunk, Hit, Run, Span
from runner.base.store import Store
from runner.commands import main as cli
from runner.decide.sample_size import detectable, too_few
from runner.embed.chunk_corpus import ROWS, STAGE, chunk_inputs, chunks_to_rows, stored_chunk_tokens
from runner.embed.cost import MAX_USD
from runner.embed.cost.prices import RemoteOptions
from runner.eval_set.catalog import SOURCES
from runner.eval_set.labels import append_labels
from runner.eval_set.lock import write_lock
from runner.eval_set.plan import default_plan_text
from runner.eval_set.runs import run_bytes
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import load_corpus, load_results, newest_version
from runner.evening.costs import Asked, costs
from runner.evening.status import RECORDED, describe
from runner.judge.models.api import JudgeOptions
from runner.judge.models.estimate import judging_left
from runner.report.sentences import weaknesses
from runner.score.power import DEFAULT_SD, least_gain
from tests.support.example_results import BASELINE, decision, results, row
from tests.support.labels import SHA, label
from tests.support.parsers import parser_of
from tests.support.small_set import begin, make_version, query_rows, write_plans

HEAVY = (
    "torch",
    "onnxruntime",
    "modal",
    "pandas",
    "scipy",
    "bm25s",
    "tiktoken",
    "lxml",
    "sentence_transformers",
    "rank_bm25",
)


@pytest.fixture(name="dry_run")
def _dry_run(tmp_path, monkeypatch, capsys):
    """Exit code and lines of a dry run, after a check that it wrote nothing."""
    monkeypatch.setenv(places.CACHE_VARIABLE, str(tmp_path / ".cache"))

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
    found = results(row(BASELINE), kind="rehearsal" if version.rehearsal else "production")
    made = decision(found, decided_by="me", reason="cheap")
    (version.record / "decision.json").write_bytes(json_bytes(made.model_dump()))


def run_every_cell(version):
    """Cells whose runs find one document for the first query, its own, and nothing for the others."""
    hits = {row["id"]: () for row in query_rows()} | {"q01": (Hit("BILLS-117hr101ih", 1.0, Span(0, 9)),)}
    for cell in version.plan().cells:
        for path in (version.run_path(cell), version.chunk_run_path(cell)):
            write_atomic(path, run_bytes(Run(cell, hits)))
        ran = file_sha256(version.run_path(cell))
        facts = row(BASELINE).provenance.model_dump() | {"schema_version": 1, "cell": cell, "backend": None}
        facts |= {"run_sha256": ran, "chunk_run_sha256": ran, "chunkers_sha256": SHA, "index_bytes": 0}
        facts |= {f"{name}_sha256": file_sha256(getattr(version, f"{name}_path")) for name in ("queries", "corpus")}
        write_atomic(version.cell_path(cell), json_bytes(facts | {"chunks_per_document": [1]}))


def few_queries(tmp_path):
    rows = {"schema_version": 1, "queries": query_rows()[:24]}
    begin(tmp_path).queries_path.write_text(yaml.safe_dump(rows))


def one_cell(tmp_path):
    version = begin(tmp_path)
    run_every_cell(version)
    version.cell_path("bm25 x whole_doc").unlink()


def labels(tmp_path):
    version = begin(tmp_path)
    run_every_cell(version)
    prompt = {"prompt_sha256": file_sha256(version.judge_path)}
    judged = [label(row["id"], row["source_document"]).model_copy(update=prompt) for row in query_rows()]
    append_labels(version.labels_path, judged)
    return version


STATES = [
    (make_version, "undecided: documents to sample"),
    (lambda folder: write_plans(make_version(folder)), "undecided: documents to sample"),
    (
        lambda folder: begin(folder).queries_path.unlink(),
        "undecided: no queries yet: at least 25 are needed; 8 or more of them your own",
    ),
    (few_queries, "undecided: 1 more to be written: there are 24 queries, and at least 25 are needed"),
    (begin, "undecided: 8 of 8 cells to embed and search"),
    (one_cell, "undecided: 1 of 8 cells to embed and search"),
    (lambda folder: run_every_cell(begin(folder)), "undecided: 25 of 25 pairs to judge; their files are to be written"),
    (labels, "undecided: everything is there: scores and verdict"),
    (lambda folder: decided(labels(folder)), "undecided: what was chosen is not locked yet; `run` locks it"),
    (lambda folder: write_lock(labels(folder).record), "undecided: everything is there: scores and verdict"),
]


@pytest.mark.parametrize(("state", "last"), STATES)
@pytest.mark.usefixtures("own_place")
def test_the_last_line_says_what_is_missing_and_shares_no_word_with_the_other_one(tmp_path, dry_run, state, last):
    state(tmp_path)
    code, lines, _ = dry_run()
    assert code == 1
    assert lines[-1] == last
    assert not set(RECORDED.split()) & set(lines[-1].replace(";", " ").replace(":", " ").lower().split())
    assert not any(RECORDED in line for line in lines)


def test_the_last_line_of_a_locked_decision_is_exactly_that_it_is_recorded(tmp_path, dry_run):
    version = begin(tmp_path)
    decided(version)
    write_lock(version.record)
    code, lines, _ = dry_run()
    assert code == 0
    assert lines[-1] == "decision recorded"
    assert lines[-2] == f"demo v1: chosen is the baseline, {BASELINE} (baseline kept). Decided by me: cheap."
    assert not any("undecided" in line for line in lines)


def test_a_rehearsals_decision_does_not_decide_the_record(tmp_path, dry_run):
    version = begin(tmp_path, rehearsal=True)
    decided(version)
    write_lock(version.record)
    code, lines, _ = dry_run()
    assert code == 1
    assert lines[-1] == "undecided: 8 of 8 cells to embed and search"
    _, lines, _ = dry_run("--rehearse")
    assert "never counts as a decision" in lines[-2]


def test_cells_cost_and_the_smallest_visible_difference_are_shown(tmp_path, dry_run):
    begin(tmp_path)
    _, lines, _ = dry_run()
    assert "plan: 8 cells, pool depth 30, baseline minilm-l6-v2 x fixed_token_512_50" in lines
    assert "  sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1" in lines
    assert "cost: $0.00 (local encoders)" in lines
    assert any(line.startswith("meanwhile: the baseline minilm-l6-v2 x fixed_token_512_50, ") for line in lines)
    assert "encoders: minilm-l6-v2, minilm-static-384" in lines
    assert "done: 25 queries" in lines
    gain, first = least_gain(50, DEFAULT_SD, 0.02, bar=0.02), "sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1"
    said = f"{too_few(25)}; 50 queries tell a true gain of {gain:.2f} nDCG@10 of {first}"
    assert any(line.startswith(said) for line in lines)


@pytest.mark.parametrize("how", ["messages", "batches"])
def test_embedding_and_judging_stand_in_one_total_under_the_ceiling(tmp_path, how):
    """And there are never more pairs than documents a query."""
    version = begin(tmp_path)
    documents = len(load_corpus(version.corpus_path)[1])
    lines, _ = describe(version, asked=Asked(RemoteOptions(), judge=JudgeOptions(how=how)))
    judged = [line for line in lines if line.startswith("judging: ")]
    assert int(re.search(r"([\d,]+) pairs", judged[0])[1].replace(",", "")) == 25 * documents
    dollars = [float(usd) for line in judged for usd in re.findall(r"about \$([\d.]+)", line)]
    (total,) = [line for line in lines if line.startswith("total: ")]
    embedding, judging, headroom, usd, spent = (float(usd) for usd in re.findall(r"\$([\d.]+)", total))
    assert judging == pytest.approx(sum(dollars), abs=0.011)
    assert usd == pytest.approx(embedding + judging + headroom, abs=0.021)
    assert headroom > 0.1 * (embedding + judging)
    assert (spent, total.endswith("within --max-usd 10.00, so it would start")) == (0, usd <= 10)
    refused = describe(version, asked=Asked(RemoteOptions(), judge=JudgeOptions(how=how), max_usd=usd - 0.02))[0]
    assert "so it would be refused" in next(line for line in refused if line.startswith("total: "))


SAMPLED = sorted(path.parents[1].name for path in (CHECKOUT / "eval-sets").glob("*/v1/corpus.jsonl"))


@pytest.mark.parametrize("source", [name for name in SAMPLED if SOURCES[name].policy == "evaluate" and name != "demo"])
def test_a_default_plan_of_25_topics_in_batches_fits_the_default_ceiling(tmp_path, source):
    """Over documents as long as those that were sampled, embedded on rented machines, with all that is read again."""
    plan = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES[source], rehearsal=False)))
    lengths = [row.n_chars for row in load_corpus(CHECKOUT / "eval-sets" / source / "v1" / "corpus.jsonl")[1]]
    asked = Asked(RemoteOptions(), judge=JudgeOptions(how="batches"), documents=lengths)
    left = costs(newest_version(source, tmp_path / source), plan, asked)
    assert (left.unknown, left.total.is_affordable) == ("", True), left.said
    assert left.total.judging > 3
    assert sum(line.startswith("judging: ") for line in left.lines) == 3  # first, fuller and second readings


@pytest.mark.parametrize(
    ("documents", "fuller"),
    [([8_000] * 4, 0), ([8_001, *[5_000] * 4], 0.01), ([8_001] * 4, 0.05), ([90_000] * 4, 0.05), ([], 0.05)],
    ids=["all shown whole", "one of five is longer", "all are", "all are much longer", "nothing sampled yet"],
)
def test_a_dry_run_prices_fuller_readings_of_documents_that_are_not_shown_whole(tmp_path, documents, fuller):
    plan = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["bills"], rehearsal=False)))
    version, options = newest_version("bills", tmp_path), JudgeOptions(how="batches")

    def asked(plan):
        left = judging_left(version, plan, options, documents)
        found = [re.search(r"^judging: \S+, ([\d,]+) pairs .*about \$([\d.]+) ", line).groups() for line in left.lines]
        assert left.usd == pytest.approx(sum(float(usd) for _, usd in found), abs=0.02)
        return [(int(pairs.replace(",", "")), float(usd)) for pairs, usd in found]

    (n_first, usd), *more, (n_second, _) = asked(plan)
    assert n_second == round(0.1 * n_first) + 1, "of 25 source documents one is read again"
    assert [pairs for pairs, _ in more] == ([round(fuller * n_first)] if fuller else [])
    # More is read in a fuller reading, and less, whoever reads, with fewer characters.
    assert all(fuller_usd / pairs > 0.95 * usd / n_first for pairs, fuller_usd in more)
    half = plan.model_copy(update={"evidence": plan.evidence.model_copy(update={"chars": 4_000})})
    assert asked(half)[0][1] < usd


def test_one_ceiling_stands_in_help_and_documents():
    """What a document gives with --max-usd is more than the default, and says so on its page."""
    assert f"default {MAX_USD:g}" in parser_of("run").format_help()
    for path in (CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        given = {float(usd) for usd in re.findall(r"--max-usd[ =]([0-9.]+)", text)}
        assert all(usd > MAX_USD and f"{MAX_USD:g} that are allowed by default" in text for usd in given), path


def test_what_the_queries_show_is_one_figure_in_dry_run_and_results(decided_evening):
    version = make_version(decided_evening)
    found = load_results(version)
    (line,) = [line for line in describe(version)[0] if " queries tell a true gain of " in line]
    assert detectable(found.plan, found.effective, found.cells) is None
    assert line.startswith(too_few(len(found.queries)))
    assert any(weakness.startswith(line) for weakness in weaknesses(found))


def cost_lines(version, remote, **known):
    """What a dry run says of the cost of rented machines, after a check that it wrote nothing."""
    before = tree(version.work.parents[1])
    lines, _ = describe(version, None, Asked(remote, max_usd=remote.max_usd, **known))
    assert tree(version.work.parents[1]) == before
    (last,) = [number for number, line in enumerate(lines) if line.startswith("total: ")]
    said = ("cost: ", "  minilm", "total: ")
    return [line for line in lines[: last + 1] if line.startswith(said) and " x " not in line]


def test_on_rented_machines_every_encoder_and_the_sum_are_shown_against_the_ceiling(tmp_path, monkeypatch):
    counts = {"fixed_token_512_50": 1_000_000, "whole_doc": 7}

    def stored(version, chunker, limit):
        return counts.get(chunker, 500_000)

    monkeypatch.setattr("runner.evening.costs.stored_chunk_tokens", stored)
    *encoders, cost, total = cost_lines(begin(tmp_path), RemoteOptions())
    assert [line.split(":")[0] for line in encoders] == ["  minilm-l6-v2", "  minilm-static-384"]
    # Four chunkers, the baseline's twice, and 25 queries twice.
    assert "tokens (counted chunks) at 100,000 tokens/s (a guess): " in encoders[0]
    assert int(encoders[0].split()[1].replace(",", "")) - 3_500_000 in range(1, 5_000)
    assert cost.startswith("cost: $0.24 for embedding on L4 ($0.000235 a container-second, list price, second-hand, ")
    assert total.startswith("total: $0.24 embedding + $0.00 judging + $0.024 headroom = $0.26, ")
    assert total.endswith("$0.00 spent before; within --max-usd 10.00, so it would start")


def test_chunks_in_the_store_count_up_to_where_an_encoder_cuts_them_off(tmp_path, monkeypatch):
    monkeypatch.setenv(places.CACHE_VARIABLE, str(tmp_path / ".cache"))
    version = begin(tmp_path)
    assert stored_chunk_tokens(version, "whole_doc", 0) is None
    inputs = chunk_inputs("whole_doc", file_sha256(version.corpus_path))
    sizes = (700, 256, 10)
    chunks = [Chunk(f"d{number}", 0, Span(0, 9), "", n_tokens) for number, n_tokens in enumerate(sizes)]
    Store(version.cache).ensure(STAGE, inputs, lambda folder: write_atomic(folder / ROWS, chunks_to_rows(chunks)))
    assert stored_chunk_tokens(version, "whole_doc", 0) == sum(sizes)
    assert stored_chunk_tokens(version, "whole_doc", 256) == 256 + 256 + 10


def test_before_there_are_documents_the_cost_is_not_guessed(tmp_path):
    for version in (make_version(tmp_path), make_version(tmp_path)):
        (line,) = cost_lines(version, RemoteOptions(max_usd=2.5))
        assert line == "total: not known before documents are sampled; --max-usd 2.50 holds in any case"
        write_plans(version)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("public_laws", "chunker: usc_uslm_section_v1 is taken over from us_code, no code of its own"),
        ("gao_reports", "undecided: the baseline is to be adopted: the source has weak structure"),
        (
            "crs_reports",
            "v1 was made elsewhere: mxbai-large-v1 x fixed_token_512_50, nDCG@10 0.6911, without artefacts",
        ),
    ],
)
@pytest.mark.usefixtures("own_place")
def test_what_the_roster_knows_of_a_source_is_said_before_anything_exists(capsys, source, said):
    assert cli.main([f"--source={source}", "--dry-run"]) == 1
    assert any(line.startswith(said) for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("state", ["plans", "everything"])
def test_a_dry_run_loads_nothing_heavy(tmp_path, state):
    if state == "everything":
        version = begin(tmp_path)
        decided(version)
        write_lock(version.record)
    else:
        write_plans(make_version(tmp_path))
    loaded = modules("--source=demo", "--dry-run", f"--eval-set-path={tmp_path / 'eval-sets' / 'demo'}")
    assert "runner.evening.status" in loaded
    assert not set(HEAVY) & loaded


@pytest.mark.parametrize("arguments", [("--help",), ("labels", "--help")])
def test_help_loads_nothing_heavy(arguments):
    loaded = modules(*arguments)
    assert "runner.commands.main" in loaded
    assert not {*HEAVY, "numpy", "pydantic", "jinja2", "yaml", "samplers.registry"} & loaded


def modules(*arguments):
    """Names of the modules that a command line has loaded by its end, top-level names and dotted ones."""
    program = (
        "import sys\n"
        "from runner.commands.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())
