"""`grade`: does what a retriever returned beat systems that never read the query? And a sample, a story, a page."""

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from runner.base.errors import InputError
from runner.base.figures import p_text, signed
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.terminal import MARKS
from runner.commands.console import answer, tell
from runner.gate.nulls import SINGLE_GOLD

_MOST_TRIALS = 1_000_000
_MOST_DRAWS = 20_000_000
"""Queries times draws of a run, which its gate holds in memory at some 25 bytes each."""


def grade(options: argparse.Namespace) -> int:
    """Grade what a retriever returned; 0 if the gate is passed, else 1."""
    settings = {name: getattr(options, name) for name in ("n_trials", "tau", "seed")}
    options.settings = {name: value for name, value in settings.items() if value is not None}
    if problem := _problem(options):
        raise InputError(f"{problem}.")
    if not (options.input or options.run):
        answer(_beside_grading(options))
        return 0
    try:
        result = _run(options) if options.run else _bench(options)
    except ValueError as error:
        raise InputError(f"{display(options.run or options.input)} cannot be graded: {error}.") from error
    tell(options, result, lambda: run_lines(result) if options.run else bench_lines(result))
    return 0 if result["gate_passes"] else 1


def _problem(options: argparse.Namespace) -> str:
    """Return what is wrong with a combination of flags, "" if nothing is."""
    files = [options.input, options.run, options.qrels, options.pool]
    graded = bool(options.input or options.run)
    for_grades = [options.qrels, options.pool, options.metric, options.settings or None]
    # argparse knows no groups of flags, so each combination that means nothing is told here.
    checks = {
        "--run and --qrels belong together": graded and bool(options.run) != bool(options.qrels),
        "--input needs --pool FILE: all ids that could have been retrieved": bool(options.input and not options.pool),
        f"--tau is {options.tau}, and a distance from 0 to 1 is expected": not 0 <= options.settings.get("tau", 0) <= 1,
        "--metric belongs to --input": bool(options.run and options.metric),
        "only one file can be standard input": sum(str(file) == "-" for file in files) > 1,
        "the other flags belong to --input and --run": not graded
        and (options.json or any(value is not None for value in for_grades)),
    }
    return next((problem for problem, is_wrong in checks.items() if is_wrong), "")


def _beside_grading(options: argparse.Namespace) -> str:
    """Return the answer where nothing of the user's is graded."""
    if options.case_study:
        from runner.tools.grade.case_study import case_study

        return case_study(options.case_study)
    if options.playground:
        from runner.report.html_file import write_html
        from runner.report.playground import page

        return display(write_html(options.playground, page(), None, flag="--playground"))
    from runner.tools.grade.sample_bench import METRIC, mira_story, write_sample

    if options.demo:
        return mira_story()
    paths = write_sample(options.sample)
    bench, pool = (shlex.quote(str(path)) for path in paths)
    wrote = [f"wrote {display(path)}" for path in paths]
    return "\n".join([*wrote, f"next: {DRIVER} grade --input {bench} --metric {METRIC} --pool {pool}"])


def _bench(options: argparse.Namespace) -> dict[str, Any]:
    from runner.tools.grade.grade import grade_bench, read_bench, read_pool

    bench, pool = read_bench(options.input), read_pool(options.pool)
    _check_trials(options, _MOST_TRIALS)
    return grade_bench(bench, options.metric or "ndcg@5", pool, **options.settings)


def _run(options: argparse.Namespace) -> dict[str, Any]:
    from runner.eval_set.trec import read_trec_qrels, read_trec_run
    from runner.tools.grade.grade import DEPTH, grade_run, read_pool

    qrels = read_trec_qrels(options.qrels)
    _check_trials(options, min(_MOST_TRIALS, _MOST_DRAWS // len(qrels)))
    pool = read_pool(options.pool) if options.pool else None
    return grade_run(read_trec_run(options.run, depth=DEPTH), qrels, pool, **options.settings)


def _check_trials(options: argparse.Namespace, most: int) -> None:
    from runner.tools.grade.grade import ALPHA, TRIALS

    n_trials, fewest = options.settings.get("n_trials", TRIALS), round(1 / ALPHA) - 1
    if n_trials < fewest:
        raise InputError(f"--n-trials is {n_trials}: fewer than {fewest} draws cannot reach a p of {ALPHA:g}.")
    if n_trials > most:
        raise InputError(f"{n_trials:,} draws of each null would not fit into memory; give --n-trials {most} or fewer.")


def bench_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a result of grade_bench in lines: the mean, the nulls, warnings, the verdict and its reasons."""
    lines = [f"{result['metric']} of {_count(result)}: {result['real_mean']:.4f}", ""]
    lines.append(_row("null", "mean", "Δ", "95 % interval of Δ", "p"))
    for letter, null in SINGLE_GOLD.items():
        interval = result["intervals"][letter]
        spread = " to ".join(signed(end, 4) for end in interval) if interval else "one query has none"
        numbers = (result["null_means"][letter], result["deltas"][letter], spread, result["p_values"][letter])
        lines.append(_null_row(f"{letter} {null.name}", numbers, result["verdicts"][letter]))
    return [*lines, "", *_closing(result)]


def run_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a result of grade_run in lines: means, the nulls, warnings, the verdict and its reasons."""
    low, high = result["interval"]
    means = ", ".join(f"{measure} {mean:.4f}" for measure, mean in result["scores"].items())
    lines = [
        f"{_count(result)}, {result['pool_size']:,} documents: {means}",
        f"ndcg@10: 95 % interval {low:.4f} to {high:.4f}; {result['n_trials']:,} draws of each null",
        "",
        _row("null", "mean", "Δ", "95 % of draws", "p"),
    ]
    for null in result["gate"]["nulls"]:
        numbers = (null["mean"], null["delta"], f"{null['low']:.4f} to {null['high']:.4f}", null["p"])
        lines.append(_null_row(null["name"], numbers, null["verdict"]))
    return [
        *lines,
        "  (a TREC file knows no lengths, so 'length sorted' is a list by id)",
        "",
        *_closing(result),
    ]


def _null_row(name: str, numbers: tuple[float, float, str, float], verdict: str) -> str:
    mean, delta, spread, p = numbers
    return f"{_row(name, f'{mean:.4f}', signed(delta, 4), spread, p_text(p))}  {MARKS[verdict]}"


def _row(*columns: str) -> str:
    name, mean, delta, spread, p = columns
    return f"  {name:<28}{mean:>8}{delta:>10}{spread:>24}{p:>8}"


def _closing(result: Mapping[str, Any]) -> list[str]:
    """Return the warnings, the verdict with what was tested and what was asked of every null, and its reasons."""
    gate = result.get("gate")
    tested = f"ndcg@10 {gate['real']:.4f}" if gate else f"{result['metric']} {result['real_mean']:.4f}"
    rule = f"p ≤ {result['alpha']:g} and Δ ≥ τ = {result['tau']:g}"
    order = " ('shuffled top 10': p alone)" if gate else ""
    lines = [f"warning: {printable(warning, longest=400)}" for warning in result["warnings"]]
    lines.append(f"{MARKS[result['verdict']]} {result['verdict'].upper()}: {tested}; asked of each null: {rule}{order}")
    lines += [f"  {printable(reason, longest=400)}" for reason in result["reasons"]]
    if result["gate_passes"]:
        lines.append("  Not shown: that the test queries were unknown to the engine, or that it beats another engine.")
    return lines


def _count(result: Mapping[str, Any]) -> str:
    return f"{result['n_queries']:,} queries" if result["n_queries"] > 1 else "1 query"
