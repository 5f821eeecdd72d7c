"""The embedding engine above every backend: one plan of batches, every answer checked, every finished shard kept.

A shard is a run of the plan's batches: one file of its rows, written whole or not at all, which the next attempt reads
in place of sending its texts again. Batches depend on the set of distinct texts alone, so repeats, input order and
killed attempts change no bit.
"""

import json
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, digest, json_bytes, write_atomic
from runner.base.errors import BackendError, EvalError, InputError
from runner.base.progress import Progress, Report
from runner.base.records import Ints, PromptSide, Vectors
from runner.base.store import FULL, MANIFEST, PIECES, Store
from runner.embed.batches import PLAN, SHA256_BYTES, Order, plan_forwards, plan_requests, tokens_read
from runner.embed.encoder import Answer, Batch, Encoder, Matrix, checked_rows
from runner.embed.probe import refuse_changed
from runner.embed.vectors import ROWS, described, npy_header, placed, read_piece, save_array, write_piece

SAME_VECTOR = 1e-6

SHARD_TEXTS, SHARD_TOKENS = 1024, 1 << 16
"""A shard ends with the batch that reaches one of these: a killed attempt loses no more, a quarter of an hour with the
largest encoder on a CPU."""

MANY_FAILURES = 20
"""Answers without a single good one among them, after which the backend as a whole is given up."""


def embed(
    store: Store,
    encoder: Encoder,
    texts: Sequence[str],
    side: PromptSide,
    *,
    order: Order = "forward",
    report: Report | None = None,
) -> Vectors:
    """Return one unit row per text, in input order; memory-mapped, or a copy if texts repeat and rows are few.

    `order="reversed"` embeds the same texts in other batches, for the A/A arm. A batch that fails does not stop the
    others; at the end a BackendError names its shard, and the others are kept.
    """
    return Embeddable(store, encoder, texts, side, order).vectors(report)


@dataclass(frozen=True)
class _Shard:
    """Batches that are kept as one file, with the places of their texts in the artefact; of a repeated one, of all."""

    number: int
    batches: Mapping[str, tuple[Batch, list[int]]]

    @property
    def file_name(self) -> str:
        return f"{digest(list(self.batches))}.rows"

    @property
    def rows(self) -> list[int]:
        return list(chain.from_iterable(rows for _, rows in self.batches.values()))


