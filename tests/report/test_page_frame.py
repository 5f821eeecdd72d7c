import sys
from pathlib import Path

import pytest

from runner.report import page_frame
from runner.report.page_frame import _Compiled, rendered


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    """Where compiled templates are kept, for this test alone."""
    monkeypatch.setattr(page_frame, "cache_from_source", lambda path: str(tmp_path / "kept" / Path(path).name))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    page_frame._environment.cache_clear()
    yield tmp_path / "kept"
    page_frame._environment.cache_clear()


def made():
    page_frame._environment.cache_clear()
    return rendered("_head.html.j2", style="", style_sha256="", script="", script_sha256="")


def test_a_template_is_compiled_once_and_read_after(folder, monkeypatch):
    first = made()
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert kept
    monkeypatch.setattr(page_frame.Environment, "_generate", lambda *_, **__: pytest.fail("compiled again"))
    assert made() == first
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_a_file_that_is_damaged_is_made_again(folder):
    first = made()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    cut = [whole[:length] for length in range(0, len(whole), 7)]
    for damaged in (*cut, b"no byte code", whole[:50] + b"\xff" * 50 + whole[100:]):
        path.write_bytes(damaged)
        assert made() == first
        assert path.read_bytes() == whole


def test_nothing_is_kept_where_python_keeps_nothing_or_cannot(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = made()
    assert not folder.exists()
    folder.write_text("a file in its place")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert made() == first


def test_other_options_have_other_files():
    names = {_Compiled(options).pattern for options in ({"trim_blocks": True}, {"trim_blocks": False})}
    assert len(names) == 2
