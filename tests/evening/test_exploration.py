"""What a contributor relies on: an exploration shows the code as it is now, and computes only what it must."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chunkers import registry
from runner.base.canonical import slug
from runner.embed import chunk_corpus as stored_chunks
from runner.embed.backends import LocalBackend
from runner.evening.exploration import Exploration
from runner.retrieve import make_runs as cell_runs
from tests.support.small_set import SmallEncoder, make_version

BASELINE = "minilm-l6-v2 x fixed_token_512_50"


@pytest.fixture(name="version")
def _version(decided_evening, tmp_path):
    """A decided version in a fresh checkout: its archive is there, its cache is not."""
    version = make_version(tmp_path)
    shutil.copytree(make_version(decided_evening).folder.parent, version.folder.parent)
    return version


class Counted:
    """Encoders that say which of them was asked to embed how many texts."""

    def __init__(self):
        self.texts = {}

    def __call__(self, name):
        counted = self.texts

        class Counting(SmallEncoder):
            def encode(self, texts, side):
                counted[name] = counted.get(name, 0) + len(texts)
                return super().encode(texts, side)

        return Counting(name)


def explore(version, *cells, encoders):
    answer = Exploration(version, cells=cells, backend=LocalBackend(encoders)).run()
    results = Path(answer.rpartition(": ")[2]).with_name("results.json")
    return {row["cell"]: row for row in json.loads(results.read_text())["cells"]}


def test_sparse_cells_embed_nothing_where_the_record_holds_the_baseline(version):
    encoders = Counted()
    rows = explore(version, " bm25-okapi x recursive_v1", "bm25-okapi x recursive_v1 ", encoders=encoders)
    assert len(list(version.work.glob("explorations/*"))) == 1
    assert set(rows) == {"bm25-okapi x recursive_v1", BASELINE}
    assert encoders.texts == {}
    assert not (version.cache / "vectors").exists()
    assert not list(version.work.glob("explorations/*/runs/aa.tsv.bz2"))


def test_a_dense_cell_embeds_with_its_own_encoder_alone_and_makes_no_a_a_run(version):
    encoders = Counted()
    explore(version, "minilm-static-384 x recursive_v1", encoders=encoders)
    assert set(encoders.texts) == {"minilm-static-384"}
    made = sorted(path.name for path in version.work.glob("explorations/*/runs/*") if ".chunks." not in path.name)
    assert made == ["minilm-l6-v2-x-fixed_token_512_50.tsv.bz2", "minilm-static-384-x-recursive_v1.tsv.bz2"]
    keys = [json.loads(path.read_text())["inputs"] for path in version.cache.glob("vectors/*/manifest.json")]
    assert {key["order"] for key in keys} == {"forward"}
    before = dict(encoders.texts)
    explore(version, "minilm-static-384 x recursive_v1", encoders=encoders)
    assert encoders.texts == before, "the second time everything comes from the cache"


def test_what_production_stores_is_scored_from_vectors_that_are_embedded_once(version):
    encoder, chunker = "minilm-static-384", "recursive_v1"
    full, *stored = (f"{encoder}{kind} x {chunker}" for kind in ("", "@24", "@int8", "@bit"))
    rows = explore(version, full, *stored, encoders=Counted())
    assert set(rows) == {BASELINE, full, *stored}
    keys = [json.loads(path.read_text())["inputs"] for path in version.cache.glob("vectors/*/manifest.json")]
    assert sorted(key["side"] for key in keys) == ["document", "query"]
    (folder,) = version.work.glob("explorations/*")
    files = {facts["cell"]: facts for facts in (json.loads(path.read_text()) for path in folder.glob("cells/*.json"))}
    n = files[full]["chunks"]["count"]
    assert [files[cell]["index_bytes"] for cell in (full, *stored)] == [n * 192, n * 96, n * 48, n * 198]
    assert len({files[cell]["method"] for cell in (full, *stored)}) == 4
    runs = [(folder / "runs" / f"{slug(cell)}.tsv.bz2").read_bytes() for cell in (full, stored[2])]
    assert runs[0] == runs[1], "with fewer chunks than candidates bits lose nothing"


@pytest.mark.parametrize("cells", [(BASELINE,), (f"{BASELINE.replace(' x', '@bit x')}",)])
def test_without_a_challenger_there_is_a_page_and_nothing_that_turns_a_choice(version, cells):
    assert set(explore(version, *cells, encoders=Counted())) == {BASELINE, *cells}
    (folder,) = version.work.glob("explorations/*")
    assert "turnings" not in json.loads((folder / "results.json").read_text())
    assert (folder / "results.html").exists()


def test_a_chunker_changed_under_its_name_shows_its_new_scores(version, monkeypatch):
    cell = "bm25 x recursive_v1"
    first = explore(version, cell, encoders=Counted())

    def first_third(document):
        chunks = registry.chunker("whole_doc")(document)
        return [replace(c, span=replace(c.span, end=c.span.start + len(document.text) // 3)) for c in chunks]

    # The registry is where a run finds a chunker; the digest is of the files that a contributor edits.
    monkeypatch.setitem(registry.CHUNKERS, "recursive_v1", registry.Row(first_third, 512))
    for module in (cell_runs, stored_chunks):
        monkeypatch.setattr(module, "chunkers_sha256", lambda chunker: "0" * 64)
    second = explore(version, cell, encoders=Counted())
    assert second[cell]["scores"] != first[cell]["scores"]
    assert second[cell]["provenance"]["chunks"] != first[cell]["provenance"]["chunks"]
    own = [made[BASELINE] for made in (first, second)]
    assert own[0] == own[1], "what lies in the record is compared with, not made again"


def test_the_digest_of_the_chunkers_moves_with_any_of_their_files(tmp_path, monkeypatch):
    folder = tmp_path / "chunkers"
    shutil.copytree(Path(registry.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(registry, "__file__", str(folder / "registry.py"))
    digests = {stored_chunks._own_sha256.__wrapped__()}
    for path in sorted(folder.glob("*.py")):
        path.write_text(path.read_text() + "\n# a change\n")
        digests.add(stored_chunks._own_sha256.__wrapped__())
    assert len(digests) == 1 + len(list(folder.glob("*.py")))
