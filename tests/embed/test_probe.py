import dataclasses

import numpy as np
import pytest

from runner.base.errors import BackendError
from runner.base.store import Store
from runner.embed.probe import PARAPHRASES, probe, probed
from tests.support.fake_encoder import FakeEncoder


class Wrong(FakeEncoder):
    """A fake whose catalogue row says one thing while `rows_of`, an honest fake of another row, does another."""

    def __init__(self, claimed, actual):
        super().__init__(**claimed)
        self.actual = FakeEncoder(**actual)

    def encode(self, texts, side):
        return self.actual.encode(texts, side)


def test_an_honest_encoder_passes_with_figures():
    figures = probe(FakeEncoder(query_prompt="query: "))
    assert figures["encoder"] == "fake"
    assert figures["dim"] == 16
    assert figures["margin_min"] > 0
    assert figures["prompt_shift"] > 0.01
    assert (figures["truncates_at"], figures["told_by_tokens"]) == (32, 1)


def test_figures_are_the_same_every_time():
    assert probe(FakeEncoder()) == probe(FakeEncoder())


def test_no_limit_means_that_long_texts_count_to_their_end():
    assert probe(FakeEncoder(max_tokens=0))["truncates_at"] == 0
    with pytest.raises(BackendError, match=r"\(truncation\): the last 1 of any number of tokens move"):
        probe(Wrong({"max_tokens": 0}, {"max_tokens": 32}))


@pytest.mark.parametrize(
    ("claimed", "actual", "check"),
    [
        ({"max_tokens": 32}, {"max_tokens": 48}, r"\(truncation\): text past 32 tokens changes"),
        ({"max_tokens": 48}, {"max_tokens": 32}, r"\(truncation\): the last 1 of 48 tokens move"),
        ({"query_prompt": "query: "}, {}, r"\(prompts\): query and document vectors of one text are the same"),
        ({}, {"query_prompt": "query: "}, r"\(prompts\): no prompt is catalogued"),
    ],
)
def test_a_row_of_the_catalogue_that_is_not_true_fails_its_check(claimed, actual, check):
    with pytest.raises(BackendError, match=rf"probe of fake failed {check}"):
        probe(Wrong(claimed, actual))


def test_vectors_without_meaning_fail():
    encoder = FakeEncoder()
    meaningless = {sentence: number for number, pair in enumerate(PARAPHRASES) for sentence in pair[::-1]}
    honest = encoder._row

    def shuffled(text, side):
        """Each second sentence stands for the paraphrase of another first one."""
        row = honest(text, side)
        return np.roll(row, 1 + meaningless[text]) if text in meaningless and text == second[text] else row

    second = {sentence: pair[1] for pair in PARAPHRASES for sentence in pair}
    encoder._row = shuffled
    with pytest.raises(BackendError, match=r"probe of fake failed \(paraphrases\)"):
        probe(encoder)


def test_a_constant_encoder_fails():
    constant = np.zeros((1, 16), dtype=np.float32)
    constant[0, 0] = 1
    with pytest.raises(BackendError, match=r"as close to a sentence as its paraphrase \(margin 0\.0e\+00\)"):
        probe(FakeEncoder(lie=lambda rows: np.repeat(constant, len(rows), axis=0)))


def test_rows_in_another_order_than_the_texts_fail():
    with pytest.raises(BackendError, match=r"probe of fake failed \(batching\)"):
        probe(FakeEncoder(lie=lambda rows: rows[::-1].copy()))


def test_another_dimension_than_the_catalogued_one_fails():
    wide = FakeEncoder()
    wide.spec = dataclasses.replace(wide.spec, dim=32)
    with pytest.raises(BackendError, match=r"float32 rows of 32 were catalogued, float32 \(4, 16\) received"):
        probe(wide)


def test_the_probe_is_remembered_and_has_figures(tmp_path):
    store = Store(tmp_path)
    figures = probed(store, FakeEncoder())
    again = FakeEncoder()
    assert probed(store, again) == figures
    assert not again.encoded
    assert figures["paraphrase_min"] > figures["stranger_max"]
    assert figures["truncates_at"] == 32
    assert len(figures["digest"]) == 64


class Restless(FakeEncoder):
    """Its rows move by themselves, as those of a server that batches requests as they come."""

    tolerance = 0.5

    def __init__(self, **row):
        super().__init__(max_tokens=64, **row)
        self.random = np.random.default_rng(0)

    def encode(self, texts, side):
        rows = super().encode(texts, side) + self.random.normal(0, 0.01, (len(texts), 16)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rows_that_move_by_themselves_are_told_apart_by_more_tokens():
    assert probe(Restless())["told_by_tokens"] == 8
    early = Restless()
    early._words = lambda text, side: FakeEncoder._words(early, text, side)[:48]
    early.token_counts = FakeEncoder(max_tokens=64).token_counts
    with pytest.raises(BackendError, match=r"\(truncation\): the last 8 of 64 tokens move"):
        probe(early)
