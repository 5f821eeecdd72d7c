"""Plug-ins of all four groups where plans, evenings and pages meet them; the example package, installed by pip."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from chunkers.contract import chunk_fault
from chunkers.registry import CHUNKERS, chunker
from runner.base.canonical import json_bytes
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.base.plug_ins import plug_in
from runner.base.records import Document, parse_cell
from runner.embed.backends import LocalBackend
from runner.embed.cost.ledger import SPEND, Ledger
from runner.embed.local_encoder import encoder_for
from runner.embed.plan_backend import PlanBackend
from runner.eval_set import catalog
from runner.eval_set.catalog import SOURCES
from runner.eval_set.corpus import sample_of
from runner.eval_set.plan import check_cell, default_plan_text, load_plan, plan_problems, read_plan
from runner.eval_set.plug_in_pins import check_pins, parts_of
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Sample
from runner.eval_set.version import load_cell_file
from runner.evening.exploration import Exploration
from runner.evening.preflight import Preflight
from runner.judge.models.api import model_price, open_model
from runner.judge.models.prices import Price
from runner.judge.models.requests import Ask
from runner.tools.doctor.parts import plug_ins_are_usable
from samplers.registry import source_format
from tests.base.test_plug_ins import ENTRY, WORDS
from tests.support.small_set import fake_encoders, make_version

pytest_plugins = ["tests.support.installed"]

EXAMPLE = CHECKOUT / "examples" / "chunkers"
CELL = "bm25 x words_v1"
BASELINE = "minilm-l6-v2 x fixed_token_512_50"

SMALL = """
from runner.embed.encoder import PlugInEncoder
from runner.eval_set.catalog import EncoderSpec
from tests.support.small_set import SmallEncoder

ROW = EncoderSpec("small-v1", "example/small", "", dim=48, max_tokens=120, made_by="pse_small:Small")
_MADE = SmallEncoder("minilm-l6-v2")

class Small(PlugInEncoder):
    def token_counts(self, texts, side):
        return _MADE.token_counts(texts, side)

    def encode(self, texts, side):
        return _MADE.encode(texts, side)
"""

RELEASES = """
from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.source import SourceSpec, query_kinds
from samplers.source_format import FileContent, SourceFormat

def read(data, name, options):
    first, _, text = data.decode().partition("\\n")
    if not first.startswith("PRESS RELEASE "):
        raise DocumentError(name, "it is no press release")
    number = first.removeprefix("PRESS RELEASE ")
    return FileContent((Document(f"PR-{number}", text, f"Release {number}", "all", f"PR-{number}", ""),))

FORMAT = SourceFormat(read, (".txt",))
ROW = SourceSpec(
    name="press_releases",
    structural_chunker="recursive_v1",
    format="pse_releases",
    feeds="the office mails them",
    queries=query_kinds(topic=(12, "a subject", "ferries"), amount=(8, "a size", "the size of berth 99")),
)
"""

PARROT = """
from runner.judge.models.client import JudgeClient
from runner.judge.models.prices import Price
from runner.judge.models.requests import Reply

class Way:
    def patiently(self, work, stopped, url):
        return work()
    def close(self):
        pass

class Parrot(JudgeClient):
    price = Price(2.0, 4.0)
    def connected(self):
        return Way(), "the perch"
    def send(self, ask):
        return {"text": ask.user}
    def read(self, ask, answer):
        return Reply(ask.key, answer["text"], self.model)
