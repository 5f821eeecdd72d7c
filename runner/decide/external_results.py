"""results.json of an external collection: the same statistics over published qrels, and no decision."""

from collections import Counter

from runner.base.canonical import file_sha256
from runner.base.records import Qrels
from runner.decide.cell_results import cell_results
from runner.decide.outcome import bar
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.results import Scored, control_results, corpus_facts, digests, lists_of, query_row
from runner.decide.sample_size import detectable_of
from runner.eval_set.collection import collection_facts, published_qrels
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import LabelFacts, Outcome, Results
from runner.eval_set.version import Version, load_corpus
from runner.gate.gate import Gate
from runner.score.comparison import load_comparison

PUBLISHED = "published qrels"
"""Who judged."""


def make_external_results(version: Version, plan: Plan) -> Scored:
    """Return results and lists of the plan's cells, which form the tested family; their runs lie in the record."""
    header, documents = load_corpus(version.corpus_path)
    facts = collection_facts(version)
    comparison = load_comparison(version, plan, frozenset(plan.cells), published_qrels(version))
    gate = Gate.over(comparison)
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
        kind="external",
        plan=plan,
        digests=digests(lists, version.queries_path, version.corpus_path),
        queries=[query_row(query) for query in comparison.queries],
        collection=facts,
        corpus=corpus_facts(header, documents),
        labels=labels,
        cells=rows,
        controls=list(inputs.controls),
        noise_floor=None,
        judging=None,
        spans=None,
        previous=None,
        outcome=_outcome(inputs),
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


def _outcome(inputs: OutcomeInputs) -> Outcome:
    """Return the outcome of figures that decide nothing: no cell is a candidate, and none is recommended."""
    barred_by = bar(inputs)
    return Outcome(
        tier="no decision" if barred_by else "compared",
        barred_by=barred_by,
        candidates=[],
        confirmed=[],
        recommended=inputs.plan.baseline,
        worth_of_knowing=0.0,
        false_alarm=inputs.false_alarm,
        queries_needed=None,
        assurance=None,
        detectable=detectable_of(inputs.plan, inputs.n_queries, inputs.cells),
    )
