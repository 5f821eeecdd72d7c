"""A decision carried out, end to end over the small set: what `post-bulk` finds of it, and the command's exit codes."""

import shutil

import pytest

from runner.base.canonical import json_line, parse_json
from runner.base.errors import InputError
from runner.commands import main as cli
from runner.embed.backends import LocalBackend
from runner.evening.embed import check_index, embed_source
from runner.evening.post_bulk import post_bulk
from runner.substrate.index import Fingerprint
from tests.support.small_set import SmallEncoder, fake_encoders, make_version, write_plans
from tests.support.substrate_builder import edit, writing_connection

SUM = "sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1"
HERE = LocalBackend(fake_encoders)


def test_what_was_embedded_has_no_fault_after_bulk(decided, tmp_path):
    for to in (tmp_path / "index.db", tmp_path / "index"):
        assert f"holds {SUM}: 16 documents written with " in embed_source(decided, tmp_path / "corpus", to, HERE)
        assert "0 documents written" in embed_source(decided, tmp_path / "corpus", to, HERE)
        assert check_index(decided, to, HERE)
    assert "No fault was found" in post_bulk(decided, tmp_path / "index.db", encoders=fake_encoders)


def test_what_changed_at_the_source_is_replaced_marked_or_removed(decided, tmp_path, monkeypatch):
    corpus, to = tmp_path / "corpus", tmp_path / "index.db"
    embed_source(decided, corpus, to, HERE)
    first, second, *_ = sorted(corpus.glob("*.xml"))
    first.write_text(first.read_text().replace("Part 1 on", "Chapter 1 on"))
    kept = second.read_bytes()
    second.unlink()
    said = embed_source(decided, corpus, to, HERE)
    assert ": 1 documents written with " in said
    assert said.endswith(", 14 left alone, 1 marked as vanished")
    gone = "SELECT document_id FROM demo_documents WHERE vanished"
    assert list(writing_connection(to).execute(gone)) == [(second.stem,)]
    (corpus / "BILLS-117hr9ih.xml").write_text("<bill")
    monkeypatch.setattr("samplers.corpus.parse.QUARANTINE_LIMIT", 1.0)
    with pytest.raises(InputError, match=r"--prune: 1 files could not be read, first BILLS-117hr9ih\.xml"):
        embed_source(decided, corpus, to, HERE, prune=True)
    (corpus / "BILLS-117hr9ih.xml").unlink()
    second.write_bytes(kept)
    assert embed_source(decided, corpus, to, HERE).endswith("16 left alone, 0 marked as vanished")  # as it was
    assert not list(writing_connection(to).execute(gone))
    second.unlink()
    assert "15 left alone, 1 removed" in embed_source(decided, corpus, to, HERE, prune=True)
    assert not list(writing_connection(to).execute(f"SELECT 1 FROM demo_chunks WHERE document_id = '{second.stem}'"))


def test_without_a_locked_decision_or_with_a_catalog_that_moved_on_nothing_is_written(decided, tmp_path):
    undecided = make_version(tmp_path / "undecided")
    write_plans(undecided)
    with pytest.raises(InputError, match="not decided and locked yet"):
        embed_source(undecided, tmp_path / "corpus", tmp_path / "index.db", HERE)

    def moved(name):
        encoder = SmallEncoder(name)
        encoder.spec = encoder.spec.model_copy(update={"revision": "f" * 40})
        return encoder

    with pytest.raises(InputError, match=r"is catalogued at revision f+, and was decided for at "):
        embed_source(decided, tmp_path / "corpus", tmp_path / "index.db", LocalBackend(moved))
    assert not (tmp_path / "index.db").exists()


@pytest.mark.model
def test_the_command_ends_with_its_exit_codes(decided, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PER_SOURCE_EVAL_CACHE", str(tmp_path / ".cache"))
    where, to = f"--eval-set-path={decided.folder.parent}", f"--to={tmp_path / 'index.db'}"
    corpus = f"--corpus-path={tmp_path / 'corpus'}"
    said = []
    for words, code in (
        ([to], 2),
        ([to, corpus, "--check"], 2),
        ([to, "--check"], 2),
        ([to, corpus], 0),
        ([to, corpus, "--prune"], 0),
        ([to, "--check"], 0),
    ):
        assert cli.main(["embed", "demo", where, *words]) == code, capsys.readouterr().err
        said.append(capsys.readouterr())
    assert "the encoder here is the same" in said[-1].out
    # Each part of the fingerprint that a file can have otherwise.
    key = "fingerprint of demo"
    connection = writing_connection(tmp_path / "index.db")
    ((value,),) = connection.execute("SELECT value FROM substrate_meta WHERE key = ?", (key,))
    made = Fingerprint.model_validate(parse_json(value))
    turned = [[-number for number in row] for row in made.probe]
    for field, other in (("chunkers_sha256", "0" * 64), ("decision_sha256", "1" * 64), ("probe", turned)):
        text = json_line(made.model_copy(update={field: other}).model_dump())
        edit(tmp_path / "index.db", "UPDATE substrate_meta SET value = ? WHERE key = ?", (text, key))
        assert cli.main(["embed", "demo", where, to, "--check"]) == 4
        assert "was made otherwise" in capsys.readouterr().err
    shutil.rmtree(tmp_path / ".cache")
