import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Replace
from tokenizers.pre_tokenizers import Split

from runner.embed.local_encoder import encoder_for
from runner.embed.over_http.encoder import Clip
from tests.support.embedding_server import MINILM, tokenizer
from tests.support.fake_encoder import TEXTS
from tests.support.http_bench import (
    LONG,
    batches,
    one_answer,
    opened,
    planted_server,  # noqa: F401  # a fixture
)


def ids_of(text):
    return tokenizer().encode(text).ids


def as_cut_locally(text):
    ids = ids_of(text)
    return ids if len(ids) <= MINILM.max_tokens else [*ids[: MINILM.max_tokens - 1], ids[-1]]


def test_a_server_that_would_read_further_is_sent_exactly_the_catalogued_tokens(server):
    with opened(server) as encoder:
        one_answer(encoder, [LONG])
    assert len(ids_of(LONG)) > 512
    assert ids_of(server.texts[0]) == as_cut_locally(LONG)
    assert LONG.startswith(server.texts[0])


HOSTILE = {
    "emoji": "😀👩‍👩‍👧 " * 400,
    "NUL": "a\x00b c\x00 " * 400,
    "combining marks": "e\u0301\u0327o\u0308 " * 400,
    "a mark at the cut": "a" + "\u0301" * 400 + " b" * 400,
    "no spaces": "法律条文规定" * 200,
    "an endless word": "a" * 1_000_000,
    "an endless word after others": "law " * 300 + "a" * 1_000_000,
    "punctuation": "." * 1000,
    "special tokens": "[SEP] [CLS] [MASK] " * 200,
    "white space": "\u00a0\n\t " * 1000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_cut_to_the_first_tokens(name):
    text = HOSTILE[name]
    ((cut, n_tokens),) = Clip(MINILM).cut([text])
    assert ids_of(cut) == as_cut_locally(text)
    assert n_tokens == len(ids_of(cut)) <= 256


@pytest.mark.slow
@given(st.lists(st.text(max_size=12), min_size=100, max_size=400).map(" ".join), st.integers(8, 40))
def test_any_text_is_cut_to_an_opening_with_the_first_tokens_of_the_whole(text, limit):
    spec = MINILM.model_copy(update={"max_tokens": limit})
    ((cut, n_tokens),) = Clip(spec).cut([text])
    ids, again = ids_of(text), ids_of(cut)
    assert text.startswith(cut)
    assert len(again) == n_tokens <= limit
    assert again[:-1] == ids[: len(again) - 1]
    assert len(again) >= min(limit, len(ids)) - 3


def clip_by_characters(folder, limit, pattern):
    """Of a tokenizer with one token a character, that reads "z" wherever the pattern stands."""
    made = Tokenizer(WordLevel({letter: number for number, letter in enumerate("wxyz?")}, unk_token="?"))
    made.normalizer = Replace(Regex(pattern), "z")
    made.pre_tokenizer = Split(Regex("."), "isolated")
    made.save(str(folder / "tokenizer.json"))
    return Clip(MINILM.model_copy(update={"max_tokens": limit}), lambda _: folder)


def test_tokens_that_the_cut_would_change_are_given_up(tmp_path):
    clip = clip_by_characters(tmp_path, 5, "x(?=y)")
    assert clip.cut(["wwwwxyww", "wwwxyyww", "wxy"]) == [("wwww", 4), ("wwwxy", 5), ("wxy", 3)]


def test_a_text_of_which_every_opening_reads_otherwise_is_the_error_of_its_batch(server, tmp_path):
    clip = clip_by_characters(tmp_path, 8, "x(?=.*y)")
    with opened(server) as encoder:
        encoder._clip = clip
        answers = list(encoder.embed([*batches(["x" * 20 + "y"], 1), *batches(["wxy"], 1)]))
    assert "cannot be cut to 8 tokens" in answers[0].error
    assert answers[1].rows is not None


def test_counts_are_those_of_the_local_encoder_before_anything_is_cut(server):
    texts = [*TEXTS, LONG, "", *HOSTILE.values()]
    with opened(server) as encoder:
        counts = encoder.token_counts(texts, "document")
    assert list(counts) == list(encoder_for("minilm-l6-v2").token_counts(texts, "document"))
    assert not server.log
