"""The embedding engine above every backend: one plan of batches, every batch checked, every finished batch kept."""

import hashlib
import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.canonical import JSON, digest, json_bytes, sha256, write_atomic
from runner.encoder import PARAPHRASES, Encoder, backend_errors, checked_encode, probe
from runner.errors import BackendError, EvalError
from runner.records import Side, Vectors
from runner.store import PIECES, Store

Order = Literal["forward", "reversed"]
Progress = Callable[[int, int], None]
"""Called with the texts embedded so far and the texts in all, after every batch and once at the start."""

PLAN = 1
"""Raised when the plan of batches or a file of the artefact changes: it is part of every key."""

PROBE = 1
CANARY_TOLERANCE = 1e-4


def embed(
    store: Store,
    encoder: Encoder,
    texts: Sequence[str],
    side: Side,
    *,
    order: Order = "forward",
    progress: Progress | None = None,
) -> Vectors:
    """One unit row a text, in input order; memory-mapped where no text occurs twice, a copy where one does.

    Batches are a function of the set of distinct texts alone: neither repeats, input order nor a killed attempt
    changes a bit. `order="reversed"` embeds the same texts in other batches and another order, for the A/A arm.
    A BackendError names encoder, batch and text; the batches that were finished before it are kept.
    """
    if not texts:
        none = np.zeros(0, dtype=np.int64)
        return Vectors(np.zeros((0, encoder.spec.dim), dtype=np.float32), none, none)
    unique = list(dict.fromkeys(texts))
    digests = [sha256(text) for text in unique]
    inputs = {
        "plan": PLAN,
        "encoder": encoder.identity(),
        "side": side,
        "order": order,
        "texts": digest(digests),
    }

    def build(folder: Path) -> None:
        _same_as_probed(store, encoder)
        _Job(encoder, unique, digests, side, order, folder, progress).run()

    folder = store.ensure("vectors", inputs, build)
    rows, counts = np.load(folder / "rows.npy", mmap_mode="r"), np.load(folder / "tokens.npy")
    if len(unique) < len(texts):
        position = {text: index for index, text in enumerate(unique)}
        gather = [position[text] for text in texts]
        rows, counts = np.asarray(rows[gather]), counts[gather]
    return Vectors(rows, counts, _lost(counts, encoder.spec.max_tokens))


def probed(store: Store, encoder: Encoder) -> dict[str, JSON]:
    """The probe's figures, from the store when this very encoder has passed before; see `encoder.probe`."""
    figures: dict[str, JSON] = json.loads((_probe_folder(store, encoder) / "probe.json").read_bytes())
    return figures


def plan_batches(lengths: NDArray[np.int64], digests: Sequence[str], budget: int, order: Order) -> list[list[int]]:
    """Indices by batch: longest texts first, so that memory gives out early; equal lengths by digest of the text.

    A batch holds at most `budget` padded tokens, or one text. Reversed, the shortest come first and batches are a
    quarter smaller, so that most texts meet other neighbours and another matrix shape.
    """
    ranked = sorted(range(len(digests)), key=lambda index: (-int(lengths[index]), digests[index]))
    if order == "reversed":
        ranked.reverse()
        budget = budget * 3 // 4
    batches: list[list[int]] = []
    widest = 0
    for index in ranked:
        length = max(int(lengths[index]), 1)
        if batches and max(widest, length) * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(index)
            widest = max(widest, length)
        else:
            batches.append([index])
            widest = length
    return batches


