"""The MCP server, in memory for what tools answer, and as a process for what only a process can do."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from runner import __version__
from runner.base.canonical import rounded
from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from runner.commands import main as cli
from runner.gate.single_gold import four_null_gate
from runner.tools.grade.sample_bench import sample_bench
from runner.tools.mcp.server import make_server, root_of

COMMAND = [sys.executable, str(CHECKOUT / "bin" / "per-source-eval.py"), "mcp"]
BENCH, POOL = sample_bench()
GRADE = {"retrieved": BENCH.retrieved, "gold": BENCH.gold, "item_pool": POOL}
RUN, OTHER, MEANS = {"run_file": "run.json"}, {"other_file": "other.json"}, {"baselines_file": "means.json"}


def write_runs(folder: Path) -> None:
    for name, value in (("run", 0.9), ("other", 0.1)):
        rows = [{"qid": f"q{i}", "ndcg10": value} for i in range(8)]
        (folder / f"{name}.json").write_text(json.dumps({"perQuery": rows}))
    (folder / "means.json").write_text('{"BM25": 0.5, "TF": 0.95}')


def in_memory(check: Callable[[Client], Awaitable[None]], mode: str = "auto", root: Path | None = None) -> None:
    async def main() -> None:
        async with Client(make_server(root or root_of(Path.cwd())), mode=mode) as client:
            await check(client)

    anyio.run(main)


def call(tool: str, arguments: dict[str, Any], root: Path | None = None) -> CallToolResult:
    """One call in memory; the server must answer another one after it."""
    results = []

    async def check(client: Client) -> None:
        results.append(await client.call_tool(tool, arguments))
        assert not (await client.call_tool("grade_retrieval", {**GRADE, "n_trials": 1})).is_error

    in_memory(check, root=root)
    return results[0]


def said(result: CallToolResult) -> str:
    (content,) = result.content
    return content.text


# What is listed.


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_four_read_only_tools_are_listed_with_their_schemas(mode):
    async def check(client: Client) -> None:
        assert (client.server_info.name, client.server_info.version) == ("per-source-eval", __version__)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["compare_runs", "dry_run", "explain_decision", "grade_retrieval"]
        for tool in tools.values():
            assert tool.description
            assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)
            assert tool.input_schema["additionalProperties"] is False
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tools["grade_retrieval"].input_schema["required"] == ["retrieved", "gold", "item_pool"]

    in_memory(check, mode)


# What tools answer.


def test_grade_retrieval_answers_what_the_gate_says():
    found = four_null_gate(
        BENCH.retrieved, BENCH.gold, BENCH.rel, "recall@3", item_pool=POOL, strata=BENCH.strata, n_trials=99, seed=7
    )
    result = call("grade_retrieval", {**GRADE, "metric": "recall@3", "strata": BENCH.strata, "n_trials": 99, "seed": 7})
    assert not result.is_error
    assert result.structured_content == json.loads(said(result)) == rounded(found)
    assert result.structured_content["passes"] == dict.fromkeys("ABCD", True)


def test_compare_runs_pairs_scores_and_labels_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path)
    result = call("compare_runs", RUN | OTHER | MEANS)
    found = result.structured_content
    assert (found["paired"]["difference"], found["paired"]["verdict"]) == (0.8, "above")
    assert [row["label"] for row in found["baselines"]] == ["above", "below"]
    assert "Δ=+0.4000  [above]" in said(result)


def test_a_recorded_decision_is_explained(decided_evening, monkeypatch):
    monkeypatch.chdir(decided_evening)
    result = call("explain_decision", {"source": "demo", "eval_set_path": "eval-sets/demo"})
    found = result.structured_content
    decision = json.loads((decided_evening / "eval-sets/demo/v1/decision.json").read_text())
    results = json.loads((decided_evening / "eval-sets/demo/v1/results.json").read_text())
    assert (found["recorded"], found["undecided"]) == (True, None)
    assert (found["chosen"]["cell"], found["tier"]) == (decision["chosen"]["cell"], results["outcome"]["tier"])
    assert (found["chosen"]["decided_by"], found["chosen"]["reason"]) == ("test", decision["reason"])
    text = said(result)
    for told in (decision["chosen"]["cell"], found["found"], found["evidence"], found["weaknesses"][0]):
        assert told in text


def test_what_is_outstanding_is_said_of_an_undecided_version(version, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = {"source": "demo", "eval_set_path": "eval-sets/demo"}
    explained, dry = call("explain_decision", where), call("dry_run", where)
    for answer in (explained, dry):
        assert answer.structured_content["undecided"] == "8 of 8 cells to embed and search"
    assert said(dry).splitlines()[-1] == "undecided: 8 of 8 cells to embed and search"
    assert "decision recorded" not in said(explained) + said(dry)
    assert not (version.work.parent / "cache").exists()


def test_a_changed_record_is_not_explained(decided_evening, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run(["cp", "-r", str(decided_evening / "eval-sets"), str(tmp_path)], check=True)
    decision = tmp_path / "eval-sets/demo/v1/decision.json"
    decision.write_text(decision.read_text().replace("test", "nobody"))
    for tool in ("explain_decision", "dry_run"):
        result = call(tool, {"source": "demo", "eval_set_path": "eval-sets/demo"})
        assert result.is_error
        assert "decision.json: changed" in said(result)


# Wrong arguments.

OUTSIDE = "leads out of it, and nothing else is read"
WRONG = {
    "metric is a number": ("grade_retrieval", {**GRADE, "metric": 5}, "metric"),
    "no pool": ("grade_retrieval", {k: GRADE[k] for k in ("retrieved", "gold")}, "item_pool"),
    "empty pool": ("grade_retrieval", {**GRADE, "item_pool": []}, "item_pool"),
    "gold outside the pool": ("grade_retrieval", {**GRADE, "item_pool": [*POOL[1:], "x"]}, "not present in item_pool"),
    "an id is a boolean": ("grade_retrieval", {**GRADE, "gold": [True] * 50}, "gold.0"),
    "tau is NaN": ("grade_retrieval", {**GRADE, "tau": float("nan")}, "tau"),
    "trials are too many": ("grade_retrieval", {**GRADE, "n_trials": 10**9}, "n_trials"),
    "draws are too many": ("grade_retrieval", {**GRADE, "gold": ["d0"] * 5001, "n_trials": 10**4}, "50,000,000 draws"),
    "queries are too many": ("grade_retrieval", {**GRADE, "gold": ["d0"] * 20_001}, "gold"),
    "an argument is misspelt": ("grade_retrieval", {**GRADE, "itempool": POOL}, "itempool"),
    "no run": ("compare_runs", OTHER, "run_file"),
    "a file is missing": ("compare_runs", {"run_file": "missing.json"}, "does not exist below"),
    "a file is elsewhere": ("compare_runs", {"run_file": "/etc/passwd"}, OUTSIDE),
    "a path is no path": ("compare_runs", {"run_file": "a\0b"}, "does not exist"),
    "no source": ("dry_run", {}, "source: missing"),
    "a source is unknown": ("dry_run", {"source": "bils"}, "bils"),
    "a folder is elsewhere": ("explain_decision", {"source": "demo", "eval_set_path": "/"}, OUTSIDE),
}


@pytest.mark.parametrize(("tool", "arguments", "match"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_are_an_error_that_says_what_is_wrong(tmp_path, monkeypatch, tool, arguments, match):
    monkeypatch.chdir(tmp_path)
    result = call(tool, arguments)
    assert result.is_error
    assert match in said(result)
    assert "Traceback" not in said(result)
    assert ("\n" in said(result), "pydantic" in said(result)) == (False, False)


def test_links_out_of_the_working_directory_are_not_followed(tmp_path, monkeypatch):
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"perQuery": [{"qid": "q1", "ndcg10": 0.5}]}))
    (inside / "link.json").symlink_to(secret)
    assert OUTSIDE in said(call("compare_runs", {"run_file": "link.json"}))
    (inside / "own.json").write_text(secret.read_text())
    assert not call("compare_runs", {"run_file": "own.json"}).is_error


def test_a_pipe_holds_no_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    version = tmp_path / "demo" / "v1"
    version.mkdir(parents=True)
    for path in (tmp_path / "run.json", version / "labels.jsonl"):
        os.mkfifo(path)
    assert "run.json is not a regular file" in said(call("compare_runs", {"run_file": "run.json"}))
    assert "labels.jsonl is a pipe" in said(call("dry_run", {"source": "demo", "eval_set_path": "demo"}))


@pytest.mark.parametrize("name", ["v1/decision.json", "v1", ".work"])
@pytest.mark.parametrize("tool", ["explain_decision", "dry_run"])
def test_a_version_whose_files_are_links_out_of_the_folder_is_not_read(
    decided_evening, tmp_path, monkeypatch, tool, name
):
    inside, elsewhere = tmp_path / "inside", tmp_path / "elsewhere"
    inside.mkdir()
    monkeypatch.chdir(inside)
    subprocess.run(["cp", "-r", str(decided_evening / "eval-sets"), str(inside)], check=True)
    (inside / "eval-sets/demo/.work").mkdir(exist_ok=True)
    where = {"source": "demo", "eval_set_path": "eval-sets/demo"}
    assert not call(tool, where).is_error
    path = inside / "eval-sets/demo" / name
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert "is a link that leads out of" in said(call(tool, where))


def test_a_server_that_is_started_in_the_root_of_the_file_system_reads_no_file_of_it(tmp_path, monkeypatch):
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({"perQuery": [{"qid": "q1", "ndcg10": 0.5}]}))
    monkeypatch.chdir("/")
    assert OUTSIDE in said(call("compare_runs", {"run_file": str(scores)}, root_of(None)))
    for path in (scores, "scores.json"):
        assert not call("compare_runs", {"run_file": str(path)}, root_of(tmp_path)).is_error
    for root in (Path("/"), tmp_path / "missing", scores):
        with pytest.raises(InputError, match="--root"):
            root_of(root)


def test_text_that_is_no_unicode_reaches_the_client_as_an_escape(tmp_path, monkeypatch):
    monkeypatch.setattr("runner.tools.mcp.server._Files.version", lambda *_: 1 / 0)
    assert call("dry_run", {"source": "demo"}, tmp_path).is_error

    def refuse(*_: object) -> None:
        raise InputError("bad name: \udcff.xml")

    monkeypatch.setattr("runner.tools.mcp.server._Files.version", refuse)
    assert "bad name: \\udcff.xml" in said(call("dry_run", {"source": "demo"}, tmp_path))


def test_without_the_extra_the_command_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "runner.tools.mcp.server")
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert cli.main(["mcp"]) == BackendError.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert "The package mcp_types is not installed" in err
    assert "make setup" in err
    assert "per-source-eval[mcp]" in err


# The server as a process.


@pytest.mark.slow
def test_a_real_client_is_told_of_errors_and_has_four_at_once_answered(decided_evening):
    results = "eval-sets/demo/v1/results.json"
    cell, other, *_ = (row["cell"] for row in json.loads((decided_evening / results).read_bytes())["cells"])
    pair = {"run_file": results, "cell": cell, "other_file": results, "other_cell": other}

    async def check(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 4
        wrong = await client.call_tool("grade_retrieval", {**GRADE, "metric": 5})
        assert wrong.is_error
        where = {"source": "demo", "eval_set_path": "eval-sets/demo"}
        found: dict[str, CallToolResult] = {}

        async def one(tool: str, arguments: dict[str, Any]) -> None:
            found[tool] = await client.call_tool(tool, arguments)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "grade_retrieval", GRADE)
            group.start_soon(one, "compare_runs", pair)
            group.start_soon(one, "explain_decision", where)
            group.start_soon(one, "dry_run", where)
        assert found["grade_retrieval"].structured_content["verdict"] == "pass"
        assert found["compare_runs"].structured_content["paired"]["other"].endswith(f"/{results}: {other}")
        assert found["explain_decision"].structured_content["recorded"] is True
        assert said(found["dry_run"]).endswith("decision recorded")

    async def main() -> None:
        parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=decided_evening)
        async with Client(parameters, mode="legacy") as client:
            await check(client)

    anyio.run(main)
