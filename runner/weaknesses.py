"""What a result cannot claim, said from its own figures."""

from collections.abc import Sequence
from statistics import median

from runner.power import minimum_detectable_effect
from runner.result_schemas import CellResult, LabelFacts
from runner.schemas import CollectionFacts, CorpusHeader, Plan, QueryRow
from runner.tiers import gain_text, shown


def declared_weaknesses(
    plan: Plan, queries: Sequence[QueryRow], cells: Sequence[CellResult], labels: LabelFacts
) -> list[str]:
    """One sentence each, the most consequential first."""
    return [
        *_power(plan, len(queries), cells, plan.rule.min_gain),
        *_guard(plan, cells),
        *_influence(queries, cells),
        *_judges(labels),
        *_query_origin(queries),
        *_truncation(cells),
        "Judgments are per document: a chunk's hit counts as its document's, by the best chunk, so a chunker that "
        "finds the right document through the wrong passage is not told apart.",
        "Cells differ in chunk boundaries and in the context put before each chunk; the difference between two "
        "chunkers is the effect of both.",
        "Recall is relative to the pool: a relevant document that no cell retrieved is not known.",
        "Scores come from exact search in this tool; the production database (quantised vectors, its own full-text "
        "index) was not measured here; --post-bulk does.",
    ]


def external_weaknesses(
    plan: Plan, facts: CollectionFacts, header: CorpusHeader, cells: Sequence[CellResult]
) -> list[str]:
    """What a comparison on published qrels cannot claim, the most consequential first."""
    said = [
        f"This is one collection. {facts.judged_pairs / facts.queries:.1f} documents a query are judged; every other "
        "counts as not relevant, so a system that finds what no judge saw is rated too low."
    ]
    if header.n_documents < header.n_read:
        said.append(
            f"Only {header.n_documents:,} of {header.n_read:,} documents are in the sample, the judged ones among "
            "them: fewer compete, so the scores flatter every system."
        )
    if facts.missing_documents:
        said.append(f"{facts.missing_documents} judged documents are not in the corpus; nothing can find them.")
    return [
        *said,
        "Public collections serve to train and to choose encoders; how much of this one an encoder saw is not known.",
        *_truncation(cells),
        *_power(plan, facts.queries, cells, None),
        "Scores are of documents: a document ranks by its best chunk.",
    ]


def _power(plan: Plan, n_queries: int, cells: Sequence[CellResult], asked: float | None) -> list[str]:
    """What so few queries show, at the scatter that was measured, beside the gain that a rule asks for."""
    spread = [row.test.sd for row in cells if row.test is not None and row.test.sd]
    if not spread:
        return []
    sd = median(spread)
    effect = minimum_detectable_effect(n_queries, sd, plan.significance.alpha)
    small = (
        f"{n_queries} queries show a difference of {effect:.3f} nDCG@10 in one cell with 80 % power (SD of differences "
        f"{sd:.3f}, the median over the cells)"
    )
    if asked is None:
        return [f"{small}; a smaller one may be missed or be chance."]
    small += f"; the rule asks for {asked:g}"
    return [f"{small}." if effect <= asked else f"{small}, so a smaller gain may be missed or be chance."]


def _guard(plan: Plan, cells: Sequence[CellResult]) -> list[str]:
    unsure = [row.cell for row in cells if row.guard is not None and row.guard.state == "inconclusive"]
    if not unsure:
        return []
    return [
        f"Whether Recall@10 falls by more than {plan.rule.max_recall_loss:g} is not known for {len(unsure)} of "
        f"{len(cells) - 1} cells: the interval is wider than that."
    ]


def _influence(queries: Sequence[QueryRow], cells: Sequence[CellResult]) -> list[str]:
    """Candidates that one query makes."""
    baseline = next(row for row in cells if row.test is None).scores["ndcg@10"].per_query
    said = []
    for row in cells:
        if row.test is None or not row.meets_criterion_5:
            continue
        gains = [own - other for own, other in zip(row.scores["ndcg@10"].per_query, baseline, strict=True)]
        without = row.test.left_out[0]
        if shown(without) < shown(row.differences["ndcg@10"].mean) / 2:
            best = queries[gains.index(max(gains))].id
            said.append(f"Without query {best} the difference of {row.cell} is {gain_text(without)}.")
    return ["One query carries much of a result. " + " ".join(said)] if said else []


def _judges(labels: LabelFacts) -> list[str]:
    if labels.second_readings:
        return ["Some pairs were graded more than once; scores count the first grade, and agreement is not reported."]
    return ["Every pair was graded once: how far another judge, or the same one again, would agree is not known."]


def _query_origin(queries: Sequence[QueryRow]) -> list[str]:
    written = sum(query.origin != "harvested" for query in queries)
    generated = sum(query.origin == "generated" for query in queries)
    if not written:
        return []
    return [
        f"{written} of {len(queries)} queries were written for this evaluation ({generated} are marked as generated); "
        "they are what an author thinks people ask, not what people asked."
    ]


def _truncation(cells: Sequence[CellResult]) -> list[str]:
    cut = {
        row.cell: row.provenance.truncation.share
        for row in cells
        if row.provenance.truncation is not None and row.provenance.truncation.share >= 0.001
    }
    if not cut:
        return []
    listed = "; ".join(f"{cell} {100 * share:.1f} %" for cell, share in sorted(cut.items()))
    return [f"Encoders did not read all of what they were given. Share of tokens past the encoder's maximum: {listed}."]
