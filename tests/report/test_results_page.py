import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from runner.report.results_page.by_query import anchor
from runner.report.results_page.render import page
from tests.support.example_lists import CELLS, TEXT, Invented, listed_results
from tests.support.example_results import BASELINE, BETTER, HYBRID, SPARSE
from tests.support.full_results import full_receipt

pytest_plugins = ["tests.support.browser"]

SCREEN = {"width": 1200, "height": 800}
HOSTILE = (
    "</p></td></table></details><script>window.hit = 1; alert(1)</script><img src=https://example.org/x "
    "onerror='window.hit=2'><style>body{background:url(https://example.org/y)}</style>]]> {{ 7 * 7 }} "
    "\"quoted\" 'single' </title></textarea><!--<svg onload=alert(2)> \u202eright to left\u202c \x00 \x1b[31m \ufeff "
)


@pytest.fixture(name="results", scope="module")
def _results():
    return listed_results()


@pytest.fixture(name="path", scope="module")
def _path(results, tmp_path_factory):
    found = tmp_path_factory.mktemp("page") / "results.html"
    found.write_bytes(page(results, full_receipt(results)))
    return found


@pytest.fixture(name="window", scope="module")
def _window(browser):
    """Pages of one window share a context, which takes longer to make than a page."""
    context = browser.new_context(offline=True, viewport=SCREEN)
    context.set_default_timeout(10_000)
    yield SimpleNamespace(page=context.new_page())
    context.close()


@pytest.fixture(name="show")
def _show(window, opened, path):
    """Opens the page, or another one, with what stands after # in its address."""
    pages = []

    def show(address="", page=path):
        pages.append(opened(Address(page, address), beside=window))
        return pages[-1]

    yield show
    for each in pages:
        each.close()


@pytest.fixture(name="shown")
def _shown(show):
    return show()


@dataclass(frozen=True)
class Address:
    """A file with what stands after # in its address, which a path cannot have."""

    path: Path
    part: str

    def as_uri(self):
        return f"{self.path.as_uri()}#{self.part}" if self.part else self.path.as_uri()


def address(shown):
    return shown.evaluate("location.hash")


def focused(shown):
    return shown.evaluate("document.activeElement.textContent")


def open_folds(shown):
    return shown.evaluate(
        """[...document.querySelectorAll('details.query[open]')]
        .map((fold) => fold.querySelector('p').id)"""
    )


def rows(shown):
    """The queries of the table's rows that are shown, in their order."""
    return shown.evaluate(
        """[...document.querySelectorAll('#queries-table tbody tr:not([hidden])')]
        .map((row) => row.querySelector('a').textContent)"""
    )


def side(shown, name):
    """One of the two lists: of every document its rank, grade, id, place against the other list, and evidence."""
    return shown.evaluate(
        """(name) => [...document.querySelectorAll(`#lists-${name}-list > li > button`)].map((button) =>
        [...button.children].map((part) => part.textContent))""",
        name,
    )


def expected(results, place, cell, other):
    """What `side` says where a list is as the results have it."""
    query, documents = results.lists.queries[place], results.lists.documents
    ranks = {row: rank for rank, (row, _, _) in enumerate(query.hits[other], start=1)}
    found = []
    for rank, (row, start, end) in enumerate(query.hits[cell], start=1):
        pair, document = query.documents[row], documents[query.documents[row].document]
        moved = "only here" if row not in ranks else "same" if ranks[row] == rank else f"{ranks[row] - rank:+d}"
        grade = "?" if pair.grade is None else str(pair.grade)
        where = f"{document.title} {start:,}–{end:,}"
        found.append([str(rank), grade, document.doc_id, moved.replace("-", "−"), where])
    return found


# What is there at once.


def test_the_page_opens_with_its_verdict_asks_for_nothing_and_complains_of_nothing(shown, results, path):
    assert results.outcome.sentence in shown.text("header")
    assert shown.requests == [path.as_uri()]
    assert (shown.complaints, shown.dialogs) == ([], [])
    assert open_folds(shown) == []


# From a query to its lists.


