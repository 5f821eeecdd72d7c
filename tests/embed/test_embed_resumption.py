"""What an embedding leaves behind for the next attempt, and how much of it memory holds."""

import errno
from contextlib import nullcontext
from functools import partial

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
from runner.retrieve import make_vectors
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


def test_what_an_earlier_run_began_is_no_measurement_of_its_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_chunks, "SHARD_TEXTS", 1)
    version, healthy = begin(tmp_path), tmp_path / "healthy"
    cell = parse_cell(version.plan().baseline)
    wanted = Embedding(cell.encoder, cell.chunker, "forward")

    class Sick(SmallEncoder):
        def encode(self, texts, side):
            if any("burns straw to warm an orchard" in text for text in texts):
                raise RuntimeError("poison")
            return super().encode(texts, side)

    def vectors_of(kind, cache):
        work = CellVectors(
            Store(cache),
            file_sha256(version.corpus_path),
            lambda: corpus_documents(version, None),
            load_queries(version.queries_path),
            LocalBackend(kind),
        )
        with pytest.raises(BackendError, match="poison") if kind is Sick else nullcontext():
            work.vectors(wanted)
        return work

    assert list(vectors_of(Sick, version.cache).failed) == [cell.encoder]
    assert not vectors_of(SmallEncoder, version.cache).seconds
    assert list(vectors_of(SmallEncoder, healthy).seconds) == [wanted]


def test_vectors_of_an_earlier_run_say_nothing_of_this_one_s_pace(tmp_path, monkeypatch):
    version, clock, foreseen = begin(tmp_path), [0.0], []
    monkeypatch.setattr(make_vectors.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(make_vectors, "duration", lambda seconds: foreseen.append(seconds) or "")
    wanted = [
        Embedding("minilm-l6-v2", name, "forward") for name in ("whole_doc", "recursive_v1", "section_aware_bills_v1")
    ]

    class Slow(SmallEncoder):
        def encode(self, texts, side):
            clock[0] += sum(map(len, texts)) if side == "document" else 0
            return super().encode(texts, side)

    def embedded(embeddings):
        read = partial(corpus_documents, version, None)
        queries = load_queries(version.queries_path)
        sha256 = file_sha256(version.corpus_path)
        work = CellVectors(Store(version.cache), sha256, read, queries, LocalBackend(Slow))
        work.embed(embeddings)
        return work

    embedded(wanted[:1])
    work = embedded(wanted)
    # Nothing is said while only what was kept is done; then the rest, at the pace of what was embedded.
    assert len(foreseen) == 1
    sizes = [sum(map(len, work.readings(each.chunker))) for each in wanted[1:]]
    assert foreseen[0] == pytest.approx(sizes[1], rel=0.1)
