"""What the sources' locked results say together, as data and as lines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.base.figures import signed
from runner.decide.locked_gains import MEASURE, Given, prior_from
from runner.eval_set.plan import prior_text
from runner.eval_set.shapes.plan import Prior
from runner.score.pooling import MEAN_SD, TAU_SCALE, pool

STANDS_OUT = 0.05
"""p, times the number of sources, at which a source is called different from the others."""


def pooled_report(given: Sequence[Given]) -> dict[str, Any]:
    """Return inputs with their digests, and every figure: a function of the inputs' bytes alone."""
    found = pool([one.gains for one in given])
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
        "model": {"mean_sd": MEAN_SD, "tau_scale": TAU_SCALE},
        "effects": {kind: effect._asdict() for kind, effect in found.effects.items()},
        "cells": [asdict(cell) for cell in found.cells],
        "prior": prior_from(given).model_dump(),
        "odd": [asdict(one) for one in found.odd],
    }


def answer_of(report: Mapping[str, Any]) -> str:
    """Say what structural chunkers add over these sources, cut or not; if no cell has one, the clearest kind."""
    effects = report["effects"]
    clearest = max(effects, key=lambda kind: abs(effects[kind]["mean"]) / effects[kind]["sd"])
    kinds = [kind for kind in effects if kind.startswith("structural")] or [clearest]
    return " ".join(_answer(kind, effects[kind]) for kind in kinds)


def _answer(kind: str, effect: Mapping[str, float]) -> str:
    n = effect["sources"]
    shown = "a gain" if effect["low"] > 0 else "a loss" if effect["high"] < 0 else "not shown to be a gain or a loss"
    return (
        f"{kind[0].upper()}{kind[1:]}: {signed(effect['mean'], 3)} nDCG@10 over {n} source{'s' * (n > 1)} "
        f"(95 % interval {signed(effect['low'], 3)} to {signed(effect['high'], 3)}), {shown}."
    )


def pooled_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the answer, a row a kind, a row a cell, the source that differs most, and a prior to paste."""
    lines = [answer_of(report), "", f"kind of cell against {report['baseline']}: nDCG@10, 95 % interval, scatter"]
    for kind, effect in report["effects"].items():
        ends = f"[{signed(effect['low'], 3)}, {signed(effect['high'], 3)}]"
        lines.append(f"  {kind:<16} {signed(effect['mean'], 3)} {ends:<18} {effect['scatter']:.3f}")
    lines += ["", "each cell: its source's own figure, and what it shrinks to by those of the other sources"]
    for cell in report["cells"]:
        alone = f"{signed(cell['gain'], 3)} ± {cell['standard_error']:.3f}"
        shrunk = f"{signed(cell['expected'], 3)} ± {cell['sd']:.3f}"
        lines.append(f"  {cell['source'] + ': ' + cell['cell']:<66} {alone}   {shrunk}")
    if report["odd"]:
        lines += ["", _odd_sentence(report)]
    prior = prior_text(Prior.model_validate(report["prior"])).splitlines()
    return [*lines, "", "for the plan.yaml of a source that is not among these:", *prior]


def _odd_sentence(report: Mapping[str, Any]) -> str:
    """Say which source lies farthest from what the others predict, and whether that is more than chance."""
    one, n = report["odd"][0], len(report["odd"])
    where = f"{signed(one['gain'], 3)} on average where the others predict {signed(one['predicted'], 3)}"
    if one["p"] * n <= STANDS_OUT:
        return f"{one['source']} differs from the others: {where} (p {one['p']:.3f}, one of {n} sources)."
    return f"No source stands out; the farthest is {one['source']}: {where} (p {one['p']:.2f}, one of {n} sources)."
