"""The MCP server on standard input and output: four functions of the official SDK, all of them read-only."""

import functools
import inspect
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from runner import __version__
from runner.base.canonical import JSON, json_line, refuse_special, rounded
from runner.base.errors import EvalError, InputError
from runner.base.given_files import printable
from runner.base.places import EVAL_SETS, WORKPLACE
from runner.base.schema import row_problems
from runner.decide.decide import decision_sentence
from runner.decide.roster import version_in_force
from runner.eval_set.lock import verify_version
from runner.eval_set.version import Version, existing_version, load_decision, load_results
from runner.evening.status import describe
from runner.report import sentences
from runner.report.summary import ranking_table, recorded_json
from runner.tools.compare import compare, comparison_lines, read_baselines, read_scores
from runner.tools.grade.grade import DEFAULT_REL, SEED, TAU, TRIALS, Bench, Item, grade_bench

INSTRUCTIONS = (
    "Grades retrievers against null systems, compares runs query by query, and tells which embedding model and chunker "
    "were chosen for a legislative source, and why. Everything is read-only."
)
MAX_QUERIES = 20_000
MAX_DRAWS = 50_000_000
"""Queries times trials of one call."""

Given = ParamSpec("Given")
Found = TypeVar("Found")

Name = Annotated[str, Field(min_length=1, max_length=200)]
FilePath = Annotated[str, Field(min_length=1, max_length=1_000)]
Items = Annotated[list[Item], Field(max_length=MAX_QUERIES)]
Ranking = Annotated[list[Item], Field(max_length=1_000)]
EvalSet = Annotated[
    FilePath | None, Field(description="Folder of v1/, v2/, below the server's; default that of SOURCE")
]


def serve(root: Path) -> None:
    """Serve one client until it closes standard input; files are read below `root`. An interrupt ends it at once."""
    # The SDK reads lines in a thread, which an exception in the main one does not wake.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    make_server(root).run("stdio")


def make_server(root: Path) -> MCPServer[Any]:
    """Return the server of four tools that read below `root`, and in the workplace's eval sets and work."""
    files = _Files(root)

    def grade_retrieval(
        retrieved: Annotated[list[Ranking], Field(min_length=1, max_length=MAX_QUERIES)],
        gold: Items,
        item_pool: Annotated[list[Item], Field(min_length=1, max_length=500_000)],
        metric: Annotated[str, Field(max_length=40, description="ndcg@K, recall@K or mrr@K")] = "ndcg@5",
        rel: Annotated[list[Annotated[int, Field(ge=0)]] | None, Field(max_length=MAX_QUERIES)] = None,
        strata: Items | None = None,
        n_trials: Annotated[int, Field(ge=1, le=10_000, description="Draws of each null")] = TRIALS,
        tau: Annotated[float, Field(ge=0, le=1, description="Least difference from a null that counts")] = TAU,
        seed: Annotated[int, Field(ge=0, lt=1 << 63)] = SEED,
    ) -> CallToolResult:
        """Tell whether a retriever's rankings beat four null systems.

        They are permuted and uniform gold labels, random retrieval from the pool, and gold labels drawn by their
        frequency. Give one list of ids and one right id a query, and the pool of all ids; `rel` are grades of the
        right ids, `strata` the queries' sources. The verdict is pass, fail or insufficient; `reasons` says why. A pass
        is no proof against leakage of the test set.
        """
        if len(gold) * n_trials > MAX_DRAWS:
            raise InputError(f"{len(gold)} queries times {n_trials} trials are more than {MAX_DRAWS:,} draws.")
        bench = Bench(retrieved, gold, [DEFAULT_REL] * len(gold) if rel is None else rel, strata)
        result = grade_bench(bench, metric, item_pool, n_trials=n_trials, tau=tau, seed=seed)
        return _answer(result, json_line(result))

    def compare_runs(
        run_file: Annotated[FilePath, Field(description="results.json or per-query run")],
        cell: Annotated[Name | None, Field(description="Cell of run_file, if that is a results.json")] = None,
        other_file: Annotated[FilePath | None, Field(description="The run to compare with")] = None,
        other_cell: Name | None = None,
        baselines_file: Annotated[FilePath | None, Field(description="Published means, {name: mean}")] = None,
    ) -> CallToolResult:
        """Compare a run's nDCG@10 with published means, and query by query with another run, with intervals."""
        run = read_scores(files.inside(run_file), cell)
        if baselines_file is not None:
            run = replace(run, baselines=read_baselines(files.inside(baselines_file)))
        comparison = compare(run, read_scores(files.inside(other_file), other_cell) if other_file else None)
        return _answer(asdict(comparison), "\n".join(comparison_lines(comparison)))

    def explain_decision(source: Name, eval_set_path: EvalSet = None) -> CallToolResult:
        """Tell which cell was chosen for a source, by whom, on what evidence, and what that does not show.

        If nothing is decided, the answer says what is outstanding. Locks are verified first.
        """
        version = files.version(source, eval_set_path)
        verify_version(version)
        # A version that is in force is told of, not the newer one that is still open.
        version = (None if version.rehearsal else version_in_force(version)) or version
        data, lines, recorded = _standing(version)
        results = load_results(version) if version.results_path.exists() else None
        decision = load_decision(version) if recorded else None
        data["sentence"] = f"{version.name} is {lines[-1]}" if decision is None else decision_sentence(decision)
        told = [str(data["sentence"])]
        if results is not None:
            shown = {
                "found": sentences.found(results, decision),
                "evidence": ranking_table(results),
                "next_step": sentences.next_step(results, decision),
            }
            weaknesses = sentences.weaknesses(results)
            data |= {"tier": results.outcome.tier, **shown, "weaknesses": [*weaknesses]}
            told += [*shown.values(), *(f"Weakness: {weakness}" for weakness in weaknesses)]
        return _answer(data, "\n".join(told))

    def dry_run(source: Name, eval_set_path: EvalSet = None) -> CallToolResult:
        """Tell what exists of a source's evaluation, what is missing and what it would cost.

        The last line is exactly `decision recorded`, or begins with `undecided`. Locks are verified first.
        """
        version = files.version(source, eval_set_path)
        verify_version(version)
        data, lines, _ = _standing(version)
        return _answer(data, "\n".join(lines))

    tools = [_tool(function) for function in (grade_retrieval, compare_runs, explain_decision, dry_run)]
    return MCPServer(
        "per-source-eval", version=__version__, instructions=INSTRUCTIONS, tools=tools, log_level="WARNING"
    )


