"""Cross-encoders: models that read a query and a text together and give one score a pair.

They run in this process, whatever backend embeds: a re-ranker reads RUN_DEPTH texts a query, an encoder every chunk.
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, digest, sha256
from runner.base.errors import BackendError, PackageMissing
from runner.base.progress import Progress, Report
from runner.base.records import Ints
from runner.base.store import PIECES, Store
from runner.embed.batches import plan_forwards, tokens_read
from runner.embed.encoder import Grouping
from runner.embed.local_encoder import quiet_libraries
from runner.embed.vectors import read_piece, save_array, write_piece
from runner.embed.weights import LIBRARIES, TOKENIZER, WEIGHTS, tokenizer, verified_folder
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder
    from tokenizers import Tokenizer

Pair = tuple[str, str]
"""A query and what is read of a chunk."""

STAGE = "pairs"
FORMAT = 1
"""Raised when scores of the same pairs by the same model would come out otherwise."""

FORWARD_TOKENS = 4096
"""Padded tokens of a forward batch."""

TOLERANCE = 1e-3
"""The most by which a pair's score may move between two machines; scores reach from about -12 to 12."""

FILES = ("config.json", TOKENIZER, WEIGHTS)
"""What a cross-encoder's folder must have; it says its modules nowhere."""


class PairScores(NamedTuple):
    """One score and one token count a pair, in the order asked; `n_lost` are the tokens past the model's maximum."""

    scores: NDArray[np.float64]
    n_tokens: Ints
    n_lost: Ints
    seconds: float | None = None
    """How long all of them took; None if an earlier attempt had begun or ended."""


class Reranker:
    """A pinned cross-encoder; its weights are checked and loaded by the first pair that it scores."""

    def __init__(self, spec: EncoderSpec, find: Callable[[EncoderSpec], Path] | None = None) -> None:
        """`find` gives the folder of the model's checked files when they are first needed."""
        self.spec = spec
        self._find = find or (lambda spec: verified_folder(spec, FILES))

    def identity(self) -> dict[str, JSON]:
        """Return everything that fixes the scores; loads nothing. A BackendError if a library is not installed."""
        try:
            versions = {library: metadata.version(library) for library in LIBRARIES}
        except metadata.PackageNotFoundError as error:
            raise PackageMissing(
                f"{self.spec.name} re-ranks in this process and needs the package {error.name}, which is not "
                "installed. Run `make setup`, or pip install 'per-source-eval[local]', or leave its cells out."
            ) from error
        return {
            **self.spec.provenance,
            "method": "cross-encoder over query and chunk; the score is the model's one output, without activation",
            "backend": {"name": "local", "forward_tokens": FORWARD_TOKENS, "versions": versions},
        }

    def check(self) -> None:
        """Raise BackendError unless libraries and weights are to be had; what is missing is downloaded."""
        self.identity()
        _ = self._folder

    def token_counts(self, pairs: Sequence[Pair]) -> Ints:
        """Return tokens of each pair before truncation, special ones included; needs no torch."""
        counts = [len(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(list(pairs))]
        return np.array(counts, dtype=np.int64)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """Return one score a pair, from one forward batch; of a pair that is too long the longer text loses its end."""
        import torch

        # Without the sigmoid, which would squeeze scores beyond 10 into a few steps of 1e-5.
        outputs = self._model.predict(
            list(pairs),
            batch_size=len(pairs),
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
        )
        scores = np.asarray(outputs, dtype=np.float64)
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise BackendError(
                f"{self.spec.name} gave {scores.shape} for {len(pairs)} pairs, or a score that is not finite. A "
                "cross-encoder for re-ranking has one output; take another model."
            )
        return scores

    @cached_property
    def _folder(self) -> Path:
        return self._find(self.spec)

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return tokenizer(self._folder)

    @cached_property
    def _model(self) -> "CrossEncoder":
        quiet_libraries()
        from sentence_transformers import CrossEncoder

        model: CrossEncoder = CrossEncoder(
            str(self._folder), device="cpu", local_files_only=True, max_length=self.spec.max_tokens
        )
        model.float().eval()
        return model


def reranker_for(name: str) -> Reranker:
    """Return the re-ranker of a catalogued name, nothing loaded yet; an InputError names the nearest one."""
    return Reranker(catalog.reranker(name))


def pair_scores(store: Store, model: Reranker, pairs: Sequence[Pair], report: Report | None = None) -> PairScores:
    """Return the scores of the pairs, in the order given.

    Batches depend on the set of distinct pairs alone, so order, repeats and killed attempts change no bit; a batch that
    an earlier attempt finished is not read again.
    """
    if not pairs:
        return PairScores(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    # By digest, so that neither order nor repeats of what is asked change a batch.
    distinct = sorted({digest(list(pair)): pair for pair in pairs}.items())
    names = [name for name, _ in distinct]
    inputs: dict[str, JSON] = {"format": FORMAT, "reranker": model.identity(), "pairs": sha256("".join(names))}
    took: list[float] = []

    def build(folder: Path) -> None:
        is_begun, started = (folder / PIECES).exists(), time.perf_counter()
        counts = model.token_counts([pair for _, pair in distinct])
        lengths = tokens_read(counts, model.spec.max_tokens)
        digests = np.frombuffer(bytes.fromhex("".join(names)), np.uint8).reshape(-1, 32)
        scores = np.empty(len(distinct))
        done = tokens = 0
        for rows in plan_forwards(lengths, digests, Grouping(FORWARD_TOKENS), "forward"):
            path = folder / PIECES / f"{digest([names[row] for row in rows])}.scores"
            # What an earlier attempt scored is taken with every bit.
            piece = read_piece(path, "<f8", len(rows))
            scores[rows] = model.score([distinct[row][1] for row in rows]) if piece is None else piece[0]
            if piece is None:
                write_piece(path, scores[rows].astype("<f8"), {})
            done, tokens = done + len(rows), tokens + int(lengths[rows].sum())
            if report is not None:
                report(Progress(done, len(distinct), tokens, int(lengths.sum())))
        if not is_begun:  # else the seconds would be those of a part
            took.append(time.perf_counter() - started)
        save_array(folder / "scores.npy", scores)
        save_array(folder / "tokens.npy", counts)

    folder = store.ensure(STAGE, inputs, build)
    places = {pair: row for row, (_, pair) in enumerate(distinct)}
    order = np.array([places[pair] for pair in pairs], np.int64)
    scores, counts = np.load(folder / "scores.npy")[order], np.load(folder / "tokens.npy")[order]
    return PairScores(scores, counts, counts - tokens_read(counts, model.spec.max_tokens), took[0] if took else None)
