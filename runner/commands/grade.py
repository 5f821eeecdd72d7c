"""`grade`: does what a retriever returned beat systems that never read the query? `quickstart`: a bench to try."""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.base.errors import InputError
from runner.base.figures import p_text
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.terminal import Signs, signs_for
from runner.commands.console import answer, answer_json, command_parser, show

_MOST_TRIALS = 1_000_000
_MOST_DRAWS = 20_000_000
"""Queries times draws of a run, which its gate holds in memory at some 25 bytes each."""

_DESCRIPTION = """\
Grades a retriever against null systems. Either a bench, one JSON object {"retrieved": [...], "gold": ..., "rel": 3} a
line with a pool of all ids that could have been retrieved (one a line, or a JSON array), or a TREC run with its qrels.
"""
_EPILOG = """\
A row's optional "stratum" gives a verdict a stratum. A run's verdict is on nDCG@10 with graded qrels; --metric is
reported beside it, and tested with each query's highest-graded document as the only right one.
exit codes: 0 the gate is passed, 1 it is not (fail or insufficient), 2 usage or input error
"""


def grade(arguments: Sequence[str]) -> int:
    """0 if the gate is passed, else 1."""
    options = _options(arguments)

    signs = signs_for(sys.stdout, ascii_only=options.ascii)
    if options.story:
        from runner.tools.grade.sample_bench import mira_story

        show([mira_story(signs)], signs)
        return 0
    try:
        result = _run(options) if options.run else _bench(options)
    except ValueError as error:
        graded = "the sample bench" if options.demo else display(options.run or options.input)
        raise InputError(f"{graded} cannot be graded: {error}.") from error
    if options.json:
        answer_json(result)
    elif options.quiet:
        show([verdict_line(result, signs)], signs)
    else:
        show(run_lines(result, signs) if options.run else bench_lines(result, signs), signs)
    return 0 if result["gate_passes"] else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command_parser("grade", _DESCRIPTION, _EPILOG)
    parser.add_argument("--input", "-i", metavar="FILE", help="bench, or - for standard input; needs --pool")
    parser.add_argument("--run", metavar="FILE", help="TREC run, or -; needs --qrels")
    parser.add_argument("--demo", action="store_true", help="a sample bench and its story; graded with --json, --quiet")
    parser.add_argument("--qrels", metavar="FILE", help="TREC qrels, or -")
    parser.add_argument("--pool", "-p", metavar="FILE", help="all ids, or -; by default those of run and qrels")
    parser.add_argument("--metric", "-m", metavar="NAME", help="ndcg@K, recall@K, mrr@K; ndcg@5, for a run ndcg@10")
    parser.add_argument("--relevant-grade", type=int, metavar="N", help="least grade that recall and mrr count, 1")
    parser.add_argument("--n-trials", "--trials", type=int, metavar="N", help="draws of each null, 1000")
    parser.add_argument("--tau", type=float, metavar="X", help="least distance to each null, 0.05")
    parser.add_argument("--seed", type=int, metavar="N", help="of the draws, 2026")
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    parser.add_argument("--quiet", action="store_true", help="the verdict's line alone")
    parser.add_argument("--progress", action="store_true", help="say on stderr how far it is")
    parser.add_argument("--ascii", action="store_true", help="plain signs, nothing but ASCII")
    options = parser.parse_args(arguments)
    options.settings = {
        name: getattr(options, name) for name in ("n_trials", "tau", "seed") if getattr(options, name) is not None
    }
    options.story = options.demo and not (options.json or options.quiet)
    if problem := _problem(options):
        parser.error(problem)
    return options


