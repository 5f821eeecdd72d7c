"""Weaknesses that a result declares, from its own figures."""

import pytest

from runner.decide.judge_agreement import judge_agreement
from runner.decide.weaknesses import declared_weaknesses
from runner.eval_set.shapes.judges import Estimate
from runner.eval_set.shapes.queries import QueryRow
from runner.score.power import least_gain
from tests.eval_set.test_version import label
from tests.support import example_panel
from tests.support.example_results import BASELINE, BETTER, PLAN, SPARSE, results, row

QUERIES = [QueryRow(id=f"q{i:02}", text="text", kind="topic", origin="harvested") for i in range(25)]
LABELS = results(row(BETTER), row(BASELINE)).labels


PANEL = example_panel.panel([BASELINE, BETTER], BASELINE)
JUDGED_BY_A_MODEL = LABELS.model_copy(update={"models": ["judge-model-1"]})
PLANTED = (("a", 1), ("b", 2))
"""Judges who shared the batches: the second was given the first one's pairs once more."""

AGAIN = label("q00", "d0", 0, judge="a", round=2)
WRONG_PASSAGE = "finds the right document through the wrong passage is not told apart"


def said_of(*rows, labels=LABELS, queries=QUERIES, panel=None, spans=None, n_documents=500):
    return " | ".join(declared_weaknesses(PLAN, queries, rows, n_documents, labels, panel, spans))


def with_gains(cell, per_query):
    """The cell with these differences in nDCG@10, whose baseline scores 0 throughout."""
    mean = sum(per_query) / len(per_query)
    found = row(cell, mean)
    without = [(sum(per_query) - gain) / (len(per_query) - 1) for gain in per_query]
    test = found.test.model_copy(update={"left_out": [min(without), max(without)]})
    scores = found.scores["ndcg@10"].model_copy(update={"per_query": [round(gain * 10**9) for gain in per_query]})
    return found.model_copy(update={"test": test, "scores": found.scores | {"ndcg@10": scores}})


def test_the_query_that_makes_a_gain_is_named_even_where_another_moves_the_mean_more():
    made = with_gains(BETTER, [0.0] * 20 + [0.9, 0.9, 0.0, 0.0, -1.0])
    said = said_of(made, row(BASELINE))
    assert f"One query carries much of a result. Without query q20 the difference of {BETTER} is -0.004." in said


@pytest.mark.parametrize("gains", [[0.1] * 25, [-0.4, -0.4] + [0.0] * 23])
def test_no_query_is_named_where_the_gain_does_not_hang_on_one_or_is_no_gain(gains):
    assert "One query" not in said_of(with_gains(BETTER, gains), row(BASELINE))


def test_power_is_that_of_the_measured_scatter_and_of_nothing_where_cells_do_not_scatter():
    rows = row(BETTER), row(SPARSE), row(BASELINE)
    gain = least_gain(25, rows[0].test.sd, 0.04, bar=0.02)
    said = f"25 queries show a true gain of {gain:.2f} nDCG@10 of {BETTER} with 80 % power"
    assert said_of(*rows).startswith(said)
    same = row(BETTER)
    same = same.model_copy(update={"test": same.test.model_copy(update={"sd": 0.0})})
    assert "80 % power" not in said_of(same, row(BASELINE))


def test_vectors_that_are_cut_where_nobody_trained_them_to_be_are_declared():
    trained = ["arctic-l-v2.0@256 x whole_doc", "minilm-l6-v2@int8 x whole_doc", "minilm-l6-v2@bit x whole_doc"]
    said = said_of(*map(row, [BASELINE, *trained]))
    assert "Vectors were cut" not in said
    assert "exact search" not in said
    said = said_of(*map(row, [BASELINE, *trained, "arctic-l-v2.0@255 x whole_doc"]))
    assert "no more than others: arctic-l-v2.0@255 x whole_doc." in said
    assert "exact search" in said_of(row(BASELINE), row(SPARSE))


