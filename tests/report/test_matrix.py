"""The table of queries and its panels: every figure, rank and passage is that of the results."""

import re

import pytest
from lxml import html as markup

from runner.base.records import SCORE_UNIT
from runner.eval_set.shapes.lists import FurtherReading, ShownPassage
from runner.report.by_query import TOP, _cut, anchor, matrix, reader, tint
from runner.report.page_frame import inert
from tests.support.example_lists import CELLS, TEXT, Invented, listed_results
from tests.support.example_results import BASELINE, BETTER, HYBRID
from tests.support.full_results import page


def stored(**more):
    return inert(listed_results(**more))


RESULTS, LISTS = stored()


def paged(**more):
    found, lists = listed_results(**more)
    return page(found, None, lists=lists).decode()


@pytest.fixture(name="html", scope="module")
def _html():
    return paged()


def by_cell(results):
    return {row.cell: row.scores["ndcg@10"].per_query for row in results.cells}


def test_rows_stand_by_the_difference_to_the_baseline_greatest_first_and_equal_ones_by_id():
    scores = by_cell(RESULTS)
    gains = {query.id: scores[BETTER][place] - scores[BASELINE][place] for place, query in enumerate(RESULTS.queries)}
    shown = matrix(RESULTS, LISTS)
    assert [row.query.id for row in shown.rows] == sorted(gains, key=lambda name: (-abs(gains[name]), name))
    assert [row.scores[1] - row.scores[0] for row in shown.rows] == [gains[row.query.id] for row in shown.rows]
    assert len(set(gains.values())) < len(gains)


