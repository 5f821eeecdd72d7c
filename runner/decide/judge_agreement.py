"""What second and repeated readings say of the judges, together, and the same as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from textwrap import wrap

from runner.base.figures import p_text, whole_percent
from runner.base.records import Ints, Run
from runner.eval_set.plan import undated
from runner.eval_set.shapes.judges import (
    Agreement,
    Estimate,
    JudgeDrift,
    Readers,
    SecondJudge,
)
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.plan import Plan
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double, doubles, drifts, repeats
from runner.judge.agreement.kappa import confusion, estimates, left_open

WIDTH = 110


def judge_agreement(
    labels: Iterable[Label], runs: Mapping[str, Run], query_ids: Iterable[str], plan: Plan
) -> Agreement:
    """What the labels of these queries say of the judges; no entries if no pair was read more than once.

    `runs` are those whose first ten are told apart; without the baseline among them nothing is said by cell.
    """
    known = set(query_ids)
    rows = [label for label in labels if label.query_id in known]
    pairs = {(label.query_id, label.doc_id) for label in rows if label.round == 1}
    twice = doubles(rows)
    judges = sorted({double.second_judge for double in twice})
    return Agreement(
        pairs=len(pairs),
        read_twice=len({(double.query_id, double.doc_id) for double in twice}),
        seconds=[_second([d for d in twice if d.second_judge == judge], runs, plan) for judge in judges],
        drift=drifts(repeats(rows), seed=plan.significance.seed),
    )


def _second(twice: Sequence[Double], runs: Mapping[str, Run], plan: Plan) -> SecondJudge:
    by_query = _by_query(twice)
    settings = plan.significance
    compared = runs if plan.baseline in runs else {}
    kappa, binary = estimates(
        by_query, plan.relevant_grade, seed=plan.bootstrap.seed, confidence=plan.bootstrap.confidence
    )
    by_cell = favours(twice, compared, plan.baseline, alpha=settings.alpha, seed=settings.seed) if compared else []
    return SecondJudge(
        judge=twice[0].second_judge,
        models=sorted({double.second_model for double in twice} - {""}),
        readers=_readers(twice),
        first_judges=sorted({double.first_judge for double in twice}),
        pairs=len(twice),
        queries=len(by_query),
        same=sum(double.first == double.second for double in twice),
        kappa=kappa,
        binary=binary,
        by_cell=by_cell,
    )


def _readers(twice: Sequence[Double]) -> Readers:
    if not all(double.first_model and double.second_model for double in twice):
        return "people"
    is_one = all(undated(double.first_model) == undated(double.second_model) for double in twice)
    return "one model" if is_one else "models"


def _by_query(twice: Sequence[Double]) -> dict[str, Ints]:
    grades: dict[str, list[tuple[int, int]]] = {}
    for double in twice:
        grades.setdefault(double.query_id, []).append((double.first, double.second))
    return {query_id: confusion(found) for query_id, found in grades.items()}


def summary_lines(agreement: Agreement, plan: Plan) -> list[str]:
    """The agreement as plain text: tables first, then what so many readings can say."""
    lines = [f"{agreement.pairs:,} pairs have a grade; {agreement.read_twice:,} were read by another judge as well."]
    for second in agreement.seconds:
        lines += ["", *_second_lines(second, plan)]
    for drift in agreement.drift:
        lines += ["", *_drift_lines(drift, plan)]
    if not agreement.drift:
        lines += ["", "No judge read a pair again: whether one repeats itself is not known."]
    return lines


def can_say(second: SecondJudge, plan: Plan) -> str:
    """What the readings of one second judge can and cannot show, with their own figures."""
    estimate = second.kappa
    said = f"{second.pairs} pairs of {second.queries} queries "
    if estimate.value is None:
        said += "do not vary enough for a kappa"
    elif estimate.low is None:
        said += f"give a weighted kappa of {estimate.value:.2f}, without an interval"
    else:
        said += f"leave the weighted kappa anywhere from {estimate.low:.2f} to {estimate.high:.2f}"
    if unseen := left_open(second.same, second.pairs, plan.bootstrap.confidence):
        said += f"; {unseen}"
    needed = [row.beyond_chance for row in second.by_cell if row.beyond_chance is not None]
    if needed:
        said += (
            "; a judge that favours one cell shows here if it gives its documents more than about "
            f"{median(needed):.1f} grades over those of the baseline"
        )
    elif second.by_cell:
        said += "; whether a judge favours one cell they cannot show, however strongly it does"
    if favoured := _favoured(second, plan.significance.alpha):
        said += (
            f". {favoured} looks favoured: either a judge favours that side, or one judge errs much more than the "
            "other and the sides find documents of other worth; read the pairs"
        )
    if second.readers == "one model":
        said += ". One language model read both times, and may err alike; what others would say is not known"
    elif second.readers == "models":
        said += ". These are two language models; what people would say is not known"
    return (
        f"{said}. A difference says that the two judges differ, not which of them is right, and all of it holds for "
        "pairs in general only if those read twice were drawn regardless of their grades."
    )


def _favoured(second: SecondJudge, alpha: float) -> str:
    """Whose documents the first judge grades higher beyond chance, and beside whose; "" if nobody's."""
    found = []
    for row in second.by_cell:
        if row.p_for_cell is not None and row.p_for_cell <= alpha:
            found.append(f"{row.cell} beside the baseline")
        if row.p_for_baseline is not None and row.p_for_baseline <= alpha:
            found.append(f"the baseline beside {row.cell}")
    said = " and ".join(found)
    return said[:1].upper() + said[1:] if said.startswith("the ") else said


