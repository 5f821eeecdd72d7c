"""Whether a gain could be owed to a change of the model that grades: one graded first, another what was added later.

Cells find pairs of both models to different parts, so a model that is stricter moves a difference though it favours no
cell. The later model reads some of the first one's pairs, drawn without regard to how the models differ; from these
follows what it would have said of all of them. With those grades drawn, all pairs are graded on one scale: that of the
later model, since the pairs that were drawn are the first one's, and say of no grade of the later model what the first
would have given.
"""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence

import numpy as np

from runner.base.figures import gain_text, round4
from runner.base.records import SCORE_UNIT, Ints
from runner.decide.judge_noise.two_level import DRAWS, N_GRADES, arms, drawn_differences, judged_queries, percentiles
from runner.eval_set.batches import Pair
from runner.eval_set.labels import scored
from runner.eval_set.plan import same_model
from runner.eval_set.shapes.judges import ChangedCell, Estimate, ModelChange
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.plan import Plan
from runner.judge.agreement.double_graded import Double
from runner.judge.agreement.kappa import confusion, estimates
from runner.judge.second_reading import REGRADED, readings_of, scored_models
from runner.score.comparison import Comparison


def model_change(comparison: Comparison, labels: Sequence[Label], *, draws: int = DRAWS) -> ModelChange | None:
    """What is known of the shift from the first model to the next, and what it leaves of each cell; None for one model.

    Nothing is drawn, and `unknown` says why, while too few pairs were read by both, or if more than two models graded.
    """
    models = scored_models(labels)
    if len(models) < 2:  # one model alone has no shift
        return None
    first, then = models[:2]
    graded = scored(labels)
    old = {pair: label.grade for pair, label in graded.items() if same_model(label.model, first)}
    read = readings_of(labels, then, old)
    wanted = min(REGRADED, len(old))
    unknown = ""
    if len(models) > 2:
        unknown = f"{', '.join(models)} graded, and a shift among more than two models is not estimated"
    elif len(read) < wanted:
        unknown = f"{then} has read {len(read)} of the {wanted} pairs of {first} that it takes"
    plan = comparison.plan
    tables = _by_query(old, read)
    return ModelChange(
        first=first,
        then=then,
        first_pairs=len(old),
        then_pairs=sum(same_model(label.model, then) for label in graded.values()),
        wanted=wanted,
        read=len(read),
        confusion=sum(tables.values(), confusion([])).tolist(),
        shift=_shift(list(tables.values()), plan, draws),
        kappa=estimates(tables, plan.relevant_grade, seed=plan.bootstrap.seed, confidence=plan.bootstrap.confidence)[0],
        draws=0 if unknown else draws,
        confidence=plan.bootstrap.confidence,
        cells=[] if unknown else _cells(comparison, _doubles(old, read, models), graded.keys() - old.keys(), draws),
        unknown=unknown,
    )


def change_sentence(change: ModelChange) -> str:
    """Who graded what, and the shift that the pairs which both read show."""
    said = f"{change.first} graded {change.first_pairs:,} pairs and {change.then} {change.then_pairs:,}, added later"
    if change.unknown:
        return f"{said}: {change.unknown}; until then nothing is confirmed."
    shift = change.shift
    ends = "" if shift.low is None or shift.high is None else f" ({shift.low:+.2f} to {shift.high:+.2f})"
    told = "not defined" if shift.value is None else f"{shift.value:+.2f}{ends} grades"
    kappa = "not defined" if change.kappa.value is None else f"{change.kappa.value:.2f}"
    fall = [row.cell for row in change.cells if row.could_fall]
    left = f"with all grades on one scale {'; '.join(fall)} could fall short" if fall else "no cell hangs on it"
    return (
        f"{said}. Of {change.read:,} pairs that both read, {change.then}'s grade less {change.first}'s is {told} on "
        f"average (weighted kappa {kappa}); {left}."
    )


