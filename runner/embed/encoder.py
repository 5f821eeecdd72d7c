"""What an encoder is, what it is sent and what it answers, and the checks that every answer must pass."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, digest, sha256
from runner.base.errors import BackendError, EvalError
from runner.base.records import Ints, PromptSide
from runner.eval_set.catalog import EncoderSpec

Matrix = NDArray[np.float32]

UNIT_TOLERANCE = 1e-3
SAME = 1e-5
"""Vectors that differ by no more than this in any coordinate are one vector; the encoder's tolerance is more."""


class Grouping(NamedTuple):
    """How texts are grouped for an encoder; part of its identity, since neighbours in a forward batch fix the last
    bits.

    A forward batch holds at most `forward_tokens` padded tokens and `forward_texts` texts (0 for any number), or one
    text. A request carries one forward batch if `request_texts` is 0, else as many as fit its two limits.
    """

    forward_tokens: int
    request_texts: int = 0
    request_tokens: int = 0
    forward_texts: int = 0


@dataclass(frozen=True)
class Batch:
    """What is sent at once. `forwards` is how many texts each forward batch takes, in order; their sum is all."""

    side: PromptSide
    texts: tuple[str, ...]
    forwards: tuple[int, ...]
    batch_id: str = field(init=False)
    """SHA-256 of side, forward batches and texts; backends send it back with the rows."""

    def __post_init__(self) -> None:
        # By digests: the id of a batch of long texts is taken without putting them into one string.
        content = {"side": self.side, "forwards": self.forwards, "texts": [sha256(text) for text in self.texts]}
        object.__setattr__(self, "batch_id", digest(content))

    def forward_texts(self) -> Iterator[Sequence[str]]:
        """Yield the texts of each forward batch."""
        start = 0
        for n_texts in self.forwards:
            yield self.texts[start : start + n_texts]
            start += n_texts


@dataclass(frozen=True)
class Answer:
    """What came back for a batch: `rows` (n, dim) in the order of its texts, or an `error`.

    `batch_id` is "" for an error that the backend cannot assign. `facts` says where the batch ran: "device" and library
    versions. `n_tokens` are the backend's own counts before truncation; None if it made none.
    """

    batch_id: str
    rows: Matrix | None = None
    error: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    n_tokens: "Ints | None" = None


class Encoder(ABC):
    """One pinned encoder behind some backend; heavy libraries load with the first call that needs them."""

    spec: EncoderSpec

    probes = True
    """Whether it can be asked for vectors of the probe's sentences, and says how far it reads."""
    resubmissions = 0
    """How often a batch that came back wrong, or not at all, is sent again."""

    @property
    @abstractmethod
    def grouping(self) -> Grouping:
        """How texts are grouped."""

    @property
    def tolerance(self) -> float:
        """The most by which a coordinate of one text's row may move between two sessions, or with its batch."""
        return 1e-4  # of float32

    @abstractmethod
    def identity(self) -> dict[str, JSON]:
        """Return everything that fixes the vectors; loads nothing.

        `spec.provenance` and the method, the same on every backend; under "backend" what belongs to this one: name,
        device or address, number format, grouping, library versions.
        """

    @abstractmethod
    def token_counts(self, texts: Sequence[str], side: PromptSide) -> Ints:
        """Return tokens per text, prompt and special tokens included, before truncation."""

    @abstractmethod
    def embed(self, batches: Sequence[Batch]) -> Generator[Answer, None, None]:
        """Yield answers in any order; a batch may be answered twice or not at all.

        What ends the session (no connection, a wrong key, the budget) is a BackendError; what concerns one batch is its
        answer's error. Closing the generator gives up the rest.
        """


class InProcessEncoder(Encoder):
    """An encoder that runs in this process: one forward batch after the other, and the same rows every time."""

    batch_tokens = 1024
    facts: Mapping[str, str] = {"device": "cpu"}

    @property
    def grouping(self) -> Grouping:
        """One forward batch a request."""
        return Grouping(self.batch_tokens)

    @abstractmethod
    def encode(self, texts: Sequence[str], side: PromptSide) -> Matrix:
        """Return unit rows (n, dim), one per text in order, from one forward batch."""

    def by_catalogue(self, texts: Sequence[str]) -> Matrix | None:
        """Return unit rows of texts as they stand, made another way from the tokens' states; None if there are none."""
        return None

    def embed(self, batches: Sequence[Batch]) -> Generator[Answer, None, None]:
        """Yield one answer per batch, in order; whatever `encode` raises is the error of that batch."""
        for batch in batches:
            try:
                parts = [self.encode(texts, batch.side) for texts in batch.forward_texts()]
                rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
            except EvalError:
                raise
            except Exception as error:  # noqa: BLE001  # any library's; the engine names the shard and ends with it
                yield Answer(batch.batch_id, error=f"{type(error).__name__}: {error}", facts=self.facts)
            else:
                yield Answer(batch.batch_id, rows, facts=self.facts)


class PlugInEncoder(InProcessEncoder):
    """What a plug-in's encoder derives from; it writes `row`, `encode` and `token_counts`, and `method` in words."""

    row: ClassVar[EncoderSpec]
    """As the catalog has it; its revision is what is installed."""
    method = "a plug-in's own"

    def __init__(self, spec: EncoderSpec) -> None:
        self.spec = spec

    def identity(self) -> dict[str, JSON]:
        """Return the row, whose revision is what is installed, and the method."""
        fixed: dict[str, JSON] = {"name": "local", "device": "cpu", "forward_tokens": self.batch_tokens}
        return {**self.spec.provenance, "method": self.method, "backend": fixed}


def checked_encode(encoder: Encoder, texts: Sequence[str], side: PromptSide = "document") -> Matrix:
    """Return the checked rows of one forward batch, sent again as often as the encoder allows; or a BackendError."""
    batch = Batch(side, tuple(texts), (len(texts),))
    trouble = ""
    # A backend may lose an answer, or answer for another batch first.
    for _ in range(1 + encoder.resubmissions):
        for answer in encoder.embed([batch]):
            if answer.batch_id == batch.batch_id and answer.rows is not None:
                return checked_rows(encoder, answer.rows, len(texts))
            trouble = answer.error or trouble
    raise BackendError(f"{encoder.spec.name} failed: {trouble or 'no answer came'}")


def checked_rows(encoder: Encoder, rows: Matrix, n_texts: int) -> Matrix:
    """Return the rows; a BackendError unless their number, width and type are right and all are finite unit rows."""
    name, expected = encoder.spec.name, (n_texts, encoder.spec.dim)
    if rows.ndim != 2 or len(rows) != n_texts:
        raise BackendError(f"{name}: {n_texts} texts sent, {len(rows) if rows.ndim else 0} vectors received")
    if rows.shape != expected or rows.dtype != np.float32:
        raise BackendError(f"{name}: float32 rows of {expected[1]} were catalogued, {rows.dtype} {rows.shape} received")
    if not np.isfinite(rows).all():
        raise BackendError(f"{name}: {int((~np.isfinite(rows)).any(axis=1).sum())} of {len(rows)} rows are not finite")
    # Cosines are taken as plain products everywhere, which needs unit rows.
    norms = np.linalg.norm(rows, axis=1)
    worst = float(norms[np.abs(norms - 1).argmax()])
    if abs(worst - 1) > UNIT_TOLERANCE:
        raise BackendError(f"{name}: a row has length {worst:.4f}; unit rows are expected")
    return rows
