import re
from html.parser import HTMLParser

import pytest

from runner.base.records import SCORE_UNIT
from runner.report.page_frame import inert
from runner.report.results_page.by_query import anchor, contenders, drill_down, heat_map
from runner.report.results_page.challenger import challenger
from runner.report.results_page.render import page
from tests.support.example_lists import CELLS, DEPTH, Invented, listed_results
from tests.support.example_results import BASELINE, BETTER, HYBRID, SPARSE


def stored(**more):
    return inert(listed_results(**more))


@pytest.fixture(name="results", scope="module")
def _results():
    return stored()


@pytest.fixture(name="html", scope="module")
def _html():
    return page(listed_results(), None).decode()


class Folds(HTMLParser):
    """What is in every fold of a query: the links, and the rows of its table, each a list of texts."""

    def __init__(self, html):
        super().__init__()
        self.folds, self.inside, self.marking = [], None, False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "details" and given.get("class") == "query":
            self.inside = {"hits": given["data-hits"], "ids": [], "links": [], "rows": [], "marks": []}
            self.folds.append(self.inside)
        if self.inside is None:
            return
        if "id" in given:
            self.inside["ids"].append(given["id"])
        if tag == "a":
            self.inside["links"].append(given["href"])
        if tag == "tr":
            self.inside["rows"].append([])
        if tag in ("td", "th"):
            self.inside["rows"][-1].append("")
        self.marking = tag == "mark"

    def handle_endtag(self, tag):
        self.marking = False
        if tag == "details":
            self.inside = None

    def handle_data(self, data):
        if self.inside is None or not self.inside["rows"] or not self.inside["rows"][-1]:
            return
        self.inside["rows"][-1][-1] += data
        if self.marking:
            self.inside["marks"].append(data)


# The heat map.


def test_the_queries_on_which_cells_part_most_come_first_and_equal_ones_by_id(results):
    rows = heat_map(results).rows
    spreads = {
        query.id: max(values) - min(values)
        for place, query in enumerate(results.queries)
        for values in [[row.scores["ndcg@10"].per_query[place] for row in results.cells]]
    }
    assert [row.query.id for row in rows] == sorted(spreads, key=lambda name: (-spreads[name], name))
    assert [row.spread.value for row in rows] == sorted(spreads.values(), reverse=True)
    assert len(set(spreads.values())) < len(rows)


def test_every_figure_of_the_heat_map_is_that_of_the_results(results):
    view = heat_map(results)
    place = {query.id: place for place, query in enumerate(results.queries)}
    for row in view.rows:
        values = [cell.scores["ndcg@10"].per_query[place[row.query.id]] for cell in results.cells]
        assert [one.value for one in row.scores] == values
        assert [one.text for one in row.scores] == [f"{value / SCORE_UNIT:.2f}" for value in values]
        assert row.gain.value == values[0] - values[1]
        assert row.gain.text[0] in ("+", "−", "0")


def test_the_challenger_is_the_cell_that_the_verdict_is_about_wherever_the_baseline_stands(results):
    rows = results.cells
    assert contenders(results) == (CELLS.index(BASELINE), CELLS.index(BETTER))
    assert contenders(results.model_copy(update={"cells": rows[::-1]})) == (2, 3)
    assert contenders(results.model_copy(update={"cells": [row for row in rows if row.role != "baseline"]})) is None
    assert contenders(results.model_copy(update={"cells": [row for row in rows if row.role == "baseline"]})) is None


def test_gains_and_lists_are_of_the_confirmed_cell_though_another_has_the_highest_mean(results):
    cells = [row.model_copy(update={"confirmed": row.cell == HYBRID}) for row in results.cells]
    confirmed = results.model_copy(update={"cells": cells})
    assert challenger(confirmed).cell == HYBRID
    number = CELLS.index(HYBRID) + 1
    assert (heat_map(confirmed).challenger, drill_down(confirmed).right) == (number, number)
    row = next(row for row in heat_map(confirmed).rows if row.gain.value)
    assert row.gain.value == row.scores[number - 1].value - row.scores[CELLS.index(BASELINE)].value


def test_a_heat_map_of_the_baseline_alone_has_no_gain(results):
    alone = results.model_copy(update={"cells": [row for row in results.cells if row.cell == BASELINE]})
    view = heat_map(alone)
    assert view.challenger is None
    assert all(row.gain is None and row.spread.text == "0.00" for row in view.rows)
    lists = drill_down(alone)
    assert (lists.left, lists.right) == (1, 1)


# The folds.