def test_every_figure_and_tint_is_that_of_the_results():
    shown, scores = matrix(RESULTS, LISTS), by_cell(RESULTS)
    place = {query.id: place for place, query in enumerate(RESULTS.queries)}
    assert (shown.cells, shown.rival) == ([BASELINE, BETTER, *CELLS[2:]], BETTER)
    for row in shown.rows:
        assert list(row.scores) == [scores[cell][place[row.query.id]] for cell in shown.cells]
    for difference in (-SCORE_UNIT, -1, 0, 1, SCORE_UNIT // 8, SCORE_UNIT):
        assert (tint(difference) > 0, tint(difference) < 0) == (difference > 0, difference < 0)
    assert [tint(difference) for difference in (1, SCORE_UNIT // 8, SCORE_UNIT // 2, SCORE_UNIT)] == [1, 1, 4, 4]


def test_the_rival_is_the_cell_that_the_verdict_is_about_wherever_the_baseline_stands():
    rows = RESULTS.cells
    assert matrix(RESULTS.model_copy(update={"cells": rows[::-1]}), LISTS).cells[:2] == [BASELINE, BETTER]
    cells = [row.model_copy(update={"short_of": [] if row.cell == HYBRID else ["weak"]}) for row in rows]
    assert matrix(RESULTS.model_copy(update={"cells": cells}), LISTS).rival == HYBRID


def test_both_lists_are_those_of_the_results_and_what_neither_has_is_named():
    listed = {query.id: query for query in LISTS.queries}
    for row in matrix(RESULTS, LISTS).rows:
        query = listed[row.query.id]
        names = [LISTS.documents[pair.document].doc_id for pair in query.documents]
        hits = {cell: [names[place] for place, _, _ in query.hits[cell][:TOP]] for cell in (BASELINE, BETTER)}
        for cell, side in zip(hits, row.sides, strict=True):
            other = hits[BETTER if cell == BASELINE else BASELINE]
            assert [hit.document.doc_id for hit in side] == hits[cell]
            assert [hit.elsewhere for hit in side] == [
                other.index(name) + 1 if name in other else 0 for name in hits[cell]
            ]
            for hit, (_, start, end) in zip(side, query.hits[cell], strict=False):
                assert hit.span == f"{start:,}–{end:,}"
                assert "".join(text for text, _ in hit.chunk).strip(" …") == TEXT.strip(" …")
        relevant = {name for name, pair in zip(names, query.documents, strict=True) if (pair.grade or 0) >= 2}
        assert {hit.document.doc_id for hit, _ in row.missed} == relevant - {*hits[BASELINE], *hits[BETTER]}


def test_a_hit_shows_the_chunk_that_ranked_it_before_what_the_judge_marked():
    query = LISTS.queries[0]
    row, start, end = query.hits[BASELINE][0]
    passage = query.documents[row].passages[0]
    chunk = passage.model_copy(update={"start": start, "end": start + 4, "text": "rank"})
    marks = passage.model_copy(update={"start": end + 10, "end": end + 14, "text": "mark"})
    pair = query.documents[row].model_copy(update={"passages": [marks, chunk], "spans": [[end + 10, end + 14]]})
    documents = [pair if place == row else each for place, each in enumerate(query.documents)]
    queries = [query.model_copy(update={"documents": documents}), *LISTS.queries[1:]]
    changed = LISTS.model_copy(update={"queries": queries})
    (shown,) = [each for each in matrix(RESULTS, changed).rows if each.query.id == query.id]
    hit = shown.sides[0][0]
    assert [text for text, _ in hit.chunk] == ["rank", *([" …"] if start + 4 < end else [])]
    assert [[text for text, _ in parts] for _, parts in hit.marks] == [["mark"]]


def test_only_the_judges_that_gave_few_grades_are_named():
    shown = matrix(RESULTS, LISTS)
    assert {hit.judge for row in shown.rows for side in row.sides for hit in side} == {"", "reader-b"}


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//example.org/x", "", " https://e.org"])
def test_an_address_that_is_no_web_address_is_no_link(url):
    rows = matrix(*stored(invented=Invented(url=url))).rows
    assert {hit.url for row in rows for hit in row.sides[0] if hit.document.doc_id == "d1"} == {""}


def test_each_cells_misses_are_counted_by_cause_and_told_beside_the_document(html):
    shown = matrix(RESULTS, LISTS)
    table = markup.fromstring(html).xpath("//table[caption[@id='missed-caption']]")[0]
    figures = [[cell.text for cell in row.xpath("./td")] for row in table.xpath(".//tr")[1:]]
    assert [row.cell for row in shown.misses] == list(shown.cells)
    assert figures == [[str(row.total), *map(str, row.causes.values())] for row in shown.misses]
    for row in shown.misses:
        lacking = [
            sum(pair.grade in (2, 3) for pair in query.documents) - sum(hit[0] < 2 for hit in query.hits[row.cell])
            for query in LISTS.queries
        ]
        assert (row.total, row.causes["fusion"], row.causes["below"]) == (
            sum(lacking),
            sum(lacking[::2]),
            sum(lacking[1::2]),
        )
    for row in shown.rows:
        # Of a listed document what keeps it from the other list, of one in neither what keeps it from both.
        assert {len(hit.causes) for hit, _ in row.missed} <= {2}
        for own, other, side in zip((BASELINE, BETTER), (BETTER, BASELINE), row.sides, strict=True):
            for hit in side:
                lacks = (hit.pair.grade or 0) >= 2 and not hit.elsewhere
                assert list(hit.causes) == ([other] if lacks else []), own
    bare = [query.model_copy(update={"missed": {}}) for query in LISTS.queries]
    assert matrix(RESULTS, LISTS.model_copy(update={"queries": bare})).misses == []


def test_a_hit_of_a_sum_shows_what_words_and_what_meaning_contributed():
    halves = [[0.257, 0.0], [0.08, 0.464]]
    queries = [query.model_copy(update={"halves": {BETTER: halves}}) for query in LISTS.queries]
    changed = LISTS.model_copy(update={"queries": queries})
    row = matrix(RESULTS, changed).rows[0]
    assert [list(hit.halves) for hit in row.sides[1]][:3] == [*halves, []]
    assert not any(hit.halves for hit in row.sides[0])
    panel = markup.fromstring(page(RESULTS, None, lists=changed).decode()).xpath("//tr[@class='panel']")[0]
    first, second, third = (item.text_content() for item in panel.xpath(".//ol")[1].xpath("./li")[:3])
    assert " · 0.26 + 0.00" in first
    assert " · 0.08 + 0.46" in second
    assert "+" not in third


def test_a_panel_says_of_each_hit_what_the_results_say(html):
    tree = markup.fromstring(html)
    panels = tree.xpath("//tr[@class='panel']")
    rows = matrix(RESULTS, LISTS).rows
    assert len(panels) == len(rows) == 25
    for panel, row in zip(panels, rows, strict=True):
        assert panel.getprevious().get("id") == anchor(row.query.id)
        for ranked, side in zip(panel.xpath(".//ol"), row.sides, strict=True):
            for item, hit in zip(ranked.xpath("./li"), side, strict=True):
                said = item.text_content()
                assert item.xpath("./b")[0].text == ("?" if hit.pair.grade is None else str(hit.pair.grade))
                assert hit.document.title in said
                assert hit.document.doc_id in said
                assert TEXT in said
                assert not hit.elsewhere or f" · other list: rank {hit.elsewhere}" in said
                # What judges said of a document in both lists stands in the first.
                told = [hit.pair.reason, *(f"again: {one.grade}. {one.reason}" for one in hit.pair.readings)]
                is_second = side is row.sides[1] and hit.elsewhere
                assert [text in said for text in told if text] == [not is_second] * len([*filter(None, told)])


def test_the_reader_of_most_second_readings_is_named_once_and_any_other_each_time():
    shown = matrix(RESULTS, LISTS)
    assert shown.again == "reader-b, round 2"
    readings = {reader(one) for query in LISTS.queries for pair in query.documents for one in pair.readings}
    assert readings == {shown.again}
    rare = FurtherReading(judge="ann", model="a model", round=3, grade=2, reason="It does.")
    first = RESULTS.queries[0].id
    (asked,) = [query for query in LISTS.queries if query.id == first]
    pairs = [pair.model_copy(update={"readings": [rare]}) for pair in asked.documents]
    changed = [asked.model_copy(update={"documents": pairs}) if each is asked else each for each in LISTS.queries]
    html = page(RESULTS, None, lists=LISTS.model_copy(update={"queries": changed})).decode()
    assert html.count("reader-b, round 2") == 1
    assert "<cite>ann (a model), round 3: 2.</cite> <bdi>It does.</bdi>" in html


def test_an_address_stands_once_and_each_document_that_has_one_leads_there(html):
    tree = markup.fromstring(html)
    addresses = {item.get("id"): item.xpath("./a")[0].get("href") for item in tree.xpath("//ul[@class='addresses']/li")}
    assert set(addresses.values()) == {document.url for document in LISTS.documents}
    assert all(html.count(f'"{url}"') == 1 for url in addresses.values())
    for link in tree.xpath("//tr[@class='panel']//li/a"):
        assert addresses[link.get("href")[1:]].rpartition("/")[2] == link.text


def test_without_texts_a_hit_has_its_place_and_neither_title_nor_passage():
    html = paged(texts=False)
    assert "Levee Inspection" not in html
    assert TEXT not in html
    assert "</a> at 0–2,000" in html


def test_an_anchor_is_never_one_of_the_page(html):
    names = ("gate", "q02", "cost-caption")
    assert [anchor(name) for name in names] == ["query-gate", "q02", "query-cost-caption"]
    ids = re.findall(r"""\bid=["']?([^"'\s>]+)""", html.split("<body", 1)[1])
    assert len(ids) == len(set(ids))
    queries = {f"q{number:02d}" for number in range(1, 26)}
    assert queries <= set(ids)
    assert [one for one in set(ids) - queries if anchor(one) == one] == []


@pytest.mark.parametrize(
    ("chunk", "parts"),
    [((10, 20), ["words"]), ((5, 20), ["… ", "words"]), ((10, 25), ["words", " …"]), ((5, 25), ["… ", "words", " …"])],
)
def test_dots_stand_where_a_chunk_goes_on_beside_the_passage_that_is_shown(chunk, parts):
    passage = ShownPassage(start=10, end=20, text="words")
    assert [text for text, _ in _cut([("words", False)], passage, chunk)] == parts
