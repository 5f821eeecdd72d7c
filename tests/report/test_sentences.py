"""When a sentence is said, and with which figure; how it is worded stands in the golden page."""

import re

import pytest

from runner.decide.decide import AUTOMATIC, UNATTENDED, chosen_cell
from runner.decide.judging import agreement
from runner.eval_set.shapes.cell import Truncation
from runner.eval_set.shapes.decision import Decision
from runner.report.sentences import agreement_lines, can_say, found, next_step, weaknesses
from runner.score.power import least_gain
from tests.support import example_panel
from tests.support.example_results import (
    BASELINE,
    BETTER,
    HYBRID,
    PLAN,
    QUERIES,
    SPARSE,
    control,
    results,
    row,
)
from tests.support.labels import label

GOOD = {"p": 0.004}
DOUBT = "is favoured by its judge (adjusted p 0.0100)"
PANEL = example_panel.panel([BASELINE, BETTER], BASELINE)
(SECOND,) = PANEL.seconds


def short(update):
    return row(BETTER, 0.1, **GOOD).model_copy(update=update)


@pytest.mark.parametrize(
    ("rows", "facts", "sentence", "words"),
    [
        ([row(BETTER, 0.0312)], {}, found, "scored 0.031 nDCG@10 above the baseline on 50 queries"),
        ([row(BETTER, 0.0312, 0.01)], {}, found, "found no fewer relevant documents"),
        ([row(BETTER, 0.0312, -0.01)], {}, found, "found fewer relevant documents"),
        ([row(BETTER, 0.03, p=0.2)], {}, found, "Not proven: luck alone may gain as much"),
        ([row(SPARSE, 0.09, p=0.2), row(BETTER, 0.03)], {"false_alarm": 0.3}, found, "the best of 2 cells often"),
        ([row(SPARSE, 0.09, p=0.2), row(BETTER, 0.03)], {"false_alarm": 0.1}, found, "the best of 2 cells sometimes"),
        ([row(SPARSE, 0.2, role="exploratory")], {}, found, "It was not preregistered"),
        ([row(BETTER, 0.1, **GOOD), row(HYBRID, 0.05, **GOOD)], {}, found, f"Confirmed: {BETTER}"),
        ([row(BETTER, -0.05, half=0.09)], {}, found, "No cell is a candidate. The best other,"),
        ([row(BETTER, -0.05, half=0.09)], {}, found, "0.050 nDCG@10 below the baseline"),
        ([row(BETTER, -0.05, half=0.09)], {}, found, "A gain of 0.02 or more is not ruled out"),
        ([row(BETTER, 0.0204, half=0.0004)], {}, found, "scored 0.0204 nDCG@10"),
        (
            [row(BETTER, 0.1, believed=0.06)],
            {},
            found,
            "about +0.06 is expected; that is more than the 0.02 that makes a switch worthwhile",
        ),
        ([row(BETTER, 0.1, believed=0.01)], {}, found, "so the tool recommends the baseline"),
        (
            [row(BETTER, 0.1, believed=0.01, **GOOD)],
            {},
            found,
            "about +0.01 is expected; that is not more than the 0.02 that makes a switch worthwhile",
        ),
        ([short({"short_of": [DOUBT]})], {}, found, f"Not proven: it {DOUBT}."),
        ([row(BETTER, 0.2)], {"unjudged": 1}, found, "1 pair of the pool is not judged"),
        ([row(BETTER, 0.2)], {"controls": [control("oracle", bound=1)]}, found, "not even the oracle"),
        ([row(BETTER, 0.2)], {"controls": [control("oracle", bound=1)]}, next_step, "Look at the labels"),
        ([row(BETTER, 0.2)], {"controls": [control("random", passes=1)]}, found, "controls misbehave: the random"),
        ([row(BETTER, 0.2)], {"controls": [control("random", passes=1)]}, next_step, "Run doctor"),
        ([row(BETTER, 0.2)], {}, next_step, "Choose a cell"),
    ],
)
def test_a_sentence_says_what_the_figures_are(rows, facts, sentence, words):
    assert words in sentence(results(*rows, row(BASELINE), **facts))


def test_an_oracle_that_fails_over_any_number_of_queries_is_said():
    made = results(row(BETTER, 0.2), row(BASELINE), controls=[control("oracle", bound=1)])
    assert "2000" in found(made.model_copy(update={"weights": [1] * 2000}))


@pytest.mark.parametrize(
    ("rows", "sentence", "words"),
    [
        ([row(BETTER, -0.05, half=0.01)], found, "ruled out"),
        ([row(BETTER, 0.1, **GOOD)], found, "Not proven"),
        ([row(BETTER, -0.05)], found, "xpect"),
        ([row(BETTER, -0.05)], found, "choose"),
    ],
)
def test_a_sentence_that_does_not_hold_is_not_said(rows, sentence, words):
    assert words not in sentence(results(*rows, row(BASELINE)))


