"""results.json: everything a version's files say, scored. No clock, host, path or price has a way in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from runner.base.canonical import file_sha256, json_bytes, sha256
from runner.base.records import SCORE_UNIT, ArmLists, Document, Reading
from runner.base.schema import part
from runner.decide.cell_results import cell_results
from runner.decide.compared import known_before, previous_version
from runner.decide.judging import blockers, by_one_model, judging
from runner.decide.passages import SEEN, with_passages
from runner.decide.ranked_lists import ranked_lists, with_scores
from runner.decide.tiers import bar, beside_baseline, recommendation, tier
from runner.decide.turning import turnings
from runner.eval_set.collection import collection_facts
from runner.eval_set.corpus import texts_to_show
from runner.eval_set.labels import label_prefix, scored, version_labels
from runner.eval_set.runs import has_arms, packed, read_arms, read_reading, read_run
from runner.eval_set.shapes.corpus import CollectionFacts, CorpusRow
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.plan import ScoredPlan
from runner.eval_set.shapes.results import (
    Bar,
    CellResult,
    CorpusFacts,
    Kind,
    LabelFacts,
    NoiseFloor,
    Outcome,
    Results,
)
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_corpus
from runner.gate.controls import controls
from runner.gate.gate import Gate
from runner.judge.agreement.double_graded import second_grades
from runner.retrieve.pool import pool, unjudged
from runner.score.bootstrap import score_matrix
from runner.score.comparison import HIGHEST_GRADE, Comparison, summarised
from runner.score.score import score
from runner.score.source_documents import source_documents
from runner.score.span_scores import span_scores


class Scored(NamedTuple):
    """results.json, and lists.json.bz2 beside it, whose digest it has."""

    results: Results
    lists: RankedLists


def make_results(version: Version, comparison: Comparison, gate: Gate, *, kind: Kind) -> Scored:
    """Return the results of a comparison of the version's runs, and their lists.

    Published judgments have no judges of ours, and nothing is pooled for them. Passages stand in the lists only if the
    corpus comes with this tool, so that its words are ours to show.
    """
    plan, published = comparison.plan, comparison.published
    header, documents = load_corpus(version.corpus_path)
    labels = [] if published else version_labels(version)
    panel = None if published else judging(comparison, labels)
    judged = blockers(panel, labels, plan.significance.alpha)
    known = known_before(version, comparison.queries) if kind in ("production", "rehearsal") else {}
    cells = cell_results(comparison, gate, lambda cell: [*known.get(cell, []), *judged(cell)])
    control_rows = controls(gate, comparison.document_chunks(plan.baseline))
    noise_floor = _noise_floor(version, comparison)
    facts = part(CollectionFacts, collection_facts(version)) if published else None
    # Published judgments are taken as they are: nothing is pooled, and no pair is missing.
    label_facts = _published_facts(version, comparison, facts) if facts else _label_facts(version, comparison, labels)
    texts = None if published else texts_to_show(version)
    arms = {
        cell: read_arms(version.run_path(cell), [one.id for one in comparison.asked])
        for cell in comparison.facts
        if has_arms(version.run_path(cell))
    }
    lists = _lists(comparison, documents, labels, arms, texts, beside_baseline(cells, plan))
    frozen = [] if published else [version.judge_path, version.preregistration_path]
    made_from = [version.corpus_path, version.queries_path, *frozen]
    decided = outcome(
        comparison,
        cells,
        bar(cells, control_rows, plan, noise_floor=noise_floor, unjudged=label_facts.unjudged_pairs),
        by_one_model=not published and by_one_model(labels, plan.relevant_grade),
    )
    results = Results(
        schema_version=1,
        kind=kind,
        plan=part(ScoredPlan, plan),
        digests={path.name: file_sha256(path) for path in made_from}
        | {"lists.json.bz2": sha256(packed(json_bytes(lists.model_dump())))},
        queries=[*comparison.queries],
        collection=facts,
        corpus=CorpusFacts(
            n_read=header.n_read,
            n_chars=sum(row.n_chars for row in documents),
            quarantined=header.quarantined,
            strata=dict(Counter(row.stratum for row in documents)),
            archive_sha256=header.archive_sha256,
        ),
        labels=label_facts,
        cells=cells,
        controls=control_rows,
        noise_floor=noise_floor,
        judging=panel,
        sources=source_documents(comparison, second_grades(labels)),
        spans=None if published else span_scores(comparison, labels, _readings(version, comparison)),
        previous=None,
        outcome=decided,
        turnings=[] if published or decided.barred_by else [*turnings(comparison, cells, decided.recommended)],
        unanswered=comparison.unanswered,
        weights=[] if set(comparison.weighing.topics) == {1} else comparison.weighing.topics,
    )
    # What was is set beside what is, so that comes last.
    return Scored(results.model_copy(update={"previous": previous_version(version, results)}), lists)


def outcome(
    comparison: Comparison, cells: Sequence[CellResult], barred_by: Bar | None, *, by_one_model: bool = False
) -> Outcome:
    """Return the tier, and the figures of the cell in question; `cells` are ranked, best nDCG@10 first."""
    plan = comparison.plan
    return Outcome(
        tier=tier(cells, barred_by, published=comparison.published, by_one_model=by_one_model),
        barred_by=barred_by,
        recommended=plan.baseline if barred_by else recommendation(cells, plan)[0],
        false_alarm=comparison.false_alarm(),
    )


def _lists(
    comparison: Comparison,
    documents: Sequence[CorpusRow],
    labels: Sequence[Label],
    arms: Mapping[str, ArmLists],
    texts: Mapping[str, Document] | None,
    cells: Sequence[str],
) -> RankedLists:
    """Return what every cell returned for every query; with `texts` also passages and the scores of `cells`."""
    plan = comparison.plan
    lists = ranked_lists(
        [one.id for one in comparison.asked],
        comparison.runs,
        comparison.grades_of_asked,
        labels,
        documents,
        depth=plan.pool_depth,
        relevant_grade=plan.relevant_grade,
        unread={cell: facts.unread or {} for cell, facts in comparison.facts.items()},
        arms=arms,
        topics={one.id: one.topic for one in comparison.asked},
    )
    if not texts:
        return lists
    shown = with_passages(lists, texts, {one.id: one.text for one in comparison.asked}, cells)
    return with_scores(shown, comparison.runs, comparison.grades_of_asked, cells, SEEN)


def _readings(version: Version, comparison: Comparison) -> dict[str, Reading]:
    """Read the reading lists of the cells that have one."""
    return {
        cell: read_reading(version.chunk_run_path(cell), [one.id for one in comparison.asked])
        for cell, facts in comparison.facts.items()
        if facts.chunk_run_sha256 is not None
    }


def _noise_floor(version: Version, comparison: Comparison) -> NoiseFloor | None:
    path, plan = version.run_path(NOISE_FLOOR_CELL), comparison.plan
    if not path.exists():
        return None
    ids = [one.id for one in comparison.asked]
    again = score(read_run(path, plan.baseline, ids), ids, comparison.grades_of_asked, plan.relevant_grade)
    values = score_matrix([comparison.scores[plan.baseline], comparison.by_topic(again)], "ndcg@10")
    moved = np.diff(values, axis=0)[:, comparison.counted]
    return NoiseFloor(
        difference=summarised(moved, plan.bootstrap, comparison.weights)[0],
        max_change=int(np.abs(moved).max()) / SCORE_UNIT,
    )


def _label_facts(version: Version, comparison: Comparison, labels: Sequence[Label]) -> LabelFacts:
    prefix = label_prefix(version.labels_path)
    plan = comparison.plan
    pooled = pool((comparison.runs[cell] for cell in plan.judged_cells), plan.pool_depth, comparison.queries)
    grades, counted = Counter(label.grade for label in labels), scored(labels)
    fuller = [label for label in counted.values() if label.is_fuller]
    return LabelFacts(
        lines=prefix.lines,
        sha256=prefix.sha256,
        pairs=len(counted),
        pool_pairs=len(pooled),
        unjudged_pairs=len(unjudged(pooled, labels)),
        judges=dict(Counter(label.judge for label in labels)),
        models=sorted(
            {f"{label.model} at {label.host}" if label.host else label.model for label in labels if label.model}
        ),
        grades={str(grade): grades[grade] for grade in range(HIGHEST_GRADE + 1)},
        read_more=len(fuller),
        doubts=sum(label.doubt for label in fuller),
    )


def _published_facts(version: Version, comparison: Comparison, facts: CollectionFacts) -> LabelFacts:
    grades = Counter(grade for judged in comparison.qrels.values() for grade in judged.values())
    n_pairs = grades.total()
    return LabelFacts(
        lines=n_pairs,
        sha256=file_sha256(version.qrels_path),
        pairs=n_pairs,
        pool_pairs=n_pairs,
        unjudged_pairs=0,
        judges={facts.judged_by or "published qrels": n_pairs},
        models=[],
        grades={str(grade): grades[grade] for grade in range(max(grades, default=0) + 1)},
    )
