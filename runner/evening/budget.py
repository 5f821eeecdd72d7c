"""What a budget for judging buys: queries, pairs, dollars, hours of reading, and what so many queries can show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from runner.decide.sample_size import chance_to_show, detectable, first_challenger, planned_sd
from runner.embed.cost.estimate import Total
from runner.embed.cost.prices import shown
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import versions_of
from runner.eval_set.plan import MIN_QUERIES, POOL_DEPTH, default_judges
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_corpus, load_queries, load_results
from runner.judge.models.estimate import pair_usd, pairs_a_query, queries_bought, totals_with_judging
from runner.judge.models.run_judges import JudgeOptions
from runner.judge.prep_labels import PERSON_SECONDS
from runner.score.power import POWER
from runner.score.recall_bound import excludable_loss, queries_to_exclude

GAINS = (0.02, 0.03, 0.05)

_SIZES = (MIN_QUERIES, 50, 100, 200)


def budget_lines(version: Version, plan: Plan, total: Total, options: JudgeOptions) -> list[str]:
    """A table with a row for some numbers of queries, those that the ceiling buys among them, and what it rests on.

    `total` has the ceiling, and what of it is spent or goes to embedding; the rest is judging and its headroom.
    """
    judges = plan.judges or default_judges()
    usd = pair_usd(version, judges, options)
    n_written = len(load_queries(version.queries_path)) if version.queries_path.exists() else 0
    n_documents = len(load_corpus(version.corpus_path)[1]) if version.corpus_path.exists() else 0
    a_query = pairs_a_query(version, plan, plan.pool_depth, n_documents)
    ours = queries_bought(version, plan, total, options)
    looks = {queries: f"<- look {number}, at its part of alpha" for number, queries in enumerate(plan.looks[:-1], 1)}
    rows = sorted({*_SIZES, *looks, *(n for n in (ours, n_written) if n)})
    second = f", {judges.second.share:.0%} again by {_named(judges.second)}" if judges.second else ""
    lines = [
        f"what {shown(total.max_usd)} buys{_taken(total)}, judged by {_named(judges.first)}{second}:",
        f"  {len(plan.cells)} cells at depth {plan.pool_depth}, about {a_query:.0f} pairs a query, "
        f"{shown(usd)} a pair in batches",
        *_table(plan, rows, a_query, usd, {**looks, n_written: "<- written", ours: "<- budget"}),
    ]
    if usd:
        fewest = [
            totals_with_judging(version, plan, total, replace(options, how=how))(MIN_QUERIES).usd
            for how in ("batches", "messages")
        ]
        lines.append(f"  {_bought(total, ours, *fewest)}")
        if plan.pool_depth > POOL_DEPTH:
            shallow = queries_bought(version, plan, total, options, POOL_DEPTH)
            lines.append(f"  At depth {POOL_DEPTH}, which is all that nDCG@10 counts, it buys about {shallow:,}.")
    else:
        free = "Answers by file cost no dollars" if judges.first.by_file else "This judge charges nothing that is known"
        lines.append(f"  {free}, so a budget does not bound the queries.")
    return [*lines, *(f"  {line}" for line in (*_basis(plan), *_found_before(version, plan)))]


def _named(judge: JudgeSpec) -> str:
    return f"{judge.model} (by file)" if judge.by_file else judge.model


def _taken(total: Total) -> str:
    """What of the ceiling judging does not get, in words."""
    parts = {"embedding": total.embedding, "spent before": total.spent}
    said = [f"{shown(usd)} {what}" for what, usd in parts.items() if usd]
    return f" beside {' and '.join(said)}" if said else ""


def _table(plan: Plan, sizes: Sequence[int], a_query: float, usd: float, marks: Mapping[int, str]) -> Iterator[str]:
    first, other = _compared(plan)
    alpha, sd = plan.significance.alpha, planned_sd(plan)
    gains = "  ".join(f"{gain:+.2f}" for gain in GAINS)
    head = f"  {'queries':>7}  {'pairs':>6}  {'dollars':>8}  {'hours':>5}"
    yield f"{head}  | first {gains}  | other {gains}  | shows  | loss"
    for n in sizes:
        pairs = round(n * a_query)
        row = f"  {n:>7,}  {pairs:>6,}  {shown(pairs * usd):>8}  {pairs * PERSON_SECONDS / 3600:>5.1f}"
        for cell in (first, other):
            row += f"  |       {'  '.join(f'{chance_to_show(plan, cell, n, gain):>5.0%}' for gain in GAINS)}"
        row += f"  | {detectable(plan, first, n, sd):5.2f}  | {excludable_loss(n, alpha=alpha):.2f}"
        yield f"{row}  {marks.get(n, '')}".rstrip()


def _compared(plan: Plan) -> tuple[str, str]:
    """The first challenger, and one of the others; the same one if all are first, or none is."""
    first = first_challenger(plan)
    return first, next((cell for cell in plan.cells if cell not in (plan.baseline, *plan.first)), first)


def _bought(total: Total, n_batches: int, in_batches: float, one_by_one: float) -> str:
    """The last two are dollars of the fewest queries that a plan may have, embedding and headroom included."""
    said = f"{shown(total.max_usd)} buy {n_batches:,} queries judged in batches (--judge batches), headroom kept."
    if n_batches >= MIN_QUERIES:
        return said
    fewest = f"{shown(in_batches)} judged in batches and {shown(one_by_one)} one by one"
    return f"{said} {MIN_QUERIES}, the fewest, come to {fewest}, all included."


def _found_before(version: Version, plan: Plan) -> Iterator[str]:
    """A line on the scatter of the first challenger in the newest earlier version that is locked, none without it."""
    if plan.planning is not None:
        return
    cell = first_challenger(plan)
    for before in reversed(versions_of(version)):
        if before.number < version.number and (before.record / LOCK_NAME).exists() and before.results_path.exists():
            for row in load_results(before).cells:
                if row.cell == cell and row.test is not None:
                    yield f"In {before.name} the SD of {cell} was {row.test.sd:.2f}; plan.yaml takes it as"
                    yield f"planning: {{sd: {row.test.sd:.2f}, sources: []}}, before it is frozen."
            return


def _basis(plan: Plan) -> Iterator[str]:
    first, _ = _compared(plan)
    rule, planning = plan.rule, plan.planning
    known = "a default: no other source has locked results of production cells"
    if planning is not None:
        named = ", ".join(f"{row.source} v{row.version}" for row in planning.sources)
        known = f"the median over {named}" if named else "the plan's own"
    yield f"first: the chance that {first} is confirmed if it truly gains so much nDCG@10;"
    yield f"other: any other cell's. SD of differences a query {planned_sd(plan):g}, {known}."
    yield f"shows: the true gain of the first that is confirmed in {100 * POWER:.0f} % of evaluations."
    needed = queries_to_exclude(rule.max_recall_loss, alpha=plan.significance.alpha)
    yield f"loss: if Recall@10 changes in no query, a mean loss up to this cannot be excluded; {needed} such queries"
    yield f"exclude {rule.max_recall_loss:g}. hours: for one person, at {PERSON_SECONDS} seconds a pair."
