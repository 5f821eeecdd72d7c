"""A results.json of a few invented cells, for tests of what is said and decided about them."""

from types import SimpleNamespace

import yaml

from runner.base.canonical import json_bytes, sha256
from runner.base.records import parse_cell
from runner.base.schema import part
from runner.decide.results import outcome
from runner.decide.tiers import CellFigures, bar, meets_criterion_5, unmet_criteria
from runner.eval_set.catalog import ENCODERS, SOURCES
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.cell import ChunkHealth, Provenance
from runner.eval_set.shapes.decision import Chosen, Decision
from runner.eval_set.shapes.gate import ControlResult, GateVerdict, NullResult
from runner.eval_set.shapes.paired import Difference, MeasureResult, PairedTest, TippingPoint
from runner.eval_set.shapes.plan import Normal, Plan, ScoredPlan
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import REGISTERED, CellResult, CorpusFacts, LabelFacts, Results
from runner.score.gain_test import GainTest

PLAN = part(ScoredPlan, Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False))))
RULE = PLAN.rule
SHA = "ab" * 32
FILES = ("corpus.jsonl", "judge-v1.md", "preregistration.json", "queries.yaml", "lists.json.bz2")
BASELINE = "minilm-l6-v2 x fixed_token_512_50"
BETTER = "minilm-l6-v2 x section_aware_bills_256_v1"
SPARSE = "bm25 x whole_doc"
HYBRID = "bm25>minilm-l6-v2 x section_aware_bills_256_v1"
EVEN = (0,) * 50
QUERIES = [QueryRow(id=f"q{i:02}", text="text", kind="topic", origin="harvested") for i in range(50)]
SCATTERED = (150_000_000, -150_000_000, 0, 0, 0) * 10

CHUNKS = ChunkHealth(
    count=9,
    tokens_p50=400,
    tokens_p95=510,
    tokens_max=512,
    duplicate_share=0.0,
    coverage=1.0,
    chunks_per_document_max=3,
    degenerate=[],
)


def gate(verdict):
    null = NullResult(
        name="permuted qrels",
        mean=0.1,
        low=0.08,
        high=0.12,
        dots=[0.08 + 0.001 * number for number in range(40)],
        delta=0.4,
        p=1 / 2001,
        verdict=verdict,
    )
    return GateVerdict(real=0.5, nulls=[null], verdict=verdict)


def row(
    cell,
    gain=0.0,
    recall=0.0,
    *,
    verdict="pass",
    p=0.5,
    bar=0.04,
    recall_state="open",
    half=0.05,
    role="preregistered",
    believed=None,
    doubt=0.03,
):
    """A cell with this gain, whose simultaneous interval reaches `half` to either side.

    What is believed of its true gain is `believed`, else what was measured, give or take `doubt`.
    """

    def measure(mean, per_query=EVEN):
        return MeasureResult(mean=mean, low=mean - 0.1, high=mean + 0.1, per_query=list(per_query))

    def difference(mean):
        return Difference(mean=mean, low=mean - 0.05, high=mean + 0.05, wins=1, ties=0, losses=1)

    registered = role in REGISTERED
    test = PairedTest(
        p=p,
        p_adjusted=p if registered else None,
        p_gain=p if registered else None,
        bar=bar if registered else None,
        interval=[gain - half / 2, gain + half / 2],
        simultaneous=[gain - half, gain + half] if registered else None,
        sd=0.15,
    )
    # Ends on either side of what the rule allows.
    bound = {
        "open": [min(recall, 0.0) - 0.03, max(recall, 0.0) + 0.03],
        "shown not to fall": [0.0, 0.1],
        "shown to fall": [-0.2, -0.1],
    }
    is_baseline = cell == BASELINE
    figures = CellFigures(gain, recall, len(QUERIES), GainTest(p, bar) if registered else None, verdict, 1.0)
    unmet = [] if is_baseline else unmet_criteria(figures, RULE)
    return CellResult(
        cell=cell,
        role="baseline" if is_baseline else role,
        scores={
            "ndcg@10": measure(0.5 + gain),
            "recall@10": measure(0.6 + recall, EVEN if is_baseline else SCATTERED),
            "mrr": measure(0.5),
            "judged@10": measure(1.0),
        },
        differences={"ndcg@10": difference(gain), "recall@10": difference(recall)},
        test=None if is_baseline else test,
        recall_bound=None if is_baseline else bound[recall_state],
        meets_criterion_5=not is_baseline and meets_criterion_5(gain, recall, RULE),
        short_of=unmet,
        gate=gate(verdict),
        diagnosis="" if verdict == "pass" else "every query gets the same ten documents",
        single_gold={},
        unjudged=0,
        bounds=[0.0, 1.0],
        tipping_point=TippingPoint(wrong=9, pairs=212) if gain > 0 else None,
        expected=None if is_baseline else Normal(mean=gain if believed is None else believed, sd=doubt),
        provenance=Provenance(
            run_sha256=sha256(cell),
            chunk_run_sha256=SHA,
            chunks=CHUNKS,
            encoder=None,
            probe=None,
            truncation=None,
            bm25=None,
            imported=None,
            method="",
        ),
    )


