import hashlib
import itertools
import random
import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from runner.base.store import PIECES, Store
from runner.embed import embed_chunks
from runner.embed.batches import plan_forwards, plan_requests
from runner.embed.embed_chunks import MANY_FAILURES, Embeddable, embed
from runner.embed.encoder import Answer, Grouping
from runner.embed.probe import probed
from tests.support.fake_encoder import TEXTS, WORDS, FakeEncoder


@pytest.fixture(name="store")
def _store(tmp_path):
    return Store(tmp_path / ".cache")


@pytest.fixture(autouse=True)
def _a_shard_a_batch(monkeypatch):
    monkeypatch.setattr(embed_chunks, "SHARD_TEXTS", 1)


def outstanding(store, encoder, texts, side):
    return Embeddable(store, encoder, texts, side).outstanding()


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


def test_progress_counts_up_to_all_texts_and_tokens_that_are_read(store):
    seen = []
    embed(store, FakeEncoder(), TEXTS, "document", report=seen.append)
    tokens = sum(min(len(text.split()), 32) for text in TEXTS)
    assert seen[0] == (0, 60, 0, tokens)
    assert seen[-1] == (60, 60, tokens, tokens)
    assert seen == sorted(seen)


def _digests(n):
    """SHA-256 of n made-up texts, whose order is nobody's."""
    made = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(n))
    return np.frombuffer(made, np.uint8).reshape(n, 32)


@given(
    st.lists(st.integers(0, 90), max_size=60),
    st.integers(1, 200),
    st.integers(0, 9),
    st.sampled_from(["forward", "reversed"]),
)
def test_a_plan_holds_every_text_once_within_its_budget(lengths, budget, most, order):
    batches = plan_forwards(
        np.array(lengths, dtype=np.int64), _digests(len(lengths)), Grouping(budget, forward_texts=most), order
    )
    assert sorted(itertools.chain.from_iterable(batches)) == list(range(len(lengths)))
    for batch in batches:
        padded = max(max(lengths[index], 1) for index in batch) * len(batch)
        assert len(batch) == 1 or padded <= budget
        assert len(batch) <= (most or len(lengths))


@given(st.permutations(list(range(12))))
def test_a_plan_does_not_depend_on_the_order_of_its_input(permutation):
    lengths = np.array([3, 3, 3, 9, 9, 1, 1, 1, 7, 7, 2, 2], dtype=np.int64)
    digests = _digests(12)
    plain = plan_forwards(lengths, digests, Grouping(18), "forward")
    mixed = plan_forwards(lengths[permutation], digests[permutation], Grouping(18), "forward")
    assert plain == [[permutation[i] for i in batch] for batch in mixed]


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60), st.integers(0, 20), st.integers(0, 400))
def test_requests_hold_the_forward_batches_in_order_and_no_more_than_they_may(lengths, most_texts, most_tokens):
    counts = np.array(lengths, dtype=np.int64)
    forwards = plan_forwards(counts, _digests(len(lengths)), Grouping(100), "forward")
    requests = plan_requests(forwards, counts, Grouping(100, most_texts, most_tokens))
    assert list(itertools.chain.from_iterable(requests)) == forwards
    for request in requests:
        texts = sum(map(len, request))
        tokens = sum(len(forward) * max(lengths[index] for index in forward) for forward in request)
        assert len(request) == 1 or (texts <= most_texts and tokens <= most_tokens)


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
    assert re.search(r"fake: 1 of 10 shards .*Shard \d+ fails on 4 texts, of which the first begins", str(caught.value))
    assert "36 of 40 texts are embedded and kept" in str(caught.value)
    honest = FakeEncoder()
    embed(store, honest, texts, "document")
    again = [text for batch in honest.encoded for text in batch if text in texts]
    assert len(again) == 4
    assert texts[33] in again


def test_a_backend_that_fails_always_is_given_up(store):
    broken = FakeEncoder()
    probed(store, broken)
    broken.lie, broken.lie_on = _raise, "text"
    texts = [f"text {number} {' '.join(WORDS)}" for number in range(400)]
    with pytest.raises(BackendError, match=f"failed {MANY_FAILURES} times in a row.*out of memory"):
        embed(store, broken, texts, "document")
    assert len([batch for batch in broken.encoded if batch[0] in texts]) == MANY_FAILURES