def chosen(cell, standing, by="Ann Lee"):
    """Return a decision for a cell, with no more in it than sentences ask."""
    made = {"chosen": chosen_cell(cell, standing), "baseline": BASELINE, "decided_by": by, "reason": "it is better."}
    return Decision.model_construct(**made)


PROVEN = [row(SPARSE, 0.2), row(BETTER, 0.1, **GOOD)]


@pytest.mark.parametrize(
    ("rows", "decision", "words", "step"),
    [
        ([row(BETTER, 0.1)], chosen(BETTER, "candidate"), "Ann Lee chose it: it is better.", "Prove it"),
        ([row(BETTER, 0.1)], chosen(BASELINE, "the baseline"), "kept the baseline: it is better.", "Prove it"),
        ([row(BETTER, 0.1)], chosen(BASELINE, "the baseline"), f"Candidate, not chosen: {BETTER}", "Prove it"),
        (
            [row(BETTER, 0.1)],
            chosen(BETTER, "candidate", UNATTENDED),
            "so the tool chose it by itself",
            "Prove it",
        ),
        (
            [row(SPARSE, 0.2), row(BETTER, 0.1, **GOOD)],
            chosen(BETTER, "confirmed"),
            f"Confirmed: {BETTER}",
            "Build the index",
        ),
        (PROVEN, chosen(SPARSE, "candidate"), f"Candidate: {SPARSE}", "Prove it"),
        ([row(BETTER, -0.1)], chosen(BASELINE, "the baseline", AUTOMATIC), "No cell is a candidate.", "Keep"),
        ([row(BETTER, 0.1, verdict="fail")], chosen(BETTER, "candidate"), "Ann Lee chose it", "null gate (fail)"),
    ],
)
def test_sentences_are_about_the_cell_that_was_chosen(rows, decision, words, step):
    made = results(*rows, row(BASELINE))
    assert words in found(made, decision)
    assert step in next_step(made, decision)


UNREAD = Truncation(tokens=100, lost=38, share=0.38, chunks_cut=9)


@pytest.mark.parametrize("gain", [-0.05, 0.0, 0.0196, 0.1])
@pytest.mark.parametrize("p", [0.0004, 0.04, 0.4])
@pytest.mark.parametrize("recall", [-0.05, 0.0])
@pytest.mark.parametrize("by", ["", AUTOMATIC, UNATTENDED, "Ann Lee"])
def test_a_verdict_has_four_sentences_sixty_words_and_one_probability_at_most(gain, p, recall, by):
    made = results(row(BETTER, gain, recall, p=p), row(SPARSE, -0.2), row(BASELINE))
    baseline = made.cells[-1].provenance.model_copy(update={"truncation": UNREAD})
    cells = [*made.cells[:-1], made.cells[-1].model_copy(update={"provenance": baseline})]
    made = made.model_copy(update={"cells": cells})
    for cell, standing in ((BETTER, "candidate"), (BASELINE, "the baseline")):
        if by == UNATTENDED and cell != made.outcome.recommended:
            continue
        said = found(made, chosen(cell, standing, by) if by else None)
        assert len(re.findall(r"[.](?= |$)", said)) <= 4, said
        assert len(said.split()) <= 60, said
        assert len(re.findall(r"\bp \d|\bp <|%", said)) <= 1, said


def declared(*rows, **changes):
    """Return the weaknesses of 500 documents with these rows and other changes, as one text."""
    each = results(*(rows or [row(BASELINE)]))
    corpus = each.corpus.model_copy(update={"strata": {"all": changes.pop("documents", 500)}})
    labels = each.labels.model_copy(update={"models": changes.pop("models", [])})
    return " | ".join(weaknesses(each.model_copy(update={"corpus": corpus, "labels": labels, **changes})))


def with_gains(cell, per_query):
    """Return the cell with these differences in nDCG@10, whose baseline scores 0 throughout."""
    made = row(cell, sum(per_query) / len(per_query))
    scores = made.scores["ndcg@10"].model_copy(update={"per_query": [round(gain * 10**9) for gain in per_query]})
    return made.model_copy(update={"scores": made.scores | {"ndcg@10": scores}})


def asked(origin, n):
    return [query.model_copy(update={"origin": origin}) for query in QUERIES[:n]] + QUERIES[n:]


