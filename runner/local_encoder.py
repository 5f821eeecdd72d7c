"""Encoders on this machine: sentence-transformers on the CPU in float32, from weights that were checked."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from runner import catalog
from runner.canonical import JSON
from runner.catalog import EncoderSpec
from runner.encoder import Encoder
from runner.errors import BackendError
from runner.records import Side
from runner.weights import WEIGHTS, verified_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Encoding, Tokenizer

_TOKENIZED_AT_ONCE = 256
_LIBRARIES = ("sentence-transformers", "tokenizers", "torch", "transformers")
STATIC = ("minilm-static-384",)
_FIRST_RANK = 996
"""Rows of a WordPiece table before it are padding, special and unused tokens."""


def encoder_for(name: str) -> Encoder:
    """The local encoder of a catalogued name, nothing loaded yet; an InputError for names that are not to be used."""
    spec = catalog.encoder(name)
    return StaticEncoder(spec) if name in STATIC else TransformerEncoder(spec)


class TransformerEncoder:
    """A sentence-transformers model whose weights are checked and loaded by the first text it encodes."""

    # A batch of 32 texts of 256 tokens, the library's default, falls out of the cache of a core: 512 to 2,048 tokens
    # a batch are alike on one core and on two, 4,096 is a tenth slower.
    batch_tokens = 1024
    adds_special_tokens = True
    method = "forward pass of the whole model"

    def __init__(self, spec: EncoderSpec) -> None:
        self.spec = spec
        self._kept: dict[str, NDArray[np.int32]] = {}

    def identity(self) -> dict[str, JSON]:
        """Catalogue row and library versions; no library is imported. A BackendError when one is not installed."""
        libraries = (*_LIBRARIES, self.spec.package) if self.spec.package else _LIBRARIES
        try:
            versions = {library: metadata.version(library) for library in libraries}
        except metadata.PackageNotFoundError as error:
            raise BackendError(
                f"{self.spec.name} needs the package {error.name}, which is not installed. "
                "Run `make setup`, or pip install -e '.[local]'."
            ) from error
        return {
            "backend": "sentence-transformers, cpu",
            "method": self.method,
            "encoder": self.spec.name,
            "hub_id": self.spec.hub_id,
            "revision": self.spec.revision,
            "code_revision": self.spec.code_revision,
            "weights_sha256": self.spec.weights_sha256,
            "query_prompt": self.spec.query_prompt,
            "document_prompt": self.spec.document_prompt,
            "max_tokens": self.spec.max_tokens,
            "dim": self.spec.dim,
            "dtype": "float32",
            "batch_tokens": self.batch_tokens,
            "versions": versions,
        }

    def token_counts(self, texts: Sequence[str], side: Side) -> NDArray[np.int64]:
        """Tokens per text, prompt and special tokens included; reads the tokenizer's file alone, without torch.

        The tokens are kept for `encode`, four bytes each: tokenizing twice costs 5 % of an embedding with MiniLM.
        """
        counts, self._kept = [], {}
        prompted = [self._prompt(side) + text for text in texts]
        for start in range(0, len(prompted), _TOKENIZED_AT_ONCE):
            some = prompted[start : start + _TOKENIZED_AT_ONCE]
            for text, encoding in zip(some, self._tokenized(some), strict=True):
                counts.append(len(encoding))
                self._kept[text] = self._clipped(encoding)
        return np.array(counts, dtype=np.int64)

    def encode(self, texts: Sequence[str], side: Side) -> NDArray[np.float32]:
        """Unit rows of one forward batch."""
        import torch

        prompted = [self._prompt(side) + text for text in texts]
        kept = [self._kept.pop(text, None) for text in prompted]
        ids = [self._clipped(self._tokenized([t])[0]) if k is None else k for t, k in zip(prompted, kept, strict=True)]
        model = self._model
        with torch.inference_mode():
            rows = model({name: torch.from_numpy(array) for name, array in self._features(ids).items()})
            unit: NDArray[np.float32] = torch.nn.functional.normalize(rows["sentence_embedding"], dim=1).numpy()
        return unit

    def _features(self, ids: Sequence[NDArray[np.int32]]) -> dict[str, NDArray[np.int64]]:
        """Padded on the right to the longest text, with its mask."""
        shape = (len(ids), max(map(len, ids)))
        padded, mask = np.full(shape, self._model.tokenizer.pad_token_id, dtype=np.int64), np.zeros(shape, np.int64)
        for row, text in enumerate(ids):
            padded[row, : len(text)] = text
            mask[row, : len(text)] = 1
        return {"input_ids": padded, "attention_mask": mask}

    def _tokenized(self, prompted: Sequence[str]) -> list["Encoding"]:
        return self._tokenizer.encode_batch_fast(prompted, add_special_tokens=self.adds_special_tokens)

    def _clipped(self, encoding: "Encoding") -> NDArray[np.int32]:
        """Ids up to the limit; what closes a text, such as [SEP], still closes it when its end is cut off."""
        ids = np.array(encoding.ids, dtype=np.int32)
        limit = self.spec.max_tokens
        if not limit or len(ids) <= limit:
            return ids
        n_closing = encoding.special_tokens_mask[::-1].index(0)
        return np.concatenate([ids[: limit - n_closing], ids[len(ids) - n_closing :]])

    def _prompt(self, side: Side) -> str:
        return self.spec.query_prompt if side == "query" else self.spec.document_prompt

    @cached_property
    def _folder(self) -> Path:
        return verified_folder(self.spec)

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        # MiniLM's file carries truncation at 128 and padding, which would hide what is lost.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _model(self) -> "SentenceTransformer":
        _quiet_libraries()
        from sentence_transformers import SentenceTransformer

        code = {"code_revision": self.spec.code_revision} if self.spec.trust_remote_code else {}
        model = SentenceTransformer(
            str(self._folder),
            device="cpu",
            local_files_only=not self.spec.trust_remote_code,
            trust_remote_code=self.spec.trust_remote_code,
            model_kwargs=code,
            config_kwargs=code,
        )
        self._check_prompts(model.prompts)
        return model.float().eval()

    def _check_prompts(self, shipped: Mapping[str, str | None]) -> None:
        """A BackendError where the model ships another prompt than the catalogue names; it may ship none."""
        for side in ("query", "document"):
            prompt = shipped.get(side)
            if prompt and prompt != self._prompt(side):
                raise BackendError(
                    f"{self.spec.name}: the model ships the {side} prompt {prompt!r}, runner/catalog.py has "
                    f"{self._prompt(side)!r}. Correct the catalogue's row."
                )


class StaticEncoder(TransformerEncoder):
    """Means of a model's input token vectors, rare tokens weighted up: no attention, no limit on length.

    A WordPiece vocabulary is ordered by frequency, so the logarithm of a token's rank stands in for its inverse
    frequency, as in model2vec's Zipf weighting. SciFact nDCG@10: 0.4475 against 0.4091 without weights.
    """

    batch_tokens = 200_000
    adds_special_tokens = False
    method = f"mean of input token vectors x log(1 + max(row - {_FIRST_RANK}, 1))"

    def _features(self, ids: Sequence[NDArray[np.int32]]) -> dict[str, NDArray[np.int64]]:
        """All texts in one row, and where each begins."""
        offsets = np.cumsum([0, *map(len, ids[:-1])], dtype=np.int64)
        return {"input_ids": np.concatenate(ids).astype(np.int64), "offsets": offsets}

    @cached_property
    def _model(self) -> "SentenceTransformer":
        _quiet_libraries()
        from safetensors.numpy import load_file
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        table = load_file(self._folder / WEIGHTS)["embeddings.word_embeddings.weight"]
        ranks = np.maximum(np.arange(len(table)) - _FIRST_RANK, 1)
        weighted = (table * np.log1p(ranks)[:, None]).astype(np.float32)
        return SentenceTransformer(modules=[StaticEmbedding(self._tokenizer, embedding_weights=weighted)], device="cpu")


def _quiet_libraries() -> None:
    """No telemetry, and no bars but the engine's own; set before the libraries read their environment."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped in the library
