import numpy as np
import pytest

from runner.base.errors import BackendError
from runner.base.store import Store
from runner.embed.local_encoder import TransformerEncoder, encoder_for
from runner.embed.probe import HALF_PRECISION_COSINE, PARAPHRASES, SAME_COSINE, beside, probe, probed
from runner.eval_set import catalog
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
    wide.spec = wide.spec.model_copy(update={"dim": 32})
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


class Elsewhere(FakeEncoder):
    """The same encoder in another number format: every row a little off, and the same whenever its text comes."""

    tolerance = 2e-3

    def __init__(self, dtype="float16", noise=5e-4, **row):
        super().__init__(**row)
        self.dtype, self.noise = dtype, noise

    def identity(self):
        return {"encoder": "fake", "backend": {"name": "modal", "dtype": self.dtype}}

    def encode(self, texts, side):
        rows = super().encode(texts, side)
        seeds = [int(1e6 * abs(row[0])) for row in rows]
        rows += np.array([np.random.default_rng(seed).normal(0, self.noise, 16) for seed in seeds], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rounding_elsewhere_is_the_same_and_float32_is_held_to_a_closer_bound():
    found = beside(FakeEncoder(), Elsewhere())
    assert found.same
    assert HALF_PRECISION_COSINE == found.required < found.cosine < 1
    assert 0 < found.difference < 5e-3
    found = beside(FakeEncoder(), Elsewhere("float32"))
    assert not found.same
    assert found.required == SAME_COSINE["float32"]
    assert beside(FakeEncoder(), Elsewhere("float32", 0)).same


def test_another_prompt_elsewhere_is_other_vectors_of_its_side():
    found = beside(FakeEncoder(query_prompt="query: "), Elsewhere(query_prompt="search: "))
    assert not found.same
    assert found.worst.startswith("the query")


def test_a_limit_elsewhere_that_is_not_the_catalogued_one_fails_the_probe():
    with pytest.raises(BackendError, match="truncation"):
        beside(FakeEncoder(), Wrong({}, {"max_tokens": 12}))


@pytest.mark.model
@pytest.mark.slow
def test_minilm_in_half_precision_is_close_to_float32():
    spec = catalog.encoder("minilm-l6-v2")
    found = beside(encoder_for(spec.name), TransformerEncoder(spec, dtype="float16"))
    assert found.same
    assert found.cosine < 1
