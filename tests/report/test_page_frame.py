import sys
from pathlib import Path

import pytest

from runner.report import templates


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    """Where compiled templates are kept, for this test alone."""
    monkeypatch.setattr(templates, "cache_from_source", lambda path: str(tmp_path / "kept" / Path(path).name))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "kept"


def made():
    return templates.environment(autoescape=True).get_template("_results.css.j2").render()


def test_a_template_is_compiled_once_and_read_after(folder, monkeypatch):
    first = made()
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert kept
    monkeypatch.setattr(templates.Environment, "_generate", lambda *_, **__: pytest.fail("compiled again"))
    assert made() == first
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_nothing_is_kept_where_python_keeps_nothing_or_cannot(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = made()
    assert not list(folder.glob("*"))
    folder.rmdir()
    folder.write_text("a file in its place")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert made() == first


def test_escaped_and_plain_templates_are_kept_apart(folder):
    names = {templates.environment(autoescape=each).bytecode_cache.pattern for each in (True, False)}
    assert len(names) == 2
