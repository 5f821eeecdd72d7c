"""`--dry-run`: what the version is, what exists, what is missing, what it would cost. No network, no writes.

Its last line is what determiners search for: exactly "decision recorded", or "undecided: ...". The second never
contains the words of the first.
"""

from runner.canonical import read_json
from runner.catalog import ENCODERS
from runner.decision_schemas import Decision
from runner.eval_set import Version, load_corpus, load_queries
from runner.labels import version_labels
from runner.lock import LOCK_NAME
from runner.plan import MIN_QUERIES, default_plan_text
from runner.power import DEFAULT_SD, minimum_detectable_effect
from runner.prep_labels import pool, unjudged
from runner.records import BM25Cell, parse_cell
from runner.result_schemas import Results
from runner.run_files import read_run
from runner.schemas import Plan
from runner.strict import checked
from runner.summary import decision_sentence

RECORDED = "decision recorded"


def describe(version: Version) -> tuple[list[str], bool]:
    """The lines to print, and whether a decision is recorded and locked."""
    lines = [version.name]
    path = version.plan_path(rehearsal=version.rehearsal)
    if path.exists():
        plan = version.plan()
        lines += _plan_lines(plan)
    else:
        plan = None
        lines.append(f"plan: {path} does not exist yet; the first run writes this one:")
        lines += [f"  {line}" for line in default_plan_text(version.source, rehearsal=version.rehearsal).splitlines()]
    lines += _inventory(version)
    decision_path = version.record / "decision.json"
    if decision_path.exists() and (version.record / LOCK_NAME).exists():
        decision = checked(Decision, read_json(decision_path), decision_path)
        lines.append(decision_sentence(decision))
        if version.rehearsal:
            return [*lines, "undecided: this is the rehearsal, which never counts"], False
        return [*lines, RECORDED], True
    if decision_path.exists():
        return [*lines, "undecided: what was chosen is not locked yet; run without --dry-run"], False
    return [*lines, f"undecided: {_missing(version, plan)}"], False


def _plan_lines(plan: Plan) -> list[str]:
    encoders = sorted({cell.encoder for text in plan.cells if not isinstance(cell := parse_cell(text), BM25Cell)})
    hub = [name for name in encoders if not ENCODERS[name].package]
    return [
        f"plan: {len(plan.cells)} cells, pool depth {plan.pool_depth}, baseline {plan.baseline}",
        *(f"  {cell}" for cell in plan.cells),
        f"rule: at least +{plan.rule.min_gain:.2f} nDCG@10 and at most -{plan.rule.max_recall_loss:.2f} Recall@10",
        f"encoders: {', '.join(encoders)}" + (f" (from the model hub: {', '.join(hub)})" if hub else ""),
        "cost: $0.00 (local encoders; judging by file)",
    ]


def _missing(version: Version, plan: Plan | None) -> str:
    """The first thing that keeps the version from a decision."""
    if version.source.policy == "external":
        return "a collection is compared and never decided"
    if plan is None or not version.corpus_path.exists():
        return "no corpus is sampled yet"
    header, _ = load_corpus(version.corpus_path)
    if not version.queries_path.exists():
        return f"{header.n_documents} documents are sampled, no queries are written yet"
    count = len(load_queries(version.queries_path))
    if count < MIN_QUERIES:
        return f"{count} queries; at least {MIN_QUERIES} are needed"
    absent = [cell for cell in plan.cells if not (version.cell_path(cell).exists() and version.run_path(cell).exists())]
    if absent:
        return f"{len(absent)} of {len(plan.cells)} cells are not run yet"
    query_ids = [query.query_id for query in load_queries(version.queries_path)]
    pooled = pool((read_run(version.run_path(cell), cell, query_ids) for cell in plan.cells), plan.pool_depth)
    missing = unjudged(pooled, version_labels(version))
    if missing:
        return f"{len(missing)} of {len(pooled)} pairs are not judged yet"
    scored = version.record / "results.json"
    if scored.exists():
        # Without its first words, which are also those of a line that determiners search for.
        return checked(Results, read_json(scored), scored).outcome.sentence.removeprefix("No decision: ")
    return "everything is there; run without --dry-run"


def _inventory(version: Version) -> list[str]:
    """What exists of the version, a line each."""
    lines = []
    if version.corpus_path.exists():
        header, _ = load_corpus(version.corpus_path)
        lines.append(
            f"corpus: {header.n_documents} of {header.n_read} documents, {len(header.quarantined)} quarantined"
        )
    if version.queries_path.exists():
        count = len(load_queries(version.queries_path))
        lines.append(
            f"queries: {count}; smallest difference that they show (80 % power, SD {DEFAULT_SD:.2f}): "
            f"{minimum_detectable_effect(count):.3f} nDCG@10"
        )
    if version.labels_path.exists():
        lines.append(f"labels: {len(version_labels(version))}")
    return lines
