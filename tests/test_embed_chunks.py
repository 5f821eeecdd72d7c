import itertools
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.embed_chunks import embed, plan_batches, probed
from runner.errors import BackendError
from runner.eval_set import CHECKOUT
from runner.store import PIECES, Store
from tests.fake_encoder import TEXTS, WORDS, FakeEncoder


@pytest.fixture(name="store")
def _store(tmp_path):
    return Store(tmp_path / ".cache")


def artefact(store):
    (folder,) = [p for p in (store.root / "vectors").iterdir() if p.is_dir()]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_rows_come_in_input_order_unit_and_counted(store):
    encoder = FakeEncoder()
    vectors = embed(store, encoder, TEXTS, "document")
    assert vectors.rows.dtype == np.float32
    assert vectors.rows.shape == (60, 16)
    for index, text in enumerate(TEXTS):
        assert np.allclose(vectors.rows[index], encoder.encode([text], "document")[0], atol=1e-6)
        assert vectors.n_tokens[index] == len(text.split())
        assert vectors.n_lost[index] == max(0, len(text.split()) - 32)


def test_repeated_texts_are_embedded_once_and_share_their_row(store):
    encoder = FakeEncoder()
    repeated = [TEXTS[0], TEXTS[1], TEXTS[0], TEXTS[2], TEXTS[1]]
    vectors = embed(store, encoder, repeated, "document")
    assert np.array_equal(vectors.rows[0], vectors.rows[2])
    assert np.array_equal(vectors.rows[1], vectors.rows[4])
    sent = [text for batch in encoder.encoded for text in batch if text in TEXTS]
    assert sorted(sent) == sorted(TEXTS[:3])


def test_no_texts_give_no_rows(store):
    vectors = embed(store, FakeEncoder(), [], "query")
    assert vectors.rows.shape == (0, 16)
    assert len(vectors.n_tokens) == len(vectors.n_lost) == 0


def test_a_warm_call_encodes_nothing(store):
    cold = embed(store, FakeEncoder(), TEXTS, "document")
    warm_encoder = FakeEncoder()
    warm = embed(store, warm_encoder, TEXTS, "document")
    assert not warm_encoder.encoded
    assert np.array_equal(cold.rows, warm.rows)


def test_input_order_and_repeats_change_no_bit(tmp_path):
    first = embed(Store(tmp_path / "a"), FakeEncoder(), TEXTS, "document")
    shuffled = TEXTS + TEXTS[:7]
    random.Random(1).shuffle(shuffled)
    second = embed(Store(tmp_path / "b"), FakeEncoder(), shuffled, "document")
    at = {text: index for index, text in enumerate(TEXTS)}
    assert np.array_equal(second.rows, first.rows[[at[text] for text in shuffled]])


def test_the_reversed_arm_meets_other_batches_and_the_same_vectors(tmp_path):
    forward, backward = FakeEncoder(), FakeEncoder()
    first = embed(Store(tmp_path), forward, TEXTS, "document")
    second = embed(Store(tmp_path), backward, TEXTS, "document", order="reversed")
    assert np.allclose(first.rows, second.rows, atol=1e-6)
    assert not np.array_equal(first.rows, second.rows)
    batches = [{frozenset(batch) for batch in encoder.encoded} for encoder in (forward, backward)]
    assert len(batches[0] & batches[1]) < len(batches[0]) / 2


def test_sides_are_different_artefacts_when_prompts_differ(store):
    encoder = FakeEncoder(query_prompt="query: ")
    query, document = (embed(store, encoder, TEXTS[:3], side) for side in ("query", "document"))
    assert not np.allclose(query.rows, document.rows, atol=1e-3)
    assert list(query.n_tokens - document.n_tokens) == [1, 1, 1]


def test_progress_counts_up_to_all_texts(store):
    seen = []
    embed(store, FakeEncoder(), TEXTS, "document", progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 60)
    assert seen[-1] == (60, 60)
    assert seen == sorted(seen)


