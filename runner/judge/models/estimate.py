"""What judging through an API would cost, before anything is exported: from counts and the dated prices."""

from runner.embed.cost.prices import shown
from runner.eval_set.labels import version_labels
from runner.eval_set.looks import kept_looks
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_corpus, load_queries
from runner.judge.models.api import model_price
from runner.judge.models.prices import LIKELY_BYTES, LIKELY_WRITTEN
from runner.judge.models.requests import Usage
from runner.judge.models.run_judges import JudgeOptions, named_judges
from runner.judge.prep_labels import EVIDENCE_CHARS
from runner.judge.second_reading import judges_of
from runner.retrieve.pool import pool, unjudged
from runner.score.looks import look_after

ROW_CHARS = 600
"""Query, title, numbers of the passages and the form of the answer, about."""


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


def _line(judge: JudgeSpec, n_pairs: int, of_what: str, version: Version, options: JudgeOptions) -> str:
    price = options.price or model_price(judge, options.url)
    price = price.in_batches() if options.how == "batches" else price
    prompt = version.judge_path.stat().st_size if version.judge_path.exists() else 0
    tokens = round((prompt + ROW_CHARS + EVIDENCE_CHARS) / LIKELY_BYTES)
    usd = n_pairs * price.usd(Usage(read=tokens, written=LIKELY_WRITTEN))
    return f"judging: {judge.model}, {n_pairs:,} pairs ({of_what}), about {shown(usd)} ({price.source})"


def _pairs(version: Version, plan: Plan) -> tuple[int, int, str]:
    """How many pairs are not judged, of how many, and in words what is counted: at most, until the cells are run."""
    if not version.queries_path.exists() or not version.corpus_path.exists():
        most = MIN_QUERIES * plan.pool_depth * len(plan.cells)
        return most, most, f"the most for {MIN_QUERIES} queries"
    query_ids = [query.query_id for query in load_queries(version.queries_path)]
    if all(version.run_path(cell).exists() for cell in plan.cells):
        look = look_after(plan, kept_looks(version, plan).digests)
        first = look.queries if look else None
        runs = (read_run(version.run_path(cell), cell, query_ids, first) for cell in plan.cells)
        pooled = pool(runs, plan.pool_depth)
        said = f"not judged yet at {look.name}" if look else "not judged yet"
        return len(unjudged(pooled, version_labels(version))), len(pooled), said
    n_documents = len(load_corpus(version.corpus_path)[1])
    most = len(query_ids) * min(n_documents, plan.pool_depth * len(plan.cells))
    return most, most, "the most, before the cells are run"