class Embeddable:
    """Texts of one side for one encoder: what an earlier attempt left of their vectors, and what has to be sent.

    An InputError shows a text that is not valid Unicode. `parts` are the numbers of texts, one part after the other,
    whose forward batches are planned by themselves: a row depends on its own part alone, and repeats stay.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        texts: Sequence[str],
        side: PromptSide,
        order: Order = "forward",
        parts: Sequence[int] = (),
    ) -> None:
        self.store, self.encoder, self.given, self.side, self.order = store, encoder, texts, side, order
        # Repeats are sent once; the order given returns with the rows.
        self.texts = list(texts) if parts else list(dict.fromkeys(texts))
        self.parts = parts or (len(self.texts),)
        try:
            joined = b"".join(sha256(text.encode()).digest() for text in self.texts)
        except UnicodeEncodeError as error:
            raise InputError(
                f"A {side} has half of a surrogate pair at character {error.start}, which is not Unicode text: it "
                f"begins {error.object[:60]!a}. Mend it, or leave it out."
            ) from error
        self.digests: NDArray[np.uint8] = np.frombuffer(joined, np.uint8).reshape(len(self.texts), SHA256_BYTES)
        self.inputs: dict[str, JSON] = {
            "plan": PLAN,
            "encoder": encoder.identity(),
            "side": side,
            "order": order,
            "texts": sha256(joined).hexdigest(),
            **({"parts": list(parts)} if parts else {}),
        }
        self.folder = store.folder("vectors", self.inputs)

    @property
    def is_begun(self) -> bool:
        """Whether an earlier run left vectors of some of these texts."""
        return any((self.folder / name).exists() for name in (MANIFEST, PIECES))

    def forget(self) -> None:
        """Remove what was kept, once it is kept elsewhere; nobody else may want it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.with_name(f"{self.folder.name}.lock").unlink(missing_ok=True)

    def outstanding(self) -> tuple[int, int]:
        """Return how many distinct texts, and tokens read of them, `vectors` would send; nothing is sent.

        Files of an earlier attempt count as whole; only `vectors` reads their bytes.
        """
        if not self.texts or (self.folder / MANIFEST).exists():
            return 0, 0
        rows = [
            row for shard in self.shards if not (self.folder / PIECES / shard.file_name).exists() for row in shard.rows
        ]
        return len(rows), int(self.lengths[rows].sum())

    def vectors(self, report: Report | None = None) -> Vectors:
        """Return one unit row per given text; see `embed`."""
        if not self.texts:
            none = np.zeros(0, dtype=np.int64)
            return Vectors(np.zeros((0, self.encoder.spec.dim), dtype=np.float32), none, none)

        def build(folder: Path) -> None:
            # A model that changed since its probe is refused before a text is sent.
            if self.encoder.probes:
                refuse_changed(self.store, self.encoder)
            with (folder / ROWS).open("wb") as stream:
                facts = _Attempt(self, folder / PIECES, stream, report).run()
            save_array(folder / "tokens.npy", self.counts)
            write_atomic(folder / "facts.json", json_bytes(facts))

        folder = self.store.ensure("vectors", self.inputs, build)
        rows, counts = np.load(folder / ROWS, mmap_mode="r"), np.load(folder / "tokens.npy")
        if len(self.texts) < len(self.given):  # texts that repeat share a row of the artefact
            position = {text: index for index, text in enumerate(self.texts)}
            places = np.array([position[text] for text in self.given], np.int64)
            rows, counts = placed(self.store, folder, places), counts[places]
        facts = json.loads((folder / "facts.json").read_bytes())
        return Vectors(rows, counts, counts - tokens_read(counts, self.encoder.spec.max_tokens), facts)

    @cached_property
    def counts(self) -> Ints:
        """One count of tokens per text, before truncation; a BackendError if the encoder gives others."""
        counts = np.asarray(self.encoder.token_counts(self.texts, self.side), dtype=np.int64)
        if counts.shape != (len(self.texts),) or (counts < 0).any():
            raise BackendError(
                f"{self.encoder.spec.name} counted tokens for {counts.size} of {len(self.texts)} texts; "
                "every text needs one count of 0 or more."
            )
        return counts

    @cached_property
    def lengths(self) -> Ints:
        """Tokens that the encoder reads of each text."""
        return tokens_read(self.counts, self.encoder.spec.max_tokens)

    @cached_property
    def shards(self) -> list[_Shard]:
        """Every request of the plan, in runs that reach the size of a shard or end the plan."""
        grouping, lengths = self.encoder.grouping, self.lengths
        forwards: list[list[int]] = []
        ends = np.cumsum(self.parts).tolist()
        for start, end in zip([0, *ends], ends, strict=False):
            planned = plan_forwards(lengths[start:end], self.digests[start:end], grouping, self.order)
            forwards += [[start + row for row in forward] for forward in planned]
        shards: list[_Shard] = []
        batches: dict[str, tuple[Batch, list[int]]] = {}
        places: dict[str, list[int]] = {}
        n_texts = n_tokens = 0
        for request in plan_requests(forwards, lengths, grouping):
            rows = list(chain.from_iterable(request))
            batch = Batch(self.side, tuple(self.texts[row] for row in rows), tuple(map(len, request)))
            # The very batch of another part, as of a document that is there twice, is sent once.
            if batch.batch_id in places:
                places[batch.batch_id] += rows
                continue
            places[batch.batch_id] = rows
            batches[batch.batch_id] = batch, rows
            n_texts, n_tokens = n_texts + len(rows), n_tokens + int(lengths[rows].sum())
            if n_texts >= SHARD_TEXTS or n_tokens >= SHARD_TOKENS:
                shards.append(_Shard(len(shards) + 1, batches))
                batches, n_texts, n_tokens = {}, 0, 0
        return [*shards, _Shard(len(shards) + 1, batches)] if batches else shards


