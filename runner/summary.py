"""What a run says on the terminal when it is done."""

from runner.decision_schemas import Decision
from runner.result_schemas import Results
from runner.tiers import gain_text, p_text


def ranking_table(results: Results) -> str:
    """One line a cell, best nDCG@10 first, differences with their sign; below it what the figures do not show."""
    width = max(len(row.cell) for row in results.cells)
    lines = [f"{'cell':<{width}}  nDCG@10  (diff)    adj. p   Recall@10  (diff)    guard         gate"]
    for row in results.cells:
        ndcg, recall = row.scores["ndcg@10"].mean, row.scores["recall@10"].mean
        gain, change = (f"{gain_text(row.differences[name].mean)}" for name in ("ndcg@10", "recall@10"))
        adjusted, guard = "", ""
        if row.test is None or row.guard is None:
            gain = change = "baseline"
        else:
            adjusted = "" if row.test.p_adjusted is None else p_text(row.test.p_adjusted)
            guard = row.guard.state
        lines.append(
            f"{row.cell:<{width}}  {ndcg:.4f}   {gain:<8}  {adjusted:<7}  {recall:.4f}     {change:<8}  {guard:<12}  "
            f"{row.gate.verdict}"
        )
    lines += [f"{row.cell}: {row.diagnosis}" for row in results.cells if row.diagnosis]
    lines += [f"not shown: {results.outcome.not_shown}", f"next: {results.outcome.next_step}"]
    return "\n".join(lines)


def decision_sentence(decision: Decision) -> str:
    """What was chosen, for what tier of evidence, by whom and why."""
    head = f"{decision.source} v{decision.version}"
    if decision.kind == "rehearsal":
        head = f"rehearsal of {head} (never counts as a decision)"
    chosen = decision.chosen
    said = f"{chosen.cell} ({chosen.standing})"
    if decision.kind == "policy":
        said = f"the baseline, {chosen.cell} (by policy, nothing was measured)"
    elif chosen.standing == "the baseline":
        said = f"the baseline, {chosen.cell} ({_beside(decision)})"
    return f"{head}: chosen is {said}. Decided by {decision.decided_by}: {decision.reason}."


def _beside(decision: Decision) -> str:
    """What the baseline was chosen instead of."""
    if decision.tier == "confirmed":
        return "though a cell is confirmed"
    if decision.tier == "candidate":
        return "1 candidate" if len(decision.candidates) == 1 else f"{len(decision.candidates)} candidates"
    return decision.tier
