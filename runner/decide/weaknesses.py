"""What a result cannot claim, said from its own figures."""

from collections.abc import Sequence

from runner.base.figures import figure_beside_bar, round4, whole_percent
from runner.base.records import ASKED, TRAFFIC, DenseCell, bm25_in, by_model, parse_cell
from runner.decide.sample_size import shown_by
from runner.decide.tiers import interval_of
from runner.eval_set.catalog import ENCODERS
from runner.eval_set.shapes.corpus import CollectionFacts, CorpusHeader
from runner.eval_set.shapes.judges import JudgeDrift, NoiseResult, SecondJudge
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.pool import SpanResult
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, JudgePanel, LabelFacts
from runner.judge.agreement.kappa import left_open

SMALL_SAMPLE = 500
"""Documents below which a sample is declared small."""

WINDOW = 512
"""Tokens of the baseline's windows, `fixed_token_512_50`."""


def declared_weaknesses(
    plan: Plan,
    queries: Sequence[QueryRow],
    cells: Sequence[CellResult],
    n_documents: int,
    labels: LabelFacts,
    panel: JudgePanel | None = None,
    spans: SpanResult | None = None,
) -> list[str]:
    """One sentence each, the most consequential first.

    Without a panel pairs were graded once, and without spans no passage is marked.
    """
    return [
        *_power(plan, len(queries), cells),
        *_recall(plan, cells),
        *_influence(plan.rule.min_gain, queries, cells),
        *_judges(panel, plan.bootstrap.confidence),
        *_models(queries, labels, panel),
        *_query_origin(queries),
        *_small_sample(n_documents),
        *_truncation(cells),
        *_encoders(cells),
        _passages(len(queries), spans),
        "Cells differ in chunk boundaries and in the context put before each chunk; the difference between two "
        "chunkers is the effect of both.",
        "Every query is judged against every sampled document; others are not known."
        if labels.pairs == len(queries) * n_documents
        else "Recall is relative to the pool: a relevant document that no cell retrieved is not known.",
        *_cut_short(cells),
        _exact_search(cells),
    ]


def external_weaknesses(
    plan: Plan, facts: CollectionFacts, header: CorpusHeader, cells: Sequence[CellResult]
) -> list[str]:
    """What a comparison on published qrels cannot claim, the most consequential first."""
    said = [_coverage(facts)]
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
            f"a weaker baseline here than BM25 made for that language, which `{bm25_in(facts.language)}` is."
        )
    return [
        *said,
        *([] if facts.judged_by else [_SEEN]),
        *_truncation(cells),
        *_cut_short(cells),
        *_power(plan, facts.queries, cells),
        "Scores are of documents: a document ranks by its best chunk"
        + (", if its cell has no + behind the chunker." if any("+" in row.cell for row in cells) else "."),
    ]


_SEEN = "Public collections serve to train and to choose encoders; how much of this one an encoder saw is not known."


def _coverage(facts: CollectionFacts) -> str:
    """What is judged, and what is lost by what is not."""
    one = "" if facts.judged_by else "This is one collection. "
    return (
        f"{one}{facts.judged_pairs / facts.queries:.1f} documents a query are judged; every other counts as not "
        "relevant, so a system that finds what no judge saw is rated too low."
    )


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


def _judges(panel: JudgePanel | None, confidence: float) -> list[str]:
    if panel is None or not (panel.agreement.seconds or panel.agreement.drift):
        return ["Every pair was graded once: how far another judge, or the same one again, would agree is not known."]
    agreement = panel.agreement
    if not agreement.seconds:
        again = "; ".join(_repeated(row, confidence) for row in agreement.drift)
        return [f"No pair was read by another judge: how far one would agree is not known. Read again, {again}."]
    by_judge = "; ".join(_agreed(second, confidence) for second in agreement.seconds)
    said = (
        f"{agreement.read_twice:,} of {agreement.pairs:,} pairs were read by another judge too: {by_judge}. Agreement "
        "says that judges see the same, not that they are right."
    )
    return [said, *_stability(panel.noise)]


def _repeated(row: JudgeDrift, confidence: float) -> str:
    said = f"{row.judge} gave {whole_percent(row.same / row.repeats)} of {row.repeats:,} pairs the same grade"
    unseen = left_open(row.same, row.repeats, confidence)
    return f"{said}, and {unseen}" if unseen else said


def _agreed(second: SecondJudge, confidence: float) -> str:
    """Weighted kappa with its interval, no finer than the interval allows, and what such readers leave open."""
    models = {
        "models": " (two language models; what people would say is not known)",
        "one model": " (one language model both times, which may err alike; what others would say is not known)",
    }.get(second.readers, "")
    return f"{second.judge}{models}, {second.pairs:,} pairs, {_kappa(second, confidence)}"


def _kappa(second: SecondJudge, confidence: float) -> str:
    kappa, unseen = second.kappa, left_open(second.same, second.pairs, confidence)
    if kappa.value is None:
        return f"too much alike for a kappa{f': {unseen}' if unseen else ''}"
    if kappa.low is None or kappa.high is None:
        return f"quadratic weighted kappa {kappa.value:.2f}, without an interval{f': {unseen}' if unseen else ''}"
    interval = f"{100 * confidence:g} % interval {kappa.low:.2f} to {kappa.high:.2f}"
    return f"quadratic weighted kappa {kappa.value:.2f} ({interval})"


