"""What grading found, as lines for a console."""

from collections.abc import Mapping, Sequence
from typing import Any

from runner.base.figures import p_text
from runner.base.given_files import printable
from runner.tools.symbols import Signs

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
