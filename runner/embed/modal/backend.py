"""Encoders on Modal: one app for all of them, weights fetched once, and a budget over everything.

Models and pins are those of this machine.
"""

import json
import secrets
import threading
from collections.abc import AsyncIterator, Generator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.base.progress import say
from runner.base.records import Ints, PromptSide
from runner.embed.backends import Backend, BackendName, Work
from runner.embed.cost.ledger import Entry, moment
from runner.embed.cost.prices import CORES, CPU, PRICE_SOURCE
from runner.embed.encoder import Answer, Batch, Encoder, Grouping
from runner.embed.local_encoder import Dtype, encoder_class
from runner.embed.modal.pins import image_pins
from runner.embed.modal.service import ModalService, check_installed, described, of_the_method, without_secrets
from runner.embed.weights import LIBRARIES, download_mark, tokenizer_folder
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from runner.embed.cost.estimate import Estimate, Total
    from runner.embed.cost.rental import Rentals

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


def _own_row(spec: EncoderSpec) -> dict[str, str]:
    """Return what a container is told of a row that the catalog has not, or has without a revision."""
    return (
        {} if spec == catalog.ENCODERS.get(spec.name) else {"own": json.dumps({**spec.model_dump(), "name": spec.name})}
    )


class ModalBackend(Backend):
    """Encoders of one app on Modal, which the first batch starts and closing stops; several may embed at once."""

    name: BackendName = "modal"
    concurrent = True

    def __init__(self, rentals: "Rentals") -> None:
        self.rentals, self.budget = rentals, rentals.budget
        self.rented = self.options = rentals.options
        self.max_usd = self.options.max_usd
        self.service = ModalService(secrets.token_hex(8))
        self._remembered = False
        self._lock = threading.Lock()
        self._fetching: dict[str, threading.Lock] = {}
        self._embedders: dict[str, Any] = {}
        self._expected: Estimate | None = None

    def __enter__(self) -> Self:
        check_installed()
        self.rentals.on_exhausted(lambda: self.service.stop("the budget is used up"))
        return self

    def __exit__(self, *_: object) -> None:
        self.service.close()
        self.rentals.close()

    @property
    def device(self) -> Literal["cpu", "cuda"]:
        """The device of a container, as torch names it."""
        return "cpu" if self.options.gpu == CPU else "cuda"

    @property
    def dtype(self) -> Dtype:
        """Half precision on a GPU."""
        return "float32" if self.device == "cpu" else "float16"

    @property
    def container_options(self) -> dict[str, Any]:
        """For `with_options`; cores are limited, so that no more can be billed than is metered."""
        gpu = self.options.gpu
        cores = CORES["cpu" if gpu == CPU else "gpu"]
        asked = {} if gpu == CPU else {"gpu": _EXACTLY.get(gpu, gpu)}
        return {**asked, "cpu": (cores, cores), "max_containers": self.options.containers}

    def encoder_of(self, spec: EncoderSpec) -> "ModalEncoder":
        """Return the encoder of any row, nothing started yet."""
        return ModalEncoder(self, spec)

    def check(self, encoders: Sequence[str]) -> None:
        """Raise BackendError if Modal does not take the token; nothing is started."""
        if encoders:
            self.account()

    def account(self) -> str:
        """Return the workspace of the token; nothing is started."""
        return self.service.workspace()

    def located(self, spec: EncoderSpec) -> str:
        """Return whether the weights are in Modal's Volume."""
        return "in Modal's Volume" if download_mark(spec) in self.service.stored() else ""

    def prepare(self, work: Sequence[Work], judging: "Total | None" = None) -> None:
        """Print the estimate of the work left, before anything starts; a BudgetError if it exceeds the ceiling."""
        from runner.embed.cost.estimate import TokenCount, Total, of_rented

        planned = {part.encoder: TokenCount(part.tokens, part.source) for part in work}
        self._expected = of_rented(planned, self.options, self.budget.entries())
        if not self._expected.lines:
            return
        later = judging or Total(self.budget.max_usd)
        total = replace(later, spent=self.budget.spent(), embedding=later.embedding + self._expected.usd)
        total.check(self._expected.lines)
        say("\n".join([*self._expected.lines, total.line]))

    def dollars(self, encoder: str) -> float:
        """Return what all sessions of the encoder cost by list price, those of earlier attempts included."""
        return self.budget.spent(encoder)

    def embedder(self, spec: EncoderSpec) -> Any:  # noqa: ANN401  # Modal's handle of a class
        """Return the remote object that embeds with an encoder, its weights fetched.

        It is one for all calls, which so share warm containers.
        """
        modal_app = self.service.started()
        with self._lock:
            self._remember()
            lock = self._fetching.setdefault(download_mark(spec), threading.Lock())
        # Two encoders may fetch side by side; two users of one wait for a single download.
        with lock:
            if spec.name not in self._embedders:
                self._fetch(modal_app, spec)
                self._embedders[spec.name] = modal_app.Embedder.with_options(**self.container_options)(
                    encoder=spec.name, revision=spec.revision, device=self.device, dtype=self.dtype, **_own_row(spec)
                )
        return self._embedders[spec.name]

    def _remember(self) -> None:
        """Put this run into the ledger, once: by its id Modal's page names what it bills."""
        if self._remembered:
            return
        entry = Entry(
            id=secrets.token_hex(8),
            kind="app",
            what=self.service.run_id,
            on=moment(),
            usd=0.0,
            ended=True,
            estimate_usd=self._expected.usd if self._expected else None,
            max_usd=self.budget.max_usd,
            price_source=PRICE_SOURCE,
        )
        self.budget.write(entry)
        self._remembered = True

    def _fetch(self, modal_app: Any, spec: EncoderSpec) -> None:  # noqa: ANN401  # a module
        """Download the weights into the Volume, unless its mark says that they are there."""
        if download_mark(spec) in self.service.stored():
            return
        with self.rentals.session(spec.name, "weights"):
            try:
                self.service.result(lambda: modal_app.fetch.remote.aio(spec.name, spec.revision, **_own_row(spec)))
            except BackendError as error:
                self.rentals.check()
                raise BackendError(
                    f"{spec.name}: {spec.model} at revision {spec.revision} could not be fetched to Modal. {error}"
                ) from error