def _stability(noise: NoiseResult | None) -> list[str]:
    """How often the choice stands once the second judge's grades are drawn for all pairs."""
    if noise is None:
        return []
    if noise.stability is None or noise.stability_queries_only is None:
        return [f"What the judge's errors leave of the choice is not known: {noise.unknown}."]
    return [
        f"By point estimates the rule chooses {noise.chosen}; with other queries, and with grades drawn as "
        f"{noise.judge} would give them, it does so in {whole_percent(noise.stability)} of {noise.draws:,} draws "
        f"({whole_percent(noise.stability_queries_only)} with other queries alone)."
    ]


def _models(queries: Sequence[QueryRow], labels: LabelFacts, panel: JudgePanel | None) -> list[str]:
    if not labels.models:
        return []
    read = sum(second.pairs for second in panel.agreement.seconds if not second.models) if panel else 0
    said = [
        f"Language models judged ({', '.join(labels.models)}), and models may err alike; people read "
        f"{f'{read:,}' if read else 'none'} of these pairs again."
    ]
    generated, names = _by_models(queries)
    if not generated:
        return said
    apart = " The slices show them apart." if generated < len(queries) else ""
    return [
        *said,
        f"{generated} of {len(queries)} queries were generated ({names}) and language models judged: where author and "
        f"judge are of one family, the judge may favour what its own kind asked for.{apart}",
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


def _query_origin(queries: Sequence[QueryRow]) -> list[str]:
    written = sum(query.origin not in ASKED for query in queries)
    generated, names = _by_models(queries)
    drawn = sum(query.origin == TRAFFIC for query in queries)
    from_log = [
        f"{drawn} of {len(queries)} queries were drawn from a search log, in three bands of how often they were asked; "
        "those that could name a person were left out."
    ][: bool(drawn)]
    if not written:
        return from_log
    how = f"{generated} by language models: {names}" if names else "none by a language model"
    return [
        f"{written} of {len(queries)} queries were written for this evaluation ({how}); "
        "they are what an author thinks people ask, not what people asked.",
        *from_log,
    ]


def _by_models(queries: Sequence[QueryRow]) -> tuple[int, str]:
    """Return how many queries language models wrote, and the models' names."""
    models = [query.origin for query in queries if by_model(query.origin)]
    return len(models), ", ".join(sorted({*models}))


def _small_sample(n_documents: int) -> list[str]:
    if n_documents >= SMALL_SAMPLE:
        return []
    return [
        f"The sample is {n_documents:,} documents, fewer than {SMALL_SAMPLE}: few compete for a place, so the scores "
        "flatter every system, and rare kinds of documents may be missing."
    ]


def _encoders(cells: Sequence[CellResult]) -> list[str]:
    """Weaknesses 8 and 9 of the specification: long readers in short windows, and encoders that were never compared."""
    dense = [cell for row in cells if isinstance(cell := parse_cell(row.cell), DenseCell)]
    known = {cell.encoder: ENCODERS[cell.encoder] for cell in dense if cell.encoder in ENCODERS}
    windowed = {cell.encoder for cell in dense if cell.chunker.startswith(f"fixed_token_{WINDOW}_")}
    long = sorted(name for name, row in known.items() if name in windowed and row.max_tokens > WINDOW)
    said = []
    if long:
        said.append(
            f"Windows of {WINDOW} tokens may hold back encoders that read further ({', '.join(long)}); only cells with "
            "longer chunks show whether they do."
        )
    families = {row.hub_id.partition("/")[0] for row in known.values()}
    return said + [
        f"{row.name} was never compared with its sibling: {row.excluded}."
        for row in ENCODERS.values()
        if row.excluded and row.hub_id.partition("/")[0] in families
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


def _cut_short(cells: Sequence[CellResult]) -> list[str]:
    """Cells of fewer dimensions than their encoder makes, and was trained to be cut to."""
    own = [parse_cell(row.cell) for row in cells if row.provenance.imported is None]
    cut = [cell for cell in own if isinstance(cell, DenseCell) and cell.variant.isdigit()]
    trained = {name: row.matryoshka for name, row in ENCODERS.items()}
    found = [str(cell) for cell in cut if int(cell.variant) not in trained.get(cell.encoder, ())]
    if not found:
        return []
    return [
        "Vectors were cut to a length that their encoder is not known to be trained for, so the first dimensions hold "
        f"no more than others: {'; '.join(found)}."
    ]


def _exact_search(cells: Sequence[CellResult]) -> str:
    own = [parse_cell(row.cell) for row in cells if row.provenance.imported is None]
    exact = "" if any(isinstance(cell, DenseCell) and cell.variant for cell in own) else "exact "
    return (
        f"Scores come from {exact}search in this tool; the production database (quantised vectors, its own full-text "
        "index) was not measured here; --post-bulk does."
    )