"""


def pin_of(group, name):
    found = plug_in(group, name, ())
    assert found is not None
    return found.pin


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(default_plan_text(SOURCES["demo"], rehearsal=False), encoding="utf-8")
    return path


def problems(path, *, rehearsal=False, **fields):
    plan = yaml.safe_load(path.read_text(encoding="utf-8")) | fields
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    return plan_problems(read_plan(path), path, SOURCES["demo"], 1, rehearsal=rehearsal)


def test_a_production_plan_pins_a_chunker_by_digest_and_loads_without_it(site, path):
    cells = [*yaml.safe_load(path.read_text(encoding="utf-8"))["cells"], CELL, f"{CELL}-bare"]
    (unknown, _) = problems(path, cells=cells)
    site.install("pse_words", WORDS, ENTRY)
    assert not problems(path, rehearsal=True)
    pin = pin_of("chunkers", "words_v1")
    (unpinned,) = problems(path)
    assert json.dumps(pin) in unpinned
    assert unknown != unpinned
    assert not problems(path, plug_ins={"words_v1": pin})
    assert len(problems(path, plug_ins={"words_v1": pin, "word_v1": pin})) == 1
    with pytest.raises(InputError, match=r"plug_ins\.words_v1"):
        problems(path, plug_ins={"words_v1": pin.replace("sha256:", "editable sha256:")})
    site.uninstall("pse_words")
    assert not problems(path, plug_ins={"words_v1": pin})


def test_a_frozen_plan_without_plug_ins_has_no_word_of_them(path):
    assert "plug_ins" not in read_plan(path).model_dump()


def test_cells_on_record_keep_their_bytes():
    files = sorted((CHECKOUT / "eval-sets").glob("*/v*/**/cells/*.json"))
    assert files
    assert all(json_bytes(load_cell_file(path).model_dump()) == path.read_bytes() for path in files)


def test_what_is_installed_is_held_to_the_pin_before_anything_is_made(site, path):
    parts = parts_of([parse_cell(CELL)])
    pins = {"words_v1": "pse_words 0.1 sha256:" + "0" * 64}
    check = SimpleNamespace(judge=None)
    plan = read_plan(path).model_copy(update={"plug_ins": pins})
    version = make_version(path.parent)

    def asked():
        ahead = Preflight(version, plan, LocalBackend(fake_encoders), check, [CELL])
        return next(each for each in ahead.checks() if each.name == "plug-ins").answer()

    for install in (lambda: None, lambda: site.install("pse_words", WORDS, ENTRY)):
        install()
        with pytest.raises(InputError, match="words_v1"):
            asked()
    pins["words_v1"] = pin_of("chunkers", "words_v1")
    assert asked() == check_pins(pins, parts)
    assert parts == [("chunkers", "words_v1")]


@pytest.fixture(name="version")
def _version(decided_evening, tmp_path):
    version = make_version(tmp_path)
    shutil.copytree(make_version(decided_evening).folder.parent, version.folder.parent)
    return version


def explored(version, *cells, pins=None):
    """Rows of results.json by cell, and the page."""
    session = Exploration(version, cells=cells, backend=LocalBackend())
    session.plan = session.plan.model_copy(update={"plug_ins": pins or {}})
    page = Path(session.run().rpartition(": ")[2])
    rows = json.loads(page.with_name("results.json").read_bytes())["cells"]
    return {row["cell"]: row for row in rows}, page.read_text(encoding="utf-8")


def test_an_exploration_names_distribution_and_version_and_makes_anew_what_changed(site, version):
    site.install("pse_words", WORDS, ENTRY)
    site.install("pse_small", SMALL, {"encoders:small-v1": "pse_small:ROW"})
    dense = "small-v1 x words_v1"
    pins = {"words_v1": pin_of("chunkers", "words_v1"), "small-v1": pin_of("encoders", "small-v1")}
    rows, page = explored(version, CELL, dense, pins={"words_v1": pins["words_v1"]})
    assert rows[CELL]["provenance"]["plug_ins"] == {"words_v1": pins["words_v1"]}
    assert rows[dense]["provenance"]["plug_ins"] == pins
    assert rows[dense]["provenance"]["encoder"]["revision"] == pins["small-v1"]
    assert [name for name, row in rows.items() if "plug_ins" not in row["provenance"]] == [
        "minilm-l6-v2 x fixed_token_512_50"
    ]
    assert all(pin in page for pin in pins.values())
    site.install("pse_words", WORDS.replace(r"\S+", r"\S+\s*\S*"), ENTRY)
    with pytest.raises(InputError, match="words_v1"):
        explored(version, CELL, pins=pins)
    again, _ = explored(version, CELL)
    assert again[CELL]["provenance"]["chunks"]["count"] < rows[CELL]["provenance"]["chunks"]["count"]


def test_an_encoder_runs_here_or_not_at_all(site, tmp_path):
    site.install("pse_small", SMALL, {"encoders:small-v1": "pse_small:ROW"})
    check_cell(parse_cell("small-v1@24 x whole_doc"))
    with pytest.raises(InputError, match="48 dimensions"):
        check_cell(parse_cell("small-v1@48 x whole_doc"))
    encoder = encoder_for("small-v1")
    assert encoder.identity()["revision"] == encoder.spec.revision == pin_of("encoders", "small-v1")
    assert LocalBackend().located(encoder.spec)
    elsewhere = SimpleNamespace(name="modal", concurrent=True, rented=None, encoder=encoder_for)
    with pytest.raises(InputError, match="small-v1"):
        PlanBackend(elsewhere, dict, tmp_path, 1.0).encoder("small-v1")
    site.install("pse_small", SMALL.replace('"small-v1"', '"small-v2"'), {"encoders:small-v1": "pse_small:ROW"})
    with pytest.raises(InputError, match=r"pse_small 0\.1"):
        encoder_for("small-v1")


def test_a_reader_is_a_source_by_its_name_and_its_plan_pins_it(site, tmp_path):
    with pytest.raises(InputError):
        catalog.source("press_releases")
    site.install("pse_releases", RELEASES, {"readers:press_releases": "pse_releases:ROW"})
    source = catalog.source("press_releases")
    assert source_format("press_releases").suffixes == (".txt",)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(3):
        (corpus / f"{number}.txt").write_text(f"PRESS RELEASE {number}\nBerth {number} has {number} ferries.\n")
    drawn = sample_of(source, Sample(size=3, seed=1), corpus)
    assert [document.doc_id for document in drawn.documents] == ["PR-0", "PR-1", "PR-2"]
    path = tmp_path / "plan.yaml"
    path.write_text(default_plan_text(source, rehearsal=False), encoding="utf-8")
    plan = load_plan(path, source, 1, rehearsal=False)
    assert plan.plug_ins == {"press_releases": pin_of("readers", "press_releases")}
    unpinned = yaml.safe_load(path.read_text(encoding="utf-8"))
    del unpinned["plug_ins"]
    path.write_text(yaml.safe_dump(unpinned), encoding="utf-8")
    with pytest.raises(InputError, match="press_releases is not pinned"):
        load_plan(path, source, 1, rehearsal=False)
    site.install("pse_releases", RELEASES.replace("FORMAT =", "FORM ="), {"readers:press_releases": "pse_releases:ROW"})
    with pytest.raises(InputError, match=r"pse_releases 0\.1"):
        source_format("press_releases")


def test_a_judges_service_is_asked_and_metered(site, path, tmp_path):
    judges = {"first": {"api": "parrot", "model": "grey"}}
    assert len(problems(path, judges=judges)) == len(problems(path, rehearsal=True)) == 1
    site.install("pse_parrot", PARROT, {"judges:parrot": "pse_parrot:Parrot"})
    assert not problems(path, rehearsal=True)
    assert len(problems(path)) == 1
    assert not problems(path, plug_ins={"parrot": pin_of("judges", "parrot")})
    spec = JudgeSpec(api="parrot", model="grey")
    assert model_price(spec) == Price(2.0, 4.0)
    with open_model(spec, "messages", None, tmp_path, 1.0) as model:
        assert [reply.text for reply in model.replies([Ask("k", "", "hello", {}, 9)])] == ["hello"]
        assert model.meter.usd() > 0
    assert sum(row.usd for row in Ledger(tmp_path / SPEND).rows()) > 0
    site.install("pse_parrot", PARROT.replace("price = ", "cost = "), {"judges:parrot": "pse_parrot:Parrot"})
    with pytest.raises(InputError, match="--judge-price"):
        model_price(spec)


def test_the_doctor_imports_what_is_installed(site):
    site.install("pse_words", WORDS, ENTRY)
    assert plug_ins_are_usable() == f"words_v1: {pin_of('chunkers', 'words_v1')}"
    site.install("pse_small", "import none_such", {"encoders:small-v1": "pse_small:ROW"})
    with pytest.raises(InputError, match=r"pse_small 0\.1"):
        plug_ins_are_usable()


def pip(*arguments):
    """Whether pip did it; its words are shown if the test fails."""
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done.returncode == 0


@pytest.fixture(name="example")
def _example(site, tmp_path):
    """The example package, as pip installs it without an index."""
    if not (find_spec("pip") and find_spec("setuptools")):
        pytest.skip("the example is installed by pip with setuptools, and one of them is not here")
    source = tmp_path / "source"
    shutil.copytree(EXAMPLE, source)
    quiet = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(site.folder))
    assert pip("install", *quiet, str(source))
    site.modules.add("example_chunkers")
    site.forget()


@pytest.mark.slow
def test_the_example_is_installed_explored_and_shown(example, site, version):
    rows, page = explored(version, "bm25 x paragraphs_v1", "bm25 x paragraphs_v1-bare")
    pin = rows["bm25 x paragraphs_v1"]["provenance"]["plug_ins"]["paragraphs_v1"]
    assert pin == pin_of("chunkers", "paragraphs_v1")
    assert pin.startswith("example-chunkers 0.1.0 sha256:")
    assert pin in page
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site.folder), str(CHECKOUT)])}
    code = "from runner.base.plug_ins import plug_ins; print([one.pin for one in plug_ins('chunkers', ())])"
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.count(pin.rpartition(":")[2]) == 3  # one module registers all


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
def test_the_examples_splitter_is_chonkies(example, site):
    if find_spec("chonkie") is None:
        wanted = ("chonkie==1.7.0", "chonkie-core", "tokie", "tqdm")
        if not pip("install", "--no-deps", "--quiet", "--upgrade", "--target", str(site.folder), *wanted):
            pytest.skip("chonkie is not installed, and no package registry answers: its splitter was NOT tested")
        site.forget()
    from chonkie import RecursiveChunker

    text = "\n\n".join(f"Sec. {n}. " + "The keeper shall mend the quay, and paint it. " * 60 for n in range(9))
    document = Document("d", text, "Quay Act", "all", "d", "")
    found = chunker("chonkie_recursive_v1")(document)
    own = RecursiveChunker(tokenizer="character", chunk_size=2048).chunk(text)
    assert [text[chunk.span.start : chunk.span.end] for chunk in found] == [part.text for part in own]
    assert len(found) > 9
    assert "chonkie_recursive_v1" not in CHUNKERS
