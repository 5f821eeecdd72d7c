"""One encoder on Modal: the model and pins of this machine, in containers that a meter watches."""

from collections.abc import AsyncIterator, Generator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.base.records import PromptSide
from runner.embed.cost.prices import CORES, CPU
from runner.embed.encoder import Answer, Batch, Grouping
from runner.embed.local_encoder import Dtype, encoder_class
from runner.embed.modal.pins import model_pins
from runner.embed.modal.service import ModalService, described, of_the_method, without_secrets
from runner.embed.weights import tokenizer_folder
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from runner.embed.cost.rental import Rental, Rentals

GPU_FORWARD_TOKENS = 32_768
GPU_REQUEST_TOKENS = 262_144
CPU_REQUEST_TOKENS = 8_192
"""The largest encoder takes a minute and a half for them on four cores, and long texts three times that: of the ten
minutes of a request's timeout."""

MOST_TEXTS = 512
ANSWER_BYTES = 1 << 20
"""Rows of one answer; from 2 MiB on Modal sends them by another way, which takes longer."""

_COUNTED_AT_ONCE = 4096
_EXACTLY = {"H100": "H100!"}
"""What Modal is asked for where the plain name may be served by another GPU, here by an H200."""


class Placement(NamedTuple):
    """The device of a container and how many there are; `gpu` is a name in the table of prices, or "cpu"."""

    gpu: str
    containers: int

    @property
    def device(self) -> Literal["cpu", "cuda"]:
        """As torch names it."""
        return "cpu" if self.gpu == CPU else "cuda"

    @property
    def dtype(self) -> Dtype:
        """Half precision on a GPU."""
        return "float32" if self.gpu == CPU else "float16"

    @property
    def options(self) -> dict[str, Any]:
        """For `with_options`; cores are limited, so that no more can be billed than is metered."""
        cores = CORES["cpu" if self.gpu == CPU else "gpu"]
        asked = {} if self.gpu == CPU else {"gpu": _EXACTLY.get(self.gpu, self.gpu)}
        return {**asked, "cpu": (cores, cores), "max_containers": self.containers}


class Rented(Protocol):
    """The containers that a backend rents."""

    placement: Placement
    rentals: "Rentals"
    service: ModalService

    def embedder(self, spec: EncoderSpec) -> Any:  # noqa: ANN401  # Modal's handle of a class
        """The remote object that embeds with an encoder: the app running, its weights in the Volume."""


class ModalEncoder:
    """One encoder in Modal's containers."""

    resubmissions = 2

    def __init__(self, rented: Rented, spec: EncoderSpec) -> None:
        self.spec = spec
        self._rented = rented
        self._placement = rented.placement
        self._class = encoder_class(spec.name)
        self._here = self._class(
            spec, device=self._placement.device, dtype=self._placement.dtype, find=tokenizer_folder
        )

    @property
    def grouping(self) -> Grouping:
        """On a CPU the local forward batches, so that rows are the local ones bit for bit.

        On a GPU no forward batch, which is never cut, has more texts than one answer should.
        """
        n_texts = min(MOST_TEXTS, ANSWER_BYTES // (4 * self.spec.dim))
        if self._placement.gpu == CPU:
            return Grouping(self._class.batch_tokens, n_texts, CPU_REQUEST_TOKENS)
        return Grouping(GPU_FORWARD_TOKENS, n_texts, GPU_REQUEST_TOKENS, n_texts)

    @property
    def tolerance(self) -> float:
        """Of the model in the container."""
        return self._here.tolerance

    def identity(self) -> dict[str, JSON]:
        """Catalogue row and method; under "backend" GPU, number format, forward batches and pins. Starts nothing."""
        return {
            **self.spec.provenance,
            "method": self._class.method,
            "backend": {
                "name": "modal",
                "gpu": self._placement.gpu,
                "dtype": self._here.dtype,
                "forward_tokens": self.grouping.forward_tokens,
                "forward_texts": self.grouping.forward_texts,
                "versions": model_pins(),
            },
        }

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """As the local encoder counts, from the tokenizer's file alone."""
        some = range(0, len(texts), _COUNTED_AT_ONCE)  # the tokens of one call are kept until the next
        counts = [self._here.token_counts(texts[start : start + _COUNTED_AT_ONCE], side) for start in some]
        return np.concatenate([np.zeros(0, np.int64), *counts])

    def embed(self, batches: Sequence[Batch]) -> Generator[Answer, None, None]:
        """Answers in any order, metered until the last of them; reaching the ceiling ends the embedding."""
        if not batches:
            return
        rentals = self._rented.rentals
        rentals.check()  # before anything is built or fetched
        embedder = self._rented.embedder(self.spec)

        def remote() -> AsyncIterator[Any]:
            inputs = ((batch.batch_id, batch.side, list(batch.texts), list(batch.forwards)) for batch in batches)
            answers: AsyncIterator[Any] = embedder.embed.starmap.aio(
                inputs, order_outputs=False, return_exceptions=True
            )
            return answers

        with rentals.session(self.spec.name, "embed") as rental:
            try:
                for result in self._rented.service.results(remote):
                    yield self._answer(result, rental)
                    rentals.check()
            except BackendError:
                rentals.check()  # a ceiling that is reached breaks the connection, and is the reason to be told
                raise

    def _answer(self, result: Any, rental: "Rental") -> Answer:  # noqa: ANN401  # whatever came back
        if isinstance(result, BaseException):
            if not of_the_method(result):
                raise self._not_ready(described(result))
            return Answer("", error=described(result))
        said = result if isinstance(result, dict) else {}
        answer = _decoded(said)
        n_tokens = np.zeros(0, np.int64) if answer.n_tokens is None else answer.n_tokens
        n_read = np.minimum(n_tokens, self.spec.max_tokens or n_tokens)
        self._rented.rentals.answered(rental, str(said.get("container", "")), int(n_read.sum()))
        if refusal := said.get("refusal"):
            raise self._not_ready(without_secrets(str(refusal)))
        return answer

    def _not_ready(self, reason: str) -> BackendError:
        return BackendError(
            f"{self.spec.name}: no container on Modal could be made ready ({reason}). Nothing is embedded in its place."
        )


def _decoded(said: dict[str, Any]) -> Answer:
    """The answer that a container gave, with an error if it is damaged."""
    batch_id = str(said.get("batch_id", ""))
    try:
        if error := said.get("error"):
            return Answer(batch_id, error=without_secrets(str(error)))
        if sha256(said["data"]).hexdigest() != said["sha256"] or said["dtype"] != "<f4":
            raise ValueError("the rows are not those that were sent back")
        rows = np.frombuffer(said["data"], "<f4").reshape(said["n"], said["dim"])
        n_tokens = np.frombuffer(said["tokens"], "<i4").astype(np.int64)
        if len(n_tokens) != len(rows):
            raise ValueError(f"{len(n_tokens)} token counts for {len(rows)} rows")
        facts = {str(name): str(value) for name, value in said["facts"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Answer(batch_id, error=f"the answer is damaged: {type(error).__name__}: {error}")
    return Answer(batch_id, rows, facts=facts, n_tokens=n_tokens)
