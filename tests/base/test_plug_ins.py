"""Entry points of other distributions: found late, digested whole, refused if they are broken or take a taken name."""

import importlib.metadata
import re
import shutil

import pytest

from chunkers import registry
from chunkers.registry import BUILT_IN, chunker, limit_of
from runner.base.errors import InputError
from runner.base.plug_ins import PIN, plug_in, plug_ins
from runner.base.records import Document

pytest_plugins = ["tests.support.installed"]

WORDS = """
import re
from chunkers.contract import from_spans
from chunkers.registry import Row

def words(document):
    return from_spans(document, (found.span() for found in re.finditer(r"\\S+", document.text)))

WORDS = Row(words, limit=40)
"""
ENTRY = {"chunkers:words_v1": "pse_words:WORDS"}
DOCUMENT = Document("d", "one two", "Title", "all", "d", "")


def found():
    one = plug_in("chunkers", "words_v1", BUILT_IN)
    assert one is not None
    return one


def test_a_chunker_of_another_distribution_is_one_by_its_name(site):
    site.install("pse_words", WORDS, ENTRY)
    chunks = chunker("words_v1")(DOCUMENT)
    assert [(chunk.span.start, chunk.span.end, chunk.context) for chunk in chunks] == [(0, 3, "Title"), (4, 7, "Title")]
    assert {chunk.context for chunk in chunker("words_v1-bare")(DOCUMENT)} == {""}
    assert limit_of("words_v1") == limit_of("words_v1-bare") == 40
    with pytest.raises(InputError, match="did you mean 'words_v1'"):
        chunker("word_v1")


def test_nothing_is_looked_for_or_imported_while_names_are_built_in(site, monkeypatch):
    site.install("pse_words", "raise SystemExit(0)", ENTRY)
    assert [one.origin for one in plug_ins("chunkers", BUILT_IN)] == ["pse_words 0.1"]  # looked for, not imported
    site.forget()
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    assert chunker("recursive_256_v1-bare")
    with pytest.raises(TypeError):
        chunker("words_v1")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("\nimport no_such_module_at_all", "pse_words.py:2"),
        ("raise SystemExit(0)", "pse_words.py:1"),
        ("\n\n1 / 0", "pse_words.py:3"),
        ("\nsyntax error", "pse_words.py, line 2"),
        ("x = 1", "'WORDS'"),
        ("WORDS = len", "Row of chunkers.registry"),
    ],
)
def test_what_cannot_be_imported_or_is_something_else_is_an_error_of_its_distribution(site, source, said):
    site.install("pse_words", source, ENTRY)
    with pytest.raises(InputError, match=r"words_v1 of pse_words 0\.1 ") as refused:
        chunker("words_v1")
    assert said in str(refused.value)


def test_a_taken_name_is_refused(site):
    site.install("pse_words", WORDS, ENTRY)
    site.install("pse_others", WORDS, {"chunkers:words_v1": "pse_others:WORDS"})
    with pytest.raises(InputError, match=r"pse_words 0\.1"):
        chunker("words_v1")
    site.install("pse_others", WORDS, {"chunkers:recursive_v1": "pse_others:WORDS"})
    with pytest.raises(InputError, match=r"pse_others 0\.1 .*'recursive_v1'"):
        chunker("words_v1")
    assert chunker("recursive_v1") is registry.CHUNKERS["recursive_v1"].cut


def test_a_pin_moves_with_every_byte_that_runs_and_with_what_it_requires_and_with_nothing_else(site, tmp_path):
    site.install("pse_words", WORDS, ENTRY)
    first = found().pin
    assert re.match(PIN, first)
    assert first.startswith("pse_words 0.1 sha256:")
    pins = {first}
    for source, requires in ((WORDS + "\n# more\n", ()), (WORDS, ("numpy>=1", "no-such-thing; extra == 'x'"))):
        site.install("pse_words", source, ENTRY, requires=requires)
        pins.add(found().pin)
    site.install("pse_words", WORDS, ENTRY, requires=("no-such-thing", "per-source-eval"))
    assert found().pin == first
    site.install("pse_words", WORDS, ENTRY, version="0.2")
    pins.add(found().pin)
    assert len(pins) == 4


def test_an_editable_install_has_a_digest_and_no_pin_that_a_plan_takes(site, tmp_path, monkeypatch):
    site.install("pse_words", WORDS, ENTRY)
    elsewhere = tmp_path / "source"
    elsewhere.mkdir()
    shutil.move(site.folder / "pse_words.py", elsewhere / "pse_words.py")
    monkeypatch.syspath_prepend(elsewhere)
    site.forget()
    before = found().pin
    assert before.startswith("pse_words 0.1 editable sha256:")
    assert not re.match(PIN, before)
    (elsewhere / "pse_words.py").write_text(WORDS + "#", encoding="utf-8")
    site.forget()
    assert found().pin != before
