"""Every example of the documents and docstrings runs, and prints what it says."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from runner.base.places import CHECKOUT

PROMPT = re.compile(r"^\s*>>> ", re.MULTILINE)
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIBRARY = CHECKOUT / "docs" / "tools.md"


def with_examples(*patterns: str) -> list[Path]:
    paths = sorted(path for pattern in patterns for path in CHECKOUT.glob(pattern))
    return [path for path in paths if PROMPT.search(path.read_text(encoding="utf-8"))]


MODULES = [
    path.relative_to(CHECKOUT).with_suffix("").as_posix().replace("/", ".")
    for path in with_examples("runner/**/*.py", "chunkers/*.py", "samplers/*.py")
]
DOCUMENTS = with_examples("README.md", "docs/*.md", "eval-sets/README.md")


def examples(document: Path) -> doctest.DocTest:
    """The examples of a document as one test, each where it stands: what is not Python is blank lines."""
    text = document.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    kept = ["\n"] * len(lines)
    for block in FENCED.finditer(text):
        first = text.count("\n", 0, block.start(1))
        for number in range(first, first + block[1].count("\n")):
            kept[number] = lines[number]
    return doctest.DocTestParser().get_doctest("".join(kept), {}, document.name, str(document), 0)


def test_the_public_library_has_examples() -> None:
    assert {
        "runner.gate.single_gold",
        "runner.score.sign_flip",
        "runner.tools.tripwire",
    } <= set(MODULES)
    assert LIBRARY in DOCUMENTS


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_print_what_they_say(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_in_documents_print_what_they_say(document, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    test = examples(document)
    assert test.examples
    failed, _ = doctest.DocTestRunner().run(test)
    assert failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_example_stands_outside_of_a_python_block(document) -> None:
    text = document.read_text(encoding="utf-8")
    assert len(PROMPT.findall(FENCED.sub("", text))) == 0


def test_a_retriever_is_validated_in_at_most_20_lines() -> None:
    text = LIBRARY.read_text(encoding="utf-8")
    block = FENCED.search(text, text.index("## Validate a retriever"))
    assert block is not None
    source = [line for line in block[1].splitlines() if re.match(r">>>|\.\.\.", line)]
    assert 0 < len(source) <= 20
