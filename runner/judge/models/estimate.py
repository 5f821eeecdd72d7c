"""What judging through an API would cost, before anything is exported: from counts and the dated prices."""

import math
from collections.abc import Sequence, Set
from typing import get_args

from runner.base.records import parse_cell
from runner.embed.cost.estimate import Estimate
from runner.embed.cost.prices import Usage, shown
from runner.eval_set.asked import asked_ids
from runner.eval_set.batches import BATCH_PAIRS, FULLER, Kind, Pair, batch_files
from runner.eval_set.labels import first_readings, version_labels
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.labels import JudgeSpec, Label
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.queries import LITERAL_KINDS
from runner.eval_set.version import Version, load_queries
from runner.judge.carried_labels import labels_at_hand
from runner.judge.evidence import expected_chars
from runner.judge.models.api import RECORDS, JudgeOptions, model_price
from runner.judge.models.claude_batches import FEWEST_REQUESTS, under_way
from runner.judge.models.client import FORM_TOKENS, Way
from runner.judge.models.kept_replies import ReplyFiles
from runner.judge.models.prompt import FORM, MAX_TOKENS
from runner.judge.models.run_judges import named_judges
from runner.judge.prep_labels import REPEATS
from runner.judge.second_reading import judges_of, missed_by_models
from runner.retrieve.pool import likely_pairs, pool, unjudged

LIKELY_BYTES = 3.5
LIKELY_WRITTEN = 150
"""Bytes of English a token as a rule (tokenizers of 2026 cut it 30 % finer), and tokens of a judgment."""

ROW_CHARS = 600
"""Query, title and numbers of the passages, about."""

DOUBTS = 0.05
"""Of pairs whose document is not shown whole, those that are read again with more of it: a round figure. Of 9,747
earlier grades of eight sources, on 5,000 characters, 2 % said so; of 21,211 on 6,000 to 12,000 characters, 9."""

MISSED_SOURCES = 0.04
"""Of topics, those whose source document is graded below relevant and then read by a second judge: one in 25, a round
figure. Of 347 earlier ones of nine sources it was 10, of 480 with queries of today none."""

NEW_ENCODER = 0.15
"""What an encoder's first cells add to a pool: mpnet 12 and 15 % in two rehearsals, a static one 14 to 31 % in all."""


