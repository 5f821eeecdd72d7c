"""Texts cut to a limit of tokens, for servers that may read further than the catalogue allows."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import sha256
from runner.embed.weights import encodings, tokenizer, tokenizer_folder
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class Uncuttable(Exception):
    """A text whose openings all tokenize otherwise than the text itself."""


class Clipped(NamedTuple):
    """A text within the limit, and its tokens, special ones included."""

    text: str
    n_tokens: int


class Clip:
    """An encoder's tokenizer and its catalogued limit; `find` gives the tokenizer's folder when it is first needed."""

    def __init__(self, spec: EncoderSpec, find: Callable[[EncoderSpec], Path] = tokenizer_folder) -> None:
        self._spec = spec
        self._find = find

    def token_counts(self, prompted: Sequence[str]) -> NDArray[np.int64]:
        """Tokens per text, special ones included, before anything is cut."""
        return np.array([len(encoding) for encoding in encodings(self._tokenizer, prompted)], dtype=np.int64)

    def cut(self, prompted: Sequence[str]) -> list[Clipped]:
        """Each text as it is, or its opening whose tokens are the first ones of the whole text.

        WordPiece takes the longest match from the left, and a unigram model's best path holds the best paths to its own
        tokens, so the opening up to the last allowed token nearly always fits. If a normaliser joins what the cut
        parts, tokens are given up, one at first; Uncuttable if half of them are gone.
        """
        with_offsets = self._tokenizer.encode_batch(list(prompted))
        return [self._clipped(text, encoding) for text, encoding in zip(prompted, with_offsets, strict=True)]

    def _clipped(self, text: str, encoding: "Encoding") -> Clipped:
        limit, ids = self._spec.max_tokens, encoding.ids
        if not limit or len(ids) <= limit:
            return Clipped(text, len(ids))
        mask = encoding.special_tokens_mask
        first = mask.index(0)
        n_special = first + mask[::-1].index(0)  # those that open a text, and those that close it
        allowed = limit - n_special
        kept, step = allowed, 1
        while kept > allowed // 2:
            opening = text[: encoding.offsets[first + kept - 1][1]]
            again = self._tokenizer.encode(opening)
            if again.ids[first : first + kept] == ids[first : first + kept] and len(again.ids) == kept + n_special:
                return Clipped(opening, len(again.ids))
            kept -= step
            step *= 2
        raise Uncuttable(
            f"the text with sha256 {sha256(text)} cannot be cut to {limit} tokens: its opening tokenizes otherwise"
        )

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return tokenizer(self._find(self._spec))