def test_cells_whose_recall_may_fall_are_counted():
    rows = row(BETTER), row(SPARSE, recall_state="shown not to fall"), row(BASELINE)
    assert "falls by more than 0.02 is not known for 1 of 2 cells" in said_of(*rows)
    assert "is not known for" not in said_of(*rows[1:])


def test_a_sample_below_500_documents_is_declared_with_its_number():
    assert "fewer than 500" not in said_of(row(BASELINE))
    assert "The sample is 499 documents, fewer than 500" in said_of(row(BASELINE), n_documents=499)


def test_long_readers_in_short_windows_and_an_encoder_that_was_never_compared_are_declared():
    assert "hold back" not in said_of(row(BASELINE))
    said = said_of(row("arctic-l-v2.0 x fixed_token_512_50"), row("nomic-v1.5 x whole_doc"), row(BASELINE))
    assert "encoders that read further (arctic-l-v2.0)" in said
    assert "arctic-m-v2.0 was never compared" in said


def test_queries_that_were_made_for_the_evaluation_are_declared():
    written = [query.model_copy(update={"origin": "claude"}) for query in QUERIES[:5]] + QUERIES[5:]
    assert "5 of 25 queries were written for this evaluation (5 by language models: claude)" in said_of(
        row(BASELINE), queries=written
    )
    assert "were written" not in said_of(row(BASELINE))
    named = [query.model_copy(update={"origin": ("person", "claude")[i % 2]}) for i, query in enumerate(QUERIES[:24])]
    said = said_of(row(BASELINE), queries=named, labels=JUDGED_BY_A_MODEL)
    assert "24 of 24 queries were written for this evaluation (12 by language models: claude)" in said
    assert "12 of 24 queries were generated (claude) and language models judged" in said
    asked = [query.model_copy(update={"origin": "traffic"}) for query in QUERIES[:9]] + QUERIES[9:]
    said = said_of(row(BASELINE), queries=asked)
    assert "9 of 25 queries were drawn from a search log" in said
    assert "written" not in said


def test_pairs_graded_once_are_declared_and_repeats_are_no_second_judge():
    once = "Every pair was graded once: how far another judge, or the same one again"
    assert once in said_of(row(BASELINE))
    assert once in said_of(row(BASELINE), panel=example_panel.panel_of_one())
    said = said_of(row(BASELINE), panel=example_panel.panel_of_one(repeats=True))
    assert once not in said
    assert "No pair was read by another judge" in said
    assert "judge-model-1 gave 92 % of 40 pairs the same grade" in said


def test_agreement_is_declared_with_its_interval_and_the_pairs_that_it_rests_on():
    said = said_of(row(BASELINE), panel=PANEL)
    assert "graded once" not in said
    assert "400 of 4,180 pairs were read by another judge too: judge-model-2 (two language models; what people" in said
    assert "would say is not known), 400 pairs, quadratic weighted kappa" in said
    assert "kappa 0.81 (95 % interval 0.74 to 0.88). Agreement says that judges see the same, not that" in said


def test_two_readings_by_one_model_are_a_weakness():
    (second,) = PANEL.agreement.seconds
    seconds = [second.model_copy(update={"readers": "one model"})]
    agreement = PANEL.agreement.model_copy(update={"seconds": seconds})
    said = said_of(row(BASELINE), panel=PANEL.model_copy(update={"agreement": agreement}))
    assert "judge-model-2 (one language model both times" in said
    assert "two language models" not in said


