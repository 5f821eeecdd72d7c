"""An encoder's tokenizer, read from its one file: neither torch nor weights are needed to count."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.embed.weights import TOKENIZER

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_TOKENIZED_AT_ONCE = 256
"""An encoding holds far more than the ids of its text."""


def tokenizer(folder: Path) -> "Tokenizer":
    """The tokenizer of a folder with a tokenizer.json; it neither truncates nor pads."""
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(folder / TOKENIZER))
    # MiniLM's file carries truncation at 128 and padding, which would hide what is lost.
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def encodings(loaded: "Tokenizer", texts: Sequence[str], *, special: bool = True) -> "Iterator[Encoding]":
    """One encoding a text, in order and without offsets; `special` adds the tokens that open and close a text."""
    for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
        yield from loaded.encode_batch_fast(texts[start : start + _TOKENIZED_AT_ONCE], add_special_tokens=special)