def test_ranks_and_hits_are_those_of_the_results(results):
    view = drill_down(results)
    for query, listed in zip(view.queries, results.lists.queries, strict=True):
        cells = query.hits.split(";")
        found = [re.findall(r"(\d+) (\d+) (\d+)", cell) for cell in cells]
        assert [[list(map(int, hit)) for hit in cell] for cell in found] == [listed.hits[name] for name in CELLS]
        for place, row in enumerate(query.documents):
            ranks = [
                next((rank for rank, hit in enumerate(listed.hits[cell], 1) if hit[0] == place), None) for cell in CELLS
            ]
            assert row.ranks.split() == ["-" if rank is None else str(rank) for rank in ranks]
            assert len(row.ranks) == view.width * len(CELLS)


def test_the_two_lists_are_at_first_the_baseline_and_the_best_beside_it(results):
    view = drill_down(results)
    assert (CELLS[view.left - 1], CELLS[view.right - 1], view.depth) == (BASELINE, BETTER, DEPTH)


def test_only_the_judges_that_gave_few_grades_are_named_in_the_rows(results):
    view = drill_down(results)
    assert view.judge == "reader-a"
    assert {row.judge for query in view.queries for row in query.documents} == {"", "reader-b"}


def test_an_address_that_is_no_web_address_is_no_link():
    for url in (
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.org/x",
        "",
        " https://example.org",
        "ftp://e.org/x",
    ):
        view = drill_down(stored(invented=Invented(url=url)))
        assert {row.url for query in view.queries for row in query.documents if row.document.doc_id == "d1"} == {""}
    assert drill_down(stored(invented=Invented(url="HTTP://example.org/a?b=c"))).queries[0].documents[0].url


def test_a_page_without_texts_has_neither_titles_nor_passages():
    html = page(listed_results(texts=False), None).decode()
    folds = Folds(html).folds
    assert "Levee Inspection" not in html
    assert "<mark>" not in html
    assert all(len(fold["rows"]) == 1 + 8 for fold in folds)


def test_a_fold_says_of_each_document_what_the_results_say(html, results):
    folds = Folds(html).folds
    assert len(folds) == 25
    for fold, query, listed in zip(folds, results.queries, results.lists.queries, strict=True):
        assert fold["ids"][0] == query.id
        rows = fold["rows"][1:]
        assert len(rows) == 2 * len(listed.documents)
        for (name, grade, said, marked, ranks), (passage,), pair in zip(
            rows[::2], rows[1::2], listed.documents, strict=True
        ):
            document = results.lists.documents[pair.document]
            assert name.strip() == document.doc_id + document.title
            assert grade == ("not judged" if pair.grade is None else str(pair.grade))
            assert pair.reason in said
            assert all(one.reason in said and f"round {one.round}: {one.grade}" in said for one in pair.readings)
            assert ("4–40, 50–1,060" in marked) == (pair.grade == 3)
            assert len(ranks.split()) == len(CELLS)
            assert pair.passages[0].text in passage
    assert set(folds[0]["links"]) == {document.url for document in results.lists.documents}


def test_words_of_the_query_are_marked_in_the_passages_by_their_stems(html):
    marks = Folds(html).folds[0]["marks"]
    assert {mark.lower() for mark in marks} == {"levee", "inspect", "before", "flood"}
    assert Folds(html).folds[1]["marks"] == []


def test_a_cell_without_a_hit_has_an_empty_list(html):
    assert CELLS[3] == SPARSE
    assert all(fold["hits"].endswith(";") for fold in Folds(html).folds)


def test_an_anchor_is_never_one_of_the_sections():
    names = ("gate", "q02", "cost-caption")
    assert [anchor(name) for name in names] == ["query-gate", "q02", "query-cost-caption"]


def test_every_id_of_the_page_is_given_once_and_none_can_be_that_of_a_query(html):
    ids = re.findall(r"""\bid=["']?([^"'\s>]+)""", html.split("<body", 1)[1])
    assert len(ids) == len(set(ids))
    queries = {f"q{number:02d}" for number in range(1, 26)}
    assert queries <= set(ids)
    taken = [one for one in ids if one.startswith(("queries", "lists", "help")) and anchor(one) == one]
    assert taken == []


def test_a_row_of_the_folds_takes_few_bytes_beside_its_texts(results):
    """A page of 25 queries has thousands of them."""
    html = page(listed_results(texts=False), None).decode()
    table = html.split('<table class="drill">')[1].split("</table>")[0]
    row = table.split("<tbody>")[2]
    said = sum(map(len, re.findall(r">([^<]+)", row))) + len("https://example.org/d2")
    assert len(row) - said < 70
