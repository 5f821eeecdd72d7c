import json
import re
from urllib.parse import quote

import pytest

from runner.report.by_query import AT_FIRST, anchor, matrix
from tests.support.example_lists import Invented, listed_results
from tests.support.example_results import decision
from tests.support.full_results import full_receipt, full_results, page

pytest_plugins = ["tests.support.browser"]

SCREEN = {"width": 1200, "height": 800}
HOSTILE = (
    "</p></td></table></details><script>window.hit = 1; alert(1)</script><img src=https://example.org/x "
    "onerror='window.hit=2'><style>body{background:url(https://example.org/y)}</style>]]> {{ 7 * 7 }} "
    "\"quoted\" 'single' </title></textarea><!--<svg onload=alert(2)> \u202eright to left\u202c \x00 \x1b[31m \ufeff "
)


RESULTS, LISTS = listed_results()


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory):
    found = tmp_path_factory.mktemp("page") / "results.html"
    found.write_bytes(page(RESULTS, full_receipt(RESULTS), lists=LISTS))
    return found


@pytest.fixture(name="show")
def _show(opened, path):
    """Opens the page, or another one, with what stands after # in its address."""
    return lambda part="", page=path: opened(page, part, viewport=SCREEN)


@pytest.fixture(name="shown")
def _shown(show):
    return show()


def rows(shown, seen="row"):
    """The ids of the queries whose rows are seen, in their order."""
    all_rows = "[...document.querySelectorAll('#queries-table tr.q')]"
    return shown.evaluate(f"{all_rows}.filter((row) => {seen}.checkVisibility()).map((row) => row.id)")


def opened_rows(shown):
    """The ids of the queries whose panels are seen."""
    return rows(shown, "row.nextElementSibling")


# What is there at once.


@pytest.mark.parametrize("width", [1280, 1600])
def test_decision_table_and_doubts_are_seen_without_scrolling_and_the_page_is_short(opened, tmp_path, width):
    found = full_results()
    path = tmp_path / "page.html"
    path.write_bytes(page(found, full_receipt(found), decision(found, found.plan.baseline)))
    shown = opened(path, viewport={"width": width, "height": 800})
    for part in ("h1", ".lead", ".plain tbody tr:last-child", ".doubts li:last-child"):
        assert shown.evaluate("(part) => document.querySelector(part).getBoundingClientRect().bottom", part) <= 800
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.evaluate("document.documentElement.scrollHeight") <= 5 * 800
    said = shown.text("body")
    assert len(said.split()) < 1200
    assert len(re.findall(r"(?<![\w.])[+\u2212]?\d[\d.,]*(?![\w])", said)) < 300
    small = """[...document.querySelectorAll('body *')].filter((each) => each.checkVisibility()
        && [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())
        && parseFloat(getComputedStyle(each).fontSize) < 13).map((each) => each.outerHTML.slice(0, 80))"""
    for fold in shown.locator("details").all():
        fold.evaluate("(each) => { each.open = true; }")
    assert shown.evaluate(small) == []


# From a query to its lists.


def test_a_click_on_a_row_opens_its_panel_below_it_and_another_closes_it(shown):
    shown.click("#q05 th span")
    assert (opened_rows(shown), shown.evaluate("location.hash")) == (["q05"], "#q05")
    top = "(id) => document.getElementById(id).nextElementSibling.getBoundingClientRect().top"
    bottom = "(id) => document.getElementById(id).getBoundingClientRect().bottom"
    assert shown.evaluate(top, "q05") == pytest.approx(shown.evaluate(bottom, "q05"), abs=1)
    shown.click("#q05 th span")
    assert opened_rows(shown) == []


def test_a_panel_opens_by_key_and_says_so_to_a_screen_reader(shown):
    shown.focus("#q05 a")
    shown.press("Enter")
    assert opened_rows(shown) == ["q05"]
    assert shown.get_attribute("#q05 a", "aria-expanded") == "true"
    shown.click("#q05 + tr .close")
    assert opened_rows(shown) == []
    assert shown.evaluate("document.activeElement.closest('tr').id") == "q05"


@pytest.mark.parametrize("odd", ["a/b#c%25?d&e", "(1)'+\u00e9", "gate"])
def test_an_address_opens_the_panel_of_a_query_of_any_id(odd, show, tmp_path):
    queries = [query.model_copy(update={"id": odd}) if query.id == "q03" else query for query in RESULTS.queries]
    listed = [each.model_copy(update={"id": odd}) if each.id == "q03" else each for each in LISTS.queries]
    lists = LISTS.model_copy(update={"queries": listed})
    written = tmp_path / "odd.html"
    written.write_bytes(page(RESULTS.model_copy(update={"queries": queries}), None, lists=lists))
    assert opened_rows(show(quote(anchor(odd), safe="!'()*"), written)) == [anchor(odd)]