def test_a_constant_encoder_is_caught_even_in_batches_of_one(store, monkeypatch):
    texts = [f"{number} " + " ".join(WORDS * 5) for number in range(9)]
    honest = FakeEncoder()
    constant = honest.encode(["anything"], "document")
    stuck = FakeEncoder(lie=lambda rows: np.repeat(constant, len(rows), axis=0), lie_on=" ".join(WORDS))
    stuck.batch_tokens = 1
    monkeypatch.setattr(embed_chunks, "SHARD_TEXTS", 9)
    with pytest.raises(BackendError, match="one and the same vector for all of 9 texts"):
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


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: data.replace(b"sha256", b"sha25"), lambda data: b""],
    ids=["a bit", "a field", "all"],
)
def test_a_damaged_shard_is_embedded_again_and_whole_ones_are_not(store, damage):
    liar = FakeEncoder(lie=_raise, lie_on=min(TEXTS, key=len))
    with pytest.raises(BackendError):
        embed(store, liar, TEXTS, "document")
    shard = next((store.root / "vectors").rglob(f"{PIECES}/*.rows"))
    shard.write_bytes(damage(shard.read_bytes()))
    honest = FakeEncoder()
    resumed = embed(store, honest, TEXTS, "document")
    assert len([batch for batch in honest.encoded if batch[0] in TEXTS]) == 2, "what failed, and what is damaged"
    fresh = embed(Store(store.root.parent / "fresh"), FakeEncoder(), TEXTS, "document")
    assert np.array_equal(resumed.rows, fresh.rows)


@pytest.mark.parametrize(
    ("n_texts", "n_tokens", "n_shards"), [(1, 10**9, 22), (20, 10**9, 3), (10**9, 300, 4), (10**9, 10**9, 1)]
)
def test_a_shard_ends_by_texts_or_tokens_and_no_size_changes_a_bit(store, monkeypatch, n_texts, n_tokens, n_shards):
    straight = embed(store, FakeEncoder(), TEXTS, "document")
    monkeypatch.setattr(embed_chunks, "SHARD_TEXTS", n_texts)
    monkeypatch.setattr(embed_chunks, "SHARD_TOKENS", n_tokens)
    work = Embeddable(Store(store.root.parent / "other"), FakeEncoder(), TEXTS, "document")
    assert len(work.shards) == n_shards
    assert np.array_equal(work.vectors().rows, straight.rows)


def test_half_a_surrogate_pair_is_named_before_anything_is_sent(store):
    encoder = FakeEncoder()
    with pytest.raises(InputError, match=r"half of a surrogate pair at character 3.*'not\\ud800'"):
        embed(store, encoder, ["fine", "not\ud800"], "document")
    assert not encoder.encoded


def test_what_is_outstanding_is_known_before_anything_is_sent(store):
    encoder = FakeEncoder()
    tokens = sum(min(len(text.split()), 32) for text in TEXTS)
    assert outstanding(store, encoder, [*TEXTS, TEXTS[0]], "document") == (60, tokens)
    with pytest.raises(BackendError):
        embed(store, FakeEncoder(lie=_raise, lie_on=TEXTS[5]), TEXTS, "document")
    texts, left = outstanding(store, encoder, TEXTS, "document")
    assert 0 < texts < 60
    assert 0 < left < tokens
    embed(store, encoder, TEXTS, "document")
    assert outstanding(store, encoder, TEXTS, "document") == (0, 0)
    assert outstanding(store, encoder, [], "document") == (0, 0)
    assert [batch for batch in encoder.encoded if batch[0] in TEXTS], "only embed sends"


class Remote(FakeEncoder):
    """Four forward batches a request; `misbehave` turns the honest answers to a submission into others."""

    resubmissions = 2

    def __init__(self, misbehave):
        super().__init__()
        self.misbehave = misbehave
        self.submissions = []

    @property
    def grouping(self):
        return Grouping(64, 8, 256)

    def embed(self, batches):
        if batches[0].texts[0] not in TEXTS:  # the probe
            yield from super().embed(batches)
            return
        self.submissions.append([batch.batch_id for batch in batches])
        yield from self.misbehave(list(super().embed(batches)), len(self.submissions))


def _damaged(answer):
    return replace(answer, rows=answer.rows * np.float32(np.nan))


