import pytest

from runner.base.errors import InputError
from runner.decide.decide import RECOMMENDED, Choice, decide, decision_sentence, needs_choice, remade
from runner.decide.tiers import cell_in_question, recommendation
from runner.eval_set.catalog import ENCODERS
from runner.eval_set.shapes.decision import Reuse
from runner.report.sentences import found
from tests.support.example_results import BASELINE, BETTER, HYBRID, SHA, SPARSE, results, row


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


def test_a_cell_for_which_another_stands_is_not_chosen():
    twin = row(SPARSE, 0.1).model_copy(update={"same_as": BETTER})
    made = results(row(BETTER, 0.1), twin, row(BASELINE))
    assert cell_in_question([twin, *made.cells]).cell == BETTER
    with pytest.raises(InputError, match=BETTER):
        decide(made, SHA, Choice(SPARSE, "it is short", "me"), today="2026-01-31")


def test_recommended_is_what_is_expected_to_lose_least_confirmed_or_not():
    confirmed, unproven = row(BETTER, 0.1, p=0.001, believed=0.05), row(SPARSE, 0.08, believed=0.06)
    made = results(confirmed, unproven, row(BASELINE))
    assert needs_choice(made)
    decision = decide(made, SHA, Choice(RECOMMENDED, "", "a job"), today="2026-01-31")
    assert (decision.tier, decision.chosen.cell, decision.chosen.standing) == ("confirmed", SPARSE, "candidate")
    assert decision.decided_by == "a job"
    assert "+0.06" in decision.reason
    again = remade(decision, made)
    assert (again.chosen, again.reason, again.decided_by) == (decision.chosen, decision.reason, "a job")


@pytest.mark.parametrize("by_one_model", [True, False])
def test_what_one_models_grades_confirm_says_so_wherever_it_stands(by_one_model):
    label = "confirmed by one model's grades" if by_one_model else "confirmed"
    made = results(row(BETTER, 0.1, p=0.001, believed=0.05), row(BASELINE), by_one_model=by_one_model)
    assert (made.outcome.tier, made.confirmed_as) == (label, label)
    assert needs_choice(made)
    assert found(made).startswith(f"{label.capitalize()}: {BETTER} ")
    decision = decide(made, SHA, Choice(BETTER, "it gained", "me"), today="2026-01-31")
    assert (decision.tier, decision.chosen.standing) == (label, label)
    assert f"({label})" in decision_sentence(decision)
    assert f"; {label}; over 50 queries" in decision.rationale
    kept = decide(made, SHA, Choice(BASELINE, "it is cheap", "me"), today="2026-01-31")
    assert f"(though a cell is {label})" in decision_sentence(kept)


@pytest.mark.parametrize(
    ("gain", "believed", "chosen"),
    [(0.03, 0.019, BASELINE), (0.03, 0.021, BETTER), (0.01, 0.03, BASELINE)],
)
def test_recommended_is_a_candidate_that_is_expected_to_be_worth_its_switch(gain, believed, chosen):
    made = results(row(BETTER, gain, believed=believed), row(BASELINE))
    decision = decide(made, SHA, Choice(RECOMMENDED, "", "a job"), today="2026-01-31")
    assert made.outcome.recommended == decision.chosen.cell == chosen
    assert decision.reason == recommendation(made.cells, made.plan)[1]
    assert decision.candidates == ([BETTER] if gain == 0.03 else [])


def test_the_operators_reason_stands_even_for_recommended():
    choice = Choice(RECOMMENDED, "as planned", "me")
    assert decide(results(row(BASELINE)), SHA, choice, today="2026-01-31").reason == "as planned"


@pytest.mark.parametrize(
    ("cell", "retrieval", "encoder", "chunker"),
    [
        (BETTER, "dense", "minilm-l6-v2", "section_aware_bills_256_v1"),
        (SPARSE, "bm25", "", "whole_doc"),
        (HYBRID, "rerank", "minilm-l6-v2", "section_aware_bills_256_v1"),
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
    with pytest.raises(InputError, match="No cell is a candidate"):
        decide(made, SHA, Choice(BETTER, "cheaper", "me"), today="2026-01-31")
    assert decide(made, SHA, Choice(BASELINE, "r", "me"), today="2026-01-31").chosen.cell == BASELINE


def test_the_rationale_holds_the_figures_of_the_chosen_cell():
    made = results(row(BETTER, 0.03, -0.01), row(BASELINE))
    said = decide(made, SHA, Choice(BETTER, "r", "me"), today="2026-01-31").rationale
    for figure in ("nDCG@10 0.5300", "(0.4300 to 0.6300)", "Recall@10 0.5900", "+0.0300 nDCG@10 to the baseline"):
        assert figure in said
    assert "not confirmed: it is not told from chance (p 0.5, bar 0.04)" in said
    kept = decide(made, SHA, Choice(BASELINE, "r", "me"), today="2026-01-31").rationale
    assert "to the baseline;" not in kept


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


def test_what_is_chosen_is_called_what_the_rule_says_of_it():
    made = results(row(SPARSE, -0.16), row(BETTER, 0.1, p=0.001), row(HYBRID, 0.05), row(BASELINE))

    def said(cell):
        return decision_sentence(decide(made, SHA, Choice(cell, "r", "me"), today="2026-01-31"))

    assert f"chosen is {SPARSE} (no candidate)" in said(SPARSE)
    assert f"chosen is {BETTER} (confirmed)" in said(BETTER)
    assert f"chosen is {HYBRID} (candidate)" in said(HYBRID)
    assert f"chosen is the baseline, {BASELINE} (though a cell is confirmed)" in said(BASELINE)


def test_a_taken_over_chunker_is_in_the_decision_with_what_is_known_of_it_and_is_made_again_the_same():
    made = results(row(BETTER, 0.03), row(BASELINE))
    reuse = Reuse(chunker="usc_uslm_section_v1", source="us_code", result="not yet evaluated")
    decision = decide(made, SHA, Choice(BETTER, "why", "who"), today="2026-01-31", reuse=reuse)
    assert decision.model_dump()["reuse"] == {
        "chunker": "usc_uslm_section_v1",
        "source": "us_code",
        "result": "not yet evaluated",
    }
    assert remade(decision, made).reuse == reuse


def test_a_decision_without_a_taken_over_chunker_says_nothing_of_one():
    decision = decide(results(row(BETTER, 0.03), row(BASELINE)), SHA, Choice(BETTER, "w", "w"), today="2026-01-31")
    assert "reuse" not in decision.model_dump()