class _Told(Tool):
    """A tool that says in one sentence which arguments are wrong; the SDK's words for it are pydantic's."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:  # noqa: ANN401  # the SDK's own
        """Run the tool with arguments."""
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if isinstance(wrong := error.__cause__, ValidationError):
                raise ToolError(f"{self.name}: {'; '.join(row_problems(wrong, arguments))}.") from wrong
            raise


def _tool(function: Callable[Given, Found]) -> Tool:
    """Return the SDK's tool of a function, whose arguments are held to their types; what is wrong is told."""

    @functools.wraps(function)
    def told(*given: Given.args, **named: Given.kwargs) -> Found:
        try:
            return function(*given, **named)
        except (EvalError, ValueError) as error:
            raise ToolError(str(error).encode(errors="backslashreplace").decode()) from error

    # The SDK coerces and passes unknown arguments over; here both are errors, as the schema says.
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    made = _Told.from_function(told, description=inspect.getdoc(function), annotations=reads)
    arguments = made.fn_metadata.arg_model
    arguments.model_config |= {"extra": "forbid", "strict": True}
    arguments.model_rebuild(force=True)
    return made.model_copy(update={"parameters": arguments.model_json_schema()})


def _standing(version: Version) -> tuple[dict[str, JSON], list[str], bool]:
    """Return what --dry-run says of a version as data and as lines, and whether a decision is recorded."""
    lines, recorded = describe(version)
    return recorded_json(version, lines, recorded=recorded), lines, recorded


def _answer(data: Mapping[str, Any], text: str) -> CallToolResult:
    shown = text.encode(errors="backslashreplace").decode()
    return CallToolResult(content=[TextContent(text=shown)], structured_content=rounded(data))


def root_of(given: Path | None) -> Path:
    """Return the folder below which a server reads: the one given, else eval-sets of the working directory.

    An InputError for what is no folder, and for the root of the file system.
    """
    root = (given or Path("eval-sets")).resolve()
    if given is not None and not root.is_dir():
        raise InputError(f"--root: {printable(str(given))} is not a folder.")
    if root == Path(root.anchor):
        raise InputError("--root: every file of this machine lies below that. Give the folder that models may read.")
    return root


@dataclass(frozen=True)
class _Files:
    """What calls may read: below `root`, and in the workplace's eval sets and work."""

    root: Path

    def version(self, source: str, eval_set_path: str | None) -> Version:
        """Return the newest version; an InputError if any of its files is a link out of what may be read."""
        version = existing_version(source, None if eval_set_path is None else self.inside(eval_set_path))
        for folder in (version.folder, version.work):
            links = (path for path in sorted(folder.rglob("*")) if path.is_symlink())
            # A link may lead anywhere, so each file is held to the folders by where it ends.
            for path in (folder, *links):
                if not self._is_readable(path):
                    raise self._outside(str(path))
        return version

    def inside(self, path: str) -> Path:
        """Return what a path below the server's folder, or below its working directory, leads to."""
        for base in (self.root, Path.cwd()):
            try:
                if self._is_readable(base / path):
                    target = (base / path).resolve()
                    target.stat()
                    if not target.is_dir():
                        refuse_special(target)  # a pipe would hold the call for ever
                    return target
            except (OSError, RuntimeError, ValueError):  # nothing there, links in a circle, no path
                continue
        raise self._outside(path)

    def _is_readable(self, path: Path) -> bool:
        target = Path(os.path.realpath(path))
        folders = (self.root, EVAL_SETS.resolve(), (WORKPLACE / ".work").resolve())
        return any(target.is_relative_to(folder) for folder in folders)

    def _outside(self, path: str) -> InputError:
        return InputError(
            f"{printable(path)} does not exist below {self.root}, or leads out of it, and nothing else is read. "
            "Whoever starts this server chooses the folder with --root."
        )
