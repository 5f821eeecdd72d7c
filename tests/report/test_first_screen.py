"""The first screen: decided and undecided alike, with figures that are those of results.json."""

import pytest
from lxml import html as markup

from runner.base.figures import fitting
from runner.decide.decide import UNATTENDED
from runner.eval_set.shapes.results import Results
from runner.report.drawings import gain_axis
from runner.report.sentences import command, headline, lead
from tests.report.test_render import published
from tests.support.example_results import decision
from tests.support.full_results import full_results, page


def decided(results, cell=None, **named):
    return decision(results, cell or results.plan.baseline, baseline=results.plan.baseline, **named)


def candidate(results):
    return next(row.cell for row in results.cells if row.meets_criterion_5)


def only(results, *cells):
    kept = [row for row in results.cells if row.cell in cells]
    return results.model_copy(update={"cells": kept, "previous": None})


def shown(results, decision=None):
    return markup.fromstring(page(results, None, decision))


def words_of(results, decision=None):
    """The verdict on each cell."""
    rows = shown(results, decision).xpath("//table[contains(@class, 'plain')]/tbody/tr")
    return {row.get("data-cell"): row.xpath("td[@class='word']")[0].text_content() for row in rows}


def doubts(results):
    """Each doubt's text by the section that it leads to, in their order."""
    items = shown(results).xpath("//ul[@class='doubts']/li")
    return [(item.xpath("a")[0].get("href")[1:], " ".join(item.text_content().split())) for item in items]


def test_the_headline_says_what_was_decided_by_whom_and_why():
    results = full_results()
    kept, switched = decided(results), decided(results, candidate(results))
    assert headline(results, kept).startswith("Keep ")
    assert "Decided 2026-03-02 by A. Person: it is cheap." in lead(results, kept)
    assert headline(results, switched).startswith("Switch to ")
    assert words_of(results, switched)[candidate(results)] == "chosen"
    assert words_of(results, kept)[results.plan.baseline] == "baseline, kept"
    assert "Decided 2026-03-02, unattended:" in lead(results, decided(results, decided_by=UNATTENDED))
    assert command(results, kept, "pse") == "pse version us_code"


@pytest.mark.parametrize(("kind", "flag"), [("production", ""), ("rehearsal", " --rehearse")])
def test_what_is_not_decided_names_the_command_that_decides(kind, flag):
    results = full_results(kind=kind)
    assert headline(results, None) == "Not decided yet."
    assert command(results, None, "pse").startswith(f"pse choose us_code{flag} ")


@pytest.mark.parametrize(
    ("changes", "first", "to_copy"),
    [
        ({"kind": "exploration"}, "An exploration: nothing is decided.", "pse version us_code"),
        ({"unjudged": 407}, "Not judged yet: 407 of 4,587 pairs.", ""),
        ({"tier": "no decision"}, "Nothing can be decided from these figures.", ""),
    ],
)
def test_results_that_decide_nothing_say_so_first(changes, first, to_copy):
    results = full_results(**changes)
    assert (headline(results, None), command(results, None, "pse")) == (first, to_copy)


def test_a_rehearsal_says_that_it_never_counts():
    results = full_results(kind="rehearsal")
    assert headline(results, decided(results)).startswith("A rehearsal: it would keep ")
    assert "never counts" in lead(results, decided(results))
    assert command(results, decided(results), "pse") == "pse doctor us_code"


def test_a_collection_names_its_leader_and_chooses_nothing():
    results = Results.model_validate(published())
    assert headline(results, None) == f"{results.cells[0].cell.partition(' x ')[0]} leads."
    assert command(results, None, "pse") == ""
    assert not set(words_of(results).values()) & {"candidate", "confirmed", "chosen"}


