"""The first screen: decided and undecided alike, with figures that are those of results.json."""

import pytest
from lxml import html as markup

from runner.base.figures import fitting
from runner.decide.decide import UNATTENDED
from runner.eval_set.catalog import source
from runner.eval_set.shapes.results import Results
from runner.report.results_page.first_screen import MOST_DOUBTS, first_screen
from tests.report.test_forest import external
from tests.support.example_results import decision
from tests.support.full_results import full_results, page


def made(**changes):
    return full_results(**changes)


def decided(results, cell=None, **named):
    return decision(results, cell or results.plan.baseline, baseline=results.plan.baseline, **named)


def candidate(results):
    return next(row.cell for row in results.cells if row.meets_criterion_5)


def test_the_headline_says_what_was_decided_by_whom_and_why():
    results = made()
    kept = first_screen(results, decided(results))
    assert kept.headline.startswith("Keep ")
    assert "Decided 2026-03-02 by A. Person: it is cheap." in kept.lead
    switched = first_screen(results, decided(results, candidate(results)))
    assert switched.headline.startswith("Switch to ")
    assert {row.cell: row.word for row in switched.rows}[candidate(results)] == "chosen"
    assert {row.cell: row.word for row in kept.rows}[results.plan.baseline] == "baseline, kept"
    alone = first_screen(results, decided(results, decided_by=UNATTENDED))
    assert "Decided 2026-03-02, unattended: it is cheap." in alone.lead
    assert kept.command == alone.command == "per-source-eval version us_code"


def test_what_is_not_decided_names_the_command_that_decides():
    results = made()
    shown = first_screen(results, None)
    assert shown.headline == "Not decided yet."
    assert f"choose {results.source} " in shown.command
    assert "--reason" in shown.command
    rehearsed = made(kind="rehearsal")
    assert f"choose {results.source} --rehearse " in first_screen(rehearsed, None).command


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"kind": "exploration"}, "An exploration: nothing is decided."),
        ({"unjudged": 407}, "Not judged yet: 407 of 4,587 pairs."),
        ({"tier": "no decision"}, "Nothing can be decided from these figures."),
    ],
)
def test_results_that_decide_nothing_say_so_first(changes, headline):
    shown = first_screen(made(**changes), None)
    assert shown.headline == headline
    assert "--choose" not in shown.command


def test_a_rehearsal_says_that_it_never_counts():
    results = made(kind="rehearsal")
    shown = first_screen(results, decided(results))
    assert shown.headline.startswith("A rehearsal: it would keep ")
    assert "never counts" in shown.lead


def test_a_collection_names_its_leader_and_chooses_nothing():
    results = Results.model_validate(external())
    shown = first_screen(results, None)
    assert shown.headline == f"{results.cells[0].cell.partition(' x ')[0]} leads."
    assert shown.command == ""
    assert not {row.word for row in shown.rows} & {"candidate", "confirmed", "chosen"}


def test_every_figure_of_the_table_is_that_of_the_results():
    results = made()
    tree = markup.fromstring(page(results, None, decided(results)))
    rows = tree.xpath("//table[contains(@class, 'plain')]/tbody/tr")
    assert [row.get("data-cell") for row in rows] == [row.cell for row in results.cells]
    for shown, row in zip(rows, results.cells, strict=True):
        model, _, chunker = row.cell.partition(" x ")
        texts = [cell.text_content() for cell in shown]
        scores = [row.scores[name] for name in ("ndcg@10", "recall@10", "mrr")]
        assert texts[:2] == [model, chunker]
        assert [texts[2], texts[5], texts[6]] == [fitting(one.mean, one.low, one.high) for one in scores]
        if row.test is None:
            assert texts[3] == ""
            assert shown.get("class") == "base"
        else:
            gain = row.differences["ndcg@10"].mean
            assert float(texts[3].replace("\u2212", "-")) == pytest.approx(gain, abs=0.05)
            assert (texts[3][0] == "+") == (gain > 0)
    assert sum(row.get("class") == "win" for row in rows) == 1