def judging_left(version: Version, plan: Plan, options: JudgeOptions, documents: Sequence[int]) -> Estimate:
    """Return what is left for the plan's judges, if each pair is shown as much as may be and some leave a doubt.

    `documents` are the characters of each, none if nothing is sampled. InputError for a plan without judges, or for a
    model whose price is not known.
    """
    judges, labels = named_judges(version, plan), labels_at_hand(version)
    n_pairs, n_pooled, of_what = _pairs(version, plan, len(documents))
    # Pairs in doubt are open again: of these a fuller reading alone is left. Of the others some will leave a doubt.
    doubted = {pair for pair, label in first_readings(labels).items() if label.doubt}
    n_doubts = min(n_pairs, len(doubted - first_readings(labels, fuller=True).keys()))
    n_first = max(0, n_pairs - n_doubts - _paid(version, judges.first.model))
    long = [n_chars for n_chars in documents if n_chars > plan.evidence.chars]
    doubtful = DOUBTS * (len(long) / len(documents) if documents else 1)
    n_repeats = REPEATS * (max(0, n_first - 1) // (BATCH_PAIRS - REPEATS))
    tokens, fuller = _tokens_read(version, plan, documents), _tokens_read(version, plan, long, FULLER)
    repeats = f"{of_what}; {n_repeats} repeats besides" if n_repeats else of_what
    parts = [_of_one(judges.first, n_first, repeats, tokens, options, n_repeats)]
    if n_fuller := n_doubts + round(doubtful * n_first):
        of_what = f"in doubt, read with {FULLER} times as much; {DOUBTS:.0%} of documents that are longer"
        parts.append(_of_one(judges.first, n_fuller, of_what, fuller, options))
    if judges.second is not None:
        read_twice = {pair for pair, readers in judges_of(labels).items() if len(readers) > 1}
        n_share = max(0, round(judges.second.share * n_pooled) - len(read_twice))
        n_again = max(0, n_share + _missed(version, plan, labels, read_twice) - _paid(version, judges.second.model))
        # A pair that was in doubt is read a second time with as much as its grade was given on.
        tokens = round((1 - doubtful) * tokens + doubtful * fuller)
        of_what = f"second readings, {judges.second.share:.0%}, and of source documents graded below relevant"
        parts.append(_of_one(judges.second, n_again, of_what, tokens, options))
    # One is asked after the other, so what they hold does not add up.
    lines = [line for part in parts for line in part.lines]
    return Estimate(lines, sum(part.usd for part in parts), max(part.held for part in parts))


def pooled_pairs(version: Version, plan: Plan) -> list[tuple[str, str]] | None:
    """Return the plan's pool; None before queries are written and every cell is run."""
    if not version.queries_path.exists() or not all(version.run_path(cell).exists() for cell in plan.cells):
        return None
    queries = load_queries(version.queries_path)
    runs = (read_run(version.run_path(cell), cell, asked_ids(queries)) for cell in plan.judged_cells)
    return pool(runs, plan.pool_depth, queries)


def pairs_left(version: Version, plan: Plan, n_documents: int) -> int:
    """Return how many pairs a plan leaves to judge, likely ones before its cells are run."""
    return _pairs(version, plan, n_documents)[0]


def _of_one(
    judge: JudgeSpec, n_pairs: int, of_what: str, tokens: int, options: JudgeOptions, n_repeats: int = 0
) -> Estimate:
    """Return one judge's part; held is what its requests under way may cost at most, less what they are likely to."""
    # Likely: English as a rule. Worst: every byte a token and the longest answer, as a client holds it.
    price = model_price(judge, options)
    likely = price.usd(Usage(read=tokens, written=LIKELY_WRITTEN))
    worst = price.usd(Usage(cache_written=round(tokens * LIKELY_BYTES) + 2 * FORM_TOKENS, written=MAX_TOKENS))
    at_once = min(n_pairs, FEWEST_REQUESTS if options.how == "batches" else Way().parallel)
    usd = (n_pairs + n_repeats) * likely
    line = f"judging: {judge.model}, {n_pairs:,} pairs ({of_what}), about {shown(usd)} ({price.source})"
    return Estimate([line], usd, at_once * (worst - likely))


def _tokens_read(version: Version, plan: Plan, documents: Sequence[int], times: int = 1) -> int:
    """Return the tokens of a request: the judge's instructions, the row, as much of a document as may be shown."""
    prompt = version.judge_prompt.stat().st_size + len(FORM)
    return round((prompt + ROW_CHARS + expected_chars(documents, plan.evidence, times)) / LIKELY_BYTES)


def _missed(version: Version, plan: Plan, labels: Sequence[Label], read_twice: Set[Pair]) -> int:
    """Return how many source documents a second judge has to read: graded below relevant now, or likely to be."""
    if not version.queries_path.exists():
        return math.ceil(MISSED_SOURCES * MIN_QUERIES)
    sources = {(topic.id, topic.source_document) for topic in load_queries(version.queries_path)}
    n_open = len(sources - first_readings(labels).keys())
    missed = missed_by_models(version, labels, plan.relevant_grade) - read_twice
    return len(missed) + math.ceil(MISSED_SOURCES * n_open)


def _paid(version: Version, model: str) -> int:
    """Return how many pairs a model was paid for and has no label of yet: kept replies, and batches under way."""
    files = ReplyFiles(version.judging, model)
    names = [path.stem for kind in get_args(Kind) for path in batch_files(version.judging, kind)]
    replied = {(kept.query_id, kept.doc_id) for name in names for kept in files.read(name) if not kept.problem}
    if replied:
        replied -= {label.pair for label in version_labels(version) if label.judge == model}
    waiting = under_way(version.work / RECORDS)
    return len(replied) + sum(len(record.custom_ids) for record in waiting if record.model == model)


def _pairs(version: Version, plan: Plan, n_documents: int) -> tuple[int, int, str]:
    """Return how many pairs are not judged, of how many, and in words what is counted: likely ones before the runs."""
    pooled = pooled_pairs(version, plan)
    if pooled is not None:
        return len(unjudged(pooled, labels_at_hand(version))), len(pooled), "not judged yet"
    # Of one wording and of two; no topic pools more documents than there are.
    per_topic = [min(likely_pairs(plan.pool_depth, len(plan.judged_cells), n), n_documents or math.inf) for n in (1, 2)]
    if not version.queries_path.exists():
        likely = round(MIN_QUERIES * (per_topic[0] + _topical(version) * (per_topic[1] - per_topic[0])))
        return likely, likely, f"about, for {MIN_QUERIES} queries"
    topics = load_queries(version.queries_path)
    likely = round(sum(per_topic[len(topic.wordings) - 1] for topic in topics))
    # Cells that are run already have their pool. Others of the same encoders make it grow as they do by rule.
    made = [cell for cell in plan.judged_cells if version.run_path(cell).exists()]
    if not made:
        return likely, likely, "about, before the cells are run"
    known = pooled_pairs(version, plan.model_copy(update={"cells": made, "confirms": None})) or []
    encoders = [{getattr(parse_cell(cell), "encoder", "") for cell in cells} for cells in (plan.judged_cells, made)]
    further = len(encoders[0] - encoders[1])
    growth = likely_pairs(1, len(plan.judged_cells)) / likely_pairs(1, len(made))
    grown = round(len(known) * (1 + NEW_ENCODER * further if further else growth))
    likely = min(grown, len(topics) * n_documents) if n_documents else grown
    left = len(unjudged(known, labels_at_hand(version))) + likely - len(known)
    return left, likely, f"about, before {len(plan.judged_cells) - len(made)} cells are run"


def _topical(version: Version) -> float:
    """Return the share of a source's queries that have two wordings, by the weights of its kinds; 1 without kinds."""
    kinds = version.source.queries
    literal = sum(kind.weight for kind in kinds if kind.kind in LITERAL_KINDS)
    return 1 - literal / max(1, sum(kind.weight for kind in kinds))