def test_every_figure_of_the_table_is_that_of_the_results():
    results = full_results()
    rows = shown(results, decided(results)).xpath("//table[contains(@class, 'plain')]/tbody/tr")
    assert [row.get("data-cell") for row in rows] == [row.cell for row in results.cells]
    for line, row in zip(rows, results.cells, strict=True):
        texts = [cell.text_content() for cell in line]
        scores = [row.scores[name] for name in ("ndcg@10", "recall@10", "mrr")]
        assert texts[:2] == [*row.cell.split(" x ")]
        assert [texts[2], texts[5], texts[6]] == [fitting(one.mean, one.low, one.high) for one in scores]
        if row.test is None:
            assert (texts[3], line.get("class")) == ("", "base")
        else:
            gain = row.differences["ndcg@10"].mean
            assert float(texts[3].replace("\u2212", "-")) == pytest.approx(gain, abs=0.05)
            assert (texts[3][0] == "+") == (gain > 0)
    assert sum(row.get("class") == "win" for row in rows) == 1


def test_dots_and_lines_stand_where_the_gains_and_intervals_are():
    results = full_results()
    at, rows = gain_axis(results).at, shown(results).xpath("//table[contains(@class, 'plain')]/tbody/tr")
    for line, row in zip(rows, results.cells, strict=True):
        drawn = [line.xpath(f".//{name}")[0].attrib for name in ("circle", "line[@class='ci-line']") if row.test]
        if row.test is not None:
            wanted = [at(value) for value in (row.differences["ndcg@10"].mean, *row.test.simultaneous)]
            assert [drawn[0]["cx"], drawn[1]["x1"], drawn[1]["x2"]] == [f"{each}%" for each in wanted]


def truncated(results, shares):
    cells = []
    for row in results.cells:
        if row.cell in shares and row.provenance.truncation:
            cut = row.provenance.truncation.model_copy(update={"share": shares[row.cell]})
            row = row.model_copy(update={"provenance": row.provenance.model_copy(update={"truncation": cut})})
        cells.append(row)
    return results.model_copy(update={"cells": cells})


def test_the_worst_doubt_comes_first_and_each_leads_to_its_section():
    results = full_results()
    best = candidate(results)
    cut = truncated(results, {results.plan.baseline: 0.38, best: 0.002})
    anchors = [anchor for anchor, _ in doubts(cut)]
    assert len(anchors) == 5
    assert set(anchors) <= {*shown(cut).xpath("//@id")}
    assert "38 % of the baseline's tokens" in dict(doubts(cut))["chunks"]
    assert set(anchors[: anchors.index("chunks")]) == {"judges"}
    demo = results.plan.model_copy(update={"source": "demo"})
    assert doubts(results.model_copy(update={"plan": demo}))[0][0] == "limits"
    whole = truncated(results, {results.plan.baseline: 0.0, best: 0.0})
    assert "chunks" not in [anchor for anchor, _ in doubts(whole)]


def test_a_control_that_misbehaves_outweighs_every_other_doubt():
    results = full_results()
    controls = [results.controls[0].model_copy(update={"behaves": False}), *results.controls[1:]]
    assert doubts(results.model_copy(update={"controls": controls}))[0][0] == "trust"


def test_the_best_of_many_is_said_to_be_inflated_and_one_cell_is_not():
    results = full_results().model_copy(update={"judging": None})
    many = " ".join(text for _, text in doubts(results))
    few = " ".join(text for _, text in doubts(only(results, results.plan.baseline, candidate(results))))
    assert f"Best of {len(results.cells) - 1} cells" in many
    assert "Best of" not in few


@pytest.mark.parametrize(("base", "own"), [(0.0, 0.3), (0.3, 0.0)])
def test_whichever_encoder_read_less_is_named_first(base, own):
    results = full_results()
    few = only(results, results.plan.baseline, candidate(results))
    said = dict(doubts(truncated(few, {results.plan.baseline: base, candidate(results): own})))["chunks"]
    assert said.startswith("30 % of the baseline's tokens") == (base > own)
    assert said.startswith("30 % of ")


def test_a_provisional_page_says_what_to_do_though_nothing_can_be_decided_yet():
    results = full_results(unjudged=407)
    assert shown(results).xpath("//span[@class='pill']")[0].text == "provisional"
    assert "may still move" in lead(results, None)
