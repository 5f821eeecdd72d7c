"""Encoders in this process, with checked weights: the packaged one by onnxruntime, the others by sentence-transformers.

In float32 on a CPU; inside a Modal container sentence-transformers runs every model, on a GPU in half precision.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON
from runner.base.errors import BackendError, PackageMissing
from runner.base.records import PromptSide
from runner.embed.encoder import Encoder, InProcessEncoder, Matrix, PlugInEncoder
from runner.embed.onnx_bert import States, bert
from runner.embed.vectors import unit
from runner.embed.weights import (
    LIBRARIES,
    POOLER,
    WEIGHTS,
    encodings,
    install_advice,
    n_parameters,
    tokenizer,
    verified_folder,
)
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Encoding, Tokenizer

Dtype = Literal["float32", "float16"]
"""In which the model runs; rows are normalised in float32 and are float32 always."""

STATIC = ("minilm-static-384",)
_FIRST_RANK = 996
"""Rows of a WordPiece table before it are padding, special and unused tokens."""


def encoder_for(name: str) -> Encoder:
    """Return the local encoder of a catalogued name or of a plug-in, nothing loaded yet; InputError for any other."""
    return local_encoder(catalog.encoder(name))


def local_encoder(spec: EncoderSpec) -> Encoder:
    """Return what applies a row in this process; nothing is loaded yet."""
    if (plug_in := catalog.plugged_encoder(spec.name)) and plug_in.state == spec.revision:
        made = plug_in.load()
        if not issubclass(made, PlugInEncoder):
            raise plug_in.wrong("is not derived from PlugInEncoder of runner.embed.encoder")
        plugged: PlugInEncoder = made(spec)
        return plugged
    kind = encoder_class(spec.name)
    return OnnxEncoder(spec) if spec.package and kind is TransformerEncoder else kind(spec)


def encoder_class(name: str) -> "type[TransformerEncoder]":
    """Return what applies the model of a catalogued name where sentence-transformers is, on whatever device."""
    return StaticEncoder if name in STATIC else TransformerEncoder


class TransformerEncoder(InProcessEncoder):
    """A sentence-transformers model whose weights are checked and loaded by the first text it encodes."""

    # A batch of 32 texts of 256 tokens, the library's default, falls out of the cache of a core: 512 to 2,048 tokens
    # a batch are alike on one core and on two, 4,096 is a tenth slower.
    batch_tokens = 1024
    adds_special_tokens = True
    takes_half = True
    libraries = LIBRARIES
    """Whose versions may change a vector."""
    method = "forward pass of the whole model"

    def __init__(
        self,
        spec: EncoderSpec,
        *,
        device: Literal["cpu", "cuda"] = "cpu",
        dtype: Dtype = "float32",
        find: Callable[[EncoderSpec], Path] = verified_folder,
    ) -> None:
        """`find` gives the folder of the encoder's checked files when they are first needed."""
        self.spec = spec
        self.device = device
        self.dtype: Dtype = dtype if self.takes_half and spec.half else "float32"
        self._find = find
        self._kept: dict[str, NDArray[np.int32]] = {}

    @property
    def tolerance(self) -> float:
        """Half precision keeps three digits."""
        return 1e-4 if self.dtype == "float32" else 2e-3

    def identity(self) -> dict[str, JSON]:
        """Return the row, method and library versions; BackendError if a library is not installed. Imports none."""
        packages = (*self.libraries, self.spec.package) if self.spec.package else self.libraries
        try:
            versions = {package: metadata.version(package) for package in packages}
        except metadata.PackageNotFoundError as error:
            raise PackageMissing(
                f"{self.spec.name} needs the package {error.name}, which is not installed. {install_advice(self.spec)}"
            ) from error
        return {
            **self.spec.provenance,
            "method": self.method,
            "backend": {
                "name": "local",
                "device": self.device,
                "dtype": self.dtype,
                "forward_tokens": self.batch_tokens,
                "versions": versions,
            },
        }

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """Return tokens per text, prompt and special tokens included; reads the tokenizer's file alone, without torch.

        Kept for `encode`, four bytes per token: tokenizing twice costs 5 % of an embedding with MiniLM.
        """
        counts, self._kept = [], {}
        prompted = [self.spec.prompt(side) + text for text in texts]
        for text, encoding in zip(prompted, self._encodings(prompted), strict=True):
            counts.append(len(encoding))
            self._kept[text] = self._clipped(encoding)
        return np.array(counts, dtype=np.int64)

    def encode(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.float32]:
        """Return unit rows of one forward batch."""
        import torch

        ids = [self._ids(self.spec.prompt(side) + text) for text in texts]
        model = self._model
        with torch.inference_mode():
            inputs = {name: torch.from_numpy(array).to(self.device) for name, array in self._features(ids).items()}
            # Lengths are taken in float32: half precision would keep three digits of them.
            rows = model(inputs)["sentence_embedding"].float()
            unit: NDArray[np.float32] = torch.nn.functional.normalize(rows, dim=1).cpu().numpy()
        return unit

    def by_catalogue(self, texts: Sequence[str]) -> Matrix | None:
        """Return rows of texts as they stand, one batch each, pooled from their tokens' states; None without states.

        The prompt is the caller's, and neither batches nor the model's own pooling have a part in it.
        """
        rows = []
        for text in texts:
            states = self._states(self._ids(text).astype(np.int64)[None])
            if states is None or self.spec.pooling not in _POOLED:
                return None
            row = _POOLED[self.spec.pooling](states)
            for layer in self._dense:
                row = layer @ row
            rows.append(row / np.linalg.norm(row))
        return np.array(rows, dtype=np.float32)

    def _states(self, ids: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return states (tokens, width) of the text of ids (1, tokens); None if rows are made of more than these."""
        import torch

        if not _is_plain(self._model, self.spec.dense):
            return None
        there = torch.from_numpy(ids).to(self.device)
        with torch.inference_mode():
            features = self._model[0]({"input_ids": there, "attention_mask": torch.ones_like(there)})
        states: NDArray[np.float64] = features["token_embeddings"][0].double().cpu().numpy()
        return states

    @property
    def _padding(self) -> int:
        padding_id: int = self._model.tokenizer.pad_token_id
        return padding_id

    def _features(self, ids: Sequence[NDArray[np.int32]]) -> dict[str, NDArray[np.int64]]:
        """Return ids padded on the right to the longest text, with its mask."""
        # Own padding, since the tokenizer's may be fixed to a length, which would change the shape of every batch.
        shape = (len(ids), max(map(len, ids)))
        padded, mask = np.full(shape, self._padding, dtype=np.int64), np.zeros(shape, np.int64)
        for row, text in enumerate(ids):
            padded[row, : len(text)] = text
            mask[row, : len(text)] = 1
        return {"input_ids": padded, "attention_mask": mask}

    def _ids(self, prompted: str) -> NDArray[np.int32]:
        counted = self._kept.pop(prompted, None)
        return self._clipped(next(self._encodings([prompted]))) if counted is None else counted

    def _encodings(self, prompted: Sequence[str]) -> "Iterator[Encoding]":
        return encodings(self._tokenizer, prompted, special=self.adds_special_tokens)

    def _clipped(self, encoding: "Encoding") -> NDArray[np.int32]:
        """Return ids up to the limit; what closes a text, such as [SEP], still closes it when its end is cut off."""
        ids = np.array(encoding.ids, dtype=np.int32)
        limit = self.spec.max_tokens
        if not limit or len(ids) <= limit:
            return ids
        # The mask marks special tokens: counted from the end up to the first that is of the text.
        n_closing = encoding.special_tokens_mask[::-1].index(0)
        return np.concatenate([ids[: limit - n_closing], ids[len(ids) - n_closing :]])

    @cached_property
    def _folder(self) -> Path:
        return self._find(self.spec)

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return tokenizer(self._folder)

    @cached_property
    def _model(self) -> "SentenceTransformer":
        quiet_libraries()
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(
            str(self._folder),
            device=self.device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": "float32"},
        )
        self._refuse_another(model)
        model = model.float().eval()
        if self.dtype == "float16":
            # Parameters alone: angles of rotary positions, in a buffer, would lose what tells far positions apart.
            for parameter in model.parameters():
                parameter.data = parameter.data.half()
        return model

    @cached_property
    def _dense(self) -> list[NDArray[np.float64]]:
        """The matrices of the linear layers behind the pooling, from their own files."""
        from safetensors import safe_open

        if not self.spec.dense:
            return []
        steps = json.loads((self._folder / "modules.json").read_bytes())
        paths = [self._folder / step["path"] / WEIGHTS for step in steps if step["type"].endswith(".Dense")]
        matrices = []
        for path in paths:
            with safe_open(path, "pt") as file:  # numpy has no bfloat16
                matrices.append(file.get_tensor("linear.weight").double().numpy())
        return matrices

    def _refuse_another(self, model: "SentenceTransformer") -> None:
        """Raise BackendError unless the model's own files say what its row says, before its first vector.

        They may ship no prompt. Rows of plans ask nothing of config.json, nor of the steps behind the transformer.
        """
        from sentence_transformers.sentence_transformer.modules import Pooling

        spec, wrong = self.spec, ""
        row = "runner/eval_set/catalog.py" if spec.config else "plan.yaml"
        for side in get_args(PromptSide):
            prompt = model.prompts.get(side)
            if prompt and prompt != spec.prompt(side):
                wrong = f"the model ships the {side} prompt {prompt!r}, {row} has {spec.prompt(side)!r}"
        modes = [module.pooling_mode for module in model if isinstance(module, Pooling)]
        pooling = [mode if isinstance(mode, str) else "+".join(mode) for mode in modes]
        if spec.pooling and pooling != [spec.pooling]:
            wrong = f"{row} says pooling {spec.pooling}, the model's own files {', '.join(pooling) or 'none'}"
        elif spec.config and not _is_plain(model, spec.dense):
            steps = ", ".join(type(module).__name__ for module in model)
            dense = f" linear layers to {', '.join(map(str, spec.dense))} dimensions" if spec.dense else ""
            wrong = (
                f"the model's steps are {steps}; the catalogued one has a transformer, its pooling{dense} and no more"
            )
        # transformers makes up at random what a file lacks, with no more than a warning.
        held = sum(tensor.numel() for name, tensor in model[0].named_parameters() if POOLER not in name)
        if held > (stored := n_parameters(self._folder)):
            wrong = f"{self._folder / WEIGHTS} holds {stored} of the model's {held} parameters"
        if wrong:
            raise BackendError(f"{spec.name}: {wrong}. Correct the encoder's row, or install the model's files again.")


def _is_plain(model: "SentenceTransformer", dense: Sequence[int]) -> bool:
    """Return whether rows are a transformer's states, pooled, through linear layers of these widths, normalised or not.

    Whether a layer adds a bias, or bends what it gives, the probe tells.
    """
    steps = [type(module).__name__ for module in model]
    widths = [module.out_features for module in model if type(module).__name__ == "Dense"]
    linear = ["Dense"] * len(dense)
    return (
        steps[:2] == ["Transformer", "Pooling"] and steps[2:] in (linear, [*linear, "Normalize"]) and widths == [*dense]
    )


_POOLED: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "cls": lambda states: states[0],
    "mean": lambda states: states.mean(axis=0),
    "max": lambda states: states.max(axis=0),
    "lasttoken": lambda states: states[-1],
}
"""One vector of a text's states (tokens, width), by the name of its pooling."""


class OnnxEncoder(TransformerEncoder):
    """A packaged BERT by onnxruntime: the rows of sentence-transformers within 1e-6, without torch."""

    takes_half = False
    libraries = ("onnxruntime", "tokenizers")
    _padding = 0

    def encode(self, texts: Sequence[str], side: PromptSide) -> Matrix:
        """Return unit rows of one batch: states that no padding has a part in, summed and scaled to length 1."""
        features = self._features([self._ids(self.spec.prompt(side) + text) for text in texts])
        mask = features["attention_mask"]
        states = self._bert(features["input_ids"], mask)
        return unit((states * mask[:, :, None].astype(np.float32)).sum(axis=1))

    def _states(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        states: NDArray[np.float64] = self._bert(ids, np.ones_like(ids))[0].astype(np.float64)
        return states

    @cached_property
    def _bert(self) -> States:
        return bert(self._folder)


class StaticEncoder(TransformerEncoder):
    """Means of a model's input token vectors, rare tokens weighted up: no attention, no limit on length.

    A WordPiece vocabulary is ordered by frequency, so log(rank) stands in for inverse frequency, as in model2vec's Zipf
    weighting. SciFact nDCG@10: 0.4475 against 0.4091 without weights.
    """

    batch_tokens = 200_000
    adds_special_tokens = False
    takes_half = False
    libraries = ("numpy", "safetensors", "tokenizers")
    method = f"mean of input token vectors x log(1 + max(row - {_FIRST_RANK}, 1))"

    def encode(self, texts: Sequence[str], side: PromptSide) -> Matrix:
        """Return unit rows; a text without a token has the row 0, which the engine refuses."""
        ids = (self._ids(self.spec.prompt(side) + text) for text in texts)
        # Sums in float64: a text without a limit has any number of tokens.
        return unit(np.array([self._table[row].sum(axis=0, dtype=np.float64) for row in ids]).astype(np.float32))

    def _states(self, ids: NDArray[np.int64]) -> None:
        return None

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """Weighted vectors (vocabulary, dim)."""
        from safetensors import safe_open

        with safe_open(self._folder / WEIGHTS, "np") as file:
            table = file.get_tensor("embeddings.word_embeddings.weight")
        ranks = np.maximum(np.arange(len(table)) - _FIRST_RANK, 1)
        weighted: NDArray[np.float32] = (table * np.log1p(ranks)[:, None]).astype(np.float32)
        return weighted


def quiet_libraries() -> None:
    """Allow no telemetry, and no bars but the engine's own; set before the libraries read their environment."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped in the library
