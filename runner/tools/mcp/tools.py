"""The tools of the MCP server, and the process that works on one call of one of them.

Nothing here knows the protocol. A call is worked on in a process of its own: it can be stopped at once, and whatever
becomes of it, the server stands.
"""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from runner.base.canonical import json_line, rounded
from runner.base.errors import EvalError, InputError
from runner.base.given_files import printable
from runner.base.schema import Strict, problems
from runner.eval_set.lock import verify_version
from runner.eval_set.version import CHECKOUT, Version, newest_version
from runner.evening.dry_run import describe
from runner.tools.compare.compare import Compared, Settings, compare
from runner.tools.compare.query_scores import QueryScores, named_means, query_values, read_scores
from runner.tools.compare.text import comparison_lines
from runner.tools.console import Signs
from runner.tools.explain_decision import Explanation, explain
from runner.tools.grade.bench_file import DEFAULT_REL, Bench
from runner.tools.grade.grade import grade_bench
from runner.tools.mcp.arguments import MAX_DRAWS, CompareArguments, GradeArguments, VersionArguments

_PROBLEMS_SHOWN = 3

Arguments = TypeVar("Arguments", bound=Strict)


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


class DryRun(Strict):
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
    run = _scores(given.run, given.run_file, given.cell, "run", given.measure)
    if run is None:
        raise InputError("run or run_file is missing: give the scores, or the file that holds them.")
    if given.baselines is not None:
        run = replace(run, baselines=named_means(given.baselines, "baselines"))
    other = _scores(given.other, given.other_file, given.other_cell, "other", given.measure)
    settings = Settings(seed=given.seed, resamples=given.resamples, allow_unmatched=given.allow_unmatched)
    found = compare(run, other, settings)
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


def checked_arguments(tool: str, arguments: Mapping[str, Any]) -> Strict:
    """The arguments of a tool of TOOLS as its model; InputError names the first few that are wrong."""
    try:
        found: Strict = TOOLS[tool].arguments.model_validate(dict(arguments))
    except ValidationError as error:
        rows = [
            f"{row['loc'][0]} is missing" if row["type"] == "missing" else said
            for row, said in zip(error.errors(), problems(error), strict=True)
        ]
        more = f"; and {len(rows) - _PROBLEMS_SHOWN} more" if len(rows) > _PROBLEMS_SHOWN else ""
        raise InputError(f"{tool}: {'; '.join(rows[:_PROBLEMS_SHOWN])}{more}.") from error
    return found


def work() -> None:
    """Reads one call from standard input and writes its answer, or what is wrong with it, to standard output."""
    call = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        try:
            answer = TOOLS[call["tool"]].answer(checked_arguments(call["tool"], call["arguments"]))
            reply = asdict(answer)
        except EvalError as error:
            reply = {"error": str(error)}
    json.dump(reply, sys.stdout, allow_nan=False)


def _scores(
    inline: Mapping[str, float] | None, file: str | None, cell: str | None, name: str, measure: str
) -> QueryScores | None:
    if inline is not None and file is not None:
        raise InputError(f"{name} and {name}_file are both given: give one of them.")
    if inline is not None:
        if cell is not None:
            raise InputError(f"{name} is given as scores, so it has no cell {cell!r}.")
        return QueryScores(name, measure, query_values(inline.items(), name))
    return None if file is None else read_scores(_inside(file), measure, cell)


def _version(given: VersionArguments) -> Version:
    return newest_version(given.source, None if given.eval_set_path is None else _inside(given.eval_set_path))


def _inside(path: str) -> Path:
    """A path below the working directory or the checkout's eval sets, links followed; else an InputError.

    So that no call reads elsewhere.
    """
    here = Path.cwd().resolve()
    try:
        found = (here / path).resolve()
        if any(found.is_relative_to(folder) for folder in (here, (CHECKOUT / "eval-sets").resolve())):
            found.stat()
            return found
    except (OSError, ValueError) as error:
        raise InputError(f"{printable(path)} does not exist below the server's working directory.") from error
    raise InputError(f"{printable(path)} is outside of the server's working directory, where nothing is read.")
