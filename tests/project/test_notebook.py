"""docs/notebook.ipynb runs top to bottom, and shows what is stored in it."""

import json
import re
import time
import tomllib

import pytest

from runner.base.places import CACHE_VARIABLE, CHECKOUT
from tests.support.notebook import as_text, executed

PATH = CHECKOUT / "docs" / "notebook.ipynb"
TEXT = PATH.read_text(encoding="utf-8")
NOTEBOOK = json.loads(TEXT)
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def shown(cell: dict) -> dict[str, str]:
    return {kind: "".join(text) for output in cell["outputs"] for kind, text in output["data"].items()}


def test_the_notebook_installs_from_the_checkout_with_extras_that_there_are() -> None:
    extras = set(re.search(r"`pip install '\.\[([a-z,]+)\]'` in a checkout", TEXT)[1].split(","))
    known = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert extras <= known.keys()


def test_the_stored_notebook_opens_anywhere_and_shows_verdict_table_and_plot() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert as_text(NOTEBOOK) == TEXT
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    assert {cell["cell_type"] for cell in NOTEBOOK["cells"]} == {"code", "markdown"}
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    outputs = {cell["id"]: shown(cell) for cell in CODE}
    assert "<table" in outputs["table"]["text/html"]
    assert outputs["plot"]["image/svg+xml"].startswith("<svg")
    assert "bm25 x whole_doc" in outputs["run"]["text/plain"]
    assert str(CHECKOUT) not in TEXT


@pytest.mark.slow
@pytest.mark.model
def test_the_notebook_runs_top_to_bottom_in_two_minutes_and_shows_what_is_stored(tmp_path, monkeypatch) -> None:
    """By processor time, since the wall clock is other people's too; `tests.support.notebook` stores outputs anew."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    before = time.process_time()
    made = executed(NOTEBOOK)
    assert time.process_time() - before < 120
    for cell, now in zip(CODE, [cell for cell in made["cells"] if cell["cell_type"] == "code"], strict=True):
        assert shown(now) == shown(cell), cell["id"]