def test_twenty_rows_stand_there_until_a_reader_asks_for_all_or_finds_others(shown):
    assert len(rows(shown)) == AT_FIRST < len(RESULTS.queries)
    hidden = [row.query for row in matrix(RESULTS, LISTS).rows][AT_FIRST]
    shown.fill("#queries-text", hidden.text)
    assert rows(shown) == [hidden.id]
    assert shown.text("#queries-count") == f"1 of {len(RESULTS.queries)}"
    shown.fill("#queries-text", "")
    shown.check("#queries-all")
    assert len(rows(shown)) == len(RESULTS.queries)


def test_a_document_leads_to_its_address_at_once_and_without_script_to_where_that_stands(path, opened, show):
    links = "[...document.querySelectorAll('#q05 + tr .sides a')].map((link) => link.getAttribute('href'))"
    found = show("q05").evaluate(links)
    assert len(found) == 10
    assert all(re.fullmatch(r"https://example\.org/d\d", link) for link in found)
    bare = opened(path, "q05", viewport=SCREEN, java_script_enabled=False)
    assert bare.locator(".addresses li:visible").count() == 0
    name = bare.text("#q05 + tr .sides a >> nth=0")
    bare.click("#q05 + tr .sides a >> nth=0")
    assert bare.text(".addresses li:visible") == name
    assert bare.get_attribute(".addresses li:visible a", "href") == f"https://example.org/{name}"


def test_a_reason_in_hebrew_is_read_from_the_right(show, tmp_path):
    written = tmp_path / "reason.html"
    found, lists = listed_results(Invented(reason="\u05d7\u05d5\u05e7 1 (Act)."))
    written.write_bytes(page(found, None, lists=lists))
    begins = """[...document.querySelectorAll('#q01 + tr ol li p:not(:has(cite, small))')].map((each) => {
      const range = document.createRange(), text = each.firstChild;
      const left = (at) => {
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect().left;
      };
      return [text.data[0], left(0) > left(text.data.trim().length - 1)];
    })"""
    assert {(letter, right) for letter, right in show("q01", written).evaluate(begins)} == {
        ("\u05d7", True),
        ("R", False),
    }


# Without script, on paper, on a small screen.


def test_without_script_an_address_opens_a_panel_and_nothing_is_missing(path, opened):
    shown = opened(path, "q03", viewport=SCREEN, java_script_enabled=False)
    assert shown.locator("#queries-table tr.panel:visible").count() == 1
    assert "Reason 4." in shown.text("#q03 + tr.panel")
    assert shown.locator("#queries-table tr.q:visible").count() == AT_FIRST
    shown.check("#queries-all")
    assert shown.locator("#queries-table tr.q:visible").count() == len(RESULTS.queries)
    assert not shown.is_visible("#queries-find")
    assert shown.complaints == []


def test_on_paper_are_four_upright_pages_without_panels(shown):
    shown.click("#q05 th span")
    shown.emulate_media(media="print")
    assert not shown.is_visible("tr.panel")
    pages = re.findall(rb"/Type /Page\b", shown.pdf(prefer_css_page_size=True))
    assert len(pages) <= 4
    shown.emulate_media(media="screen")


def test_a_small_screen_never_scrolls_sideways_for_a_figure(path, opened):
    shown = opened(path, "q05", viewport={"width": 360, "height": 740})
    for fold in shown.locator("details").all():
        fold.evaluate("(each) => { each.open = true; }")
    assert shown.evaluate("document.documentElement.scrollWidth") == 360
    wide = """[...document.querySelectorAll('td, th, .says')].filter((each) => {
          const box = each.getBoundingClientRect();
          return each.checkVisibility() && /\\d/.test(each.textContent) && (box.right > 361 || box.left < -1);
        }).map((each) => each.outerHTML.slice(0, 90))"""
    assert shown.evaluate(wide) == []
    small = shown.evaluate(
        """[...document.querySelectorAll('button, input, select, summary')]
        .filter((each) => each.checkVisibility() && !each.matches('[type=checkbox]'))
        .filter((each) => Math.min(each.offsetWidth, each.offsetHeight) < 24)
        .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert small == []


# What a document may hold.


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
    found, lists = listed_results(odd)
    written.write_bytes(page(found, None, lists=lists))
    assert written.stat().st_size < 1_000_000
    shown = show("q01", written)
    said = shown.text("#q01") + shown.text("#q01 + tr.panel")
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
