"""results.json: everything a version's files say, scored. No clock, host, path or price has a way in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runner.base.canonical import file_sha256, json_bytes, sha256
from runner.base.records import SCORE_UNIT, Document, Query, Reading
from runner.decide.cell_results import cell_results
from runner.decide.compared import previous_version
from runner.decide.other_judges import blockers, judging
from runner.decide.outcome import outcome
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.passages.passages import SEEN, with_passages
from runner.decide.ranked_lists import ranked_lists, with_scores
from runner.decide.tiers import beside_baseline
from runner.eval_set.batches import Pair
from runner.eval_set.corpus import texts_to_show
from runner.eval_set.labels import label_prefix, version_labels
from runner.eval_set.runs import read_reading, read_run
from runner.eval_set.shapes.corpus import CorpusHeader, CorpusRow
from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CorpusFacts, Kind, LabelFacts, NoiseFloor, Results
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_corpus
from runner.gate.controls import controls
from runner.gate.gate import Gate
from runner.retrieve.pool import pool, unjudged
from runner.score.bootstrap import score_matrix
from runner.score.comparison import HIGHEST_GRADE, Comparison, paired_differences
from runner.score.score import score
from runner.score.span_scores import span_scores


class Scored(NamedTuple):
    """results.json, and lists.json beside it, whose digest it has."""

    results: Results
    lists: RankedLists


def make_results(version: Version, comparison: Comparison, gate: Gate, *, kind: Kind) -> Scored:
    """Return the results of a comparison of the version's runs, and their lists.

    Passages stand in the lists only if the corpus comes with this tool, so that its words are ours to show.
    """
    plan, labels = comparison.plan, version_labels(version)
    pooled = pool(comparison.runs.values(), plan.pool_depth)
    missing = unjudged(pooled, labels)
    header, documents = load_corpus(version.corpus_path)
    panel = judging(comparison, labels)
    rows = cell_results(comparison, gate, blockers(panel, labels, plan.significance.alpha))
    found = span_scores(comparison, labels, readings(version, comparison))
    label_facts = _label_facts(version, labels, pooled, missing)
    query_rows = [query_row(query) for query in comparison.queries]
    inputs = OutcomeInputs(
        plan=plan,
        cells=rows,
        controls=control_results(comparison, gate),
        noise_floor=_noise_floor(version, comparison),
        unjudged=len(missing),
        n_queries=len(query_rows),
        false_alarm=comparison.false_alarm(),
        challengers=comparison.challengers,
        beliefs=comparison.beliefs,
    )
    lists = lists_of(comparison, documents, labels, texts_to_show(version), beside_baseline(rows, plan))
    results = Results(
        schema_version=1,
        kind=kind,
        plan=plan,
        digests=digests(
            lists, version.preregistration_path, version.judge_path, version.queries_path, version.corpus_path
        ),
        queries=query_rows,
        collection=None,
        corpus=corpus_facts(header, documents),
        labels=label_facts,
        cells=rows,
        controls=list(inputs.controls),
        noise_floor=inputs.noise_floor,
        judging=panel,
        spans=found,
        previous=None,
        outcome=outcome(inputs),
    )
    if kind != "exploration":
        results = results.model_copy(update={"previous": previous_version(version, results)})
    return Scored(results, lists)


def digests(lists: RankedLists, *made_from: Path) -> dict[str, str]:
    """Return the SHA-256 of lists.json and of the files that the results were made from, by file name."""
    return {path.name: file_sha256(path) for path in made_from} | {"lists.json": sha256(json_bytes(lists.model_dump()))}


def lists_of(
    comparison: Comparison,
    documents: Sequence[CorpusRow],
    labels: Sequence[Label] = (),
    texts: Mapping[str, Document] | None = None,
    cells: Sequence[str] = (),
) -> RankedLists:
    """What every cell returned for every query; if `texts` holds the documents, with passages and scores of `cells`."""
    plan = comparison.plan
    lists = ranked_lists(
        comparison.query_ids,
        comparison.runs,
        comparison.qrels,
        labels,
        documents,
        depth=plan.pool_depth,
        relevant_grade=plan.relevant_grade,
    )
    asked = {query.query_id: query.text for query in comparison.queries}
    if not texts:
        return lists
    return with_scores(with_passages(lists, texts, asked, cells), comparison.runs, comparison.qrels, cells, SEEN)


def readings(version: Version, comparison: Comparison) -> dict[str, Reading]:
    """The reading lists of the cells that have one."""
    return {
        cell: read_reading(version.chunk_run_path(cell), comparison.query_ids)
        for cell, facts in comparison.facts.items()
        if facts.chunk_run_sha256 is not None
    }


def control_results(comparison: Comparison, gate: Gate) -> list[ControlResult]:
    """Made-up predictors through the same gate, over the chunks of the baseline."""
    return controls(gate, comparison.document_chunks(comparison.plan.baseline))


def _noise_floor(version: Version, comparison: Comparison) -> NoiseFloor | None:
    path, plan = version.run_path(NOISE_FLOOR_CELL), comparison.plan
    if not path.exists():
        return None
    repeated = read_run(path, plan.baseline, comparison.query_ids)
    again = score(repeated, comparison.query_ids, comparison.qrels, plan.relevant_grade)
    values = score_matrix([comparison.scores[plan.baseline], again], "ndcg@10")
    return NoiseFloor(
        difference=paired_differences(values, 0, plan)[1],
        max_change=int(np.abs(values[1] - values[0]).max()) / SCORE_UNIT,
    )


def query_row(query: Query) -> QueryRow:
    """A query as results.json has it."""
    fields = asdict(query)
    return QueryRow(id=fields.pop("query_id"), **fields)


def corpus_facts(header: CorpusHeader, rows: Sequence[CorpusRow]) -> CorpusFacts:
    """What the manifest says of the corpus."""
    return CorpusFacts(
        n_read=header.n_read,
        n_chars=sum(row.n_chars for row in rows),
        quarantined=header.quarantined,
        strata=dict(Counter(row.stratum for row in rows)),
        archive_sha256=header.archive_sha256,
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
        pool_pairs=len(pooled),
        unjudged_pairs=len(missing),
        judges=dict(Counter(label.judge for label in labels)),
        models=sorted(
            {f"{label.model} at {label.host}" if label.host else label.model for label in labels if label.model}
        ),
        grades={str(grade): grades[grade] for grade in range(HIGHEST_GRADE + 1)},
    )