def _problem(options: argparse.Namespace) -> str:
    """What is wrong with a combination of flags, "" if nothing is."""
    files = [options.input, options.run, options.qrels, options.pool]
    graded = [options.input, options.run, options.demo]
    checks = {
        "give one of --input FILE, --run FILE and --demo": sum(map(bool, graded)) != 1,
        "--run and --qrels belong together": bool(options.run) != bool(options.qrels),
        "--input needs --pool FILE: all ids that could have been retrieved": bool(options.input and not options.pool),
        "--demo has its own pool": bool(options.demo and options.pool),
        "--relevant-grade belongs to --run": options.relevant_grade is not None and not options.run,
        "--json and --quiet are two forms of one answer; choose one": options.json and options.quiet,
        "only one file can be standard input": files.count("-") > 1,
        "--demo grades only with --json or --quiet; the story takes no settings": bool(
            options.story and (options.settings or options.metric or options.progress)
        ),
    }
    return next((problem for problem, found in checks.items() if found), "")


def _bench(options: argparse.Namespace) -> dict[str, Any]:
    from runner.tools.grade.bench_file import read_bench, read_pool
    from runner.tools.grade.grade import grade_bench
    from runner.tools.grade.sample_bench import sample_bench

    bench, pool = sample_bench() if options.demo else (read_bench(options.input), read_pool(options.pool))
    _check_trials(options, _MOST_TRIALS)
    return grade_bench(bench, options.metric or "ndcg@5", pool, progress=options.progress, **options.settings)


