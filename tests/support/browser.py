"""Headless Chromium for tests of pages; `pytest_plugins = ["tests.support.browser"]` brings the fixtures."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "PSE_CHROMIUM"
"""Names the browser where it is on no path."""

_NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120_000
"""Milliseconds; on a busy machine a browser that has just begun takes ten seconds to open its first page."""

_QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


class Opened:
    """A page in a context of its own, with what it tried: requests, dialogs, downloads, complaints."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dialog)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.type)
        dialog.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def text(self, selector: str) -> str:
        """What a reader sees of an element."""
        return str(self.page.inner_text(selector))

    def press(self, *keys: str) -> None:
        """Keys one after another, wherever the focus is."""
        for key in keys:
            self.page.keyboard.press(key)


Opener = Callable[..., Opened]


def executable() -> str | None:
    """The path of a Chromium, None where there is none."""
    return os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, _NAMES)), None)


def required() -> str:
    """The path of a Chromium; without one the test fails in CI and is skipped elsewhere."""
    path = executable()
    if path is None:
        message = f"NO CHROMIUM: install one or name it with {VARIABLE}; the tests of pages did not run"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


# Not for the whole session: while playwright's loop runs in this thread, no other test can run one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for a module's tests."""
    path = required()
    from playwright.sync_api import sync_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=[*_QUIET, *as_root], timeout=PATIENCE)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opener]:
    """Opens a file in a context of its own, made with `options`, or in that of `beside`.

    `before` is a script that runs ahead of the page's own, `part` what stands after # in the address.
    """
    contexts = []

    def open_file(
        path: Path, part: str = "", *, before: str = "", beside: Opened | None = None, **options: Any
    ) -> Opened:
        context = beside.page.context if beside else browser.new_context(offline=True, **options)
        if not beside:
            contexts.append(context)
            context.set_default_timeout(PATIENCE)
        page = context.new_page()
        if before:
            page.add_init_script(before)
        found = Opened(page)
        page.goto(path.as_uri() + f"#{part}" * bool(part))
        return found

    yield open_file
    for context in contexts:
        context.close()
