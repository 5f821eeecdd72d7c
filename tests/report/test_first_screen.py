"""The first screen: decided and undecided alike, with figures that are those of results.json."""

import pytest
from lxml import html as markup

from runner.decide.decide import UNATTENDED
from runner.report.sentences import command, headline, lead
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


@pytest.mark.parametrize(
    ("of", "is_decided", "first", "then", "to_copy"),
    [
        ({}, True, "Keep ", "A. Person kept the baseline: it is cheap.", ""),
        ({}, False, "Not decided yet.", "", "pse choose us_code "),
        ({"kind": "rehearsal"}, False, "Not decided yet.", "", "pse choose us_code --rehearse "),
        (
            {"kind": "rehearsal"},
            True,
            "A rehearsal would keep ",
            "Candidate, not chosen",
            "pse doctor us_code",
        ),
        ({"kind": "exploration"}, False, "An exploration: nothing is decided.", "", "pse version us_code"),
        ({"unjudged": 407}, False, "Not judged yet: 407 of 4,587 pairs.", "may still move", ""),
        ({"tier": "no decision"}, False, "Nothing can be decided from these figures.", "", ""),
    ],
)
def test_the_first_lines_say_what_was_decided_and_the_command_what_comes_next(of, is_decided, first, then, to_copy):
    results = full_results(**of)
    made = decided(results) if is_decided else None
    assert headline(results, made).startswith(first)
    assert then in lead(results, made)
    said = command(results, made, "pse")
    assert said.startswith(to_copy)
    assert bool(said) == bool(to_copy)


def test_each_cell_is_called_what_was_decided_of_it():
    results = full_results()
    kept, switched = decided(results), decided(results, candidate(results))
    assert headline(results, switched).startswith("Switch to ")
    assert words_of(results, switched)[candidate(results)] == "chosen"
    assert words_of(results, kept)[results.plan.baseline] == "baseline, kept"
    assert "so the tool chose it by itself" in lead(
        results, decided(results, candidate(results), decided_by=UNATTENDED)
    )
    assert command(results, switched, "pse").endswith(" --confirm")


def test_the_badge_is_of_the_cell_that_was_chosen():
    def badge(results, decision=None):
        return shown(results, decision).xpath("//span[@class='pill']")[0].text

    results = full_results()
    assert badge(results) == "candidate, not confirmed"
    assert badge(results, decided(results)) == "baseline kept"
    assert badge(results, decided(results, candidate(results), standing="candidate")) == "candidate, not confirmed"
    assert badge(full_results(unjudged=407)) == "provisional"


def test_every_figure_of_the_table_is_that_of_the_results():
    results = full_results()
    rows = shown(results, decided(results)).xpath("//table[contains(@class, 'plain')]/tbody/tr")
    assert [row.get("data-cell") for row in rows] == [row.cell for row in results.cells]
    for line, row in zip(rows, results.cells, strict=True):
        texts = [cell.text_content() for cell in line]
        scores = [row.scores[name] for name in ("ndcg@10", "recall@10", "mrr")]
        assert texts[:2] == [*row.cell.split(" x ")]
        assert [texts[2], texts[5], texts[6]] == [f"{one.mean:.3f}" for one in scores]
        if row.test is None:
            assert (texts[3], line.get("class")) == ("", "base")
        else:
            gain = row.differences["ndcg@10"].mean
            assert float(texts[3].replace("\u2212", "-")) == pytest.approx(gain, abs=0.05)
            assert (texts[3][0] == "+") == (gain > 0)
    assert sum(row.get("class") == "win" for row in rows) == 1


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
    assert anchors[0] == "judges"
    # Another cell of the baseline's encoder that reads all and gains little: what is unread explains nothing.
    assert "chunks" in anchors
    assert "never reads" not in lead(cut, None)
    alone = only(cut, results.plan.baseline, best)
    assert "chunks" not in [anchor for anchor, _ in doubts(alone)]
    assert "never reads 38 % of its text" in lead(alone, None)
    assert "never reads" not in lead(results, None)
    demo = results.plan.model_copy(update={"source": "demo"})
    assert "limits" in [anchor for anchor, _ in doubts(results.model_copy(update={"plan": demo}))]
    whole = truncated(results, {results.plan.baseline: 0.0, best: 0.0})
    assert "chunks" not in [anchor for anchor, _ in doubts(whole)]


def test_a_control_that_misbehaves_outweighs_every_other_doubt():
    results = full_results()
    controls = [results.controls[0].model_copy(update={"passes": 0}), *results.controls[1:]]
    assert doubts(results.model_copy(update={"controls": controls}))[0][0] == "trust"


def test_cells_that_return_the_same_lists_are_named_as_one():
    results = full_results()
    first, *others = results.cells
    alike = results.model_copy(update={"cells": [first.model_copy(update={"same_as": others[0].cell}), *others]})
    assert "everything" not in dict(doubts(results))
    assert all(cell in dict(doubts(alike))["everything"] for cell in (first.cell, others[0].cell))


@pytest.mark.parametrize(
    ("origins", "of", "words"),
    [
        ("mpx", {}, "One model (judge-model-1) graded the pairs; judge-model-2-2026 read 400 of 4,180 pairs again."),
        (
            "m",
            {"graded": ["m"], "read_again": ["m"]},
            "One model (m) wrote the queries, graded the pairs and checked its own grades",
        ),
        (
            ["m", "person"],
            {"graded": ["m"], "read_again": []},
            "(m) wrote queries and graded the pairs; nobody read one again.",
        ),
        ("m", {"graded": ["people"], "read_again": [], "read_twice": 0}, "2 judges, no pair read twice."),
    ],
)
def test_the_first_doubt_says_whose_labels_they_are(origins, of, words):
    results = full_results()
    queries = [
        query.model_copy(update={"origin": origins[n % len(origins)]}) for n, query in enumerate(results.queries)
    ]
    panel = results.judging.model_copy(update=of)
    assert words in doubts(results.model_copy(update={"judging": panel, "queries": queries}))[0][1]


def test_source_documents_that_the_judge_missed_are_named_and_checks_that_fail_are_said():
    results = full_results()
    missed = "The documents that q03, q04 were written from are graded not relevant; a second reader calls 1 of them"
    assert doubts(results)[1][1].startswith(missed)
    second = results.judging.seconds[0].model_copy(update={"copied": 300})
    panel = results.judging.model_copy(update={"seconds": [second]})
    sources = results.sources.model_copy(update={"tau": -0.1, "missed": {}})
    said = [words for _, words in doubts(results.model_copy(update={"judging": panel, "sources": sources}))]
    assert "judge-model-2 may have copied: 335 of 400 pairs have the first judge's grade, 300 its words." in said
    assert any("(Kendall's tau −0.10)" in words for words in said)


def test_tokens_that_the_rival_never_reads_are_a_doubt_and_no_explanation():
    results = full_results()
    few = only(results, results.plan.baseline, candidate(results))
    cut = truncated(few, {results.plan.baseline: 0.0, candidate(results): 0.3})
    assert dict(doubts(cut))["chunks"].startswith("Never embedded: 30 % of ")
    assert "never reads" not in lead(cut, None)
