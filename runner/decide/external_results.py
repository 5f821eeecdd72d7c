"""results.json of an external collection: the same statistics over published qrels, and no decision."""

from collections import Counter
from collections.abc import Sequence

from runner.base.canonical import file_sha256, json_bytes, sha256
from runner.base.figures import figure_beside_bar, places_allowed
from runner.base.records import Qrels
from runner.decide.cell_results import cell_results
from runner.decide.outcome import Sentences, blocked
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.results import Scored, control_results, corpus_facts, lists_of, query_row
from runner.decide.sample_size import detectable_of
from runner.decide.tiers import interval_of, stand
from runner.decide.weaknesses import external_weaknesses
from runner.eval_set.collection import collection_facts, published_qrels
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, LabelFacts, Outcome, Results
from runner.eval_set.version import Version, load_corpus
from runner.gate.graded_gate import GradedGate
from runner.score.comparison import load_comparison
from runner.score.sign_flip import Side

PUBLISHED = "published qrels"
"""Who judged."""

_SIDES: dict[Side, str] = {
    "above": "above it beyond chance",
    "below": "below it beyond chance",
    "not told apart": "not told apart from it",
}


def make_external_results(version: Version, plan: Plan) -> Scored:
    """Return results and lists of the plan's cells, which form the tested family; their runs lie in the record."""
    header, documents = load_corpus(version.corpus_path)
    facts = collection_facts(version)
    comparison = load_comparison(version, plan, frozenset(plan.cells), published_qrels(version))
    gate = GradedGate.over(comparison)
    rows = cell_results(comparison, gate)
    inputs = OutcomeInputs(
        plan=plan,
        cells=rows,
        controls=control_results(comparison, gate),
        noise_floor=None,
        unjudged=0,
        n_queries=len(comparison.queries),
        false_alarm=comparison.false_alarm(),
        challengers=comparison.challengers,
        beliefs=comparison.beliefs,
    )
    labels = _label_facts(version, comparison.qrels, facts.judged_by or PUBLISHED)
    lists = lists_of(comparison, documents)
    results = Results(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        kind="external",
        provisional=False,
        plan=plan,
        preregistration_sha256=None,
        judge_prompt_sha256=None,
        queries_sha256=file_sha256(version.queries_path),
        queries=[query_row(query) for query in comparison.queries],
        collection=facts,
        corpus=corpus_facts(version, header, documents),
        labels=labels,
        cells=rows,
        controls=list(inputs.controls),
        noise_floor=None,
        judging=None,
        spans=None,
        slices=[],
        lists_sha256=sha256(json_bytes(lists.model_dump())),
        previous=None,
        outcome=_outcome(inputs, facts),
        weaknesses=external_weaknesses(plan, facts, header, rows),
    )
    return Scored(results, lists)


def _label_facts(version: Version, qrels: Qrels, judge: str) -> LabelFacts:
    grades = Counter(grade for judged in qrels.values() for grade in judged.values())
    pairs = sum(grades.values())
    return LabelFacts(
        lines=pairs,
        sha256=file_sha256(version.qrels_path),
        pairs=pairs,
        pool_pairs=pairs,
        unjudged_pairs=0,
        judges={judge: pairs},
        models=[],
        grades={str(grade): grades[grade] for grade in range(max(grades, default=0) + 1)},
    )


def _outcome(inputs: OutcomeInputs, facts: CollectionFacts) -> Outcome:
    barred = blocked(inputs)
    found, not_shown, next_step = barred or _compared(inputs, facts)
    return Outcome(
        tier="no decision" if barred else "compared",
        candidates=[],
        confirmed=[],
        recommended=inputs.plan.baseline,
        sentence=found,
        not_shown=not_shown,
        next_step=next_step,
        false_alarm=inputs.false_alarm,
        queries_needed=None,
        assurance=None,
        detectable=detectable_of(inputs.plan, inputs.n_queries, inputs.cells),
    )


def _compared(inputs: OutcomeInputs, facts: CollectionFacts) -> Sentences:
    baseline = inputs.baseline
    others = [row for row in inputs.cells if row.test is not None]
    passed = [row for row in others if row.gate.verdict == "pass"]
    groups = {what: [row for row in passed if stand(row) == side] for side, what in _SIDES.items()}
    listed = {what: _listed(rows) for what, rows in groups.items() if rows}
    if failed := [row.cell for row in others if row not in passed]:
        listed["not passing the null gate, so nothing is said of it"] = ", ".join(failed)
    said = "; ".join(f"{what}: {cells}" for what, cells in listed.items())
    on = "" if facts.judged_by else f"on {facts.name} "
    found = (
        f"Compared {on}with {inputs.plan.baseline} (nDCG@10 {_score(baseline)}) over "
        f"{inputs.n_queries} queries; nothing is decided. {said[:1].upper()}{said[1:]}"
    )
    found = f"{found.rstrip()}{'.' if said else ''}"
    if facts.judged_by:
        return (
            found,
            "That any of it holds for other documents, or for queries of another kind.",
            "Read the queries on which the cells differ most before you believe the means.",
        )
    return (
        found,
        "That any of it holds on other collections, or on documents like yours: this is one collection.",
        "Put the figures beside published ones and other collections: matrix add RESULTS.json.",
    )


def _score(row: CellResult) -> str:
    score = row.scores["ndcg@10"]
    return f"{score.mean:.{places_allowed(score.low, score.high)}f}"


def _listed(rows: Sequence[CellResult]) -> str:
    return ", ".join(f"{row.cell} ({_difference(row)})" for row in rows)


def _difference(row: CellResult) -> str:
    """With its sign, at the places that its interval allows."""
    assert row.test is not None
    return figure_beside_bar(row.differences["ndcg@10"].mean, 0.0, *interval_of(row.test))
