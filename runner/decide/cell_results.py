"""The rows of results.json: every cell scored, tested against the baseline, and put through both faces of the gate."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from runner.base.records import Qrels, Run
from runner.base.schema import Model
from runner.decide.tiers import CellFigures, meets_criterion_5, unmet_criteria
from runner.eval_set.batches import Pair
from runner.eval_set.shapes.cell import CellFile, Provenance
from runner.eval_set.shapes.gate import SingleGoldVerdict
from runner.eval_set.shapes.paired import Difference, MeasureResult, PairedTestResult
from runner.eval_set.shapes.results import CellResult, Role
from runner.gate.diagnosis import diagnosis
from runner.gate.graded_gate import GradedGate
from runner.gate.single_gold.gate import four_null_gate
from runner.retrieve.ranking import ties
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison, mean
from runner.score.score import COMPARED, MEASURES, score, single_gold

SINGLE_GOLD_NULLS = {
    "A": "permuted gold",
    "B": "uniform gold",
    "C": "random retrieval",
    "D": "marginal-matched gold",
}


def cell_results(
    comparison: Comparison,
    gate: GradedGate,
    blockers: Callable[[str], list[str]] = lambda cell: [],
) -> list[CellResult]:
    """One row per cell, best mean nDCG@10 first, equal ones by name.

    `blockers` says what keeps a cell from being confirmed that is so by its scores.
    """
    scores = by_cell(comparison.runs, comparison.means, MEASURES)
    differences = by_cell(comparison.runs, comparison.differences, COMPARED)
    rows = [_row(comparison, gate, cell, blockers, scores[cell], differences[cell]) for cell in comparison.runs]
    return sorted(rows, key=lambda row: (-row.scores["ndcg@10"].mean, row.cell))


def _row(
    comparison: Comparison,
    graded: GradedGate,
    cell: str,
    blockers: Callable[[str], list[str]],
    scores: dict[str, MeasureResult],
    differences: dict[str, Difference],
) -> CellResult:
    plan, run = comparison.plan, comparison.runs[cell]
    gate, holes = graded.judge(run, comparison.document_chunks(cell)), holes_of(run, comparison.qrels)
    gain, recall = differences["ndcg@10"].mean, differences["recall@10"].mean
    is_tested = cell in comparison.tests
    test = test_of(comparison, cell) if is_tested else None
    unmet = []
    # Published judgments decide nothing: no cell of theirs is a candidate, confirmed, or short of anything.
    eligible = cell != plan.baseline and not comparison.published
    if eligible and test is not None:
        judged, alpha = scores["judged@10"].mean, plan.significance.alpha
        figures = CellFigures(gain, recall, test.p_gain, gate.verdict, judged)
        unmet = unmet_criteria(figures, plan.rule, alpha) or blockers(cell)
    return CellResult(
        cell=cell,
        role=_role(cell, comparison),
        scores=scores,
        differences=differences,
        test=test,
        recall_bound=comparison.recall_bounds[cell] if is_tested else None,
        meets_criterion_5=eligible and meets_criterion_5(gain, recall, plan.rule),
        short_of=unmet,
        gate=gate,
        diagnosis=diagnosis(run, gate, plan.null_gate.alpha),
        single_gold=single_gold_verdicts(comparison, run),
        unjudged=len(holes),
        bounds=bounds_of(comparison, run, holes),
        tied=_tied(run, comparison.facts[cell]),
        provenance=_provenance(comparison.facts[cell]),
        loss=comparison.losses.get(cell),
    )


def _role(cell: str, comparison: Comparison) -> Role:
    if cell == comparison.plan.baseline:
        return "baseline"
    if comparison.published:
        return "compared"
    return "preregistered" if cell in comparison.registered else "exploratory"


def single_gold_verdicts(comparison: Comparison, run: Run) -> list[SingleGoldVerdict]:
    """Nulls A to D, as if each query's highest-graded document (of equals the first by id) were its only right one.

    Queries without a document graded above 0 have no such document and are left out. Empty if the corpus has fewer
    than ten documents, among which retrieving ten at random finds everything.
    """
    gold = single_gold(comparison.query_ids, comparison.qrels)
    pool = sorted(comparison.document_lengths)
    if not gold or len(pool) < 10:
        return []
    return [_single_gold_verdict(comparison, run, gold, pool, name) for name in ("recall@10", "mrr@10")]


def _single_gold_verdict(
    comparison: Comparison, run: Run, gold: Mapping[str, str], pool: Sequence[str], name: str
) -> SingleGoldVerdict:
    settings = comparison.plan.null_gate
    # A query without a stratum belongs to those without one.
    strata = [comparison.strata[query_id] or "no stratum" for query_id in gold]
    found = four_null_gate(
        [[hit.doc_id for hit in run.hits[query_id][:10]] for query_id in gold],
        list(gold.values()),
        [comparison.highest_grade] * len(gold),
        name,
        item_pool=pool,
        n_trials=settings.draws,
        tau=settings.tau,
        seed=settings.seed,
        strata=strata if len(set(strata)) > 1 else None,
        alpha=settings.alpha,
    )
    fields = {"delta": "deltas", "p": "p_values"}
    nulls = [
        {"name": title} | {field: found[by_letter][letter] for field, by_letter in fields.items()}
        for letter, title in SINGLE_GOLD_NULLS.items()
    ]
    whole = {name: found[name] for name in ("n_queries", "verdict")}
    return SingleGoldVerdict.model_validate({"measure": name, "real": found["real_mean"], "nulls": nulls} | whole)


def holes_of(run: Run, qrels: Qrels) -> list[Pair]:
    """The hits among the first ten that nobody judged."""
    return [
        (query_id, hit.doc_id)
        for query_id, hits in run.hits.items()
        for hit in hits[:10]
        if hit.doc_id not in qrels.get(query_id, {})
    ]


def _tied(run: Run, facts: CellFile) -> float | None:
    hits = sum(map(len, run.hits.values()))
    return None if facts.imported is not None or not hits else sum(map(ties, run.hits.values())) / hits


def bounds_of(comparison: Comparison, run: Run, holes: Sequence[Pair]) -> list[float]:
    """Means of the lower and of the higher nDCG@10 that two fillings of the holes give, query by query.

    The fillings: every unjudged document of the top 10 is worthless; every one is perfect. A perfect one raises
    the ideal too, so either can be the higher.
    """
    filled = {query_id: dict(grades) for query_id, grades in comparison.qrels.items()}
    for query_id, doc_id in holes:
        filled.setdefault(query_id, {})[doc_id] = comparison.highest_grade
    grade = comparison.plan.relevant_grade
    scores = [score(run, comparison.query_ids, qrels, grade) for qrels in (comparison.qrels, filled)]
    both = score_matrix(scores, "ndcg@10")
    return [mean(both.min(axis=0)), mean(both.max(axis=0))]


def _provenance(facts: CellFile) -> Provenance:
    """The cell's file without its backend, which decides nothing, and without what only gate and explorations read."""
    return Provenance.model_validate(facts.model_dump(include=set(Provenance.model_fields)))


def by_cell(
    cells: Iterable[str], found: Callable[[str], Sequence[Model]], measures: tuple[str, ...]
) -> dict[str, dict[str, Model]]:
    """What `found` says of all cells by each measure, in their order, as a row per cell."""
    rows = {measure: found(measure) for measure in measures}
    return {cell: {measure: records[place] for measure, records in rows.items()} for place, cell in enumerate(cells)}


def test_of(comparison: Comparison, cell: str) -> PairedTestResult:
    """A challenger's test, without what is adjusted over the tested family if the cell is outside of it."""
    test, gain = comparison.tests[cell], comparison.gain_tests.get(cell)
    in_family = cell in comparison.registered
    return PairedTestResult(
        p=test.p,
        p_adjusted=test.p_adjusted if in_family else None,
        p_gain=None if gain is None else gain.p,
        p_step=None if gain is None or gain.p_step == gain.p else gain.p_step,
        interval=[test.interval.low, test.interval.high],
        simultaneous=[test.simultaneous.low, test.simultaneous.high] if in_family else None,
        sd=test.sd,
        left_out=[test.left_out.low, test.left_out.high],
    )
