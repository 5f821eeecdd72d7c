"""What judging through an API would cost, before anything is exported: from counts and the dated prices."""

from dataclasses import replace
from statistics import mean
from typing import NamedTuple

from runner.embed.cost.prices import MAX_USD, shown
from runner.eval_set.labels import version_labels
from runner.eval_set.looks import kept_looks
from runner.eval_set.plan import MIN_QUERIES, default_judges
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.labels import Judges, JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_corpus, load_queries
from runner.judge.models.api import model_price
from runner.judge.models.prices import LIKELY_BYTES, LIKELY_WRITTEN, Price
from runner.judge.models.requests import Usage
from runner.judge.models.run_judges import JudgeOptions, named_judges
from runner.judge.prep_labels import EVIDENCE_CHARS
from runner.judge.second_reading import judges_of
from runner.retrieve.pool import pool, unjudged
from runner.score.looks import look_after

ROW_CHARS = 600
"""Query, title, numbers of the passages and the form of the answer, about."""

OVERLAP = 0.45
"""A query pools about depth x cells ^ OVERLAP documents: at depth 10 over 9 cells 26 in the demo, 24 on real bills."""


class PairCosts(NamedTuple):
    """Dollars for one judged pair, its share of second readings included: all in batches, and asked one by one."""

    in_batches: float
    one_by_one: float


def judging_lines(version: Version, plan: Plan, options: JudgeOptions) -> list[str]:
    """A line per judge: its pairs, and about what they cost if each is shown as much as may be and asked once."""
    judges = named_judges(version, plan)
    n_pairs, n_pooled, of_what = _pairs(version, plan)
    lines = [_line(judges.first, n_pairs, of_what, version, options)]
    if judges.second is not None:
        read_twice = sum(len(judges) > 1 for judges in judges_of(version_labels(version)).values())
        n_again = max(0, round(judges.second.share * n_pooled) - read_twice)
        lines.append(_line(judges.second, n_again, f"second readings, {judges.second.share:.0%}", version, options))
    return lines


def pair_costs(version: Version, judges: Judges, options: JudgeOptions) -> PairCosts:
    """What a judged pair costs by these judges; InputError for a model whose price is not known."""
    tokens = _tokens_read(version)

    def usd(how: JudgeOptions) -> float:
        second = judges.second.share * _usd(_price(judges.second, how), tokens) if judges.second else 0.0
        return _usd(_price(judges.first, how), tokens) + second

    return PairCosts(usd(replace(options, how="batches")), usd(replace(options, how="messages")))


def pairs_a_query(version: Version, n_cells: int, depth: int) -> float:
    """How many pairs a query of the cells is likely to pool, before they are run."""
    likely: float = depth * n_cells**OVERLAP
    return min(likely, len(load_corpus(version.corpus_path)[1])) if version.corpus_path.exists() else likely


def queries_bought(version: Version, plan: Plan, usd: float = MAX_USD) -> int:
    """How many queries of the plan the ceiling buys, judged in batches; 0 if its judge charges nothing."""
    cost = pair_costs(version, plan.judges or default_judges(), JudgeOptions()).in_batches
    return int(usd / (pairs_a_query(version, len(plan.cells), plan.pool_depth) * cost)) if cost else 0


def pooled_pairs(version: Version, plan: Plan) -> list[tuple[str, str]] | None:
    """The plan's pool, that of the look which is due; None before queries are written and every cell is run."""
    if not version.queries_path.exists() or not all(version.run_path(cell).exists() for cell in plan.cells):
        return None
    query_ids = [query.query_id for query in load_queries(version.queries_path)]
    look = look_after(plan, kept_looks(version, plan).digests)
    first = look.queries if look else None
    return pool((read_run(version.run_path(cell), cell, query_ids, first) for cell in plan.cells), plan.pool_depth)


def _line(judge: JudgeSpec, n_pairs: int, of_what: str, version: Version, options: JudgeOptions) -> str:
    price = _price(judge, options)
    usd = n_pairs * _usd(price, _tokens_read(version))
    return f"judging: {judge.model}, {n_pairs:,} pairs ({of_what}), about {shown(usd)} ({price.source})"


def _price(judge: JudgeSpec, options: JudgeOptions) -> Price:
    price = options.price or model_price(judge, options.url)
    return price.in_batches() if options.how == "batches" else price


def _usd(price: Price, tokens: int) -> float:
    return price.usd(Usage(read=tokens, written=LIKELY_WRITTEN))


def _tokens_read(version: Version) -> int:
    """Tokens of a request: the judge's instructions, the row, and as much of an average document as may be shown."""
    own, template = version.judge_path, version.checkout / "templates" / "judge.md"
    prompt = (own if own.exists() else template).stat().st_size
    rows = load_corpus(version.corpus_path)[1] if version.corpus_path.exists() else []
    evidence = mean(min(row.n_chars, EVIDENCE_CHARS) for row in rows) if rows else EVIDENCE_CHARS
    return round((prompt + ROW_CHARS + evidence) / LIKELY_BYTES)


def _pairs(version: Version, plan: Plan) -> tuple[int, int, str]:
    """How many pairs are not judged, of how many, and in words what is counted: likely ones until the cells are run."""
    look = look_after(plan, kept_looks(version, plan).digests)
    pooled = pooled_pairs(version, plan)
    if pooled is not None:
        said = f"not judged yet at {look.name}" if look else "not judged yet"
        return len(unjudged(pooled, version_labels(version))), len(pooled), said
    written = version.queries_path.exists()
    n_queries = len(load_queries(version.queries_path)) if written else MIN_QUERIES
    likely = round(n_queries * pairs_a_query(version, len(plan.cells), plan.pool_depth))
    return likely, likely, "about, before the cells are run" if written else f"about, for {n_queries} queries"
