"""What a result cannot claim, said from its own figures."""

from collections.abc import Sequence

from runner.power import DEFAULT_SD, minimum_detectable_effect
from runner.result_schemas import CellResult, LabelFacts
from runner.schemas import Plan, QueryRow


def declared_weaknesses(
    plan: Plan, queries: Sequence[QueryRow], cells: Sequence[CellResult], labels: LabelFacts
) -> list[str]:
    """One sentence each, the most consequential first."""
    return [
        *_power(plan, len(queries), len(cells)),
        *_judges(labels),
        *_query_origin(queries),
        *_truncation(cells),
        "Judgments are per document: a chunk's hit counts as its document's, by the best chunk, so a chunker that "
        "finds the right document through the wrong passage is not told apart.",
        "Cells differ in chunk boundaries and in the context put before each chunk; the difference between two "
        "chunkers is the effect of both.",
        "Recall is relative to the pool: a relevant document that no cell retrieved is not known.",
        "Scores come from exact search in this tool; the production database (quantised vectors, its own full-text "
        "index) was not measured.",
    ]


def _power(plan: Plan, n_queries: int, n_cells: int) -> list[str]:
    effect = minimum_detectable_effect(n_queries)
    power = f"{n_queries} queries show a difference of {effect:.3f} nDCG@10 with 80 % power (SD {DEFAULT_SD:.2f}); "
    chance = "so a candidate may be chance, and " if effect > plan.rule.min_gain else ""
    return [
        f"{power}the rule asks for {plan.rule.min_gain:.2f}, {chance}the best of {n_cells - 1} cells looks better than "
        "it is."
    ]


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
