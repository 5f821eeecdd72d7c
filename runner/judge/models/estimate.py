"""What judging through an API would cost, before anything is exported: from counts and the dated prices."""

from collections.abc import Sequence
from typing import get_args

from runner.embed.cost.estimate import Estimate
from runner.embed.cost.prices import Usage, shown
from runner.eval_set.asked import asked_ids
from runner.eval_set.batches import Kind, batch_files
from runner.eval_set.labels import version_labels
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_queries
from runner.judge.evidence import expected_chars
from runner.judge.models.api import RECORDS, JudgeOptions, model_price
from runner.judge.models.claude_batches import FEWEST_REQUESTS, under_way
from runner.judge.models.client import FORM_TOKENS, Way
from runner.judge.models.kept_replies import ReplyFiles
from runner.judge.models.prompt import MAX_TOKENS
from runner.judge.models.run_judges import named_judges
from runner.judge.second_reading import judges_of
from runner.retrieve.pool import likely_pairs, pool, unjudged

LIKELY_BYTES = 3.5
LIKELY_WRITTEN = 150
"""Bytes of English a token as a rule (tokenizers of 2026 cut it 30 % finer), and tokens of a judgment."""

ROW_CHARS = 600
"""Query, title, numbers of the passages and the form of the answer, about."""


def judging_left(version: Version, plan: Plan, options: JudgeOptions, documents: Sequence[int]) -> Estimate:
    """Return what is left for the plan's judges, if each pair is shown as much as may be and asked once.

    `documents` are the characters of each, none if nothing is sampled. InputError for a plan without judges, or for a
    model whose price is not known.
    """
    judges, tokens = named_judges(version, plan), _tokens_read(version, plan, documents)
    n_pairs, n_pooled, of_what = _pairs(version, plan, len(documents))
    n_first = max(0, n_pairs - _paid(version, judges.first.model))
    first = _of_one(judges.first, n_first, of_what, tokens, options)
    if judges.second is None:
        return first
    read_twice = sum(len(readers) > 1 for readers in judges_of(version_labels(version)).values())
    n_again = max(0, round(judges.second.share * n_pooled) - read_twice - _paid(version, judges.second.model))
    second = _of_one(judges.second, n_again, f"second readings, {judges.second.share:.0%}", tokens, options)
    # One is asked after the other, so what they hold does not add up.
    return Estimate([*first.lines, *second.lines], first.usd + second.usd, max(first.held, second.held))


def pooled_pairs(version: Version, plan: Plan) -> list[tuple[str, str]] | None:
    """Return the plan's pool; None before queries are written and every cell is run."""
    if not version.queries_path.exists() or not all(version.run_path(cell).exists() for cell in plan.cells):
        return None
    queries = load_queries(version.queries_path)
    runs = (read_run(version.run_path(cell), cell, asked_ids(queries)) for cell in plan.judged_cells)
    return pool(runs, plan.pool_depth, queries)


def _of_one(judge: JudgeSpec, n_pairs: int, of_what: str, tokens: int, options: JudgeOptions) -> Estimate:
    """Return one judge's part; held is what its requests under way may cost at most, less what they are likely to."""
    # Likely: English as a rule. Worst: every byte a token and the longest answer, as a client holds it.
    price = model_price(judge, options)
    likely = price.usd(Usage(read=tokens, written=LIKELY_WRITTEN))
    worst = price.usd(Usage(cache_written=round(tokens * LIKELY_BYTES) + 2 * FORM_TOKENS, written=MAX_TOKENS))
    at_once = min(n_pairs, FEWEST_REQUESTS if options.how == "batches" else Way().parallel)
    usd = n_pairs * likely
    line = f"judging: {judge.model}, {n_pairs:,} pairs ({of_what}), about {shown(usd)} ({price.source})"
    return Estimate([line], usd, at_once * (worst - likely))


def _tokens_read(version: Version, plan: Plan, documents: Sequence[int]) -> int:
    """Return the tokens of a request: the judge's instructions, the row, as much of a document as may be shown."""
    prompt = version.judge_prompt.stat().st_size
    return round((prompt + ROW_CHARS + expected_chars(documents, plan.evidence)) / LIKELY_BYTES)


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
        return len(unjudged(pooled, version_labels(version))), len(pooled), "not judged yet"
    a_query = likely_pairs(plan.pool_depth, len(plan.judged_cells))
    a_query = min(a_query, n_documents or a_query)
    if not version.queries_path.exists():
        likely = round(MIN_QUERIES * a_query)
        return likely, likely, f"about, for {MIN_QUERIES} queries"
    asked = {query.id for query in load_queries(version.queries_path)}
    likely = round(len(asked) * a_query)
    judged = len({label.pair for label in version_labels(version) if label.query_id in asked})
    less = f"; those among the {judged:,} judged already are not asked again" if judged else ""
    return likely, likely, f"about, before the cells are run{less}"