MISBEHAVIOUR = {
    "last first": lambda answers, _: answers[::-1],
    "twice": lambda answers, _: [answer for answer in answers for _ in range(2)],
    "one lost": lambda answers, n: answers[1:] if n == 1 else answers,
    "one fails without a name": lambda answers, n: [GONE, *answers[1:]] if n == 1 else answers,
    "a stranger": lambda answers, _: [Answer("0" * 64, np.eye(1, 16, dtype=np.float32)), *answers],
    "nothing at first": lambda answers, n: answers if n == 3 else [],
    "damaged at first": lambda answers, n: [_damaged(answers[0]), *answers[1:]] if n == 1 else answers,
}
GONE = Answer("", error="RemoteError('gone')")


@pytest.mark.parametrize("misbehave", MISBEHAVIOUR.values(), ids=MISBEHAVIOUR)
def test_nothing_is_lost_doubled_or_replaced_by_a_backend_that_can_be_asked_again(store, misbehave):
    vectors = embed(store, Remote(misbehave), TEXTS, "document")
    straight = embed(Store(store.root.parent / "straight"), Remote(lambda answers, _: answers), TEXTS, "document")
    assert np.array_equal(vectors.rows, straight.rows)
    assert artefact(store) == artefact(Store(store.root.parent / "straight"))


def test_only_what_is_missing_is_sent_again_and_at_most_twice(store):
    deaf = Remote(lambda answers, _: answers[2:])
    with pytest.raises(BackendError, match="no answer came"):
        embed(store, deaf, TEXTS, "document")
    first, second, third = deaf.submissions
    assert second == third == first[:2]
    honest = Remote(lambda answers, _: answers)
    embed(store, honest, TEXTS, "document")
    assert [set(sent) <= set(first[:2]) for sent in honest.submissions] == [True]


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"facts": {"device": "NVIDIA A10"}}, "cpu at first, .*A10 now"), ({"n_tokens": np.array([1])}, "counts other")],
)
def test_an_answer_from_elsewhere_or_of_another_tokenizer_ends_the_run(store, changed, says):
    with pytest.raises(BackendError, match=says):
        embed(store, Remote(lambda answers, _: [*answers[:2], replace(answers[2], **changed)]), TEXTS, "document")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (BackendError("fake: the budget is used up."), r"fake: the budget is used up. \d+ of 60 texts"),
        (OSError("no route to host"), r"fake failed: OSError: no route to host. \d+ of 60 texts"),
    ],
)
def test_what_ends_the_session_is_named_with_what_is_kept(store, error, says):
    def stumble(answers, _):
        yield from answers[:3]
        raise error

    with pytest.raises(BackendError, match=says):
        embed(store, Remote(stumble), TEXTS, "document")


_CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.support.fake_encoder import TEXTS, FakeEncoder
from runner.embed.embed_chunks import embed
from runner.base.store import Store
print("ready", flush=True)
fatal = int(sys.argv[2])
calls = 0
def step():
    global calls
    calls += 1
    if calls == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
def trace(event, args):
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate") and ".cache" in str(args[0]):
        step()
def counted(call):
    def instead(*arguments):
        step()
        return call(*arguments)
    return instead
sys.addaudithook(trace)
os.write, os.pwrite = counted(os.write), counted(os.pwrite)
embed(Store(Path(sys.argv[1])), FakeEncoder(seconds=0.004), TEXTS, "document")
"""


def _child(store, fatal):
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(store.root), str(fatal), CHECKOUT], stdout=subprocess.PIPE
    )


@pytest.fixture(name="unkilled", scope="module")
def _unkilled(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("unkilled") / ".cache")
    embed(store, FakeEncoder(), TEXTS, "document")
    return artefact(store)


@pytest.mark.slow
def test_killed_at_any_step_on_the_disk_it_ends_with_the_same_bytes(store, unkilled):
    """Each attempt dies at a later file operation than the one before, all in one store."""
    ends = []
    for fatal in (1, 3, 6, 9, 13, 17, 21, 25, 29, 40, 60, 85):
        child = _child(store, fatal)
        ends.append(child.wait())
        child.stdout.close()
    assert set(ends) <= {0, -signal.SIGKILL}
    assert ends.count(-signal.SIGKILL) >= 10, "the last ones may find all but a few steps done"
    embed(store, FakeEncoder(), TEXTS, "document")
    assert artefact(store) == unkilled
    assert not list(store.root.rglob(".tmp-*"))