class ModalEncoder(Encoder):
    """One encoder in Modal's containers."""

    resubmissions = 2

    def __init__(self, rented: ModalBackend, spec: EncoderSpec) -> None:
        self.spec = spec
        self._rented = rented
        self._here = encoder_class(spec.name)(spec, device=rented.device, dtype=rented.dtype, find=tokenizer_folder)

    @property
    def grouping(self) -> Grouping:
        """On a CPU the local forward batches, so that rows are the local ones bit for bit.

        On a GPU no forward batch, which is never cut, has more texts than one answer should.
        """
        n_texts = min(MOST_TEXTS, ANSWER_BYTES // (4 * self.spec.dim))
        if self._rented.device == "cpu":
            return Grouping(self._here.batch_tokens, n_texts, CPU_REQUEST_TOKENS)
        return Grouping(GPU_FORWARD_TOKENS, n_texts, GPU_REQUEST_TOKENS, n_texts)

    @property
    def tolerance(self) -> float:
        """Of the model in the container."""
        return self._here.tolerance

    def identity(self) -> dict[str, JSON]:
        """Return row and method; under "backend" GPU, number format, forward batches and pins. Starts nothing."""
        return {
            **self.spec.provenance,
            "method": self._here.method,
            "backend": {
                "name": "modal",
                "gpu": self._rented.options.gpu,
                "dtype": self._here.dtype,
                "forward_tokens": self.grouping.forward_tokens,
                "forward_texts": self.grouping.forward_texts,
                "versions": {name: pin for name, pin in image_pins().items() if name in LIBRARIES},
            },
        }

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> Ints:
        """Return what the local encoder counts, from the tokenizer's file alone."""
        some = range(0, len(texts), _COUNTED_AT_ONCE)  # the tokens of one call are kept until the next
        counts = [self._here.token_counts(texts[start : start + _COUNTED_AT_ONCE], side) for start in some]
        return np.concatenate([np.zeros(0, np.int64), *counts])

    def embed(self, batches: Sequence[Batch]) -> Generator[Answer, None, None]:
        """Yield answers in any order, metered until the last of them; reaching the ceiling ends the embedding."""
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

        with rentals.session(self.spec.name, "embed"):
            try:
                for result in self._rented.service.results(remote):
                    yield self._answer(result)
                    rentals.check()
            except BackendError:
                rentals.check()  # a ceiling that is reached breaks the connection, and is the reason to be told
                raise

    def _answer(self, result: Any) -> Answer:  # noqa: ANN401  # whatever came back
        if isinstance(result, BaseException):
            if not of_the_method(result):
                raise self._not_ready(described(result))
            return Answer("", error=described(result))
        given = result if isinstance(result, dict) else {}
        if refusal := given.get("refusal"):
            raise self._not_ready(without_secrets(str(refusal)))
        return _decoded(given)

    def _not_ready(self, reason: str) -> BackendError:
        return BackendError(
            f"{self.spec.name}: no container on Modal could be made ready ({reason}). Nothing is embedded in its place."
        )


def _decoded(given: dict[str, Any]) -> Answer:
    """Return the answer that a container gave, with an error if it is damaged."""
    batch_id = str(given.get("batch_id", ""))
    try:
        if error := given.get("error"):
            return Answer(batch_id, error=without_secrets(str(error)))
        if sha256(given["data"]).hexdigest() != given["sha256"] or given["dtype"] != "<f4":
            raise ValueError("the rows are not those that were sent back")
        rows = np.frombuffer(given["data"], "<f4").reshape(given["n"], given["dim"])
        n_tokens = np.frombuffer(given["tokens"], "<i4").astype(np.int64)
        if len(n_tokens) != len(rows):
            raise ValueError(f"{len(n_tokens)} token counts for {len(rows)} rows")
        facts = {str(name): str(value) for name, value in given["facts"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Answer(batch_id, error=f"the answer is damaged: {type(error).__name__}: {error}")
    return Answer(batch_id, rows, facts=facts, n_tokens=n_tokens)
