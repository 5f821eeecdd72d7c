"""Sentences that page and terminal share: templates/sentences says them, here is what they ask besides the records."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from statistics import median

from jinja2 import Template

from runner.base.figures import round4
from runner.base.records import ASKED, TRAFFIC, DenseCell, bm25_in, by_model, parse_cell
from runner.decide.decide import AUTOMATIC, UNATTENDED
from runner.decide.sample_size import detectable_alone, shown_by
from runner.decide.tiers import (
    CHOSEN,
    MIN_CONFIRMED,
    cell_in_question,
    expected_text,
    not_ruled_out,
    reaches_gain,
    recall_words,
    recommendation,
)
from runner.eval_set.catalog import ENCODERS, SOURCES, EncoderSpec
from runner.eval_set.kinds import is_of_vectors
from runner.eval_set.plan import RULE
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.judges import Judging, SecondJudge
from runner.eval_set.shapes.plan import ScoredPlan
from runner.eval_set.shapes.results import CellResult, Results
from runner.report.templates import environment
from runner.score.sign_flip import left_out

WINDOW = 512
"""Tokens of the baseline's windows, `fixed_token_512_50`."""


def found(results: Results, decision: Decision | None = None) -> str:
    """Return the verdict: four sentences at most, about the cell that was or would be chosen."""
    return _said("outcome", "found", results, decision)


def asked_words(results: Results) -> str:
    """Return which queries count, how much, and at which mix of them the choice would turn; "" if all is plain."""
    return _said("queries", "asked", results)


def next_step(results: Results, decision: Decision | None = None) -> str:
    """Return the one thing to do next."""
    return _said("outcome", "next_step", results, decision)


def weaknesses(results: Results) -> list[str]:
    """Return what the result cannot claim, the most consequential first."""
    lines = _rendered("weaknesses", "declared", results).splitlines()
    return [line.strip() for line in lines if line.strip()]


def headline(results: Results, decision: Decision | None) -> str:
    """Return what was decided, or why nothing is, in a few words."""
    return _said("first_screen", "headline", results, decision)


def lead(results: Results, decision: Decision | None) -> str:
    """Return what stands below the headline: the verdict, or what is known of figures that are not final."""
    return _said("first_screen", "lead", results, decision)


def short(cell: str, results: Results) -> str:
    """Return the chunker alone if every cell that a sentence may compare it with has the baseline's model."""
    return _said("first_screen", "short", cell, results)


def command(results: Results, decision: Decision | None, program: str) -> str:
    """Return the command for it, "" if there is none to copy."""
    return _said("first_screen", "command", results, decision, program)


def tried(scope: object, most_texts: int) -> list[str]:
    """Return what a trial asked and searched, and what to do next."""
    return _rendered("tried", "tried", scope, most_texts).splitlines()


def can_say(second: SecondJudge, plan: ScoredPlan) -> str:
    """Return what the readings of one second judge can and cannot show."""
    return _said("judges", "can_say", second, plan)


def agreement_lines(read: Judging, pairs: int, plan: ScoredPlan) -> list[str]:
    """Return how far the judges of a version agree, which has so many graded pairs, as a terminal prints it."""
    return _rendered("judges", "agreement", read, pairs, plan).rstrip().splitlines()


def _said(template: str, macro: str, *about: object) -> str:
    # Templates break lines where they are easy to read; a sentence has none.
    return " ".join(_rendered(template, macro, *about).split())


def _rendered(template: str, macro: str, *about: object) -> str:
    return str(getattr(_template(template).module, macro)(*about))


@cache
def _template(name: str) -> Template:
    # Plain text: a page escapes what it shows.
    sentences = environment(autoescape=False)
    asked: tuple[Callable[..., object], ...] = (
        bm25_in,
        carried_by_one,
        dense_cells,
        detectable_alone,
        expected_text,
        favoured_sides,
        held_back,
        is_of_vectors,
        median,
        never_compared,
        not_ruled_out,
        own_baseline,
        reaches_gain,
        recall_words,
        recommendation,
        shown_by,
        source_weakness,
        spoken_of,
        unread_apart,
        untrained_cuts,
    )
    sentences.globals |= {each.__name__: each for each in asked}
    sentences.globals |= {"ASKED": ASKED, "AUTOMATIC": AUTOMATIC, "TRAFFIC": TRAFFIC, "UNATTENDED": UNATTENDED}
    sentences.globals |= {"CHOSEN": CHOSEN, "MIN_CONFIRMED": MIN_CONFIRMED, "RULE": RULE}
    sentences.filters["model"] = lambda cell: cell.partition(" x ")[0]
    sentences.tests["written_by_model"] = by_model
    return sentences.get_template(f"sentences/{name}.j2")


def spoken_of(results: Results, decision: Decision | None) -> CellResult | None:
    """Return the cell that sentences are about: the one chosen or recommended over the baseline, else the best other.

    None if no cell but near-copies and equal lists stands beside the baseline.
    """
    chosen = results.outcome.recommended if decision is None else decision.chosen.cell
    rows = {row.cell: row for row in results.cells if row.test is not None}
    return rows.get(chosen) or cell_in_question(results.cells)


