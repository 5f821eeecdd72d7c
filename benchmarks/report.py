"""The results page at the sizes that it is held to: bytes, seconds, memory, and milliseconds until it answers a key.

    python benchmarks/report.py

Results are invented (tests/support/full_results.py). The peer of rendering is json.dumps of the same results, which
writes the same figures without a page around them; that of opening is an empty page in the same browser. Each size is
rendered in a process of its own, whose peak memory holds the interpreter, the results and the page. A page answers
when the key "j", pressed as soon as the document is there, has taken the focus to the first query; the time runs from
the start of the navigation and ends after the browser was asked, so that it is a few milliseconds too long. Without a
browser that part is left out.
"""

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from measuring import peak_mb, timed
from sizes import sized

from runner.base.canonical import json_bytes
from runner.report.results_page.render import page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # results and browser belong to the tests

from tests.support.browser import executable
from tests.support.full_results import big_results, full_receipt

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPEATS = sized(5, 1)
MOST_SECONDS, MOST_MB, MOST_MS = 1.0, 300, 500


class Size(NamedTuple):
    """What is on a page, and how long it may be."""

    queries: int
    cells: int
    depth: int
    passages: bool
    most_bytes: int

    def __str__(self) -> str:
        texts = "with passages" if self.passages else "without passages"
        return f"{self.queries} queries x {self.cells} cells x depth {self.depth}, {texts}"


SIZES = sized(
    (
        Size(25, 10, 30, passages=False, most_bytes=1_500_000),
        Size(25, 10, 30, passages=True, most_bytes=8_000_000),
        Size(200, 20, 10, passages=False, most_bytes=8_000_000),  # as results.json cuts the lists of so many
    ),
    (Size(4, 3, 5, passages=True, most_bytes=1_500_000),),
)


class Rendered(NamedTuple):
    """How long a page is, and what it took to make it."""

    bytes: int
    first: float
    again: float
    dumped: float
    peak_mb: int


def render(size: Size, path: Path) -> Rendered:
    """The page at `path`, and what it took; the first time templates are compiled, too."""
    found = big_results(size.queries, size.cells, size.depth, passages=size.passages)
    receipt = full_receipt(found)
    written = json_bytes(found.model_dump())
    first, _ = timed(lambda: path.write_bytes(page(written, receipt)))
    again = statistics.median(timed(lambda: page(written, receipt))[0] for _ in range(REPEATS))
    dumped = statistics.median(timed(lambda: json.dumps(found.model_dump()))[0] for _ in range(REPEATS))
    return Rendered(path.stat().st_size, first, again, dumped, peak_mb())


def until_it_answers(browser: "Browser", path: Path, key: str) -> float:
    """Milliseconds from the start of the navigation, the median of several; `key` "" waits for the page alone."""
    found = []
    for _ in range(REPEATS):
        context = browser.new_context(offline=True)
        shown = context.new_page()
        shown.goto(path.as_uri(), wait_until="domcontentloaded")
        if key:
            shown.keyboard.press(key)
            assert shown.evaluate("document.activeElement !== document.body"), f"{key} moved nothing"
        found.append(shown.evaluate("performance.now()"))
        context.close()
    return statistics.median(found)


def open_pages(paths: dict[Size, Path], empty: Path) -> None:
    chromium = executable()
    if chromium is None:
        print("no browser: how fast the pages answer was not measured")
        return
    from playwright.sync_api import sync_playwright

    empty.write_text("<!doctype html><title>empty</title>", encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        bare = until_it_answers(browser, empty, "")
        for size, path in paths.items():
            found = until_it_answers(browser, path, "Tab")
            print(f"{size}: answers a key after {found:.0f} ms, {found / bare:.1f} times an empty page ({bare:.0f} ms)")
        browser.close()
    print(f"asked for: {MOST_MS} ms, of the first size")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder) / f"{number}.html" for number, size in enumerate(SIZES)}
        for size, path in paths.items():
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found = pool.submit(render, size, path).result()
            print(
                f"{size}: {found.bytes:,} bytes (at most {size.most_bytes:,}); {found.first:.2f} s the first time, "
                f"{found.again:.2f} s after, {found.again / found.dumped:.1f} times json.dumps ({found.dumped:.2f} s); "
                f"peak memory {found.peak_mb} MB"
            )
        print(f"asked for: {MOST_SECONDS:g} s and {MOST_MB} MB, of the first two sizes")
        open_pages(paths, Path(folder) / "empty.html")


if __name__ == "__main__":
    main()
