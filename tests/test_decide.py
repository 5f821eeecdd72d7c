import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.canonical import rounded
from runner.catalog import ENCODERS, SOURCES
from runner.decide import RECOMMENDED, Choice, decide, meets_criterion_5, needs_choice, outcome
from runner.errors import InputError
from runner.plan import default_plan_text
from runner.result_schemas import (
    CellResult,
    CorpusFacts,
    Difference,
    GateVerdict,
    LabelFacts,
    MeasureResult,
    NoiseFloor,
    NullResult,
    Results,
)
from runner.schemas import ChunkHealth, Plan, Provenance, Rule, Sample

PLAN = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False)))
RULE = PLAN.rule
SHA = "ab" * 32
BASELINE = "minilm-l6-v2 x fixed_token_512_50"
BETTER = "minilm-l6-v2 x section_aware_bills_v1"
SPARSE = "bm25 x whole_doc"
HYBRID = "bm25>minilm-l6-v2 x section_aware_bills_v1"


CHUNKS = ChunkHealth(
    count=9,
    tokens_p50=400,
    tokens_p95=510,
    tokens_max=512,
    duplicate_share=0.0,
    coverage=1.0,
    chunks_per_document_max=3,
)


def gate(cell, verdict):
    null = NullResult(
        name="permuted qrels",
        mean=0.1,
        sd=0.01,
        low=0.08,
        median=0.1,
        high=0.12,
        delta=0.4,
        p=1 / 2001,
        smallest_p=1 / 2001,
        verdict=verdict,
    )
    return GateVerdict(
        cell=cell, measure="ndcg@10", real=0.5, draws=2000, tau=0.05, alpha=0.05, nulls=[null], verdict=verdict
    )


def row(cell, gain=0.0, recall=0.0, *, verdict="pass"):
    def measure(mean):
        return MeasureResult(mean=mean, low=mean - 0.1, high=mean + 0.1, per_query=[0])

    def difference(mean):
        return Difference(mean=mean, low=mean - 0.05, high=mean + 0.05, wins=1, ties=0, losses=0)

    return CellResult(
        cell=cell,
        role="baseline" if cell == BASELINE else "preregistered",
        scores={"ndcg@10": measure(0.5 + gain), "recall@10": measure(0.6 + recall), "mrr": measure(0.5)},
        differences={"ndcg@10": difference(gain), "recall@10": difference(recall)},
        meets_criterion_5=cell != BASELINE and meets_criterion_5(gain, recall, RULE),
        gate=gate(cell, verdict),
        unjudged=0,
        bounds=[0.0, 1.0],
        provenance=Provenance(
            schema_version=1,
            cell=cell,
            queries_sha256=SHA,
            corpus_sha256=SHA,
            run_sha256=SHA,
            chunk_run_sha256=SHA,
            chunks=CHUNKS,
            encoder=None,
            probe=None,
            truncation=None,
            bm25=None,
            method="",
        ),
    )


def results(*rows, kind="production", unjudged=0):
    ordered = sorted(rows, key=lambda one: -one.scores["ndcg@10"].mean)
    return Results(
        schema_version=1,
        source="demo",
        version=1,
        kind=kind,
        provisional=bool(unjudged),
        plan=PLAN,
        preregistration_sha256=SHA,
        judge_prompt_sha256=SHA,
        queries=[],
        corpus=CorpusFacts(
            documents=3,
            n_read=3,
            n_chars=3000,
            quarantined=[],
            strata={"s": 3},
            sample=Sample(size=3, seed=1),
            reader="demo",
            archive_sha256=SHA,
            manifest_sha256=SHA,
        ),
        labels=LabelFacts(
            lines=60,
            sha256=SHA,
            pairs=60,
            second_readings=0,
            pool_pairs=60 + unjudged,
            unjudged_pairs=unjudged,
            judges={"me": 60},
            models=[],
            grades={"0": 40, "1": 10, "2": 5, "3": 5},
        ),
        cells=ordered,
        noise_floor=None,
        outcome=outcome(PLAN, ordered, None, unjudged=unjudged, n_queries=25),
        weaknesses=["Every pair was graded once."],
    )


