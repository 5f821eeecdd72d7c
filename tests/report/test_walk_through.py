"""docs/results-page.md, held to the page that `make demo` wrote."""

import os
import re
from pathlib import Path

import pytest
from lxml import html

from runner.report.results_page import TEMPLATE_VERSION

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "eval-sets" / "demo" / "v1" / "results.html"


def plain(text: str) -> str:
    return " ".join(text.split())


def quoted() -> list[str]:
    """What the walk quotes from the demo's page, and the size of the demo."""
    walk = (CHECKOUT / "docs" / "results-page.md").read_text(encoding="utf-8")
    six = walk.partition("The walk below")[2].partition("\n## Queries")[0]
    commands = ("decision.json", "make demo")
    return [found for found in re.findall(r"`([^`]+)`", six) if found not in commands]


@pytest.fixture(name="shown", scope="module")
def _shown():
    content = PAGE.read_bytes() if PAGE.exists() else b""
    if f'per-source-eval, page template {TEMPLATE_VERSION}"'.encode() not in content:
        why = "THE DEMO WAS NOT RUN, or by another release: `make demo` writes the page that docs/results-page.md reads"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    tree = html.fromstring(content)
    for hidden in tree.xpath("//style | //script"):
        hidden.drop_tree()
    return plain(tree.text_content())


def test_the_walk_asks_six_questions_and_quotes_figures():
    assert len(quoted()) > 12


@pytest.mark.parametrize("said", quoted())
def test_what_the_walk_quotes_stands_on_the_demos_page(shown, said):
    assert plain(said) in shown