def test_a_click_on_a_row_opens_the_lists_and_the_back_button_closes_them(shown):
    shown.click("#queries-table tbody tr:nth-child(3) .text")
    (opened,) = open_folds(shown)
    assert opened == rows(shown)[2]
    assert address(shown) == f"#{opened}"
    assert shown.evaluate("document.activeElement.id") == opened
    shown.go_back()
    assert (open_folds(shown), address(shown)) == ([], "")
    assert not shown.is_visible("#lists-side")
    shown.go_forward()
    assert open_folds(shown) == [opened]
    assert shown.is_visible("#lists-side")


def test_the_back_button_leads_to_where_the_reader_was(shown):
    shown.evaluate(
        """() => {
        addEventListener('click', () => { window.left = scrollY }, true);
        window.back = new Promise((done) => addEventListener('hashchange', () => requestAnimationFrame(done)));
        }"""
    )
    shown.click("#queries-table tbody tr:nth-child(20) .text")
    assert shown.evaluate("scrollY - left") > SCREEN["height"]
    shown.go_back()
    assert abs(shown.evaluate("back.then(() => scrollY - left)")) < 2


def test_an_address_of_a_query_that_the_filter_hides_ends_the_filter(shown):
    shown.fill("#queries-text", "number 12")
    assert rows(shown) == ["q12"]
    shown.evaluate("location.hash = '#q07'")
    shown.wait_for_selector("#q07:visible")
    assert (len(rows(shown)), shown.input_value("#queries-text")) == (25, "")
    after = rows(shown)[rows(shown).index("q07") + 1]
    shown.press("j")
    assert open_folds(shown) == [after]


def test_a_click_on_a_figure_opens_the_lists_with_its_cell_on_the_right(shown):
    shown.click("#queries-table tbody tr:nth-child(1) td[class^=shade] >> nth=2")
    assert shown.input_value("#lists-left") == BASELINE
    assert shown.input_value("#lists-right") == HYBRID == CELLS[2]
    assert address(shown) == f"#{rows(shown)[0]}/{quote(BASELINE, safe='()')}/{quote(HYBRID, safe='()')}"


def test_a_fold_opens_by_a_click_on_itself_and_closes_by_another(shown):
    shown.click("details.query:nth-of-type(4) > summary")
    assert (open_folds(shown), address(shown)) == (["q04"], "#q04")
    shown.click("details.query:nth-of-type(2) > summary")
    assert (open_folds(shown), address(shown)) == (["q02"], "#q02")
    shown.click("details.query:nth-of-type(2) > summary")
    assert (open_folds(shown), address(shown)) == ([], "#queries")


def test_an_address_opens_the_lists_of_a_query_and_of_the_cells_it_names(show):
    shown = show(f"q07/{quote(SPARSE)}/{quote(HYBRID)}")
    assert open_folds(shown) == ["q07"]
    assert [shown.input_value(f"#lists-{name}") for name in ("left", "right")] == [SPARSE, HYBRID]
    top = "document.getElementById('q07').getBoundingClientRect().top"
    assert shown.evaluate(f"new Promise((done) => requestAnimationFrame(() => setTimeout(() => done({top}))))") < 200
    for part, query in (("q12", "q12"), ("q07/no%20such%20cell", "q07")):
        shown.evaluate("(part) => { location.hash = part }", part)
        shown.wait_for_selector(f"#{query}:visible")
        assert open_folds(shown) == [query]
        assert [shown.input_value(f"#lists-{name}") for name in ("left", "right")] == [BASELINE, BETTER]


@pytest.mark.parametrize("odd", ["a/b#c%25?d&e", "(1)'+\u00e9", "e\u0301<b>", "gate"])
def test_a_query_of_any_id_is_opened_by_a_click_on_its_row_and_by_the_address_that_this_gives(
    show, results, tmp_path, odd
):
    def renamed(rows):
        return [row.model_copy(update={"id": odd}) if row.id == "q03" else row for row in rows]

    lists = results.lists.model_copy(update={"queries": renamed(results.lists.queries)})
    changed = tmp_path / "odd.html"
    found = results.model_copy(update={"queries": renamed(results.queries), "lists": lists})
    changed.write_bytes(page(found, full_receipt(found)))
    shown = show(page=changed)
    shown.click(f"#queries-table tbody tr:nth-child({rows(shown).index(odd) + 1}) .text")
    assert open_folds(shown) == [anchor(odd)]
    shown = show(address(shown)[1:], changed)
    assert open_folds(shown) == [anchor(odd)]
    assert side(shown, "left") == expected(found, 2, BASELINE, BETTER)
    shown.fill("#queries-text", "no such query")
    assert (rows(shown), shown.complaints) == ([], [])


