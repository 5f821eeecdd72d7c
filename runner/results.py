"""results.json: everything a version's files say, scored. No clock, host, path or price has a way in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from runner.canonical import file_sha256
from runner.decide import meets_criterion_5, outcome
from runner.eval_set import (
    NOISE_FLOOR_CELL,
    Version,
    judgments,
    label_prefix,
    load_cell_file,
    load_corpus,
    load_queries,
    version_labels,
)
from runner.null_gate import null_gate
from runner.prep_labels import Pair, pool, unjudged
from runner.ranking import Ints
from runner.records import SCORE_UNIT, Query, Run, Scores
from runner.result_schemas import (
    CellResult,
    CorpusFacts,
    Difference,
    Kind,
    LabelFacts,
    MeasureResult,
    NoiseFloor,
    Results,
    Role,
)
from runner.run_files import read_run
from runner.schemas import CellFile, Label, Plan, Provenance, QueryRow
from runner.score import MEASURES, qrels, score
from runner.significance import mean_intervals, paired_intervals, score_matrix
from runner.weaknesses import declared_weaknesses

COMPARED = ("ndcg@10", "recall@10", "mrr")
"""Measures whose paired difference to the baseline is reported."""

HIGHEST_GRADE = 3


def make_results(
    version: Version, plan: Plan, cells: Sequence[str], registered: frozenset[str], *, kind: Kind
) -> Results:
    """The results of the cells whose runs lie in the version's record; `registered` ones form the tested family."""
    queries = load_queries(version.queries_path)
    labels = version_labels(version)
    query_ids = [query.query_id for query in queries]
    runs = {cell: read_run(version.run_path(cell), cell, query_ids) for cell in cells}
    graded = qrels(judgments(labels))
    pooled = pool(runs.values(), plan.pool_depth)
    missing = unjudged(pooled, labels)
    facts = {cell: load_cell_file(version.cell_path(cell)) for cell in cells}
    rows = _rank(_cell_results(plan, queries, runs, graded, facts, registered))
    label_facts = _label_facts(version, labels, pooled, missing)
    query_rows = [_query_row(query) for query in queries]
    noise_floor = _noise_floor(version, plan, runs, graded, query_ids)
    return Results(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        kind=kind,
        provisional=bool(missing),
        plan=plan,
        preregistration_sha256=file_sha256(version.preregistration_path),
        judge_prompt_sha256=file_sha256(version.judge_path),
        queries=query_rows,
        corpus=_corpus_facts(version),
        labels=label_facts,
        cells=rows,
        noise_floor=noise_floor,
        outcome=outcome(plan, rows, noise_floor, unjudged=len(missing), n_queries=len(queries)),
        weaknesses=declared_weaknesses(plan, query_rows, rows, label_facts),
    )


def _cell_results(
    plan: Plan,
    queries: Sequence[Query],
    runs: Mapping[str, Run],
    graded: Mapping[str, Mapping[str, int]],
    facts: Mapping[str, CellFile],
    registered: frozenset[str],
) -> list[CellResult]:
    query_ids = [query.query_id for query in queries]
    strata = {query.query_id: query.stratum for query in queries}
    scores = {cell: score(run, query_ids, graded, plan.relevant_grade) for cell, run in runs.items()}
    means = {measure: _means(plan, list(scores.values()), measure) for measure in MEASURES}
    differences = {measure: _differences(plan, scores, measure) for measure in COMPARED}
    rows = []
    for index, (cell, run) in enumerate(runs.items()):
        gain, recall = differences["ndcg@10"][index], differences["recall@10"][index]
        gate = null_gate(
            run,
            query_ids,
            graded,
            strata,
            facts[cell].chunks_per_document,
            draws=plan.null_gate.draws,
            tau=plan.null_gate.tau,
            alpha=plan.null_gate.alpha,
            seed=plan.null_gate.seed,
        )
        holes = _holes(run, graded)
        rows.append(
            CellResult(
                cell=cell,
                role=_role(cell, plan, registered),
                scores={measure: means[measure][index] for measure in MEASURES},
                differences={measure: differences[measure][index] for measure in COMPARED},
                meets_criterion_5=cell != plan.baseline and meets_criterion_5(gain.mean, recall.mean, plan.rule),
                gate=gate,
                unjudged=len(holes),
                bounds=_bounds(run, query_ids, graded, holes, plan),
                provenance=_provenance(facts[cell]),
            )
        )
    return rows


def _role(cell: str, plan: Plan, registered: frozenset[str]) -> Role:
    if cell == plan.baseline:
        return "baseline"
    return "preregistered" if cell in registered else "exploratory"


def _means(plan: Plan, scores: Sequence[Scores], measure: str) -> list[MeasureResult]:
    values = score_matrix(scores, measure)
    intervals = mean_intervals(
        values, seed=plan.bootstrap.seed, resamples=plan.bootstrap.resamples, level=plan.bootstrap.confidence
    )
    return [
        MeasureResult(mean=_mean(row), low=interval.low, high=interval.high, per_query=[int(value) for value in row])
        for row, interval in zip(values, intervals, strict=True)
    ]


