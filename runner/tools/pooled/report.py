"""What pooling found, as data, as lines and as a page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.base.canonical import JSON
from runner.base.terminal import Signs
from runner.decide.pooled_gains import STRUCTURAL
from runner.eval_set.plan import PRIOR_MODEL
from runner.report.chart import axis_over
from runner.report.page_frame import inert, rendered
from runner.tools.pooled.model import Pooled, Priors, pooled_apart
from runner.tools.pooled.records import Given

TEMPLATE_VERSION = 1
STANDS_OUT = 0.05
"""p, times the number of sources, at which a source is called different from the others."""


def pooled_report(given: Sequence[Given], priors: Priors) -> dict[str, Any]:
    """Inputs with their digests, priors, and every figure; a function of the inputs' bytes and the priors alone."""
    found = pooled_apart([one.gains for one in given], given[0].baseline.rpartition(" x ")[0], priors)
    inputs = [
        {
            "source": one.gains.source,
            "version": one.version,
            "results_sha256": one.results_sha256,
            "queries": one.gains.n_queries,
            "cells": len(one.gains.cells),
        }
        for one in given
    ]
    return {
        "schema_version": 2,
        "kind": given[0].kind,
        "baseline": given[0].baseline,
        "measure": "ndcg@10",
        "inputs": inputs,
        "priors": priors._asdict(),
        "effects": {name: asdict(effect) for name, effect in found.effects.items()},
        "cells": [asdict(cell) for cell in found.cells],
        "predicted": [{"effects": list(kind), **asdict(one)} for kind, one in found.predicted.items()],
        "prior": _prior_of(found) | {"from_results": [one.results_sha256 for one in given]},
        "odd": [asdict(one) for one in found.odd],
        "tau": found.tau,
    }


def _prior_of(found: Pooled) -> dict[str, JSON]:
    """Mean and SD of the true gains of these cells: what a plan may take a new source's challengers for."""
    mean = sum(cell.pooled.mean for cell in found.cells) / len(found.cells)
    square = sum(cell.pooled.sd**2 + (cell.pooled.mean - mean) ** 2 for cell in found.cells) / len(found.cells)
    return {"mean": round(mean, 4), "sd": max(0.0001, round(math.sqrt(square), 4))}


def answer_of(report: Mapping[str, Any], signs: Signs) -> str:
    """What the structural chunker adds over these sources, cut or not; if no cell has one, the clearest effect."""
    effects = report["effects"]
    if not effects:
        return "No cell differs from its baseline in encoder or kind of chunker, so nothing is common to the sources."
    clearest = max(effects, key=lambda name: abs(effects[name]["p_above_0"] - 0.5))
    names = sorted(name for name in effects if name.startswith(STRUCTURAL) and "without" not in name) or [clearest]
    return " ".join(_answer(report, name, signs) for name in names)


def _answer(report: Mapping[str, Any], name: str, signs: Signs) -> str:
    effect, n = report["effects"][name], len(report["inputs"])
    chance, large = effect["p_above_0"], effect["p_above_bar"]
    shown = "a gain" if effect["low"] > 0 else "a loss" if effect["high"] < 0 else "not shown to be a gain or a loss"
    return (
        f"{name[0].upper()}{name[1:]}: {signs.signed(effect['mean'], 3)} nDCG@10 over {n} source{'s' * (n > 1)} "
        f"(95 % interval {signs.signed(effect['low'], 3)} to {signs.signed(effect['high'], 3)}), {shown}. The chance "
        f"of any gain is {100 * chance:.0f} %, of {report['priors']['min_gain']:g} or more {100 * large:.0f} %."
    )


def pooled_lines(report: Mapping[str, Any], signs: Signs) -> list[str]:
    """The answer, a row per effect, a row per cell, and the source that differs most."""

    def row(name: str, estimate: Mapping[str, float], own: str = "") -> str:
        ends = f"[{signs.signed(estimate['low'], 3)}, {signs.signed(estimate['high'], 3)}]"
        return f"  {name:<58} {signs.signed(estimate['mean'], 3)} {ends:<18} {estimate['p_above_0']:>4.0%}{own}"

    lines = [answer_of(report, signs), "", f"against {report['baseline']}, nDCG@10, 95 % interval, chance of a gain"]
    lines += [row(name, effect) for name, effect in report["effects"].items()]
    lines += ["", "each cell: its source's own figure, and what it shrinks to beside the others"]
    for cell in report["cells"]:
        own = f"   alone {signs.signed(cell['gain'], 3)} (standard error {cell['standard_error']:.3f})"
        lines.append(row(f"{cell['source']}: {cell['cell']}", cell["pooled"], own))
    if report["odd"]:
        lines += ["", odd_sentence(report, signs)]
    return [*lines, "", "for the plan.yaml of a source that is not among these:", prior_line(report)]


def prior_line(report: Mapping[str, Any]) -> str:
    """The line of a plan.yaml that takes these results as the prior of its challengers."""
    prior = report["prior"]
    return (
        f'prior: {{mean: {prior["mean"]:g}, sd: {prior["sd"]:g}, model: "{PRIOR_MODEL}", '
        f"from_results: [{', '.join(prior['from_results'])}]}}"
    )


def odd_sentence(report: Mapping[str, Any], signs: Signs) -> str:
    """Which source lies farthest from what the others predict, and whether that is more than chance."""
    one, n = report["odd"][0], len(report["odd"])
    where = f"{signs.signed(one['gain'], 3)} on average where the others predict {signs.signed(one['predicted'], 3)}"
    if one["p"] * n <= STANDS_OUT:
        return f"{one['source']} differs from the others: {where} (p {one['p']:.3f}, one of {n} sources)."
    return f"No source stands out; the farthest is {one['source']}: {where} (p {one['p']:.2f}, one of {n} sources)."


def pooled_page(report: Mapping[str, Any]) -> bytes:
    """The same as an HTML page without script."""
    rows = [(name, effect, None) for name, effect in report["effects"].items()]
    cells = [(f"{cell['source']}: {cell['cell']}", cell["pooled"], cell) for cell in report["cells"]]
    ends = [end for _, estimate, _ in (*rows, *cells) for end in (estimate["low"], estimate["high"])]
    axis = axis_over(ends, include=(0.0,), ticks=5)

    def placed(found: Sequence[tuple[str, Mapping[str, float], Mapping[str, Any] | None]]) -> list[dict[str, JSON]]:
        return [
            {
                "name": name,
                "estimate": dict(estimate),
                "own": None if own is None else dict(own),
                "place": axis.whisker(estimate["mean"], estimate["low"], estimate["high"]),
            }
            for name, estimate, own in found
        ]

    return rendered(
        "pooled.html.j2",
        styles=("_forest.css.j2", "_index.css.j2"),
        report=inert(dict(report)),
        answer=inert(answer_of(report, Signs())),
        effects=placed(inert(rows)),
        cells=placed(inert(cells)),
        odd=inert(odd_sentence(report, Signs())) if report["odd"] else "",
        axis=axis,
        template_version=TEMPLATE_VERSION,
    )
