"""Entry points of other distributions: found late, and refused if they are broken or two have one name."""

import importlib.metadata
import shutil
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from chunkers import registry
from chunkers.contract import chunk_fault
from chunkers.registry import chunker, limit_of
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.base.plug_ins import plug_in
from runner.base.records import Document, parse_cell
from runner.embed.backends import LocalBackend
from runner.embed.chunk_corpus import chunkers_sha256
from runner.embed.local_encoder import encoder_for
from runner.embed.plan_backend import PlanBackend
from runner.eval_set.plan import check_cell
from samplers.registry import source_format

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
SMALL = """
from runner.embed.encoder import PlugInEncoder
from runner.eval_set.catalog import EncoderSpec
from tests.support.small_set import SmallEncoder

_MADE = SmallEncoder("minilm-l6-v2")

class Small(PlugInEncoder):
    row = EncoderSpec(name="small-v1", model="example/small", dim=48, max_tokens=120)

    def token_counts(self, texts, side):
        return _MADE.token_counts(texts, side)

    def encode(self, texts, side):
        return _MADE.encode(texts, side)
"""
SMALL_ENTRY = {"encoders:small-v1": "pse_small:Small"}
EXAMPLE = CHECKOUT / "examples" / "chunkers"
DOCUMENT = Document("d", "one two", "Title", "all", "d", "")


def test_a_chunker_of_another_distribution_is_one_by_its_name(site):
    site.install("pse_words", WORDS, ENTRY)
    chunks = chunker("words_v1")(DOCUMENT)
    assert [(chunk.span.start, chunk.span.end, chunk.context) for chunk in chunks] == [(0, 3, "Title"), (4, 7, "Title")]
    assert {chunk.context for chunk in chunker("words_v1-bare")(DOCUMENT)} == {""}
    assert limit_of("words_v1") == limit_of("words_v1-bare") == 40


def test_nothing_is_looked_for_or_imported_while_names_are_built_in(site, monkeypatch):
    site.install("pse_words", "raise SystemExit(0)", ENTRY)
    assert plug_in("chunkers", "words_v1").origin == "pse_words 0.1"  # looked for, not imported
    site.forget()
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    assert chunker("recursive_256_v1-bare")
    with pytest.raises(TypeError):
        chunker("words_v1")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("raise SystemExit(0)", "SystemExit"),
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


def test_a_name_is_taken_once_and_what_is_built_in_stays(site):
    site.install("pse_words", WORDS, ENTRY)
    site.install("pse_others", WORDS, {"chunkers:words_v1": "pse_others:WORDS"})
    with pytest.raises(InputError, match=r"pse_words 0\.1"):
        chunker("words_v1")
    site.install("pse_others", WORDS, {"chunkers:recursive_v1": "pse_others:WORDS"})
    assert chunker("recursive_v1") is registry.CHUNKERS["recursive_v1"].cut


def test_the_digest_of_chunks_moves_with_the_module_and_its_version(site):
    site.install("pse_words", WORDS, ENTRY)
    digests = {chunkers_sha256("words_v1"), chunkers_sha256("recursive_v1")}
    site.install("pse_words", WORDS + "# more\n", ENTRY)
    digests.add(chunkers_sha256("words_v1"))
    site.install("pse_words", WORDS, ENTRY, version="0.2")
    assert len({*digests, chunkers_sha256("words_v1")}) == 4


def test_an_encoder_runs_here_or_not_at_all(site, tmp_path):
    site.install("pse_small", SMALL, SMALL_ENTRY)
    check_cell(parse_cell("small-v1@24 x whole_doc"))
    with pytest.raises(InputError, match="48 dimensions"):
        check_cell(parse_cell("small-v1@48 x whole_doc"))
    encoder = encoder_for("small-v1")
    assert encoder.identity()["revision"] == encoder.spec.revision
    assert encoder.spec.revision.startswith("pse_small 0.1 sha256:")
    assert encoder.encode(["one"], "query").shape == (1, 48)
    assert LocalBackend().located(encoder.spec)
    elsewhere = SimpleNamespace(name="modal", concurrent=True, rented=None, encoder=encoder_for)
    with pytest.raises(InputError, match="small-v1"):
        PlanBackend(elsewhere, dict, tmp_path, 1.0).encoder("small-v1")


@pytest.mark.parametrize(
    ("was", "becomes"), [('"small-v1"', '"small-v2"'), ("row =", "rows ="), ("(PlugInEncoder)", "")]
)
def test_what_is_no_encoder_of_that_name_is_an_error_of_its_distribution(site, was, becomes):
    site.install("pse_small", SMALL.replace(was, becomes), SMALL_ENTRY)
    with pytest.raises(InputError, match=r"small-v1 of pse_small 0\.1"):
        encoder_for("small-v1")


def test_the_examples_lines_carry_their_headings(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "example_chunkers", raising=False)
    lines_with_headings = importlib.import_module("example_chunkers").lines_with_headings
    monkeypatch.delitem(sys.modules, "example_chunkers")
    for path in sorted((CHECKOUT / "eval-sets" / "demo" / "corpus").rglob("*.xml"))[:9]:
        for document in source_format("bills").read(path.read_bytes(), path.name, frozenset()).documents:
            chunks = lines_with_headings(document)
            assert chunk_fault(document, chunks, 0) == ""
            assert any(" > " in chunk.context for chunk in chunks)


@pytest.mark.slow
def test_the_example_is_installed_by_pip(site, tmp_path):
    if not (find_spec("pip") and find_spec("setuptools")):
        pytest.skip("the example is installed by pip with setuptools, and one of them is not here")
    source = shutil.copytree(EXAMPLE, tmp_path / "source")
    quiet = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(site.folder))
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, str(source)], check=True)
    site.modules.add("example_chunkers")
    site.forget()
    assert [chunk.span.end for chunk in chunker("paragraphs_v1")(Document("d", "a\n\nb", "", "all", "d", ""))] == [1, 4]