def _mean(values: Ints) -> float:
    return int(values.sum()) / (len(values) * SCORE_UNIT)


def _differences(plan: Plan, scores: Mapping[str, Scores], measure: str) -> list[Difference]:
    values = score_matrix(list(scores.values()), measure)
    baseline = list(scores).index(plan.baseline)
    intervals = paired_intervals(
        values, baseline, seed=plan.bootstrap.seed, resamples=plan.bootstrap.resamples, level=plan.bootstrap.confidence
    )
    paired = values - values[baseline]
    return [
        Difference(
            mean=_mean(row),
            low=interval.low,
            high=interval.high,
            wins=int((row > 0).sum()),
            ties=int((row == 0).sum()),
            losses=int((row < 0).sum()),
        )
        for row, interval in zip(paired, intervals, strict=True)
    ]


def _rank(rows: Sequence[CellResult]) -> list[CellResult]:
    return sorted(rows, key=lambda row: (-row.scores["ndcg@10"].mean, row.cell))


def _holes(run: Run, graded: Mapping[str, Mapping[str, int]]) -> list[Pair]:
    return [
        (query_id, hit.doc_id)
        for query_id, hits in run.hits.items()
        for hit in hits[:10]
        if hit.doc_id not in graded.get(query_id, {})
    ]


def _bounds(
    run: Run, query_ids: Sequence[str], graded: Mapping[str, Mapping[str, int]], holes: Sequence[Pair], plan: Plan
) -> list[float]:
    """Means of the lower and of the higher nDCG@10 that two fillings of the holes give, query by query.

    The fillings: every unjudged document of the top 10 is worthless; every one is perfect. A perfect one raises
    the ideal too, so either can be the higher.
    """
    filled = {query_id: dict(grades) for query_id, grades in graded.items()}
    for query_id, doc_id in holes:
        filled.setdefault(query_id, {})[doc_id] = HIGHEST_GRADE
    both = score_matrix([score(run, query_ids, labels, plan.relevant_grade) for labels in (graded, filled)], "ndcg@10")
    return [_mean(both.min(axis=0)), _mean(both.max(axis=0))]


def _provenance(facts: CellFile) -> Provenance:
    """The cell's file without what only the gate and explorations read."""
    return Provenance.model_validate(facts.model_dump(exclude={"chunkers_sha256", "chunks_per_document"}))


def _noise_floor(
    version: Version,
    plan: Plan,
    runs: Mapping[str, Run],
    graded: Mapping[str, Mapping[str, int]],
    query_ids: Sequence[str],
) -> NoiseFloor | None:
    path = version.run_path(NOISE_FLOOR_CELL)
    if plan.baseline not in runs or not path.exists():
        return None
    again = score(read_run(path, plan.baseline, query_ids), query_ids, graded, plan.relevant_grade)
    first = score(runs[plan.baseline], query_ids, graded, plan.relevant_grade)
    difference = _differences(plan, {plan.baseline: first, NOISE_FLOOR_CELL: again}, "ndcg@10")[1]
    changes = score_matrix([again], "ndcg@10")[0] - score_matrix([first], "ndcg@10")[0]
    return NoiseFloor(
        cell=plan.baseline,
        difference=difference,
        max_change=int(np.abs(changes).max()) / SCORE_UNIT,
        queries_changed=int((changes != 0).sum()),
    )


def _query_row(query: Query) -> QueryRow:
    fields = asdict(query)
    return QueryRow(id=fields.pop("query_id"), **fields)


def _corpus_facts(version: Version) -> CorpusFacts:
    header, rows = load_corpus(version.corpus_path)
    return CorpusFacts(
        documents=len(rows),
        n_read=header.n_read,
        n_chars=sum(row.n_chars for row in rows),
        quarantined=header.quarantined,
        strata=dict(Counter(row.stratum for row in rows)),
        sample=header.sample,
        reader=header.reader,
        archive_sha256=header.archive_sha256,
        manifest_sha256=file_sha256(version.corpus_path),
    )


def _label_facts(
    version: Version, labels: Sequence[Label], pooled: Sequence[Pair], missing: Sequence[Pair]
) -> LabelFacts:
    prefix = label_prefix(version.labels_path)
    grades = Counter(label.grade for label in labels)
    n_pairs = len({(label.query_id, label.doc_id) for label in labels})
    return LabelFacts(
        lines=prefix.lines,
        sha256=prefix.sha256,
        pairs=n_pairs,
        second_readings=len(labels) - n_pairs,
        pool_pairs=len(pooled),
        unjudged_pairs=len(missing),
        judges=dict(Counter(label.judge for label in labels)),
        models=sorted({label.model for label in labels if label.model}),
        grades={str(grade): grades[grade] for grade in range(HIGHEST_GRADE + 1)},
    )
