"""Would a system that knows nothing of the query have scored as well? Four nulls, for one right answer per query.

falsify-eval's call, arguments and result, with p-values, verdicts and strata; docs/null-gate.md has the definitions.
Graded answers, several per query, are for runner.gate.graded_gate.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runner.gate.single_gold.bench import Inputs, Measure, Metric, check_types, checked_inputs
from runner.gate.single_gold.nulls import Progress, named_outcomes, sampled_outcomes
from runner.gate.single_gold.verdict import Findings, Outcome, findings, holm_levels, pooled, unsettled


def four_null_gate(
    retrieved_lists: Sequence[Sequence[Hashable]],
    gold_list: Sequence[Hashable],
    rel_list: Sequence[Any],
    metric_fn: str | Metric,
    *,
    item_pool: Iterable[Hashable] | None = None,
    k: int | None = None,
    n_trials: int = 50,
    tau: float = 0.05,
    seed: int = 2026,
    progress: bool = False,
    strata: Sequence[str] | None = None,
    alpha: float = 0.05,
    draw: bool = True,
) -> dict[str, Any]:
    """The mean score of retrieved lists against nulls A to D, as a dict that json.dumps takes.

    `metric_fn` is "ndcg@10", "recall@5", "mrr@10" or the like, or a function of (retrieved, gold, rel) that depends
    on nothing else. `k`, the length of null C's lists, is a name's cutoff; for a function pass the function's own (5
    if left out). `item_pool` holds all that could be retrieved. With `strata`, one name a query, gold labels are
    exchanged and drawn among the queries of a stratum. `draw=False`, for names only, bounds p by the exact variance
    (Cantelli). ValueError on anything that cannot be tested.

    >>> rows = [["b", "x"], ["a", "y"], ["x", "c"], ["d", "z"], ["e", "x"], ["f", "b"]]
    >>> found = four_null_gate(rows, list("bacdef"), [1] * 6, "recall@2", item_pool=list("abcdefuvwxyz"), n_trials=999)
    >>> found["verdict"], found["real_mean"], round(found["deltas"]["D"], 3), found["p_values"]["D"] <= 0.05
    ('pass', 1.0, 0.806, True)
    """
    inputs = checked_inputs(
        retrieved_lists,
        gold_list,
        rel_list,
        metric_fn,
        item_pool=item_pool,
        k=k,
        n_trials=n_trials,
        tau=tau,
        seed=seed,
        alpha=alpha,
        strata=strata,
    )
    shown = Progress(len(inputs.rows), shown=progress)
    outcomes = _outcomes(inputs, shown, np.random.default_rng(np.random.PCG64(seed)) if draw else None)
    whole = findings(pooled(list(outcomes.values())), tau, alpha)
    by_stratum = _by_stratum(outcomes, tau, alpha) if strata is not None else {}
    trials = n_trials if draw else 0
    sampled = not isinstance(inputs.metric, Measure)
    return {
        **_fields(whole),
        "strata": {name: _stratum_fields(found) for name, found in by_stratum.items()},
        "expected": "sampled" if sampled else "exact",
        "metric": _name(inputs.metric),
        "k": inputs.k,
        "n_trials": trials,
        "tau": float(tau),
        "alpha": float(alpha),
        "seed": seed,
        "warnings": inputs.warnings
        + _structure_warnings(inputs, outcomes)
        + _verdict_warnings(whole, by_stratum, trials, tau, alpha, sampled=sampled),
        **({"stage_seconds": shown.seconds} if progress else {}),
    }


def _outcomes(inputs: Inputs, progress: Progress, generator: np.random.Generator | None) -> dict[str, Outcome]:
    if isinstance(inputs.metric, Measure):
        outcomes = named_outcomes(inputs, inputs.metric, progress, generator)
    elif generator is None:
        raise ValueError("draw=False needs exact variances, which only a named metric has; pass 'ndcg@10' or the like")
    else:
        outcomes = sampled_outcomes(inputs, inputs.metric, progress, generator)
    if not any(outcome.real.any() for outcome in outcomes.values()):
        check_types(inputs)
    return outcomes


def _by_stratum(outcomes: Mapping[str, Outcome], tau: float, alpha: float) -> dict[str, Findings]:
    """Each stratum through the gate by itself, its greatest p at Holm's level among the strata that can decide.

    A stratum in which some null cannot decide is "insufficient", whatever the others say.
    """
    found = {name: findings(outcome, tau, alpha) for name, outcome in outcomes.items()}
    able = [name for name in found if found[name].decides]
    levels = holm_levels([max(null.p for null in found[name].nulls.values()) for name in able], alpha)
    found |= {name: findings(outcomes[name], tau, level) for name, level in zip(able, levels, strict=True)}
    return {name: at if at.decides else replace(at, verdict="insufficient") for name, at in found.items()}


def _fields(found: Findings) -> dict[str, Any]:
    nulls = found.nulls
    return {
        "real_mean": found.real_mean,
        "null_means": {letter: null.mean for letter, null in nulls.items()},
        "null_sds": {letter: null.sd for letter, null in nulls.items()},
        "deltas": {letter: null.delta for letter, null in nulls.items()},
        "intervals": {letter: null.interval for letter, null in nulls.items()},
        "p_values": {letter: null.p for letter, null in nulls.items()},
        "smallest_p": {letter: null.smallest_p for letter, null in nulls.items()},
        "verdicts": {letter: null.verdict for letter, null in nulls.items()},
        "passes": {letter: null.verdict == "pass" for letter, null in nulls.items()},
        "gate_passes": found.verdict == "pass",
        "verdict": found.verdict,
        "reasons": found.reasons,
        "n_queries": found.n_queries,
    }


def _stratum_fields(found: Findings) -> dict[str, Any]:
    fields = _fields(found)
    return {name: fields[name] for name in ("n_queries", "real_mean", "deltas", "p_values", "verdict", "reasons")}


def _structure_warnings(inputs: Inputs, outcomes: Mapping[str, Outcome]) -> list[str]:
    warnings = []
    if len(inputs.labels) == 1:
        warnings.append("all queries have the same gold label: nulls A, B and D cannot tell engines apart")
    elif len(inputs.labels) == len(inputs.gold):
        warnings.append("every gold label occurs once: nulls A, B and D expect the same score, one test and not three")
    real = np.concatenate([outcome.real for outcome in outcomes.values()])
    if ((real < 0) | (real > 1)).any():
        warnings.append(
            f"scores run from {real.min():.4g} to {real.max():.4g}: tau is meant for a measure between 0 and 1"
        )
    return warnings


def _verdict_warnings(
    found: Findings, by_stratum: Mapping[str, Findings], n_trials: int, tau: float, alpha: float, *, sampled: bool
) -> list[str]:
    warnings = []
    for letter, null in found.nulls.items():
        if doubt := unsettled(null, n_trials, tau, alpha, sampled=sampled):
            warnings.append(f"null {letter}: {doubt}; another seed may decide otherwise, raise n_trials")
    for name, stratum in by_stratum.items():
        if stratum.verdict == "fail":
            warnings.append(f"stratum {name!r} does not pass by itself: {'; '.join(stratum.reasons)}")
    return warnings


def _name(metric: Measure | Metric) -> str:
    return str(metric) if isinstance(metric, Measure) else getattr(metric, "__name__", type(metric).__name__)
