"""The tools of the MCP server, strict arguments that keep a call within minutes, and the process of one call.

Nothing here knows the protocol. A call's process can be stopped at once; whatever becomes of it, the server stands.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from runner.base.canonical import json_line, rounded
from runner.base.errors import EvalError, InputError
from runner.base.given_files import printable
from runner.base.places import EVAL_SETS, WORKPLACE
from runner.base.schema import FrozenModel, problems
from runner.base.terminal import Signs
from runner.eval_set.lock import verify_version
from runner.eval_set.version import Version, existing_version
from runner.evening.dry_run import describe
from runner.tools.compare.compare import Compared, compare, comparison_lines
from runner.tools.compare.query_scores import NDCG, QueryScores, named_means, query_values, read_scores
from runner.tools.explain_decision import Explanation, explain
from runner.tools.grade.bench_file import DEFAULT_REL, Bench
from runner.tools.grade.grade import TAU, TRIALS, grade_bench

MAX_QUERIES = 20_000

MAX_DEPTH = 1_000

MAX_POOL = 500_000

MAX_TRIALS = 10_000

MAX_DRAWS = 50_000_000
"""Queries times trials of one call."""


def _as_text(value: object) -> object:
    return str(value) if type(value) is int else value.strip() if isinstance(value, str) else value


Item = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=1_000)]
"""An id; a whole number stands for its digits, and white space around it is no part of it."""

Name = Annotated[str, Field(min_length=1, max_length=200)]

Scores = Annotated[dict[Name, float], Field(min_length=1, max_length=MAX_QUERIES)]

Means = Annotated[dict[Name, float], Field(max_length=100)]

FilePath = Annotated[str, Field(min_length=1, max_length=1_000)]


class GradeArguments(FrozenModel):
    """Arguments of grade_retrieval."""

    retrieved: Annotated[
        list[Annotated[list[Item], Field(max_length=MAX_DEPTH)]],
        Field(min_length=1, max_length=MAX_QUERIES, description="A list of ids a query, best first"),
    ]
    gold: Annotated[list[Item], Field(max_length=MAX_QUERIES, description="The one right id of each query")]
    item_pool: Annotated[
        list[Item], Field(min_length=1, max_length=MAX_POOL, description="Every id that could have been retrieved")
    ]
    metric: Annotated[str, Field(max_length=40, description="ndcg@K, recall@K or mrr@K")] = "ndcg@5"
    rel: Annotated[
        list[Annotated[int, Field(ge=0)]] | None, Field(max_length=MAX_QUERIES, description="Grade of each right id")
    ] = None
    strata: Annotated[
        list[Item] | None, Field(max_length=MAX_QUERIES, description="Source or stratum of each query")
    ] = None
    n_trials: Annotated[int, Field(ge=1, le=MAX_TRIALS, description="Draws of each null")] = TRIALS
    tau: Annotated[float, Field(ge=0, le=1, description="Least difference from a null that counts")] = TAU
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 2026


class CompareArguments(FrozenModel):
    """Arguments of compare_runs; a run is given as scores or as a file, and so is the other if there is one."""

    run: Annotated[Scores | None, Field(description="Scores from 0 to 1 by query id")] = None
    run_file: Annotated[
        FilePath | None, Field(description="results.json or per-query run below the server's folder")
    ] = None
    cell: Annotated[Name | None, Field(description="Cell of run_file, where that is a results.json")] = None
    other: Annotated[Scores | None, Field(description="The run to compare with, query by query")] = None
    other_file: Annotated[FilePath | None, Field(description="As run_file")] = None
    other_cell: Annotated[Name | None, Field(description="Cell of other_file")] = None
    baselines: Annotated[Means | None, Field(description="Published means by name")] = None


class VersionArguments(FrozenModel):
    """Arguments of explain_decision and dry_run."""

    source: Annotated[Name, Field(description="bills, us_code, demo, ...")]
    eval_set_path: Annotated[
        FilePath | None,
        Field(description="Folder that holds v1/, v2/, below the server's; default eval-sets/SOURCE of the workplace"),
    ] = None


_PROBLEMS_SHOWN = 3

Arguments = TypeVar("Arguments", bound=FrozenModel)


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer as data, and as what a model or a person reads."""

    data: dict[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class Tool(Generic[Arguments]):
    """A tool: what a client is told of it, and what it does; `output` is the JSON schema of an answer's data."""

    title: str
    description: str
    arguments: type[Arguments]
    output: dict[str, Any]
    answer: Callable[[Arguments], Answer]


class DryRun(FrozenModel):
    """The lines of --dry-run, the last of which says whether a decision is recorded."""

    lines: list[str]
    recorded: bool


def grade_retrieval(given: GradeArguments) -> Answer:
    """The gate's result."""
    if len(given.gold) * given.n_trials > MAX_DRAWS:
        raise InputError(
            f"{len(given.gold)} queries times {given.n_trials} trials are more than {MAX_DRAWS:,} draws; "
            "lower n_trials, on which exact expectations do not depend."
        )
    rel = [DEFAULT_REL] * len(given.gold) if given.rel is None else given.rel
    bench = Bench(given.retrieved, given.gold, rel, given.strata)
    try:
        result = grade_bench(
            bench, given.metric, given.item_pool, n_trials=given.n_trials, tau=given.tau, seed=given.seed
        )
    except ValueError as error:
        raise InputError(f"{error}.") from error
    return Answer(rounded(result), json_line(result))


def compare_runs(given: CompareArguments) -> Answer:
    """The comparison of a run with published means and with another run."""
    run = _scores(given.run, given.run_file, given.cell, "run")
    if run is None:
        raise InputError("run or run_file is missing: give the scores, or the file that holds them.")
    if given.baselines is not None:
        run = replace(run, baselines=named_means(given.baselines, "baselines"))
    other = _scores(given.other, given.other_file, given.other_cell, "other")
    found = compare(run, other)
    return Answer(rounded(asdict(found)), "\n".join(comparison_lines(found, Signs())))


def explain_decision(given: VersionArguments) -> Answer:
    """The decision of a version in words."""
    found = explain(_version(given))
    return Answer(found.model_dump(), "\n".join(found.lines()))


def dry_run(given: VersionArguments) -> Answer:
    """What --dry-run prints."""
    version = _version(given)
    verify_version(version)
    lines, recorded = describe(version)
    return Answer({"lines": lines, "recorded": recorded}, "\n".join(lines))


_NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}