@pytest.mark.parametrize(
    ("gain", "recall", "meets"),
    [
        (0.02, 0.0, True),
        (0.0199, 0.0, False),
        (0.01995001, 0.0, True),
        (498_750_001 / 25e9, 0.0, False),
        (0.01994999, 0.0, False),
        (0.02, -0.02, True),
        (0.02, -0.0201, False),
        (0.02, -0.02004999, True),
        (0.02, -0.02005001, False),
        (0.02 - 1e-12, -0.02 - 1e-12, True),
        (0.5, -0.5, False),
        (-0.5, 0.5, False),
        (0.0, 0.0, False),
    ],
)
def test_criterion_5_compares_the_four_places_of_the_page(gain, recall, meets):
    assert meets_criterion_5(gain, recall, RULE) is meets


@given(st.integers(-25 * 10**9, 25 * 10**9), st.integers(-25 * 10**9, 25 * 10**9))
def test_criterion_5_is_what_a_reader_of_the_page_would_say(gain, recall):
    """Means of 25 queries in units of 1e-9; the page reads them from results.json."""
    gain, recall = gain / (25 * 10**9), recall / (25 * 10**9)
    stored_gain, stored_recall = rounded([gain, recall])
    shown = float(f"{stored_gain:+.4f}") >= 0.02 and float(f"{stored_recall:+.4f}") >= -0.02
    assert meets_criterion_5(gain, recall, RULE) is shown


def test_another_rule_is_applied_as_it_is_written():
    strict = Rule(min_gain=0.05, max_recall_loss=0.0)
    assert meets_criterion_5(0.05, 0.0, strict)
    assert not meets_criterion_5(0.0499, 0.0, strict)
    assert not meets_criterion_5(0.05, -0.0001, strict)


def test_without_a_candidate_the_baseline_is_kept():
    found = outcome(PLAN, [row(BETTER, 0.0199), row(BASELINE)], None, unjudged=0, n_queries=25)
    assert (found.tier, found.candidates) == ("baseline kept", [])
    assert "no cell beats minilm-l6-v2 x fixed_token_512_50" in found.sentence


def test_candidates_come_best_first_and_the_sentence_warns_of_chance():
    cells = [row(SPARSE, 0.09), row(HYBRID, 0.06, -0.03), row(BETTER, 0.03), row(BASELINE)]
    found = outcome(PLAN, cells, None, unjudged=0, n_queries=25)
    assert (found.tier, found.candidates) == ("candidate", [SPARSE, BETTER])
    assert "gains +0.0900 nDCG@10" in found.sentence
    assert "below 0.088 may be chance" in found.sentence
    assert "2 candidates" in found.sentence
    alone = outcome(PLAN, [row(BETTER, 0.03), row(BASELINE)], None, unjudged=0, n_queries=25)
    assert alone.sentence.startswith(f"Candidate: {BETTER}")


@pytest.mark.parametrize("verdict", ["fail", "insufficient"])
def test_nothing_is_decided_where_the_baseline_cannot_be_told_from_the_null_systems(verdict):
    found = outcome(PLAN, [row(BETTER, 0.2), row(BASELINE, verdict=verdict)], None, unjudged=0, n_queries=25)
    assert found.tier == "no decision"
    assert repr(verdict) in found.sentence


@pytest.mark.parametrize(("moved", "tier"), [(0.0199, "candidate"), (-0.02, "no decision"), (0.02, "no decision")])
def test_nothing_is_decided_where_the_baseline_differs_from_itself_by_what_a_winner_must_gain(moved, tier):
    again = Difference(mean=moved, low=moved, high=moved, wins=1, ties=0, losses=0)
    floor = NoiseFloor(cell=BASELINE, difference=again, max_change=0.5, queries_changed=1)
    found = outcome(PLAN, [row(BETTER, 0.2), row(BASELINE)], floor, unjudged=0, n_queries=25)
    assert found.tier == tier
    assert (f"{moved:+.4f}" in found.sentence) == (tier == "no decision")


def test_nothing_is_decided_while_pairs_are_unjudged():
    found = outcome(PLAN, [row(BETTER, 0.2), row(BASELINE)], None, unjudged=7, n_queries=25)
    assert found.tier == "no decision"
    assert "7 pairs of the pool are not judged yet" in found.sentence


def test_only_a_candidate_needs_a_persons_choice():
    assert needs_choice(results(row(BETTER, 0.03), row(BASELINE)))
    assert not needs_choice(results(row(BETTER, 0.01), row(BASELINE)))
    assert not needs_choice(results(row(BETTER, 0.03), row(BASELINE), unjudged=1))


