"""`--dry-run`: what the version is, what exists, what is missing, what it would cost. No network, no writes.

Its last line is what determiners search for: exactly "decision recorded", or "undecided: ...". The second never
contains the words of the first.
"""

from dataclasses import replace
from pathlib import Path

import yaml

from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display
from runner.base.records import WITHOUT_VECTORS, parse_cell
from runner.decide.decide import decision_sentence
from runner.decide.policy import HARD_ABOVE
from runner.decide.roster import locked_decision, new_plan_text, version_in_force
from runner.decide.sample_size import shown_by
from runner.eval_set.catalog import ENCODERS, SourceSpec
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import abandoned, versions_of
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_decision, load_queries, load_results
from runner.evening.costs import Asked, costs
from runner.evening.stops import outstanding, steps

RECORDED = "decision recorded"
NOT_LOCKED = "what was chosen is not locked yet; `run` locks it"


def describe(version: Version, corpus_path: Path | None = None, asked: Asked | None = None) -> tuple[list[str], bool]:
    """The lines to print, and whether a decision is recorded and locked: this version's, or an earlier one in force.

    `asked` says whose prices count. Raises BudgetError for a damaged ledger, and IntegrityError if a frozen file
    changed and no earlier decision is in force.
    """
    asked = asked or Asked()
    in_force = None if version.rehearsal else version_in_force(version)
    is_settled = in_force is not None and in_force.number == version.number  # then its lock holds what was frozen
    try:
        if version.preregistration_path.exists() and not is_settled:
            verified_preregistration(version)
        lines, missing = _described(version, corpus_path, asked)
    except (InputError, IntegrityError) as error:
        if in_force is None or is_settled:
            raise
        lines, missing = [version.name], str(error)  # nothing in an open version unsettles a decision
    lines += _abandoned_lines(version)
    if missing and in_force is not None:
        lines += [f"{version.name} is open: {missing}", f"in force: {decision_sentence(load_decision(in_force))}"]
        missing = ""
    if not missing:
        return [*lines, RECORDED], True
    return [*lines, *_meanwhile(version), f"undecided: {missing}"], False


def _described(version: Version, corpus_path: Path | None, asked: Asked) -> tuple[list[str], str]:
    """What is known of the version by itself, and what keeps it from a decision, "" if it is recorded and locked."""
    lines = [version.name, *_policy_lines(version.source)]
    if (version.folder / "decision.json").exists() and (adopted := _adopted(version)):
        lines.append(decision_sentence(adopted))
        if version.rehearsal:
            return lines, "the baseline was adopted by policy, so there is nothing to rehearse"
        return lines, "" if (version.folder / LOCK_NAME).exists() else NOT_LOCKED
    path = version.plan_path(rehearsal=version.rehearsal)
    if path.exists():
        plan = planned = version.plan()
        lines += _plan_lines(plan)
    else:
        plan = None
        lines.append(f"plan: {path} does not exist yet; the first run writes this one:")
        text = new_plan_text(version, rehearsal=version.rehearsal)
        planned = Plan.model_validate(yaml.safe_load(text))
        lines += [f"  {line}" for line in text.splitlines()]
    lines += costs(version, plan, asked).said
    lines += [f"done: {step}" for step in steps(version)]
    lines += _kept(version)
    if version.source.policy != "external":
        lines += filter(None, [_shown_by(version, planned)])
    if corpus_path is not None and not corpus_path.exists():
        lines.append(f"corpus path: {display(corpus_path)}, which does not exist")
    if not (version.record / "decision.json").exists():
        return lines, outstanding(version).outstanding
    if not (version.record / LOCK_NAME).exists():
        return lines, NOT_LOCKED
    lines.append(decision_sentence(load_decision(version)))
    return lines, "this is the rehearsal, which never counts" if version.rehearsal else ""


def _meanwhile(version: Version) -> list[str]:
    """What holds while the record is undecided: the baseline, and what a locked rehearsal would have chosen."""
    if version.source.policy == "external" or version.rehearsal:
        return []
    lines = [
        f"meanwhile: the baseline {version.source.baseline}, for at most {HARD_ABOVE:,} documents "
        f"(bulk-gate {version.flags} N)"
    ]
    if rehearsed := locked_decision(replace(version, rehearsal=True)):
        chosen = rehearsed.chosen.cell
        kept = chosen == rehearsed.baseline
        would = f"keep its baseline, {chosen}" if kept else f"switch to {chosen}"
        tier = "there was a candidate" if kept and rehearsed.tier == "candidate" else rehearsed.tier
        lines.append(f"rehearsed: it would {would} ({tier}); a rehearsal never counts")
    return lines


def _abandoned_lines(version: Version) -> list[str]:
    """A line for each version that was given up; its reason is left out, which might be what determiners search for."""
    given_up = [(one, found) for one in versions_of(version) if (found := abandoned(one)) is not None]
    return [f"v{one.number} abandoned on {row.abandoned_on}: {one.folder / 'abandoned.json'}" for one, row in given_up]


def _adopted(version: Version) -> Decision | None:
    """The decision by policy of the version's record, None for any other."""
    decision = load_decision(replace(version, rehearsal=False))
    return decision if decision.kind == "policy" else None


def _plan_lines(plan: Plan) -> list[str]:
    cells = [parse_cell(text) for text in plan.cells]
    encoders = sorted({cell.encoder for cell in cells if not isinstance(cell, WITHOUT_VECTORS)})
    hub = [name for name in encoders if name in ENCODERS and name not in plan.encoders and not ENCODERS[name].package]
    return [
        f"plan: {len(plan.cells)} cells, pool depth {plan.pool_depth}, baseline {plan.baseline}",
        *(f"  {cell}" for cell in plan.cells),
        f"rule: nDCG@10 up by {plan.rule.min_gain:g} or more, Recall@10 down by {plan.rule.max_recall_loss:g} at most",
        f"encoders: {', '.join(encoders)}" + (f" (from the model hub: {', '.join(hub)})" if hub else ""),
        *(f"  {name} is the plan's own: {spec.described}" for name, spec in plan.encoders.items()),
    ]


def _policy_lines(source: SourceSpec) -> list[str]:
    """What the roster says of a source beyond that it is to be evaluated."""
    lines = []
    if source.policy == "baseline":
        lines.append(
            f"policy: weak structure, so the baseline {source.baseline} is adopted unevaluated (`choose SOURCE "
            f"baseline`); predicted best is {source.predicted_best}"
        )
    if elsewhere := source.imported:
        lines.append(
            f"v{elsewhere.version} was made elsewhere: {elsewhere.cell}, nDCG@10 {elsewhere.ndcg:.4f}, without "
            f"artefacts ({elsewhere.note})"
        )
    if source.reuses:
        lines.append(f"chunker: {source.structural_chunker} is taken over from {source.reuses}, no code of its own")
    lines += [f"weakness: {source.weakness}"] if source.weakness else []
    return [*lines, f"note: {source.note}"] if source.note else lines


def _kept(version: Version) -> list[str]:
    """A line if vectors of earlier runs are here, while they are of use."""
    kept = version.cache / "vectors"
    if version.results_path.exists() or not kept.is_dir():
        return []
    return [f"kept: vectors of earlier runs, of whatever source, in {kept}; no text is embedded twice"]


def _shown_by(version: Version, plan: Plan) -> str:
    """What the queries can show: of the results once there are any, before by the plan's SD."""
    count = len(load_queries(version.queries_path)) if version.queries_path.exists() else MIN_QUERIES
    return shown_by(plan, count, load_results(version).cells if version.results_path.exists() else ())