def unread_apart(row: CellResult, results: Results) -> float | None:
    """Return the share of the baseline's tokens that are never embedded, where that may be all of a cell's gain.

    None unless the cell gains and its own share is lower by a tenth, nor where another cell of the baseline's encoder
    that reads as much gains less than half of it: then what was unread is not what the gain is made of.
    """
    gain, baseline = row.differences["ndcg@10"].mean, next(each for each in results.cells if each.test is None)
    unread = 0.0 if baseline.provenance.truncation is None else baseline.provenance.truncation.share
    if gain <= 0 or not _reads_more(row, unread):
        return None
    encoder = baseline.cell.partition(" x ")[0]
    peers = [each for each in results.cells if each.test and each.cell != row.cell and _reads_more(each, unread)]
    gains = [each.differences["ndcg@10"].mean for each in peers if each.cell.partition(" x ")[0] == encoder]
    return None if any(other < gain / 2 for other in gains) else unread


def _reads_more(row: CellResult, unread: float) -> bool:
    own = 0.0 if row.provenance.truncation is None else row.provenance.truncation.share
    return unread - own >= 0.1


def kept_in_draws(results: Results, decision: Decision | None) -> float | None:
    """Return how often the judge's errors and other queries would leave the choice standing; None if nothing is drawn.

    Of a cell, how often it is a candidate; of the baseline, how often none is.
    """
    noise = results.judging.noise if results.judging else None
    if noise is None or noise.unknown:
        return None
    chosen = results.outcome.recommended if decision is None else decision.chosen.cell
    return noise.cells[chosen].candidate if chosen in noise.cells else noise.no_candidate


def own_baseline(results: Results) -> str:
    """Return why the baseline is the plan's own and not the roster's, "" if it is the roster's."""
    plan, row = results.plan, SOURCES.get(results.source)
    if plan.sample.documents is not None:
        return f"{results.source} is no source of the roster"
    is_own = row is not None and results.kind == "production" and plan.baseline != row.baseline
    return f"the roster's is {row.baseline}" if row is not None and is_own else ""


def source_weakness(name: str) -> str:
    """Return the weakness that the catalog declares of a source, "" for none."""
    return SOURCES[name].weakness if name in SOURCES else ""


def dense_cells(cells: Iterable[CellResult]) -> list[DenseCell]:
    """Return the dense cells that were searched here."""
    own = [parse_cell(row.cell) for row in cells if row.provenance.imported is None]
    return [cell for cell in own if isinstance(cell, DenseCell)]


def untrained_cuts(cells: Iterable[CellResult]) -> list[str]:
    """Return the cells of fewer dimensions than their encoder makes that it was not trained to be cut to."""
    trained = {name: encoder.matryoshka for name, encoder in ENCODERS.items()}
    # A variant in digits is a number of dimensions, any other a number format.
    cut = [cell for cell in dense_cells(cells) if cell.variant.isdigit()]
    return [str(cell) for cell in cut if int(cell.variant) not in trained.get(cell.encoder, ())]


def held_back(cells: Iterable[CellResult]) -> list[str]:
    """Return the encoders that read further than the baseline's windows and stand in a cell with such windows."""
    windowed = {cell.encoder for cell in dense_cells(cells) if cell.chunker.startswith(f"fixed_token_{WINDOW}_")}
    return sorted(name for name in windowed & ENCODERS.keys() if ENCODERS[name].max_tokens > WINDOW)


def never_compared(cells: Iterable[CellResult]) -> list[EncoderSpec]:
    """Return the encoders that no plan may use, of makers whose others stand in a cell."""
    used = [ENCODERS[cell.encoder] for cell in dense_cells(cells) if cell.encoder in ENCODERS]
    # The hub's names begin with the maker.
    makers = {encoder.model.partition("/")[0] for encoder in used}
    return [row for row in ENCODERS.values() if row.excluded and row.model.partition("/")[0] in makers]


def carried_by_one(results: Results) -> Iterator[tuple[CellResult, str, float]]:
    """Yield the candidates that gain less than half without the query that serves them best, with both."""
    baseline = next(row for row in results.cells if row.test is None).scores["ndcg@10"].per_query
    weights = results.topic_weights
    for row in results.cells:
        if row.test is None or not row.meets_criterion_5:
            continue
        own = row.scores["ndcg@10"].per_query
        gains = [score - other for score, other in zip(own, baseline, strict=True)]
        kept = [each for each in zip(gains, weights, results.queries, strict=True) if each[1]]
        # Without the query that gives the mean most it is lowest.
        without = left_out([gain for gain, _, _ in kept], [weight for _, weight, _ in kept])[0].low
        if round4(without) < round4(row.differences["ndcg@10"].mean) / 2:
            yield row, max(kept, key=lambda each: each[0] * each[1])[2].id, without


def favoured_sides(second: SecondJudge, alpha: float) -> Iterator[str]:
    """Yield whose documents the first judge grades higher beyond chance, and beside whose."""
    for cell, row in second.by_cell.items():
        if row.p_for_cell is not None and row.p_for_cell <= alpha:
            yield f"{cell} beside the baseline"
        if row.p_for_baseline is not None and row.p_for_baseline <= alpha:
            yield f"the baseline beside {cell}"