def test_dots_and_lines_stand_where_the_gains_and_intervals_are():
    results = made()
    shown = first_screen(results, None)
    at = shown.axis.at
    for drawn, row in zip(shown.rows, results.cells, strict=True):
        if row.test is None:
            assert drawn.place is None
            continue
        low, high = row.test.simultaneous
        assert drawn.place == (at(row.differences["ndcg@10"].mean), at(low), at(high))


def truncated(results, shares):
    cells = [
        row.model_copy(
            update={
                "provenance": row.provenance.model_copy(
                    update={"truncation": row.provenance.truncation.model_copy(update={"share": shares[row.cell]})}
                )
            }
        )
        if row.cell in shares and row.provenance.truncation
        else row
        for row in results.cells
    ]
    return results.model_copy(update={"cells": cells})


def test_the_worst_doubt_comes_first_and_each_leads_to_its_section():
    results = made()
    best = candidate(results)
    cut = first_screen(truncated(results, {results.plan.baseline: 0.38, best: 0.002}), None)
    texts = [doubt.link + doubt.rest for doubt in cut.doubts]
    assert len(cut.doubts) <= MOST_DOUBTS
    place = next(place for place, doubt in enumerate(cut.doubts) if doubt.anchor == "chunks")
    assert "38\u202f% of the baseline's tokens" in texts[place]
    assert all(doubt.anchor == "judges" for doubt in cut.doubts[:place])
    weak = results.model_copy(update={"plan": results.plan.model_copy(update={"source": "demo"})})
    first = first_screen(weak, None).doubts[0]
    assert (first.anchor, source("demo").weakness.startswith(first.link + first.rest.rstrip("."))) == ("limits", True)
    whole = first_screen(truncated(results, {results.plan.baseline: 0.0, best: 0.0}), None)
    assert not [doubt for doubt in whole.doubts if doubt.anchor == "chunks"]
    for shown in (cut, whole):
        ids = set(markup.fromstring(page(results, None)).xpath("//@id"))
        assert {doubt.anchor for doubt in shown.doubts} <= ids


def test_a_control_that_misbehaves_outweighs_every_other_doubt():
    results = made()
    controls = [results.controls[0].model_copy(update={"behaves": False}), *results.controls[1:]]
    assert first_screen(results.model_copy(update={"controls": controls}), None).doubts[0].anchor == "trust"


def test_the_best_of_many_is_said_to_be_inflated_and_one_cell_is_not():
    results = made()
    kept = [row for row in results.cells if row.cell in (results.plan.baseline, candidate(results))]
    few = results.model_copy(update={"cells": kept})
    many = [doubt.link for doubt in first_screen(results.model_copy(update={"judging": None}), None).doubts]
    assert f"Best of {len(results.cells) - 1} cells" in many
    assert not [doubt for doubt in first_screen(few, None).doubts if doubt.link.startswith("Best of")]


def test_whichever_encoder_read_less_is_named_first():
    results = made()
    cells = [row for row in results.cells if row.cell in (results.plan.baseline, candidate(results))]
    for base, own in ((0.0, 0.3), (0.3, 0.0)):
        cut = truncated(results.model_copy(update={"cells": cells}), {cells[0].cell: own, cells[1].cell: base})
        if cells[0].test is None:
            cut = truncated(results.model_copy(update={"cells": cells}), {cells[0].cell: base, cells[1].cell: own})
        (doubt,) = [each for each in first_screen(cut, None).doubts if each.anchor == "chunks"]
        assert ("the baseline's" in doubt.link) == (base > own)
        assert "30\u202f%" in doubt.link


def test_a_provisional_page_says_what_to_do_though_nothing_can_be_decided_yet():
    results = made(unjudged=407)
    shown = first_screen(results, None)
    assert shown.pill == "provisional"
    assert "may still move" in shown.lead
    assert shown.command == "", "whether of a trial, and in which folder, the results do not say"