def change_blockers(cell: str, change: ModelChange | None) -> list[str]:
    """What a change of the model leaves of a cell, in words of `tiers.unmet_criteria`; none if one model graded."""
    if change is None:
        return []
    if change.unknown:
        return [f"was graded by two models whose shift is not known ({change.unknown})"]
    row = next((row for row in change.cells if row.cell == cell), None)
    if row is None or not row.could_fall:
        return []
    low, high = map(gain_text, row.interval)
    return [f"may owe its gain to the change from {change.first} to {change.then} ({low} to {high} on one scale)"]


def _by_query(old: Mapping[Pair, int], read: Mapping[Pair, int]) -> dict[str, Ints]:
    """Confusion counts of the pairs that both models read, by query."""
    both: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for pair in sorted(read):
        both[pair[0]].append((old[pair], read[pair]))
    return {query_id: confusion(grades) for query_id, grades in both.items()}


def _doubles(old: Mapping[Pair, int], read: Mapping[Pair, int], models: Sequence[str]) -> list[Double]:
    first, then = models
    return [Double(*pair, old[pair], read[pair], first, then, first, then) for pair in sorted(read)]


def _shift(tables: Sequence[Ints], plan: Plan, draws: int) -> Estimate:
    """Mean of the later grade less the first, with percentiles over draws of the queries, if there are two."""
    if not tables:
        return Estimate(value=None, low=None, high=None)
    steps = np.arange(N_GRADES) - np.arange(N_GRADES)[:, None]
    sums, sizes = (np.array([int((table * by).sum()) for table in tables]) for by in (steps, np.ones_like(steps)))
    value = float(sums.sum() / sizes.sum())
    if len(tables) == 1:
        return Estimate(value=value, low=None, high=None)
    counts = _counts(len(tables), draws, np.random.default_rng(np.random.PCG64(plan.bootstrap.seed)))
    low, high = percentiles((counts @ sums) / (counts @ sizes), plan.bootstrap.confidence)
    return Estimate(value=value, low=low, high=high)


def _cells(comparison: Comparison, twice: Sequence[Double], settled: Container[Pair], draws: int) -> list[ChangedCell]:
    """Every challenger with the first model's unread grades drawn; those of `settled` pairs stay."""
    cells, plan, n_queries = sorted(comparison.challengers), comparison.plan, len(comparison.query_ids)
    generator = np.random.default_rng(np.random.PCG64(plan.bootstrap.seed))
    counts = _counts(n_queries, draws, generator)
    queries = judged_queries(comparison, twice, settled)
    beside = [arms(comparison, cell, queries) for cell in cells]
    now, anew = (np.zeros((len(cells), 2, draws), np.int64) for _ in range(2))
    drawn = drawn_differences(queries, beside, counts, plan.relevant_grade, generator, each_once=True)
    for place, (number, values) in enumerate(drawn):
        now[number] += values
        anew[number] += values * counts[:, place // len(cells)]
    whole, level = n_queries * SCORE_UNIT, plan.bootstrap.confidence
    found = []
    for cell, own, with_queries in zip(cells, now / whole, anew / whole, strict=True):
        gains, recalls, redrawn = (percentiles(values, level) for values in (*own, with_queries[0]))
        row = ChangedCell(
            cell=cell,
            gain=float(own[0].mean()),
            interval=gains,
            recall=float(own[1].mean()),
            recall_interval=recalls,
            with_queries=redrawn,
            could_fall=round4(gains[0]) < plan.rule.min_gain
            or round4(recalls[0]) < -plan.rule.max_recall_loss
            or round4(redrawn[0]) <= 0,
        )
        found.append(row)
    return found


def _counts(n_queries: int, draws: int, generator: np.random.Generator) -> Ints:
    """How often each draw takes each query (draws, queries)."""
    taken = generator.integers(n_queries, size=(draws, n_queries))
    return np.stack([(taken == row).sum(axis=1) for row in range(n_queries)], axis=1)
