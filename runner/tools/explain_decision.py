"""A version's decision in words: what was chosen, by whom, on what evidence, and what the evidence does not show."""

from runner.base.figures import p_and_bar
from runner.base.schema import FrozenModel
from runner.decide.decide import decision_sentence
from runner.decide.roster import version_in_force
from runner.decide.tiers import interval_of, recall_words
from runner.eval_set.lock import verify_version
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.version import Version, load_decision, load_results
from runner.evening.status import describe
from runner.report import sentences


class Explanation(FrozenModel):
    """What is known of a version's decision.

    `outstanding` says what keeps it from being recorded; `chosen` to `decided_on` are empty until it is, `tier` to
    `weaknesses` until something was scored.
    """

    source: str
    version: int
    decided: bool
    outstanding: str
    sentence: str
    chosen: str
    decided_by: str
    reason: str
    decided_on: str
    tier: str
    found: str
    evidence: list[str]
    next_step: str
    weaknesses: list[str]

    def lines(self) -> list[str]:
        """Return the explanation as a person reads it."""
        lines = [f"{self.sentence} Recorded on {self.decided_on}." if self.decided else self.sentence]
        lines += [text for text in (self.found, *self.evidence) if text]
        lines += [f"Next: {self.next_step}"] if self.next_step else []
        return lines + [f"Weakness: {weakness}" for weakness in self.weaknesses]


def explain(version: Version) -> Explanation:
    """Return the decision of a version whose locks hold (IntegrityError if they do not), or what keeps it from one."""
    # A version that is in force is told of, not the newer one that is still open.
    verify_version(version)
    version = (None if version.rehearsal else version_in_force(version)) or version
    lines, decided = describe(version)
    results = load_results(version) if version.results_path.exists() else None
    decision = load_decision(version) if decided else None
    outstanding = "" if decided else lines[-1].removeprefix("undecided: ")
    return Explanation(
        source=version.source.name,
        version=version.number,
        decided=decided,
        outstanding=outstanding,
        sentence=f"{version.name} is undecided: {outstanding}" if decision is None else decision_sentence(decision),
        chosen=decision.chosen.cell if decision is not None else "",
        decided_by=decision.decided_by if decision is not None else "",
        reason=decision.reason if decision is not None else "",
        decided_on=decision.decided_on if decision is not None else "",
        tier=results.outcome.tier if results is not None else "",
        found=sentences.found(results, decision) if results is not None else "",
        evidence=_evidence(results, decision) if results is not None else [],
        next_step=sentences.next_step(results, decision) if results is not None else "",
        weaknesses=sentences.weaknesses(results) if results is not None else [],
    )


def _evidence(results: Results, decision: Decision | None) -> list[str]:
    """Return a sentence each of the baseline, of the cell chosen, and of the best of the others."""
    best_other = next((row.cell for row in results.cells if row.test is not None), "")
    named = {results.plan.baseline, best_other, decision.chosen.cell if decision is not None else ""}
    return [_of_cell(row, results) for row in results.cells if row.cell in named]


def _of_cell(row: CellResult, results: Results) -> str:
    ndcg, recall = row.scores["ndcg@10"], row.scores["recall@10"]
    sentence = (
        f"{row.cell}: nDCG@10 {ndcg.mean:.4f} ({100 * results.plan.bootstrap.confidence:g} % interval "
        f"{ndcg.low:.4f} to {ndcg.high:.4f}), Recall@10 {recall.mean:.4f}, null gate {row.gate.verdict}"
    )
    # Its own scores, then the test against the baseline, then whether it is confirmed.
    if row.test is None or row.recall_bound is None:
        return f"{sentence}; the baseline."
    low, high = interval_of(row.test)
    kind = "simultaneous " if row.test.simultaneous else ""
    p, bar = row.test.p_gain, row.test.bar
    claimed = "no p" if p is None or bar is None else f"p of no gain {', bar '.join(p_and_bar(p, bar))}"
    level = 100 * (1 - results.plan.significance.alpha)
    fall = recall_words(row, results.counted, results.plan.rule)
    sentence += (
        f"; {row.differences['ndcg@10'].mean:+.4f} nDCG@10 to the baseline ({kind}{level:g} % interval {low:+.4f} "
        f"to {high:+.4f}, {claimed}); Recall@10: {fall}"
    )
    if row.loss is not None:
        sentence += f"; against {row.loss.of} it loses at most {row.loss.at_most} (one-sided, {level:g} %)"
    return f"{sentence}; confirmed." if row.confirmed else f"{sentence}; it {', '.join(row.short_of)}."
