"""What a result cannot claim, said from its own figures."""

from collections.abc import Sequence

from runner.base.figures import figure_beside_bar, round4, whole_percent
from runner.decide.judge_agreement import zero_count_bound
from runner.decide.sample_size import shown_by
from runner.decide.tiers import interval_of
from runner.eval_set.shapes.corpus import CollectionFacts, CorpusHeader
from runner.eval_set.shapes.judges import Agreement, JudgeDrift, NoiseResult, SecondJudge
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.pool import SpanResult
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, JudgePanel, LabelFacts


def declared_weaknesses(
    plan: Plan,
    queries: Sequence[QueryRow],
    cells: Sequence[CellResult],
    labels: LabelFacts,
    panel: JudgePanel | None = None,
    spans: SpanResult | None = None,
) -> list[str]:
    """One sentence each, the most consequential first.

    Without a panel pairs were graded once, and without spans no passage is marked.
    """
    return [
        *(one.sentence for one in plan.left_out),
        *_power(plan, len(queries), cells),
        *_recall(plan, cells),
        *_influence(plan.rule.min_gain, queries, cells),
        *_judges(panel),
        *_models(queries, labels, panel),
        *_query_origin(queries),
        *_truncation(cells),
        _passages(len(queries), spans),
        "Cells differ in chunk boundaries and in the context put before each chunk; the difference between two "
        "chunkers is the effect of both.",
        "Recall is relative to the pool: a relevant document that no cell retrieved is not known.",
        *_pool(plan, cells),
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
    if facts.renormalised:
        said.append(
            f"{facts.renormalised:,} texts were not in Unicode's form NFC and were brought into it, so that an accent "
            "is the same however it is written. A system that read the files as they are may score otherwise."
        )
    if facts.language:
        said.append(
            f"The documents look {facts.language.capitalize()}. `bm25` stems and drops stop words as English, so it is "
            "a weaker baseline here than BM25 made for that language."
        )
    return [
        *said,
        "Public collections serve to train and to choose encoders; how much of this one an encoder saw is not known.",
        *_truncation(cells),
        *_power(plan, facts.queries, cells),
        "Scores are of documents: a document ranks by its best chunk.",
    ]


def _power(plan: Plan, n_queries: int, cells: Sequence[CellResult]) -> list[str]:
    shown = shown_by(plan, n_queries, cells)
    return [f"{shown}; a smaller one may be missed."] if shown else []


def _recall(plan: Plan, cells: Sequence[CellResult]) -> list[str]:
    unsure = [row.cell for row in cells if row.recall_bound is not None and row.recall_bound.state == "open"]
    if not unsure:
        return []
    return [
        f"Whether Recall@10 falls by more than {plan.rule.max_recall_loss:g} is not known for {len(unsure)} of "
        f"{len(cells) - 1} cells: so few queries cannot exclude it."
    ]


def _influence(min_gain: float, queries: Sequence[QueryRow], cells: Sequence[CellResult]) -> list[str]:
    baseline = next(row for row in cells if row.test is None).scores["ndcg@10"].per_query
    said = []
    for row in cells:
        if row.test is None or not row.meets_criterion_5:
            continue
        gains = [own - other for own, other in zip(row.scores["ndcg@10"].per_query, baseline, strict=True)]
        without = row.test.left_out[0]
        if round4(without) < round4(row.differences["ndcg@10"].mean) / 2:
            best = queries[gains.index(max(gains))].id
            left = figure_beside_bar(without, min_gain, *interval_of(row.test))
            said.append(f"Without query {best} the difference of {row.cell} is {left}.")
    return ["One query carries much of a result. " + " ".join(said)] if said else []


def _judges(panel: JudgePanel | None) -> list[str]:
    if panel is None or not (panel.agreement.seconds or panel.agreement.drift):
        return ["Every pair was graded once: how far another judge, or the same one again, would agree is not known."]
    agreement = panel.agreement
    if not agreement.seconds:
        again = "; ".join(map(_repeated, agreement.drift))
        return [f"No pair was read by another judge: how far one would agree is not known. Read again, {again}."]
    by_judge = "; ".join(_agreed(agreement, second) for second in agreement.seconds)
    said = (
        f"{agreement.read_twice:,} of {agreement.pairs:,} pairs were read by another judge too: {by_judge}. Agreement "
        "says that judges see the same, not that they are right."
    )
    return [said, *_stability(panel.noise)]


def _repeated(row: JudgeDrift) -> str:
    said = f"{row.judge} gave {whole_percent(row.exact)} of {row.repeats:,} pairs the same grade"
    return f"{said}, and {row.left_open}" if row.left_open else said


def _agreed(agreement: Agreement, second: SecondJudge) -> str:
    """Weighted kappa with its interval, no finer than the interval allows, and what such readers leave open."""
    models = " (two language models; what people would say is not known)" if second.only_models else ""
    return f"{second.judge}{models}, {second.pairs:,} pairs, {_kappa(agreement, second)}"


def _kappa(agreement: Agreement, second: SecondJudge) -> str:
    kappa, unseen = second.kappa, zero_count_bound(agreement, second)
    if kappa.value is None:
        return f"too much alike for a kappa{f': {unseen}' if unseen else ''}"
    if kappa.low is None or kappa.high is None:
        return f"quadratic weighted kappa {kappa.value:.2f}, without an interval{f': {unseen}' if unseen else ''}"
    interval = f"{100 * agreement.confidence:g} % interval {kappa.low:.2f} to {kappa.high:.2f}"
    return f"quadratic weighted kappa {kappa.value:.2f} ({interval})"


def _stability(noise: NoiseResult | None) -> list[str]:
    """How often the choice stands once the second judge's grades are drawn for all pairs."""
    if noise is None:
        return []
    if noise.stability is None or noise.stability_queries_only is None:
        return [f"What the judge's errors leave of the choice is not known: {noise.unknown}."]
    return [
        f"By point estimates criterion 5 chooses {noise.chosen}; with other queries, and with grades drawn as "
        f"{noise.judge} would give them, it does so in {whole_percent(noise.stability)} of {noise.draws:,} draws "
        f"({whole_percent(noise.stability_queries_only)} with other queries alone)."
    ]


def _models(queries: Sequence[QueryRow], labels: LabelFacts, panel: JudgePanel | None) -> list[str]:
    if not labels.models:
        return []
    read = f"{panel.people.read:,}" if panel and panel.people.read else "none"
    said = [
        f"Language models judged ({', '.join(labels.models)}), and models may err alike; people graded {read} of the "
        "pairs that a model graded first."
    ]
    generated = sum(query.origin == "generated" for query in queries)
    if not generated:
        return said
    apart = " The slices show them apart." if generated < len(queries) else ""
    return [
        *said,
        f"{generated} of {len(queries)} queries were generated and language models judged: where author and judge are "
        f"of one family, the judge may favour what its own kind asked for.{apart}",
    ]


def _passages(n_queries: int, spans: SpanResult | None) -> str:
    if spans is None or not spans.queries:
        return (
            "Judgments are per document: a chunk's hit counts as its document's, by the best chunk, so a chunker that "
            "finds the right document through the wrong passage is not told apart."
        )
    said = (
        "Scores and verdict are per document, a chunk's hit counting as its document's; whether the right passage was "
        f"found is told apart by the span scores alone, over {spans.queries} of {n_queries} queries"
    )
    return f"{said}, and {spans.unmarked} relevant documents have no mark." if spans.unmarked else f"{said}."


def _pool(plan: Plan, cells: Sequence[CellResult]) -> list[str]:
    """Cells that meet criterion 5 and would not gain enough for it, had their like not fed the pool."""
    said = []
    for row in cells:
        kin = row.pool.kin if row.pool is not None and row.meets_criterion_5 else None
        if kin is None or row.test is None or round4(kin.difference) >= plan.rule.min_gain:
            continue
        gains = row.differences["ndcg@10"].mean, kin.difference
        now, then = (figure_beside_bar(gain, plan.rule.min_gain, *interval_of(row.test)) for gain in gains)
        said.append(f"{row.cell} differs from the baseline by {now}, and by {then} without them")
    if not said:
        return []
    return [
        f"A gain depends on pairs that only a cell and cells with its encoder or BM25 brought to the pool: "
        f"{'; '.join(said)}."
    ]


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