CARRIED = with_gains(BETTER, [0.0] * 45 + [1.0, 1.0, 0.0, 0.0, -0.98])
TRAINED = ["arctic-l-v2.0@256 x whole_doc", "minilm-l6-v2@int8 x whole_doc", "minilm-l6-v2@bit x whole_doc"]
NOISE = PANEL.noise.model_copy(update={"no_candidate": None, "unknown": "7 readings do not say; it takes 30"})
SPANS = example_panel.spans([BASELINE], BASELINE, 50)
ONCE = example_panel.panel_of_one()


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        ([CARRIED], {}, f"Without query q45 the difference of {BETTER} is +0.0004."),
        ([row(BETTER), row(SPARSE, recall_state="shown not to fall")], {}, "is not known for 1 of 2 cells"),
        ([row("arctic-l-v2.0 x fixed_token_512_50")], {}, "encoders that read further (arctic-l-v2.0)"),
        ([row("arctic-l-v2.0 x fixed_token_512_50")], {}, "arctic-m-v2.0 was never compared"),
        ([row("arctic-l-v2.0@255 x whole_doc")], {}, "no more than others: arctic-l-v2.0@255 x whole_doc."),
        ([], {}, "exact search"),
        ([], {"documents": 499}, "The sample is 499 documents, fewer than 500"),
        ([], {"queries": asked("claude", 5)}, "5 of 50 queries were written for this evaluation (5 by language"),
        ([], {"queries": asked("person", 5)}, "5 of 50 queries were written for this evaluation (none by"),
        ([], {"queries": asked("traffic", 9)}, "9 of 50 queries were drawn from a search log"),
        ([], {"judging": ONCE}, "No pair was read by another judge"),
        ([], {"judging": PANEL}, "400 of 60 pairs were read by another judge too"),
        ([], {"judging": PANEL.model_copy(update={"noise": NOISE})}, "is not known: 7 readings do not say; it"),
        ([], {}, "the wrong passage is not told apart"),
        ([], {"spans": example_panel.NO_SPANS}, "the wrong passage is not told apart"),
        ([], {"spans": SPANS}, "over 49 of 50 queries, and 12 relevant documents have no mark."),
    ],
)  # fmt: skip
def test_a_weakness_is_declared_with_its_figures(rows, changes, words):
    assert words in declared(*rows, row(BASELINE), **changes)


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        ([with_gains(BETTER, [0.1] * 50)], {}, "One query"),
        ([with_gains(BETTER, [-0.4, -0.4] + [0.0] * 48)], {}, "One query"),
        ([row(SPARSE, recall_state="shown not to fall")], {}, "is not known for"),
        (list(map(row, TRAINED)), {}, "Vectors were cut"),
        (list(map(row, TRAINED)), {}, "exact search"),
        ([], {}, "hold back"),
        ([], {}, "were written"),
        ([], {}, "fewer than 500"),
        ([], {"queries": asked("traffic", 9)}, "written"),
        ([], {"judging": PANEL}, "No pair was read"),
        ([], {"spans": SPANS}, "the wrong passage"),
        ([], {"spans": SPANS.model_copy(update={"unmarked": 0})}, "have no mark"),
    ],
)
def test_a_weakness_that_is_none_is_not_declared(rows, changes, words):
    assert words not in declared(*rows, row(BASELINE), **changes)


def test_power_is_that_of_the_measured_scatter_and_of_nothing_if_cells_do_not_scatter():
    better = row(BETTER)
    gain = least_gain(50, better.test.sd, 0.02, bar=0.02)
    rows = better, row(SPARSE), row(BASELINE)
    assert f"50 queries tell a true gain of {gain:.2f}" in declared(*rows)
    assert f"49 queries are too few to confirm any gain: it takes 50; 50 queries tell a true gain of {gain:.2f}" in (
        declared(*rows, queries=QUERIES[1:])
    )
    same = better.model_copy(update={"test": better.test.model_copy(update={"sd": 0.0})})
    assert "80 % power" not in declared(same, row(BASELINE))


def test_readers_who_agree_on_every_pair_do_not_agree_for_certain():
    rows = [label(f"q{n % 20:02}", f"d{n}", n % 4, judge=judge) for judge in "ab" for n in range(60)]
    queries = [query.model_copy(update={"id": f"q{n:02}"}) for n, query in enumerate(QUERIES[:20])]
    lines = agreement_lines(agreement(rows, {}, queries, PLAN), 60, PLAN)
    assert "  relevant: both of either     1.000  0.905 to 1.000  (over pairs, one-sided: Clopper-Pearson)" in lines
    assert max(map(len, lines)) <= 110


def test_the_text_of_an_agreement_has_every_cell_once_with_what_is_not_known_of_it():
    cell, told = next(iter(SECOND.by_cell.items()))
    second = SECOND.model_copy(update={"by_cell": {cell: told, SPARSE: told.model_copy(update={"p_for_cell": None})}})
    read = PANEL.model_copy(update={"seconds": [second]})
    lines = agreement_lines(read, 4180, PLAN)
    cells = [line.split() for line in lines if line.strip().startswith(f"{cell}  ")]
    assert [cell[3:5] for cell in cells] == [[str(told.n_cell), str(told.n_baseline)]]
    assert [line.split()[-2] for line in lines if line.strip().startswith(SPARSE)] == ["-"]
    assert not agreement_lines(example_panel.panel_of_one(), 60, PLAN)[-1].endswith("again")


def test_a_side_that_looks_favoured_is_named():
    cell, row = next(iter(SECOND.by_cell.items()))
    for p, said in ((0.001, True), (0.9, False)):
        told = row.model_copy(update={"p_for_cell": p, "p_for_baseline": 0.9})
        words = can_say(SECOND.model_copy(update={"by_cell": {cell: told}}), PLAN)
        assert (f"{cell} beside the baseline looks favoured" in words) == said