def test_an_address_that_names_nothing_opens_nothing_and_breaks_nothing(show):
    shown = show("%E0%A4%A")
    for wrong in ("q99", "q1", "gate", "/", "queries-text", "q01%", "q12-caption/x"):
        assert (open_folds(shown), shown.complaints) == ([], [])
        shown.evaluate("(part) => { location.hash = part }", wrong)
    assert (open_folds(shown), shown.complaints) == ([], [])


def test_the_two_lists_are_those_of_the_results_whatever_the_cells(show, results):
    shown = show("q08")
    for left in (BASELINE, BETTER):
        for right in CELLS:
            shown.select_option("#lists-left", left)
            shown.select_option("#lists-right", right)
            assert side(shown, "left") == expected(results, 7, left, right)
            assert side(shown, "right") == expected(results, 7, right, left)
            assert shown.is_visible("#lists-right-none") == (right == SPARSE)
    both = (BASELINE, BETTER)
    moves = {row[3] for pair in (both, both[::-1]) for row in expected(results, 7, *pair)}
    assert {"only here", "−2", "+2"} <= moves


def test_a_document_unfolds_what_was_said_of_it_and_folds_it_again(show, results):
    shown = show("q01")
    pairs = results.lists.queries[0].documents
    places = [row for row, _, _ in results.lists.queries[0].hits[BETTER]]
    read_twice = next(rank for rank, row in enumerate(places) if pairs[row].readings)
    button = f"#lists-right-list > li:nth-child({read_twice + 1}) > button"
    shown.focus(button)
    shown.press("Enter")
    said = " ".join(shown.text("#lists-right-list .said").split())
    pair = pairs[places[read_twice]]
    assert f"Grade {pair.grade}. reader-a: {pair.reason} reader-b, round 2: 1. It only touches levees." in said
    assert f"1,000–1,092 {TEXT}" in said
    assert shown.get_attribute("#lists-right-list .said a", "href") == f"https://example.org/d{pair.document + 1}"
    assert shown.evaluate("[...document.querySelectorAll('#lists-right-list .said mark')].length") > 2
    ids = shown.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(set(ids)) == len(ids)
    shown.press("Enter")
    assert not shown.query_selector("#lists-right-list .said")
    assert shown.get_attribute(button, "aria-expanded") == "false"


# Keys.


def test_everything_can_be_done_by_keys(shown):
    first, second, third = rows(shown)[:3]
    shown.press("j", "j")
    assert focused(shown) == second
    shown.press("k")
    assert focused(shown) == first
    shown.press("Enter")
    assert open_folds(shown) == [first]
    shown.press("n")
    assert open_folds(shown) == [second]
    shown.press("j", "p", "j")
    assert open_folds(shown) == [third]
    assert shown.input_value("#lists-right") == BETTER
    shown.press("]", "]", "[", "]")
    assert shown.input_value("#lists-right") == HYBRID
    shown.press("{")
    assert shown.input_value("#lists-left") == BETTER
    shown.press("j", "k")
    assert [shown.input_value(f"#lists-{name}") for name in ("left", "right")] == [BETTER, HYBRID]
    shown.press("Escape")
    assert (open_folds(shown), focused(shown)) == ([], third)
    shown.press("o")
    assert open_folds(shown) == [third]
    assert shown.complaints == []


def test_a_slash_leads_to_the_filter_where_keys_are_letters_and_escape_leads_back(shown):
    shown.press("/")
    shown.keyboard.type("number 1")
    assert shown.input_value("#queries-text") == "number 1"
    assert open_folds(shown) == []
    shown.press("Escape")
    assert focused(shown) == rows(shown)[0]


