"""What an embedding leaves behind for the next attempt, and how much of it memory holds."""

import errno
import re

import numpy as np
import pytest

from runner.base import store
from runner.base.canonical import file_sha256
from runner.base.errors import BackendError
from runner.base.records import parse_cell
from runner.base.store import Store
from runner.embed import embed_chunks
from runner.embed import vectors as placed_rows
from runner.embed.backends import LocalBackend
from runner.embed.embed_chunks import embed
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.version import load_queries
from runner.evening.evening import Evening
from runner.retrieve.make_vectors import CellVectors, Embedding
from tests.support.fake_encoder import TEXTS, FakeEncoder
from tests.support.small_set import SmallEncoder, begin


def sent(encoder):
    return [text for batch in encoder.encoded for text in batch if text in TEXTS]


def test_an_attempt_that_dies_after_its_last_batch_is_finished_without_sending_anything(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    real = store._manifest

    def die_at_the_vectors(stage, *more):
        if stage == "vectors":
            raise Killed
        return real(stage, *more)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_manifest", die_at_the_vectors)
        with pytest.raises(Killed):
            embed(Store(tmp_path), FakeEncoder(), TEXTS, "document")
    again = FakeEncoder()
    rows = embed(Store(tmp_path), again, TEXTS, "document").rows
    assert sent(again) == []
    assert np.array_equal(rows, embed(Store(tmp_path / "fresh"), FakeEncoder(), TEXTS, "document").rows)


def test_many_rows_of_texts_that_repeat_stay_in_a_file(tmp_path, monkeypatch):
    repeated = [*TEXTS, TEXTS[3], TEXTS[3], TEXTS[0]]
    copied = embed(Store(tmp_path), FakeEncoder(), repeated, "document").rows
    assert not isinstance(copied, np.memmap)
    monkeypatch.setattr(placed_rows, "COPIED_BYTES", 100)
    mapped = embed(Store(tmp_path), FakeEncoder(), repeated, "document").rows
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(mapped, copied)


def test_a_full_disk_is_called_that_and_not_a_failing_encoder(tmp_path, monkeypatch):
    def full(path, _):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(placed_rows, "write_atomic", full)
    with pytest.raises(BackendError, match="The disk is full"):
        embed(Store(tmp_path), FakeEncoder(), TEXTS, "document")


class Sick:
    """Encoders that cannot read a text of one bill, and note what they read."""

    def __init__(self, poison):
        self.read = []
        note, read = poison, self.read

        class Reading(SmallEncoder):
            def encode(self, texts, side):
                if note and any(note in text for text in texts):
                    raise RuntimeError("poison")
                read.extend(texts)
                return super().encode(texts, side)

        self.encoder = Reading

    def __call__(self, name):
        return self.encoder(name)


def test_a_poisoned_text_ends_an_evening_with_its_shard_after_all_others_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_chunks, "SHARD_TEXTS", 1)
    version = begin(tmp_path)
    poison = "burns straw to warm an orchard"
    with pytest.raises(BackendError) as caught:
        Evening(version, tmp_path / "corpus", backend=LocalBackend(Sick(poison))).run()
    assert re.search(r"Shard \d+ fails on \d+ texts, .*: RuntimeError: poison\.", str(caught.value))
    kept, n_texts = map(int, re.search(r"(\d+) of (\d+) texts are embedded and kept", str(caught.value)).groups())
    assert 0 < kept < n_texts
    healed = Sick("")
    work = CellVectors(
        Store(version.cache),
        file_sha256(version.corpus_path),
        lambda: corpus_documents(version, None),
        load_queries(version.queries_path),
        LocalBackend(healed),
    )
    cell = parse_cell(version.plan().baseline)
    work.vectors(Embedding(cell.encoder, cell.chunker, "forward"))
    assert not work.seconds, "what an earlier run embedded took its seconds, and the rest is no measurement"
    chunks = [text for text in healed.read if text in set(work.readings(cell.chunker))]
    assert len(chunks) == n_texts - kept
    assert any(poison in text for text in chunks)
