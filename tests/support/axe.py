"""axe-core, the accessibility engine, inside a page of a test: its script comes with a package, no network is asked."""

from functools import cache
from importlib.resources import files
from typing import Any

WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
BEST_PRACTICE = ("best-practice",)

_RUN = """([tags, only]) => axe.run(document, {
  runOnly: only.length ? {type: "rule", values: only} : {type: "tag", values: tags},
  resultTypes: ["violations"],
})"""


@cache
def _script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def version(page: Any) -> str:
    """The engine's version, "4.12.1"."""
    _load(page)
    return str(page.evaluate("axe.version"))


def violations(page: Any, tags: tuple[str, ...] = WCAG, *, only: tuple[str, ...] = ()) -> list[str]:
    """One text a broken rule and place: impact, rule, element, what is wrong. None is left out for being minor.

    `only` names rules in place of the tags: what a theme or a width cannot change need not be looked at again. The
    engine is put into the page from outside, which neither its policy nor Trusted Types forbid.
    """
    _load(page)
    found = page.evaluate(_RUN, [list(tags), list(only)])
    return [
        f"{rule['impact']}: {rule['id']} at {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def grave(page: Any, tags: tuple[str, ...] = WCAG) -> list[str]:
    """The violations that are serious or critical."""
    return [text for text in violations(page, tags) if text.startswith(("serious", "critical"))]


def _load(page: Any) -> None:
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_script())