def test_a_question_mark_shows_the_keys_and_single_keys_can_be_switched_off(shown):
    shown.press("?")
    assert shown.evaluate("document.getElementById('help-keys').open")
    assert "next query" in shown.text("#help-keys")
    shown.click("#help-letters")
    shown.click("#help-close")
    shown.press("j", "?")
    assert not shown.evaluate("document.getElementById('help-keys').open")
    assert shown.evaluate("document.activeElement.closest('#queries-table')") is None
    shown.focus("#queries-table tbody a")
    shown.press("Enter")
    assert open_folds(shown)
    shown.press("Escape")
    assert not open_folds(shown)


# Sorting and filtering.


def test_any_column_sorts_both_ways_by_click_and_by_key(shown, results):
    by_id = [query.id for query in results.queries]
    assert shown.get_attribute("#queries-table th[aria-sort]", "aria-sort") == "descending"
    shown.click("#queries-table thead th >> nth=0 >> button")
    assert rows(shown) == by_id
    shown.focus("#queries-table thead th:first-child button")
    shown.press("Enter")
    assert rows(shown) == by_id[::-1]
    values = dict(zip(by_id, results.cells[3].scores["ndcg@10"].per_query, strict=True))
    shown.click("#queries-table thead th >> nth=-1 >> button")
    assert [values[name] for name in rows(shown)] == sorted(values.values(), reverse=True)
    assert (
        shown.evaluate(
            "[...document.querySelectorAll('[aria-sort]')].filter((e) => e.closest('#queries-table')).length"
        )
        == 1
    )
    gains = dict(
        zip(
            by_id,
            (a - b for a, b in zip(*(results.cells[n].scores["ndcg@10"].per_query for n in (0, 1)), strict=True)),
            strict=True,
        )
    )
    shown.click("#queries-table thead th:has-text('Gain') button")
    assert [gains[name] for name in rows(shown)] == sorted(gains.values(), reverse=True)
    shown.click("#queries-table thead th:has-text('Gain') button")
    assert [gains[name] for name in rows(shown)] == sorted(gains.values())


def test_the_ranking_sorts_too_and_a_missing_figure_stays_last_either_way(shown):
    table = "table.sortable:has(#ranking-caption)"
    order = f"""[...document.querySelector('{table}').tBodies[0].rows].map((row) => row.cells[0].textContent.trim())"""
    assert shown.evaluate(order) == ["1", "2", "3", "4"]
    shown.click(f"{table} thead th:has-text('Cell') button")
    by_name = shown.evaluate(order)
    assert [CELLS[int(number) - 1] for number in by_name] == sorted(CELLS, key=str.lower)
    for _ in range(2):
        shown.click(f"{table} thead th:has-text('Adjusted p') button")
        assert set(shown.evaluate(order)[2:]) == {"2", "4"}


def test_the_filter_takes_words_kind_and_origin_and_says_how_many_are_left(shown, results):
    # What is not rendered yet has no inner text, but it has its text.
    assert shown.text_content("#queries-count") == "25 of 25 queries"
    shown.fill("#queries-text", "NEED 1")
    wanted = [query.id for query in results.queries if "need" in query.text and "1" in query.id + query.text]
    assert sorted(rows(shown)) == wanted
    shown.select_option("#queries-kind", "citation")
    shown.select_option("#queries-origin", "hand")
    left = [q.id for q in results.queries if q.id in wanted and (q.kind, q.origin) == ("citation", "hand")]
    assert sorted(rows(shown)) == left
    assert shown.text_content("#queries-count") == f"{len(left)} of 25 queries"
    assert shown.evaluate("[...document.querySelectorAll('details.query:not([hidden])')].length") == len(left)
    shown.fill("#queries-text", "no such words")
    assert rows(shown) == []
    assert shown.is_visible("#queries-none")


# Without script, on paper, on a small screen, in the browser's own search.


