"""What people with other eyes, hands and screens meet on the pages, as far as an engine can say."""

from types import SimpleNamespace

import pytest

from runner.base.canonical import sha256
from runner.base.records import Document, Span
from runner.eval_set.batches import Shown, make_row, rebound
from runner.report.labels_page import page as labels_page
from runner.report.page_frame import TEMPLATES
from runner.report.playground import page as playground
from runner.report.post_bulk_page import post_bulk_page
from runner.substrate.shapes import PostBulk
from tests.support import axe
from tests.support.example_lists import listed_results
from tests.support.example_results import decision
from tests.support.full_results import NAMES, full_receipt, full_results, page

pytest_plugins = ["tests.support.browser"]

PROMPT = (TEMPLATES / "judge.md").read_text(encoding="utf-8")
WIDE = {"width": 1280, "height": 720}
NARROW = {"width": 360, "height": 740}


def results_page():
    results, lists = listed_results()
    return page(results, full_receipt(results), lists=lists)


def judging():
    document = Document("d1", "Section 1. A bridge is mended.\n\nSection 2. A ferry waits.\n", "An Act", "", "", "")
    spans = Shown((Span(0, 30), Span(32, 58)))
    rows = [make_row("demo v1", sha256(PROMPT), (f"q{n}", "who mends bridges?"), document, spans) for n in (1, 2)]
    return labels_page([rebound(one, "batch-0001") for one in rows], PROMPT, title="demo v1", judge="Ann")


def post_bulk():
    results = full_results(n_queries=4, names=NAMES[:2], source="demo")
    base, best = results.cells[1], results.cells[0]
    measured = {"scores": base.scores, "bounds": [0.4, 0.7], "run_sha256": "ab" * 32}
    beside = {"cell": base.cell, "scores": base.scores, "differences": best.differences, "test": best.test}
    recall = {"depth": 10, "mean": 0.99, "floor": 0.95}
    fault = {"name": "torn chunks", "fault": True, "count": 2, "of": 9, "sentence": "Two.", "examples": ["c1"]}
    report = {
        "schema_version": 1,
        "source": "demo",
        "version": 1,
        "kind": "production",
        "plan": results.plan,
        "chosen": decision(results).chosen,
        "queries": [query.id for query in results.queries],
        "model": {"encoder": "e", "revision": "r", "model_id": "hub/e", "of_baseline": False},
        "substrate": {"version": "7", "chunks": 9, "dim": 4, "metric": "cosine", "tokenizer": "porter"},
        "arms": [
            {"arm": "vec0 exact", "unjudged": 1, "beside": beside, **measured},
            {"arm": "fts5", "unjudged": 0, "beside": None, **measured},
        ],
        "quantisation": {"recall": [recall], "difference": best.differences["ndcg@10"], "test": best.test},
        "findings": [fault],
        **dict.fromkeys(("results_sha256", "lock_sha256"), "ab" * 32),
    }
    return post_bulk_page(PostBulk.model_validate(report), full_receipt(results))


PAGES = {
    "results": results_page,
    "playground": playground,
    "labels": judging,
    "post-bulk": post_bulk,
}
"""How each page is made; what stands here is held to every claim below."""


def test_the_engine_is_there_and_finds_what_is_wrong(opened, tmp_path):
    path = tmp_path / "wrong.html"
    path.write_text("<!doctype html><html><body><img src='x.png'><input></body></html>", encoding="utf-8")
    shown = opened(path)
    assert int(axe.version(shown.page).split(".")[0]) >= 4
    found = axe.grave(shown.page)
    assert {text.split(" at ")[0] for text in found} >= {"critical: image-alt", "serious: html-has-lang"}


@pytest.fixture(name="shown", scope="module", params=PAGES)
def _shown(request, browser, tmp_path_factory):
    """A page that is opened once for all claims, the results with a query's lists unfolded.

    What is folded away the engine does not see.
    """
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    path.write_bytes(PAGES[request.param]())
    context = browser.new_context(offline=True, viewport=WIDE)
    found = SimpleNamespace(page=context.new_page(), complaints=[])
    found.page.on("console", lambda message: found.complaints.append(message.text))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.goto(path.as_uri())
    if request.param == "results":
        found.page.evaluate("location.hash = '#q01'")
        found.page.wait_for_selector("#q01 + tr.panel .sides")
    yield found
    context.close()


@pytest.fixture(name="look")
def _look(shown):
    """The page in a scheme of colours and at a size."""

    def look(scheme="light", size=WIDE):
        shown.page.emulate_media(color_scheme=scheme)
        shown.page.set_viewport_size(size)
        return shown.page

    return look


def test_no_rule_of_wcag_2_2_aa_or_of_good_practice_is_broken(look, shown):
    assert axe.violations(look(), (*axe.WCAG, *axe.BEST_PRACTICE)) == []
    assert shown.complaints == []


@pytest.mark.slow
def test_texts_stand_out_from_a_dark_page_too(look):
    assert axe.violations(look(scheme="dark"), only=("color-contrast",)) == []


def test_a_page_of_360_pixels_scrolls_one_way_and_its_targets_are_large_enough(look):
    page = look(size=NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert axe.violations(page, only=("target-size", "scrollable-region-focusable", "meta-viewport")) == []