def _second_lines(second: SecondJudge, plan: Plan) -> Iterator[str]:
    model = f" ({', '.join(second.models)})" if second.models not in ([], [second.judge]) else ""
    beside = ", ".join(second.first_judges)
    yield f"{second.judge}{model} beside {beside}: {second.pairs:,} pairs, {second.queries} queries"
    yield f"  {'':26} {'value':>7}  {100 * plan.bootstrap.confidence:g} % interval (over queries)"
    yield f"  {'weighted kappa':26} {_estimate(second.kappa)}"
    bound = "  (over pairs, one-sided: Clopper-Pearson)" if second.binary.value in (0, 1) else ""
    yield f"  {'relevant or not: same':26} {_estimate(second.binary)}{bound}"
    yield f"  {second.same:,} pairs have the same grade twice; relevant is grade {plan.relevant_grade} or more"
    yield from _cell_lines(second)
    yield from wrap(can_say(second, plan), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not defined"
    interval = "" if estimate.low is None else f"  {estimate.low:.3f} to {estimate.high:.3f}"
    return f"{estimate.value:7.3f}{interval}"


def _cell_lines(second: SecondJudge) -> Iterator[str]:
    if not second.by_cell:
        return
    wide = max(len(row.cell) for row in second.by_cell)
    yield "  first less second grade, the cell's pairs less the baseline's, and p (max-T) of a favoured side"
    yield f"  {'':{wide}}  only cell's  only baseline's  contrast    needed  p cell  p baseline"
    for row in second.by_cell:
        p_cell, p_baseline = (p_text(p) if p is not None else "-" for p in (row.p_for_cell, row.p_for_baseline))
        contrast = "  ".join(f"{_signed(value):>8}" for value in (row.contrast, row.beyond_chance))
        counts = f"{row.n_cell:>11}  {row.n_baseline:>15}"
        yield f"  {row.cell:{wide}}  {counts}  {contrast}  {p_cell:>6}  {p_baseline:>10}"
    for unknown in dict.fromkeys(row.unknown for row in second.by_cell if row.unknown):
        cells = ", ".join(row.cell for row in second.by_cell if row.unknown == unknown)
        yield from wrap(f"{unknown}: {cells}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2) + 0.0:+.2f}"


def _drift_lines(drift: JudgeDrift, plan: Plan) -> Iterator[str]:
    yield f"{drift.judge} read {drift.repeats} pairs of {drift.queries} queries again"
    yield f"  same grade {whole_percent(drift.same / drift.repeats)}"
    yield f"  new grade less old {_signed(drift.shift)}, p of no shift {p_text(drift.p_shift)}"
    if unseen := left_open(drift.same, drift.repeats, plan.bootstrap.confidence):
        yield f"  {unseen}"