def test_without_script_tables_plots_and_folds_are_there_and_an_address_opens_a_fold(path, opened, results):
    shown = opened(Address(path, "q03"), viewport=SCREEN, java_script_enabled=False)
    assert shown.locator("#queries-table tbody tr").count() == 25
    assert shown.locator("details.query table.drill").count() == 25
    assert shown.locator(".plot svg, svg.strip").count() > 0
    assert shown.locator("details.query[open]").count() == 1
    assert "Reason 4." in shown.text("details.query[open] table")
    for only_with_script in ("#queries-filter", "#lists-side", "#lists-keys", "#help-keys"):
        assert not shown.is_visible(only_with_script)
    assert shown.locator("button:visible").count() == 0
    assert shown.complaints == []


def test_on_paper_only_the_folds_that_were_opened_are_unfolded(show):
    shown = show("q02")
    shown.emulate_media(media="print")
    assert shown.is_visible("details.query[open] table.drill")
    assert shown.locator("table.drill:visible").count() == 1
    assert not shown.is_visible("#queries-filter")
    assert not shown.is_visible("#cells ~ details .facts")
    assert shown.is_visible("#tests ~ details table")
    assert shown.evaluate("getComputedStyle(document.querySelector('th .sort')).display") == "contents"


def test_a_small_screen_never_scrolls_sideways(path, opened):
    shown = opened(Address(path, "q01"), viewport={"width": 360, "height": 740})
    shown.click("#lists-left-list button >> nth=0")
    assert shown.evaluate("document.documentElement.scrollWidth") == 360
    small = shown.evaluate(
        """[...document.querySelectorAll('#queries-filter *, #lists-side *, #queries-table *, .query > summary')]
        .filter((e) => e.matches('button, input, select, summary') && Math.min(e.offsetWidth, e.offsetHeight) < 24)
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert small == []


def test_the_browsers_own_search_finds_what_is_folded(show):
    """By a link to a text, which opens a fold as the search does."""
    shown = show(":~:text=It%20only%20touches%20levees")
    shown.wait_for_selector("details.query[open]")
    assert (open_folds(shown), address(shown)) == (["q01"], "")


# What a document may hold.


def test_an_injected_script_and_an_injected_handler_do_not_run(path, show, tmp_path):
    injected = (
        "<script>window.hit = 1</script><img src='data:,' onerror='window.hit = 2'><p onclick='window.hit = 3'>x</p>"
    )
    changed = tmp_path / "injected.html"
    changed.write_text(path.read_text(encoding="utf-8").replace("</main>", f"{injected}</main>"), encoding="utf-8")
    shown = show(page=changed)
    shown.click("p:text-is('x')")
    assert shown.evaluate("window.hit") is None
    assert any("Content Security Policy" in said for said in shown.complaints)
    with pytest.raises(Exception, match="TrustedHTML"):
        shown.evaluate("document.body.innerHTML = '<b>x</b>'")
    assert len(rows(shown)) == 25


def test_a_text_made_to_break_out_is_shown_and_does_nothing(show, tmp_path):
    odd = Invented(
        query=f"Levee {HOSTILE}",
        note=HOSTILE,
        doc_id="d1</script><img/onerror=alert(1)>\u202ex\x00",
        title=HOSTILE,
        reason=HOSTILE + "y" * 1_000_000,
        passage=HOSTILE,
        url='javascript:alert(1)//https://example.org/"onclick="alert(2)',
    )
    written = tmp_path / "hostile.html"
    written.write_bytes(page(listed_results(odd), None))
    assert written.stat().st_size < 1_000_000
    shown = show("q01", written)
    for button in shown.query_selector_all("#lists-side li > button"):
        button.click()
    said = shown.text("details.query[open]")
    for literal in (
        "<script>window.hit = 1; alert(1)</script>",
        "{{ 7 * 7 }}",
        "]]>",
        "⟨U+202E⟩right to left",
        "⟨U+0000⟩",
    ):
        assert literal in said
    assert f"({len(odd.reason):,} characters in all)" in said
    assert shown.locator("a[href^=javascript]").count() == 0
    assert shown.evaluate("window.hit") is None
    assert (shown.dialogs, shown.complaints) == ([], [])
    assert shown.requests == [written.as_uri()]
    assert json.loads(shown.evaluate("JSON.stringify([...document.scripts].map((s) => s.src))")) == [""]
