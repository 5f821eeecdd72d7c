"""What judging through an API would cost, before anything is exported: from counts and the dated prices."""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from runner.embed.cost.prices import shown
from runner.eval_set.batches import batch_files
from runner.eval_set.labels import version_labels
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.labels import Judges, JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_corpus, load_queries
from runner.judge.models.anthropic.batch_records import records
from runner.judge.models.anthropic.batches import FEWEST_REQUESTS
from runner.judge.models.api import RECORDS, model_price
from runner.judge.models.client import Way
from runner.judge.models.kept_replies import ReplyFiles
from runner.judge.models.prices import FORM_TOKENS, LIKELY_BYTES, LIKELY_WRITTEN, Price
from runner.judge.models.prompt import MAX_TOKENS
from runner.judge.models.requests import Usage
from runner.judge.models.run_judges import JudgeOptions, named_judges
from runner.judge.prep_labels import EVIDENCE_CHARS
from runner.judge.second_reading import judges_of
from runner.retrieve.pool import pool, unjudged

ROW_CHARS = 600
"""Query, title, numbers of the passages and the form of the answer, about."""

OVERLAP = 0.45
"""A query pools about depth x cells ^ OVERLAP documents: at depth 10 over 9 cells 26 in the demo, 24 on real bills."""


class Judging(NamedTuple):
    """What judging of what is left costs: a line per judge, dollars, and what is held at once beyond them."""

    lines: list[str]
    usd: float
    held: float


def judging_left(version: Version, plan: Plan, options: JudgeOptions, documents: Sequence[int]) -> Judging:
    """What is left for the plan's judges, if each pair is shown as much as may be and asked once.

    `documents` are the characters of each, none if nothing is sampled. InputError for a plan without judges, or for a
    model whose price is not known.
    """
    judges, tokens = named_judges(version, plan), _tokens_read(version, documents)
    n_pairs, n_pooled, of_what = _pairs(version, plan, len(documents))
    again = 0
    if judges.second is not None:
        read_twice = sum(len(judges) > 1 for judges in judges_of(version_labels(version)).values())
        again = max(0, round(judges.second.share * n_pooled) - read_twice - _paid(version, judges.second.model))
    n_pairs = max(0, n_pairs - _paid(version, judges.first.model))
    return _of_both(judges, (n_pairs, again), of_what, tokens, options)


def pairs_a_query(plan: Plan, n_documents: int) -> float:
    """How many pairs a query is likely to have in the plan's pool, before every cell is run.

    No more than there are documents, where their number is known: 0 if it is not.
    """
    likely: float = plan.pool_depth * len(plan.cells) ** OVERLAP
    return min(likely, n_documents or likely)


def pooled_pairs(version: Version, plan: Plan) -> list[tuple[str, str]] | None:
    """The plan's pool; None before queries are written and every cell is run."""
    if not version.queries_path.exists() or not all(version.run_path(cell).exists() for cell in plan.cells):
        return None
    query_ids = [query.query_id for query in load_queries(version.queries_path)]
    return pool((read_run(version.run_path(cell), cell, query_ids) for cell in plan.cells), plan.pool_depth)


def _of_both(judges: Judges, n_pairs: tuple[int, int], of_what: str, tokens: int, options: JudgeOptions) -> Judging:
    """The judges' parts for so many pairs of each; they are asked one after the other."""
    each = [_of_one(judges.first, n_pairs[0], of_what, tokens, options)]
    if judges.second is not None:
        again = f"second readings, {judges.second.share:.0%}"
        each.append(_of_one(judges.second, n_pairs[1], again, tokens, options))
    return Judging([one.lines[0] for one in each], sum(one.usd for one in each), max(one.held for one in each))


def _of_one(judge: JudgeSpec, n_pairs: int, of_what: str, tokens: int, options: JudgeOptions) -> Judging:
    """One judge's part; held is what its requests under way may cost at most, less what they are likely to."""
    price = _price(judge, options)
    usd = _usd(price, tokens)
    at_once = min(n_pairs, FEWEST_REQUESTS if options.how == "batches" else Way().parallel)
    worst = Usage(cache_written=round(tokens * LIKELY_BYTES) + 2 * FORM_TOKENS, written=MAX_TOKENS)
    line = f"judging: {judge.model}, {n_pairs:,} pairs ({of_what}), about {shown(n_pairs * usd)} ({price.source})"
    return Judging([line], n_pairs * usd, at_once * (price.usd(worst) - usd))


def _price(judge: JudgeSpec, options: JudgeOptions) -> Price:
    price = (not judge.by_file and options.price) or model_price(judge, options.url)
    return price.in_batches() if options.how == "batches" else price


def _usd(price: Price, tokens: int) -> float:
    return price.usd(Usage(read=tokens, written=LIKELY_WRITTEN))


def _documents(version: Version) -> list[int]:
    """Characters of each sampled document."""
    return [row.n_chars for row in load_corpus(version.corpus_path)[1]] if version.corpus_path.exists() else []


def _tokens_read(version: Version, documents: Sequence[int]) -> int:
    """Tokens of a request: the judge's instructions, the row, and as much of an average document as may be shown."""
    prompt = version.judge_prompt.stat().st_size
    evidence = mean(min(n_chars, EVIDENCE_CHARS) for n_chars in documents) if documents else EVIDENCE_CHARS
    return round((prompt + ROW_CHARS + evidence) / LIKELY_BYTES)


def _paid(version: Version, model: str) -> int:
    """How many pairs a model was paid for and has no label of yet: kept replies, and asks of batches under way."""
    files = ReplyFiles(version.judging, model)
    names = [path.stem for kind in ("batch", "double") for path in batch_files(version.judging, kind)]
    replies = [kept for name in names for kept in files.read(name) if not kept.problem]
    if not replies and not (version.work / RECORDS).exists():
        return 0
    labelled = {(label.query_id, label.doc_id) for label in version_labels(version) if label.judge == model}
    waiting = {(kept.query_id, kept.doc_id) for kept in replies} - labelled
    batches = (kept.record for kept in records(version.work / RECORDS))
    return len(waiting) + sum(len(row.custom_ids) for row in batches if row.model == model and not row.delivered)


def _pairs(version: Version, plan: Plan, n_documents: int) -> tuple[int, int, str]:
    """How many pairs are not judged, of how many, and in words what is counted: likely ones until the cells are run."""
    pooled = pooled_pairs(version, plan)
    if pooled is not None:
        return len(unjudged(pooled, version_labels(version))), len(pooled), "not judged yet"
    a_query = pairs_a_query(plan, n_documents)
    if not version.queries_path.exists():
        likely = round(MIN_QUERIES * a_query)
        return likely, likely, f"about, for {MIN_QUERIES} queries"
    asked = [query.query_id for query in load_queries(version.queries_path)]
    likely = round(len(asked) * a_query)
    judged = len({(label.query_id, label.doc_id) for label in version_labels(version) if label.query_id in set(asked)})
    less = f"; those among the {judged:,} judged already are not asked again" if judged else ""
    return likely, likely, f"about, before the cells are run{less}"
