"""How a planned look ends, and what is said of it."""

from collections.abc import Sequence

from runner.base.figures import gain_text, whole_percent
from runner.decide.outcome_inputs import OutcomeInputs
from runner.eval_set.shapes.results import LookEnd, LookResult, Outcome
from runner.score.gain_test import shares
from runner.score.looks import FUTILE_CHANCE, FUTILE_GAIN, Look, alphas, chance_at_last


def look_result(inputs: OutcomeInputs, said: Outcome, look: Look | None, kept: Sequence[str]) -> LookResult | None:
    """What results say of their look; None if no looks are planned. `kept` are the digests of the looks before."""
    if look is None:
        return None
    return LookResult(
        number=look.number,
        of=look.of,
        queries=look.queries,
        planned=look.planned,
        alpha=look.alpha,
        ended=_ended(inputs, said, look),
        kept=list(kept),
    )


def _ended(inputs: OutcomeInputs, said: Outcome, look: Look) -> LookEnd | None:
    if said.tier == "confirmed":
        return "confirmed"
    if said.tier == "no decision":
        # Of all that bars a decision more queries mend one thing: too few of them for the null gate.
        few = inputs.baseline.gate.verdict == "insufficient" and all(control.behaves for control in inputs.controls)
        return "next look" if few and not inputs.unjudged and not look.is_last else None
    if look.is_last:
        return "last look"
    return "next look" if any(chance >= FUTILE_CHANCE for chance in _chances(inputs, look)) else "stopped"


def _chances(inputs: OutcomeInputs, look: Look) -> list[float]:
    """Every preregistered challenger's chance of being confirmed at the last look; a cell that fails the gate has none.

    Nothing that is published rests on them: an evening that went on in spite of them would keep its error rate.
    """
    plan = inputs.plan
    rows = [row for row in inputs.cells if row.role == "preregistered"]
    rows.sort(key=lambda row: row.cell not in plan.first)
    n_first = sum(row.cell in plan.first for row in rows)
    return [
        chance_at_last(row.differences["ndcg@10"].mean, row.test.sd, look, plan.rule.min_gain, share)
        for row, share in zip(rows, shares(n_first, len(rows) - n_first), strict=True)
        if row.test is not None and row.gate.verdict != "fail"
    ]


def with_look(said: Outcome, inputs: OutcomeInputs, found: LookResult | None) -> Outcome:
    """The outcome in the words of a look that ended: what it means for the queries that are still to be judged."""
    if found is None or found.ended is None or found.ended == "last look":
        return said
    name, left = f"look {found.number} of {found.of}", found.planned - found.queries
    if found.ended == "confirmed":
        spared = f" At {name}: the other {left} queries need no judge." if left else ""
        return said.model_copy(update={"sentence": said.sentence + spared})
    if found.ended == "stopped":
        head = (
            f"Stopped at {name}: even if a cell truly gained {FUTILE_GAIN:g} nDCG@10, the chance that all "
            f"{found.planned} queries confirm it is below {whole_percent(FUTILE_CHANCE)}."
        )
        return said.model_copy(update={"sentence": f"{head} {said.sentence}"})
    best = inputs.best
    so_far = (
        "" if best is None else f" Best so far: {best.cell}, {gain_text(best.differences['ndcg@10'].mean)} nDCG@10."
    )
    looks = inputs.plan.looks
    more, alpha = looks[found.number] - found.queries, alphas(looks, inputs.plan.significance.alpha)[found.number]
    return said.model_copy(
        update={
            "sentence": (f"At {name}, after {found.queries} of {found.planned} queries, no gain is shown yet.{so_far}"),
            "next_step": (
                f"Next look: add {more} queries, tested at {alpha:.2g} of alpha; have their pairs judged and run "
                "again. Or end the looks here: choose a cell or the baseline."
            ),
        }
    )