def _run(options: argparse.Namespace) -> dict[str, Any]:
    from runner.eval_set.trec import read_trec_qrels, read_trec_run
    from runner.gate.single_gold.bench import parse_measure
    from runner.tools.grade.bench_file import read_pool
    from runner.tools.grade.grade import GATE_DEPTH, grade_run

    metric = options.metric or "ndcg@10"
    depth = max(parse_measure(metric).cutoff, GATE_DEPTH)
    qrels = read_trec_qrels(options.qrels)
    _check_trials(options, min(_MOST_TRIALS, _MOST_DRAWS // len(qrels)))
    found = read_trec_run(options.run, depth=depth)
    pool = read_pool(options.pool) if options.pool else None
    relevant_grade = 1 if options.relevant_grade is None else options.relevant_grade
    return grade_run(
        found, qrels, metric, pool, relevant_grade=relevant_grade, progress=options.progress, **options.settings
    )


def _check_trials(options: argparse.Namespace, most: int) -> None:
    from runner.tools.grade.grade import TRIALS

    n_trials = options.settings.get("n_trials", TRIALS)
    if n_trials > most:
        raise InputError(f"{n_trials:,} draws of each null would not fit into memory; give --n-trials {most} or fewer.")


def quickstart(arguments: Sequence[str]) -> int:
    """0; the files and the next command on stdout."""
    description = "Writes a bench of fifty queries (bench.jsonl) and its pool (pool.txt) into a folder."
    epilog = "exit codes: 0 written, 2 usage, or a file is there already, 5 the folder cannot be written"
    parser = command_parser("quickstart", description, epilog)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="by default this folder")
    folder = parser.parse_args(arguments).folder
    from runner.tools.grade.sample_bench import write_quickstart

    paths = write_quickstart(folder)
    bench, pool = (shlex.quote(str(path)) for path in paths)
    answer("\n".join(f"wrote {display(path)}" for path in paths))
    answer(f"next: {DRIVER} grade --input {bench} --metric ndcg@5 --pool {pool}")
    return 0


_NULLS = {"A": "permuted gold", "B": "uniform gold", "C": "random retrieval", "D": "marginal-matched gold"}


def bench_lines(result: Mapping[str, Any], signs: Signs) -> list[str]:
    """A result of grade_bench: the mean, a line per null and per stratum, warnings, the verdict and its reasons."""
    lines = [f"{result['metric']} of {_count(result)}: {result['real_mean']:.4f}", "", *_single_gold(result, signs)]
    if result["strata"]:
        lines += ["", *_strata(result["strata"], signs)]
    return [*lines, "", *_closing(result, signs)]


def run_lines(result: Mapping[str, Any], signs: Signs) -> list[str]:
    """A result of grade_run: the mean, the graded gate, the single-gold one for comparison, warnings, the verdict."""
    low, high = result["interval"]
    gate, single = result["gate"], result["single_gold"]
    lines = [
        f"{result['metric']} of {_count(result)}: {result['real_mean']:.4f}, 95 % interval {low:.4f} to {high:.4f}",
        "",
        f"gate: {gate['measure']} {gate['real']:.4f}; {gate['draws']:,} draws; {result['pool_size']:,} documents",
        "  (a TREC file knows no lengths, so 'length sorted' is a list by id)",
        *_graded(gate["nulls"], signs),
        "",
    ]
    if single is None:
        lines.append("single gold: nothing to test, no relevant document or a pool no deeper than the measure")
    else:
        shown = f"{single['metric']} {single['real_mean']:.4f} of {_count(single)}"
        lines += [f"for comparison, the highest-graded document as the only right one: {shown}"]
        lines += _single_gold(single, signs)
    return [*lines, "", *_closing(result, signs)]


def verdict_line(result: Mapping[str, Any], signs: Signs) -> str:
    """The verdict with its sign, the mean that was tested and what was asked of every null."""
    gate = result.get("gate")
    tested = f"{gate['measure']} {gate['real']:.4f}" if gate else f"{result['metric']} {result['real_mean']:.4f}"
    rule = f"p {signs.at_most} {result['alpha']:g} and {signs.delta} {signs.at_least} {signs.tau} = {result['tau']:g}"
    order = " ('shuffled top 10': p alone)" if gate else ""
    return f"{signs.of(result['verdict'])} {result['verdict'].upper()}: {tested}; asked of each null: {rule}{order}"


def _single_gold(result: Mapping[str, Any], signs: Signs) -> list[str]:
    lines = [_row("null", "mean", signs.delta, f"95 % interval of {signs.delta}", "p")]
    for letter, name in _NULLS.items():
        interval = result["intervals"][letter]
        spread = " to ".join(signs.signed(end, 4) for end in interval) if interval else "one query has none"
        numbers = (result["null_means"][letter], result["deltas"][letter], spread, result["p_values"][letter])
        lines.append(_null_row(f"{letter} {name}", numbers, result["verdicts"][letter], signs))
    return lines


def _graded(nulls: Sequence[Mapping[str, Any]], signs: Signs) -> list[str]:
    lines = [_row("null", "mean", signs.delta, "95 % of draws", "p")]
    for null in nulls:
        numbers = (null["mean"], null["delta"], f"{null['low']:.4f} to {null['high']:.4f}", null["p"])
        lines.append(_null_row(null["name"], numbers, null["verdict"], signs))
    return lines


def _strata(strata: Mapping[str, Mapping[str, Any]], signs: Signs) -> list[str]:
    lines = [_row("stratum", "mean", f"least {signs.delta}", "queries", "most p")]
    for name, found in strata.items():
        least, most = min(found["deltas"].values()), max(found["p_values"].values())
        numbers = (found["real_mean"], least, str(found["n_queries"]), most)
        lines.append(_null_row(printable(name, longest=24), numbers, found["verdict"], signs))
    return lines


def _null_row(name: str, numbers: tuple[float, float, str, float], verdict: str, signs: Signs) -> str:
    mean, delta, spread, p = numbers
    return f"{_row(name, f'{mean:.4f}', signs.signed(delta, 4), spread, p_text(p))}  {signs.of(verdict)}"


def _row(*columns: str) -> str:
    name, mean, delta, spread, p = columns
    return f"  {name:<28}{mean:>8}{delta:>10}{spread:>24}{p:>8}"


def _closing(result: Mapping[str, Any], signs: Signs) -> list[str]:
    lines = [f"warning: {printable(warning, longest=400)}" for warning in result["warnings"]]
    lines.append(verdict_line(result, signs))
    lines += [f"  {printable(reason, longest=400)}" for reason in result["reasons"]]
    if result["gate_passes"]:
        lines.append("  Not shown: that the test queries were unknown to the engine, or that it beats another engine.")
    return lines


def _count(result: Mapping[str, Any]) -> str:
    return f"{result['n_queries']:,} queries" if result["n_queries"] > 1 else "1 query"