@given(st.lists(st.integers(0, 90), max_size=60), st.integers(1, 200), st.sampled_from(["forward", "reversed"]))
def test_a_plan_holds_every_text_once_within_its_budget(lengths, budget, order):
    digests = [f"{index:03d}" for index in range(len(lengths))]
    batches = plan_batches(np.array(lengths, dtype=np.int64), digests, budget, order)
    assert sorted(itertools.chain.from_iterable(batches)) == list(range(len(lengths)))
    for batch in batches:
        padded = max(max(lengths[index], 1) for index in batch) * len(batch)
        assert len(batch) == 1 or padded <= budget


@given(st.permutations(list(range(12))))
@settings(max_examples=30)
def test_a_plan_does_not_depend_on_the_order_of_its_input(permutation):
    lengths = np.array([3, 3, 3, 9, 9, 1, 1, 1, 7, 7, 2, 2], dtype=np.int64)
    names = [f"{index:02d}" for index in range(12)]
    plain = plan_batches(lengths, names, 18, "forward")
    mixed = plan_batches(lengths[permutation], [names[i] for i in permutation], 18, "forward")
    assert [[names[i] for i in batch] for batch in plain] == [[names[permutation[i]] for i in batch] for batch in mixed]


def _raise(rows):
    raise RuntimeError("out of memory")


def _nan(rows):
    rows = rows.copy()
    rows[0, 3] = np.nan
    return rows


LIES = [
    (lambda rows: rows[:-1], "texts sent, .* vectors received"),
    (lambda rows: np.vstack([rows, rows[:1]]), "texts sent, .* vectors received"),
    (lambda rows: rows[:, :-1], "float32 rows of 16 were catalogued"),
    (lambda rows: rows.astype(np.float64), "float32 rows of 16 were catalogued"),
    (_nan, "not finite"),
    (lambda rows: rows * np.inf, "not finite"),
    (lambda rows: rows * 0, "length 0.0000"),
    (lambda rows: rows * np.float32(1.5), "length 1.5000"),
    (lambda rows: np.repeat(rows[:1], len(rows), axis=0), "one and the same vector"),
    (_raise, "RuntimeError: out of memory"),
    (lambda rows: None, "0 vectors received"),
]


@pytest.mark.parametrize(("lie", "says"), LIES)
def test_a_backend_that_lies_in_the_middle_is_caught_and_finished_batches_are_kept(store, lie, says):
    texts = [f"text {number} {' '.join(WORDS)}" for number in range(40)]
    liar = FakeEncoder(lie=lie, lie_on="text 33 ")
    with pytest.raises(BackendError, match=says) as caught:
        embed(store, liar, texts, "document")
    assert "fake" in str(caught.value)
    assert "batch" in str(caught.value)
    assert "first with sha256" in str(caught.value)
    honest = FakeEncoder()
    embed(store, honest, texts, "document")
    finished = {text for batch in liar.encoded[:-1] for text in batch if text in texts}
    again = {text for batch in honest.encoded for text in batch if text in texts}
    assert finished
    assert not finished & again
    assert finished | again == set(texts)


def test_a_constant_encoder_is_caught_even_in_batches_of_one(store):
    texts = [f"{number} " + " ".join(WORDS * 5) for number in range(9)]
    honest = FakeEncoder()
    constant = honest.encode(["anything"], "document")
    stuck = FakeEncoder(lie=lambda rows: np.repeat(constant, len(rows), axis=0), lie_on=" ".join(WORDS))
    stuck.batch_tokens = 1
    with pytest.raises(BackendError, match="one and the same vector for 9 texts"):
        embed(store, stuck, texts, "document")
    honest.batch_tokens = 1
    assert np.ptp(embed(store, honest, texts, "document").rows) > 0.1


def test_texts_that_differ_only_past_the_limit_or_in_case_may_share_a_vector(store):
    long = " ".join(WORDS * 5)
    same = embed(store, FakeEncoder(), [f"{long} {number}" for number in range(6)], "document")
    assert np.array_equal(same.rows[0], same.rows[5])


def test_token_counts_for_too_few_texts_are_an_error(store):
    encoder = FakeEncoder()
    probed(store, encoder)
    encoder.token_counts = lambda texts, side: np.zeros(len(texts) - 1, dtype=np.int64)
    with pytest.raises(BackendError, match="counted tokens for 59 of 60 texts"):
        embed(store, encoder, TEXTS, "document")