TOOLS: dict[str, Tool[Any]] = {
    "grade_retrieval": Tool(
        "Grade a retriever against null systems",
        "Tells whether a retriever's rankings beat four null systems: permuted and uniform gold labels, random "
        "retrieval from the pool, gold labels drawn by their frequency. Give one list of ids and one right id a "
        "query, and the pool of all ids. The verdict is pass, fail or insufficient; `reasons` says why. A pass is no "
        "proof against leakage of the test set.",
        GradeArguments,
        {
            "type": "object",
            "properties": {
                "verdict": {"enum": ["pass", "fail", "insufficient"]},
                "gate_passes": {"type": "boolean"},
                "reasons": {"type": "array", "items": {"type": "string"}},
                "warnings": {"type": "array", "items": {"type": "string"}},
                "real_mean": {"type": "number"},
                "null_means": _NUMBERS,
                "deltas": _NUMBERS,
                "p_values": _NUMBERS,
            },
            "required": ["verdict", "gate_passes", "reasons", "warnings", "real_mean", "null_means", "deltas"],
        },
        grade_retrieval,
    ),
    "compare_runs": Tool(
        "Compare per-query scores",
        "Interval of a run's mean score, labels against published means (each alone and all at once), and a paired "
        "sign-flip test against another run over the same queries. Scores are given by query id, or read from a file.",
        CompareArguments,
        TypeAdapter(Compared).json_schema(mode="serialization"),
        compare_runs,
    ),
    "explain_decision": Tool(
        "Explain a recorded decision",
        "What was chosen for a source, by whom, why, on what evidence, what that does not show and its declared "
        "weaknesses; or what is outstanding where nothing is decided. Locks are verified first.",
        VersionArguments,
        Explanation.model_json_schema(),
        explain_decision,
    ),
    "dry_run": Tool(
        "Dry run of a source",
        "The plan of a source's evaluation, what exists, what is missing and what it would cost; the last line is "
        "exactly `decision recorded`, or begins with `undecided`. Reads files alone; locks are verified first.",
        VersionArguments,
        DryRun.model_json_schema(),
        dry_run,
    ),
}


