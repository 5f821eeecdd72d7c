"""What a run says on the terminal when it is done."""

from runner.result_schemas import Decision, Results


def ranking_table(results: Results) -> str:
    """One line a cell, best nDCG@10 first, differences with their sign."""
    width = max(len(row.cell) for row in results.cells)
    lines = [f"{'cell':<{width}}  nDCG@10  (diff)    Recall@10  (diff)    MRR"]
    for row in results.cells:
        ndcg, recall = row.scores["ndcg@10"].mean, row.scores["recall@10"].mean
        gain, change = row.differences["ndcg@10"].mean, row.differences["recall@10"].mean
        base = row.role == "baseline"
        lines.append(
            f"{row.cell:<{width}}  {ndcg:.4f}   {'baseline' if base else f'{gain:+.4f}':<8}  "
            f"{recall:.4f}     {'baseline' if base else f'{change:+.4f}':<8}  {row.scores['mrr'].mean:.4f}"
        )
    return "\n".join(lines)


def decision_sentence(decision: Decision) -> str:
    """What was chosen, for what tier of evidence, by whom and why."""
    head = f"{decision.source} v{decision.version}"
    if decision.kind == "rehearsal":
        head = f"rehearsal of {head} (never counts as a decision)"
    kept = "the baseline, " if decision.chosen.cell == decision.baseline else ""
    found: str = decision.tier
    if decision.tier == "candidate":
        found = "1 candidate" if len(decision.candidates) == 1 else f"{len(decision.candidates)} candidates"
    chosen = f"{head}: chosen is {kept}{decision.chosen.cell} ({found})."
    return f"{chosen} Decided by {decision.decided_by}: {decision.reason}."