def test_criterion_6_records_the_baseline_by_itself():
    decision = decide(results(row(BETTER, 0.01), row(BASELINE)), SHA, None, today="2026-01-31")
    assert decision.chosen.cell == decision.baseline == BASELINE
    assert (decision.tier, decision.decided_by, decision.reason) == (
        "baseline kept",
        "criterion 6",
        "no cell met criterion 5",
    )
    assert (decision.results_sha256, decision.decided_on) == (SHA, "2026-01-31")


@pytest.mark.parametrize(
    ("gain", "reason"),
    [(0.03, "no cell is confirmed, so the baseline is kept"), (0.01, "no cell met criterion 5")],
)
def test_recommended_is_the_baseline_until_a_cell_is_confirmed(gain, reason):
    choice = Choice(RECOMMENDED, "", "a job")
    decision = decide(results(row(BETTER, gain), row(BASELINE)), SHA, choice, today="2026-01-31")
    assert (decision.chosen.cell, decision.reason, decision.decided_by) == (BASELINE, reason, "a job")
    assert decision.candidates == ([BETTER] if gain == 0.03 else [])


def test_the_operators_reason_stands_even_for_recommended():
    choice = Choice(RECOMMENDED, "as planned", "me")
    assert decide(results(row(BASELINE)), SHA, choice, today="2026-01-31").reason == "as planned"


@pytest.mark.parametrize(
    ("cell", "retrieval", "encoder", "chunker"),
    [
        (BETTER, "dense", "minilm-l6-v2", "section_aware_bills_v1"),
        (SPARSE, "bm25", "", "whole_doc"),
        (HYBRID, "rerank", "minilm-l6-v2", "section_aware_bills_v1"),
        ("rrf(bm25,minilm-l6-v2) x whole_doc", "rrf", "minilm-l6-v2", "whole_doc"),
    ],
)
def test_a_candidate_can_be_chosen_and_the_decision_names_retrieval_model_and_chunker(
    cell, retrieval, encoder, chunker
):
    made = results(row(cell, 0.03), row(BASELINE))
    decision = decide(made, SHA, Choice(cell, "cheaper", "me"), today="2026-01-31")
    chosen = decision.chosen
    assert (chosen.cell, chosen.retrieval, chosen.encoder, chosen.chunker) == (cell, retrieval, encoder, chunker)
    assert chosen.encoder_revision == (ENCODERS[encoder].revision if encoder else "")
    assert (decision.decided_by, decision.reason) == ("me", "cheaper")


def test_without_a_candidate_only_the_baseline_can_be_chosen():
    made = results(row(BETTER, 0.01), row(BASELINE))
    with pytest.raises(InputError, match="by criterion 6 the baseline"):
        decide(made, SHA, Choice(BETTER, "cheaper", "me"), today="2026-01-31")
    assert decide(made, SHA, Choice(BASELINE, "r", "me"), today="2026-01-31").chosen.cell == BASELINE


def test_the_rationale_holds_the_figures_of_the_chosen_cell():
    made = results(row(BETTER, 0.03, -0.01), row(BASELINE))
    said = decide(made, SHA, Choice(BETTER, "r", "me"), today="2026-01-31").rationale
    for figure in ("nDCG@10 0.5300", "(0.4300 to 0.6300)", "Recall@10 0.5900", "+0.0300", "(-0.0200 to +0.0800)"):
        assert figure in said
    assert "to the baseline (" not in decide(made, SHA, Choice(BASELINE, "r", "me"), today="2026-01-31").rationale


@pytest.mark.parametrize("cell", ["bm25-okapi x whole_doc", "", "Recommended", BETTER + " "])
def test_a_cell_that_the_version_does_not_have_cannot_be_chosen(cell):
    with pytest.raises(InputError) as caught:
        decide(results(row(BETTER, 0.03), row(BASELINE)), SHA, Choice(cell, "r", "me"), today="2026-01-31")
    assert f"{cell!r} is not a cell of this version" in str(caught.value)
    assert f"{BETTER}; {BASELINE}" in str(caught.value)


def test_an_exploration_decides_nothing():
    made = results(row(BETTER, 0.03), row(BASELINE), kind="exploration")
    with pytest.raises(InputError, match="An exploration decides nothing"):
        decide(made, SHA, Choice(BETTER, "r", "me"), today="2026-01-31")


def test_a_rehearsals_decision_says_that_it_is_one():
    made = results(row(BETTER, 0.03), row(BASELINE), kind="rehearsal")
    assert decide(made, SHA, Choice(BETTER, "r", "me"), today="2026-01-31").kind == "rehearsal"
