"""What pooling found, as data and as lines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.base.canonical import JSON
from runner.base.figures import signed
from runner.tools.pooled.model import EFFECT_SD, MIN_GAIN, TAU_SCALE, Pooled, pooled_apart
from runner.tools.pooled.records import MEASURE, STRUCTURAL, Given

STANDS_OUT = 0.05
"""p, times the number of sources, at which a source is called different from the others."""


def pooled_report(given: Sequence[Given]) -> dict[str, Any]:
    """Return inputs with their digests, priors, and every figure: a function of the inputs' bytes alone."""
    found = pooled_apart([one.gains for one in given], given[0].baseline.rpartition(" x ")[0])
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
        "schema_version": 1,
        "kind": given[0].kind,
        "baseline": given[0].baseline,
        "measure": MEASURE,
        "inputs": inputs,
        "priors": {"effect_sd": EFFECT_SD, "tau_scale": TAU_SCALE, "min_gain": MIN_GAIN},
        "effects": {name: asdict(effect) for name, effect in found.effects.items()},
        "cells": [asdict(cell) for cell in found.cells],
        "prior": _prior_of(found) | {"from_results": [one.results_sha256 for one in given]},
        "odd": [asdict(one) for one in found.odd],
        "tau": found.tau,
    }


def _prior_of(found: Pooled) -> dict[str, JSON]:
    """Return mean and SD of the true gains of these cells: what a plan may take a new source's challengers for."""
    mean = sum(cell.pooled.mean for cell in found.cells) / len(found.cells)
    square = sum(cell.pooled.sd**2 + (cell.pooled.mean - mean) ** 2 for cell in found.cells) / len(found.cells)
    return {"mean": round(mean, 4), "sd": max(0.0001, round(math.sqrt(square), 4))}


def answer_of(report: Mapping[str, Any]) -> str:
    """Say what the structural chunker adds over these sources, cut or not; if no cell has one, the clearest effect."""
    effects = report["effects"]
    if not effects:
        return "No cell differs from its baseline in encoder or kind of chunker, so nothing is common to the sources."
    clearest = max(effects, key=lambda name: abs(effects[name]["p_above_0"] - 0.5))
    names = sorted(name for name in effects if name.startswith(STRUCTURAL) and "without" not in name) or [clearest]
    return " ".join(_answer(report, name) for name in names)


def _answer(report: Mapping[str, Any], name: str) -> str:
    effect, n = report["effects"][name], len(report["inputs"])
    chance, large = effect["p_above_0"], effect["p_above_bar"]
    shown = "a gain" if effect["low"] > 0 else "a loss" if effect["high"] < 0 else "not shown to be a gain or a loss"
    return (
        f"{name[0].upper()}{name[1:]}: {signed(effect['mean'], 3)} nDCG@10 over {n} source{'s' * (n > 1)} "
        f"(95 % interval {signed(effect['low'], 3)} to {signed(effect['high'], 3)}), {shown}. The chance "
        f"of any gain is {100 * chance:.0f} %, of {MIN_GAIN:g} or more {100 * large:.0f} %."
    )


def pooled_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the answer, a row per effect, a row per cell, and the source that differs most."""

    def row(name: str, estimate: Mapping[str, float], own: str = "") -> str:
        ends = f"[{signed(estimate['low'], 3)}, {signed(estimate['high'], 3)}]"
        return f"  {name:<58} {signed(estimate['mean'], 3)} {ends:<18} {estimate['p_above_0']:>4.0%}{own}"

    lines = [answer_of(report), "", f"against {report['baseline']}, nDCG@10, 95 % interval, chance of a gain"]
    lines += [row(name, effect) for name, effect in report["effects"].items()]
    lines += ["", "each cell: its source's own figure, and what it shrinks to beside the others"]
    for cell in report["cells"]:
        own = f"   alone {signed(cell['gain'], 3)} (standard error {cell['standard_error']:.3f})"
        lines.append(row(f"{cell['source']}: {cell['cell']}", cell["pooled"], own))
    if report["odd"]:
        lines += ["", _odd_sentence(report)]
    prior = report["prior"]
    digests = ", ".join(prior["from_results"])
    return [
        *lines,
        "",
        "for the plan.yaml of a source that is not among these:",
        f"prior: {{mean: {prior['mean']:g}, sd: {prior['sd']:g}, from_results: [{digests}]}}",
    ]


def _odd_sentence(report: Mapping[str, Any]) -> str:
    """Say which source lies farthest from what the others predict, and whether that is more than chance."""
    one, n = report["odd"][0], len(report["odd"])
    where = f"{signed(one['gain'], 3)} on average where the others predict {signed(one['predicted'], 3)}"
    if one["p"] * n <= STANDS_OUT:
        return f"{one['source']} differs from the others: {where} (p {one['p']:.3f}, one of {n} sources)."
    return f"No source stands out; the farthest is {one['source']}: {where} (p {one['p']:.2f}, one of {n} sources)."