def test_judges_who_always_agree_are_not_said_to_agree_for_certain():
    queries = [f"q{n:02}" for n in range(20)]
    labels = [label(f"q{n % 20:02}", f"d{n}", n % 4, judge=judge, round=r) for judge, r in PLANTED for n in range(60)]
    found = PANEL.model_copy(update={"agreement": judge_agreement(labels, {}, queries, PLAN)})
    said = said_of(row(BASELINE), panel=found)
    assert "Every pair was graded once" not in said
    assert "60 of 60 pairs were read by another judge too: b, 60 pairs, quadratic weighted kappa 1.00, without" in said
    assert "an interval: none of 60 pairs was graded otherwise: up to 5 % of pairs may be (95 %)" in said
    again = judge_agreement([row for row in labels if row.judge == "a"] + [AGAIN], {}, queries, PLAN)
    said = said_of(row(BASELINE), panel=PANEL.model_copy(update={"agreement": again}))
    assert "a gave 100 % of 1 pairs the same grade, and none of 1 pair was graded otherwise: up to 95 %" in said


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate(value=None, low=None, high=None), "400 pairs, too much alike for a kappa"),
        (Estimate(value=0.5, low=None, high=None), "weighted kappa 0.50, without an interval"),
    ],
)
def test_a_kappa_that_is_not_defined_or_has_no_interval_is_not_made_up(estimate, expected):
    second = PANEL.agreement.seconds[0]
    agreement = PANEL.agreement.model_copy(update={"seconds": [second.model_copy(update={"kappa": estimate})]})
    assert expected in said_of(row(BASELINE), panel=PANEL.model_copy(update={"agreement": agreement}))


def test_the_share_of_draws_that_choose_the_same_cell_is_declared_or_said_to_be_unknown():
    assert f"the rule chooses {BETTER}; with other queries" in said_of(row(BASELINE), panel=PANEL)
    assert "it does so in 74 % of 2,000 draws (more than 99 % with other queries alone)." in said_of(
        row(BASELINE), panel=PANEL
    )
    few = PANEL.noise.model_copy(update={"stability": None, "unknown": "7 second readings do not say; it takes 30"})
    said = said_of(row(BASELINE), panel=PANEL.model_copy(update={"noise": few}))
    assert "leave of the choice is not known: 7 second readings do not say; it takes 30." in said


def test_models_that_judged_are_named_with_what_people_graded():
    said = said_of(row(BASELINE), labels=JUDGED_BY_A_MODEL, panel=PANEL)
    assert "Language models judged (judge-model-1), and models may err alike; people read none of these pairs" in said
    alone = said_of(row(BASELINE), labels=JUDGED_BY_A_MODEL, panel=example_panel.panel_of_one())
    assert "people read none of these pairs again" in alone
    assert "Language models" not in said_of(row(BASELINE), panel=PANEL)


def test_generated_queries_that_a_model_judged_are_declared_and_those_that_people_judged_are_not():
    generated = [query.model_copy(update={"origin": "claude"}) for query in QUERIES]
    mixed = generated[:5] + QUERIES[5:]
    said = said_of(row(BASELINE), labels=JUDGED_BY_A_MODEL, queries=mixed)
    assert "5 of 25 queries were generated (claude) and language models judged: where author and judge" in said
    assert "The slices show them apart." in said
    everywhere = said_of(row(BASELINE), labels=JUDGED_BY_A_MODEL, queries=generated)
    assert "25 of 25 queries were generated (claude) and language models judged" in everywhere
    assert "show them apart" not in everywhere
    assert "of one family" not in said_of(row(BASELINE), queries=mixed)
    assert "of one family" not in said_of(row(BASELINE), labels=JUDGED_BY_A_MODEL)


def test_the_wrong_passage_is_told_apart_only_where_passages_are_marked():
    assert WRONG_PASSAGE in said_of(row(BASELINE))
    assert WRONG_PASSAGE in said_of(row(BASELINE), spans=example_panel.NO_SPANS)
    marked = example_panel.spans([BASELINE], BASELINE, 25)
    said = said_of(row(BASELINE), spans=marked)
    assert WRONG_PASSAGE not in said
    assert "by the span scores alone, over 24 of 25 queries, and 12 relevant documents have no mark." in said
    complete = marked.model_copy(update={"unmarked": 0})
    assert "over 24 of 25 queries. |" in said_of(row(BASELINE), spans=complete)