@dataclass(frozen=True)
class _Job:
    """One artefact in the making."""

    encoder: Encoder
    texts: Sequence[str]
    digests: Sequence[str]
    side: Side
    order: Order
    folder: Path
    progress: Progress | None

    def run(self) -> None:
        """Write `rows.npy` and `tokens.npy`, in the order of `texts`; needs memory for all rows at once."""
        counts = self._counts()
        limit = self.encoder.spec.max_tokens
        lengths = np.minimum(counts, limit) if limit else counts
        rows = np.empty((len(self.texts), self.encoder.spec.dim), dtype=np.float32)
        (self.folder / PIECES).mkdir(exist_ok=True)
        done = 0
        self._report(done)
        for number, batch in enumerate(plan_batches(lengths, self.digests, self.encoder.batch_tokens, self.order)):
            rows[batch] = self._batch(number, batch)
            done += len(batch)
            self._report(done)
        if _constant(rows, self.texts):
            shutil.rmtree(self.folder / PIECES)  # or the next run would take them for finished
            raise BackendError(
                f"{self.encoder.spec.name} returned one and the same vector for {len(rows)} texts. None was kept; "
                "check the model and run the command again."
            )
        _save(self.folder / "rows.npy", rows)
        _save(self.folder / "tokens.npy", counts)

    def _counts(self) -> NDArray[np.int64]:
        with backend_errors(self.encoder):
            counts = np.asarray(self.encoder.token_counts(self.texts, self.side), dtype=np.int64)
        if counts.shape != (len(self.texts),) or (counts < 0).any():
            raise BackendError(
                f"{self.encoder.spec.name} counted tokens for {counts.size} of {len(self.texts)} texts; "
                "every text needs one count of 0 or more."
            )
        return counts

    def _batch(self, number: int, batch: list[int]) -> NDArray[np.float32]:
        """The batch's rows, from its shard if a killed attempt left a whole one."""
        path = self.folder / PIECES / f"{number:06d}"
        seal = "".join(self.digests[index] for index in batch).encode()
        shape = (len(batch), self.encoder.spec.dim)
        if path.exists():
            stored = path.read_bytes()
            if hashlib.sha256(seal + stored[32:]).digest() == stored[:32]:
                return np.frombuffer(stored[32:], dtype="<f4").reshape(shape)
        content = self._encoded(number, batch).astype("<f4").tobytes()
        # Neither rename nor fsync: a half-written shard fails its digest and is made again.
        path.write_bytes(hashlib.sha256(seal + content).digest() + content)
        return np.frombuffer(content, dtype="<f4").reshape(shape)

    def _encoded(self, number: int, batch: list[int]) -> NDArray[np.float32]:
        texts = [self.texts[index] for index in batch]
        where = f"batch {number} of {len(batch)} texts, the first with sha256 {self.digests[batch[0]]}"
        try:
            rows = checked_encode(self.encoder, texts, self.side)
        except EvalError as error:
            raise BackendError(f"{error} ({where}). Finished batches are kept; run the command again.") from error
        if _constant(rows, texts):
            raise BackendError(
                f"{self.encoder.spec.name} returned one and the same vector for all of {where}. "
                "Finished batches are kept; check the model and run the command again."
            )
        return rows

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, len(self.texts))


def _constant(rows: NDArray[np.float32], texts: Sequence[str]) -> bool:
    """Whether three or more texts that any tokenizer tells apart by their openings have one vector.

    Equal vectors alone prove nothing: texts may differ in case only, or past the encoder's limit.
    """
    if float(np.ptp(rows, axis=0).max()) > 1e-6:
        return False
    return len({_opening(text) for text in texts}) >= 3


def _opening(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:400]).casefold()
    return re.sub(r"[\W_]+", " ", plain).strip()[:100]


def _lost(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    return np.maximum(counts - limit, 0) if limit else np.zeros_like(counts)


def _save(path: Path, array: NDArray[np.generic]) -> None:
    """An .npy file. np.save would lose the error number of a full disk, and a memory map would die of SIGBUS."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(np.ascontiguousarray(array).data.cast("B"))


def _probe_folder(store: Store, encoder: Encoder) -> Path:
    def build(folder: Path) -> None:
        write_atomic(folder / "probe.json", json_bytes(probe(encoder)))
        _save(folder / "canary.npy", _canary(encoder))

    return store.ensure("probe", {"probe": PROBE, "encoder": encoder.identity()}, build)


def _canary(encoder: Encoder) -> NDArray[np.float32]:
    return checked_encode(encoder, [pair[0] for pair in PARAPHRASES], "document")


def _same_as_probed(store: Store, encoder: Encoder) -> None:
    """Nothing, when the encoder that is about to embed answers as it did when it was probed; else a BackendError.

    The figures may come from an earlier session: the four vectors that are computed here are this session's.
    """
    shift = float(np.abs(_canary(encoder) - np.load(_probe_folder(store, encoder) / "canary.npy")).max())
    if shift > CANARY_TOLERANCE:
        raise BackendError(
            f"{encoder.spec.name} no longer answers as it did when it was probed: vectors moved by {shift:.2e}. "
            "Delete .cache/probe and run again to probe it anew; vectors made before are not comparable."
        )