def control(name, *, passes=0, draws=1, bound=0):
    return ControlResult(name=name, mean=0.1, draws=draws, passes=passes, bound=bound)


def ranked(rows):
    return sorted(rows, key=lambda one: -one.scores["ndcg@10"].mean)


def outcome_of(*rows, controls=(), false_alarm=0.61, published=False, by_one_model=False, **facts):
    """The outcome of these rows over 50 queries, of whose gains is believed what `row` was told."""
    challengers = [one.cell for one in rows if one.cell != BASELINE]
    comparison = SimpleNamespace(
        plan=PLAN,
        effective=len(QUERIES),
        published=published,
        challengers=challengers,
        false_alarm=lambda: false_alarm if challengers else None,
    )
    cells = ranked(rows)
    return outcome(comparison, cells, bar(cells, controls, comparison.plan, **facts), by_one_model=by_one_model)


def results(*rows, kind="production", controls=(), noise_floor=None, unjudged=0, judging=None, **facts):
    """Results of these rows, or with what `outcome_of` takes besides."""
    return Results(
        schema_version=1,
        kind=kind,
        plan=PLAN,
        digests=dict.fromkeys(FILES, SHA),
        queries=QUERIES,
        collection=None,
        corpus=CorpusFacts(
            n_read=3,
            n_chars=3000,
            quarantined=[],
            strata={"s": 3},
            archive_sha256=SHA,
        ),
        labels=LabelFacts(
            lines=60,
            sha256=SHA,
            pairs=60,
            pool_pairs=60 + unjudged,
            unjudged_pairs=unjudged,
            judges={"me": 60},
            models=[],
            grades={"0": 40, "1": 10, "2": 5, "3": 5},
        ),
        cells=ranked(rows),
        controls=[*controls],
        noise_floor=noise_floor,
        judging=judging,
        spans=None,
        previous=None,
        outcome=outcome_of(*rows, controls=controls, noise_floor=noise_floor, unjudged=unjudged, **facts),
    )


def decision(found, cell=BASELINE, standing="", **named):
    """The decision for a cell of MiniLM that rests on these results, each field as named."""
    encoder = ENCODERS["minilm-l6-v2"]
    chosen = Chosen(
        cell=cell,
        standing=standing or ("the baseline" if cell == found.plan.baseline else "candidate"),
        retrieval="dense",
        encoder=encoder.name,
        encoder_revision=encoder.revision,
        chunker=parse_cell(cell).chunker,
    )
    fields = {
        "schema_version": 1,
        "source": found.source,
        "version": found.version,
        "kind": "rehearsal" if found.kind == "rehearsal" else "production",
        "tier": found.outcome.tier,
        "chosen": chosen,
        "baseline": BASELINE,
        "candidates": [],
        "rationale": "r",
        "decided_by": "A. Person",
        "reason": "it is cheap",
        "decided_on": "2026-03-02",
        "results_sha256": sha256(json_bytes(found.model_dump())),
    }
    return Decision(**fields | named)