class _Attempt:
    """One artefact in the making: rows of whole shards go to where they belong in `stream`, never all in memory."""

    def __init__(self, work: Embeddable, pieces: Path, stream: BinaryIO, report: Report | None) -> None:
        self.work, self.encoder, self.pieces, self.stream, self.report = work, work.encoder, pieces, stream, report
        self.facts: dict[str, str] | None = None
        """Where the rows were made, None before the first of them."""
        self.missing: dict[str, _Shard] = {}
        """By the id of a batch, the shard that it belongs to."""
        self.arrived: dict[str, Matrix] = {}
        """Rows of shards that are not whole yet, by batch."""
        self.troubles: dict[str, str] = {}
        """What was last wrong, by batch id; under "" what the backend could not assign."""
        self.done = self.done_tokens = self.n_kept = 0

    def run(self) -> dict[str, str]:
        """Write the rows of all texts, in their order, and return where they were made."""
        # Rows go to where they belong while others are still missing, so the header has the full size at once.
        header = npy_header(len(self.work.texts), self.encoder.spec.dim)
        self.offset = len(header)
        self.stream.write(header)
        for shard in self.work.shards:
            if not self._was_kept(shard):
                self.missing |= dict.fromkeys(shard.batches, shard)
        self._report()
        for _ in range(1 + self.encoder.resubmissions):
            if self.missing:
                self._send()
        if self.missing:
            raise BackendError(f"{self._failed()} {self._kept()}")
        return self.facts or {}

    def _was_kept(self, shard: _Shard) -> bool:
        """Return whether an earlier attempt wrote the shard."""
        piece = read_piece(self.pieces / shard.file_name, "<f4", len(shard.rows), self.encoder.spec.dim)
        if piece is None:
            return False
        self._agree(piece[1])
        self._place(shard.rows, piece[0])
        self._count(shard.rows)
        return True

    def _send(self) -> None:
        """Submit once what is missing; what comes back whole leaves `missing`. Repeats and strangers change nothing."""
        failures = 0
        batches = [shard.batches[batch_id][0] for batch_id, shard in self.missing.items()]
        with self._session(), closing(self.encoder.embed(batches)) as answers:
            for answer in answers:
                try:
                    self._take(answer)
                    failures = 0
                except BackendError as error:
                    self.troubles[answer.batch_id] = str(error)
                    failures += 1
                if failures >= MANY_FAILURES:
                    raise BackendError(
                        f"{self.encoder.spec.name} failed {failures} times in a row, the last time so: "
                        f"{self.troubles[answer.batch_id]}."
                    )

    def _take(self, answer: Answer) -> None:
        """Take the rows of a batch that is missing; raise BackendError unless they are right."""
        if answer.error or answer.rows is None:
            raise BackendError(answer.error or "0 vectors received")
        if (shard := self.missing.get(answer.batch_id)) is None:
            return
        batch, rows = shard.batches[answer.batch_id]
        n_texts = len(batch.texts)
        vectors = checked_rows(self.encoder, np.asarray(answer.rows), n_texts)
        _refuse_constant(vectors, batch.texts)
        if answer.n_tokens is not None and answer.n_tokens.tolist() != self.work.counts[rows[:n_texts]].tolist():
            raise BackendError("the backend counts other tokens than the catalogued tokenizer: another model or prompt")
        self._agree(answer.facts)
        # Out of order: a shard is written when its last batch is here.
        self.arrived[answer.batch_id] = np.tile(vectors, (len(rows) // n_texts, 1))
        del self.missing[answer.batch_id]
        if shard.batches.keys() <= self.arrived.keys():
            self._keep(shard)
        self._count(rows)
        self._report()

    def _agree(self, facts: Mapping[str, str]) -> None:
        """Raise BackendError if the facts are not those of earlier rows: an artefact never mixes devices."""
        self.facts = dict(facts) if self.facts is None else self.facts
        if self.facts != dict(facts):
            raise BackendError(
                f"The backend changed while it embedded: {described(self.facts)} at first, {described(facts)} now. "
                "Vectors of two devices or library versions are never mixed in one cell. Run again where the first one "
                f"is to be had, or delete {self.pieces} to begin this cell anew."
            )

    def _keep(self, shard: _Shard) -> None:
        """Write a shard of which everything has arrived."""
        vectors = np.concatenate([self.arrived.pop(batch_id) for batch_id in shard.batches]).astype("<f4", copy=False)
        try:  # a model that is stuck shows in no batch of one text
            _refuse_constant(vectors, [text for batch, _ in shard.batches.values() for text in batch.texts])
        except BackendError as error:
            self.missing |= dict.fromkeys(shard.batches, shard)
            self.troubles |= dict.fromkeys(shard.batches, str(error))
            raise
        write_piece(self.pieces / shard.file_name, vectors, self.facts or {})
        self._place(shard.rows, vectors)

    def _place(self, rows: Sequence[int], vectors: Matrix) -> None:
        for row, vector in zip(rows, vectors, strict=True):
            self.stream.seek(self.offset + row * vector.nbytes)
            self.stream.write(vector.tobytes())
        self.n_kept += len(rows)

    def _failed(self) -> str:
        """Return how much failed, and what was wrong with the first batch, whose shard is named."""
        batch_id, shard = next(iter(self.missing.items()))
        texts = shard.batches[batch_id][0].texts
        n_shards = len({each.number for each in self.missing.values()})
        trouble = self.troubles.get(batch_id) or self.troubles.get("") or "no answer came"
        return (
            f"{self.encoder.spec.name}: {n_shards} of {len(self.work.shards)} shards could not be embedded. Shard "
            f"{shard.number} fails on {len(texts)} texts, of which the first begins {texts[0][:60]!r}: {trouble}."
        )

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Turn what ends a call into the backend into a BackendError that says what is kept."""
        try:
            yield
        except EvalError as error:
            raise type(error)(f"{error} {self._kept()}") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise  # our own disk, which the store has words for
            raise BackendError(
                f"{self.encoder.spec.name} failed: {type(error).__name__}: {error}. {self._kept()}"
            ) from error

    def _kept(self) -> str:
        return (
            f"{self.n_kept} of {len(self.work.texts)} texts are embedded and kept; run the command again and only the "
            "others are sent."
        )

    def _count(self, rows: Sequence[int]) -> None:
        self.done, self.done_tokens = self.done + len(rows), self.done_tokens + int(self.work.lengths[rows].sum())

    def _report(self) -> None:
        if self.report is not None:
            lengths = self.work.lengths
            self.report(Progress(self.done, len(lengths), self.done_tokens, int(lengths.sum())))


def _refuse_constant(vectors: Matrix, texts: Sequence[str]) -> None:
    """Raise BackendError for one vector of at least three texts with visibly different openings.

    Equal vectors alone prove nothing: texts may differ only in case, or past the encoder's limit.
    """
    if float(np.ptp(vectors, axis=0).max()) > SAME_VECTOR:
        return
    # Without case, accents and signs, which an encoder may not see.
    plain = (unicodedata.normalize("NFKD", text[:400]).casefold() for text in texts)
    if len({re.sub(r"[\W_]+", " ", opening).strip()[:100] for opening in plain}) >= 3:
        raise BackendError(f"one and the same vector for all of {len(texts)} texts")