def checked_arguments(tool: str, arguments: Mapping[str, Any]) -> FrozenModel:
    """The arguments of a tool of TOOLS as its model; InputError names the first few that are wrong."""
    try:
        found: FrozenModel = TOOLS[tool].arguments.model_validate(dict(arguments))
    except ValidationError as error:
        rows = [
            f"{row['loc'][0]} is missing" if row["type"] == "missing" else said
            for row, said in zip(error.errors(), problems(error), strict=True)
        ]
        more = f"; and {len(rows) - _PROBLEMS_SHOWN} more" if len(rows) > _PROBLEMS_SHOWN else ""
        raise InputError(f"{tool}: {'; '.join(rows[:_PROBLEMS_SHOWN])}{more}.") from error
    return found


def root_of(given: Path | None) -> Path:
    """The folder below which a server reads: the one given, else eval-sets of the working directory.

    An InputError for what is no folder, and for the root of the file system.
    """
    root = (given or Path("eval-sets")).resolve()
    if given is not None and not root.is_dir():
        raise InputError(f"--root: {printable(str(given))} is no folder.")
    if root == Path(root.anchor):
        raise InputError("--root: every file of this machine lies below that. Give the folder that models may read.")
    return root


def work() -> None:
    """Reads one call from standard input and writes its answer, or what is wrong with it, to standard output."""
    call = json.load(sys.stdin)
    with redirect_stdout(sys.stderr), reading_below(Path(call["root"])):
        try:
            answer = TOOLS[call["tool"]].answer(checked_arguments(call["tool"], call["arguments"]))
            reply = asdict(answer)
        except EvalError as error:
            reply = {"error": str(error)}
    json.dump(reply, sys.stdout, allow_nan=False)


_readable: ContextVar[tuple[Path, ...]] = ContextVar("readable")


@contextmanager
def reading_below(root: Path) -> Iterator[None]:
    """Let calls read below `root` and in the workplace's eval sets and work, and nowhere else."""
    own = (EVAL_SETS, WORKPLACE / ".work")
    token = _readable.set((root, *(folder.resolve() for folder in own)))
    try:
        yield
    finally:
        _readable.reset(token)


def _scores(inline: Mapping[str, float] | None, file: str | None, cell: str | None, name: str) -> QueryScores | None:
    if inline is not None and file is not None:
        raise InputError(f"{name} and {name}_file are both given: give one of them.")
    if inline is not None:
        if cell is not None:
            raise InputError(f"{name} is given as scores, so it has no cell {cell!r}.")
        return QueryScores(name, NDCG, query_values(inline.items(), name))
    return None if file is None else read_scores(_inside(file), cell)


def _version(given: VersionArguments) -> Version:
    """The newest version; an InputError if any of its files is a link that leads out of what may be read."""
    version = existing_version(given.source, None if given.eval_set_path is None else _inside(given.eval_set_path))
    for folder in (version.folder, version.work):
        links = (path for path in sorted(folder.rglob("*")) if path.is_symlink())
        for path in (folder, *links):
            if not _is_readable(path):
                raise _outside(str(path))
    return version


def _inside(path: str) -> Path:
    """What a path below the server's folder, or below its working directory, leads to; an InputError from elsewhere."""
    for base in (_readable.get()[0], Path.cwd()):
        try:
            if _is_readable(base / path):
                found = (base / path).resolve()
                found.stat()
                return found
        except (OSError, RuntimeError, ValueError):  # nothing there, links in a circle, no path
            continue
    raise _outside(path)


def _is_readable(path: Path) -> bool:
    found = Path(os.path.realpath(path))
    return any(found.is_relative_to(folder) for folder in _readable.get())


def _outside(path: str) -> InputError:
    return InputError(
        f"{printable(path)} does not exist below {_readable.get()[0]}, or leads out of it, and nothing else is read. "
        "Whoever starts this server chooses the folder with --root."
    )