def test_an_encoder_that_fails_the_probe_embeds_nothing(store):
    deaf = FakeEncoder(lie=lambda rows: rows[::-1].copy())
    with pytest.raises(BackendError, match=r"probe of fake failed \(batching\)"):
        embed(store, deaf, TEXTS, "document")
    assert not (store.root / "vectors").exists() or not list((store.root / "vectors").rglob("rows.npy"))


def test_an_encoder_that_changed_since_its_probe_embeds_nothing(store):
    probed(store, FakeEncoder())
    changed = FakeEncoder(lie=lambda rows: -rows)
    with pytest.raises(BackendError, match="no longer answers as it did when it was probed"):
        embed(store, changed, TEXTS, "document")


def test_the_probe_is_remembered_and_has_figures(store):
    figures = probed(store, FakeEncoder())
    again = FakeEncoder()
    assert probed(store, again) == figures
    assert not again.encoded
    assert figures["paraphrase_min"] > figures["stranger_max"]
    assert figures["truncates_at"] == 32
    assert len(figures["digest"]) == 64


def test_a_damaged_shard_is_embedded_again_and_whole_ones_are_not(store):
    liar = FakeEncoder(lie=_raise, lie_on=min(TEXTS, key=len))
    with pytest.raises(BackendError):
        embed(store, liar, TEXTS, "document")
    shards = sorted((store.root / "vectors").rglob(f"{PIECES}/*"))
    damaged = bytearray(shards[1].read_bytes())
    damaged[-1] ^= 1
    shards[1].write_bytes(bytes(damaged))
    shards[2].write_bytes(shards[2].read_bytes()[:20])
    honest = FakeEncoder()
    resumed = embed(store, honest, TEXTS, "document")
    missing = len(list(plan_batches(resumed.n_tokens.clip(max=32), TEXTS, 64, "forward"))) - len(shards)
    assert len([batch for batch in honest.encoded if batch[0] in TEXTS]) == missing + 2
    fresh = embed(Store(store.root.parent / "fresh"), FakeEncoder(), TEXTS, "document")
    assert np.array_equal(resumed.rows, fresh.rows)


_CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.fake_encoder import TEXTS, FakeEncoder
from runner.embed_chunks import embed
from runner.store import Store
print("ready", flush=True)
fatal = int(sys.argv[2])
calls = 0
def trace(event, args):
    global calls
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir") and ".cache" in str(args[0]):
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(trace)
embed(Store(Path(sys.argv[1])), FakeEncoder(seconds=0.004), TEXTS, "document")
"""


def _child(store, fatal):
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(store.root), str(fatal), CHECKOUT],
        stdout=subprocess.PIPE,
    )


@pytest.fixture(name="unkilled", scope="module")
def _unkilled(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("unkilled") / ".cache")
    embed(store, FakeEncoder(), TEXTS, "document")
    return artefact(store)


def test_killed_at_random_moments_it_ends_with_the_same_bytes(store, unkilled):
    moments = random.Random(7)
    killed = 0
    for _ in range(6):
        child = _child(store, 0)
        child.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.12))
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        child.stdout.close()
    embed(store, FakeEncoder(), TEXTS, "document")
    assert killed
    assert artefact(store) == unkilled


def test_killed_at_any_step_on_the_disk_it_ends_with_the_same_bytes(store, unkilled):
    """Each attempt dies at a later file operation than the one before, all in one store."""
    for fatal in (1, 3, 6, 9, 13, 17, 21, 25, 29):
        child = _child(store, fatal)
        child.wait()
        child.stdout.close()
        assert child.returncode in (0, -signal.SIGKILL)
    embed(store, FakeEncoder(), TEXTS, "document")
    assert artefact(store) == unkilled
    assert not list(store.root.rglob(".tmp-*"))


def test_two_processes_at_once_make_one_artefact(store, unkilled):
    children = [_child(store, 0) for _ in range(2)]
    for child in children:
        assert child.wait(30) == 0
        child.stdout.close()
    assert artefact(store) == unkilled
