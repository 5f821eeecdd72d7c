"""The account's side of Modal: one app for all encoders, weights fetched once, and a meter over everything."""

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from runner.base.errors import BackendError
from runner.base.progress import say
from runner.embed.backends import Backend, BackendName, Work
from runner.embed.cost.ledger import Entry, moment
from runner.embed.cost.prices import PRICE_SOURCE
from runner.embed.modal.encoder import ModalEncoder, Placement
from runner.embed.modal.service import ModalService, check_installed
from runner.embed.weights import download_mark
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from runner.embed.cost.estimate import Estimate, Total
    from runner.embed.cost.prices import RemoteOptions
    from runner.embed.cost.rental import Rentals

_REPORTED_AFTER = timedelta(hours=1)


def own_row(spec: EncoderSpec) -> dict[str, str]:
    """What a container is told of a plan's own encoder, as JSON; nothing of the catalog's, which it has itself."""
    return {} if spec.name in catalog.ENCODERS else {"own": json.dumps({**spec.model_dump(), "name": spec.name})}


class ModalBackend(Backend):
    """Encoders of one app on Modal, which the first batch starts and closing stops; several may embed at once."""

    name: BackendName = "modal"
    concurrent = True

    def __init__(self, rentals: "Rentals") -> None:
        self.rentals = rentals
        self.budget, self.options = rentals.budget, rentals.options
        options = self.options
        self.rented: RemoteOptions | None = options
        self.max_usd: float | None = options.max_usd
        self.placement = Placement(options.gpu, options.containers)
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

    def encoder_of(self, spec: EncoderSpec) -> "ModalEncoder":
        """The encoder of any row, nothing started yet."""
        return ModalEncoder(self, spec)

    def check(self, encoders: Sequence[str]) -> None:
        """Raise BackendError if Modal does not take the token; nothing is started."""
        if encoders:
            self.account()

    def account(self) -> str:
        """The workspace of the token; nothing is started."""
        return self.service.workspace()

    def located(self, spec: EncoderSpec) -> str:
        """In Modal's Volume, or nowhere yet."""
        return "in Modal's Volume" if download_mark(spec) in self.service.stored() else ""

    def prepare(self, work: Sequence[Work], judging: "Total | None" = None) -> None:
        """Print the estimate of the work left, before anything starts; a BudgetError if it exceeds the ceiling."""
        from runner.embed.cost.estimate import TokenCount, Total, of_rented
        from runner.embed.cost.ledger import all_entries

        planned = {part.encoder: TokenCount(part.tokens, "counted") for part in work}
        self._expected = of_rented(planned, self.options, all_entries(self.budget.folder))
        if not self._expected.lines:
            return
        later = judging or Total(self.budget.max_usd)
        total = replace(later, spent=self.budget.spent(), embedding=later.embedding + self._expected.usd)
        total.check(self._expected.lines)
        say("\n".join([*self._expected.lines, total.line]))

    def dollars(self, encoder: str) -> float:
        """What all sessions of the encoder cost by list price, those of earlier attempts included."""
        return self.budget.spent(encoder)

    def embedder(self, spec: EncoderSpec) -> Any:  # noqa: ANN401  # Modal's handle of a class
        """The remote object that embeds with an encoder, its weights fetched; one for all calls: they share warm
        containers.
        """
        modal_app = self.service.started()
        with self._lock:
            self._remember()
            lock = self._fetching.setdefault(download_mark(spec), threading.Lock())
        with lock:
            if spec.name not in self._embedders:
                self._fetch(modal_app, spec)
                self._embedders[spec.name] = modal_app.Embedder.with_options(**self.placement.options)(
                    encoder=spec.name,
                    revision=spec.revision,
                    device=self.placement.device,
                    dtype=self.placement.dtype,
                    **own_row(spec),
                )
        return self._embedders[spec.name]

    def _remember(self) -> None:
        """Put this run into the ledger, once, so that a later command can ask what was billed for it."""
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
                self.service.result(lambda: modal_app.fetch.remote.aio(spec.name, spec.revision, **own_row(spec)))
            except BackendError as error:
                self.rentals.check()
                raise BackendError(
                    f"{spec.name}: {spec.model} at revision {spec.revision} could not be fetched to Modal. {error}"
                ) from error

    def billed(self, run_id: str, began: datetime, now: datetime | None = None) -> float | None:
        """What Modal billed for a run; None if its report does not answer or cannot be complete yet.

        The report has full hours only. It is asked an hour after the ledger's last session ended, so that every hour of
        the run is in it.
        """
        asked = now or datetime.now(UTC)
        ended = max([began, *(entry.moment for entry in self.budget.entries())])
        if asked - ended < _REPORTED_AFTER:
            return None
        start, whole = (when.astimezone(UTC).replace(minute=0, second=0, microsecond=0) for when in (began, asked))
        return self.service.billed(run_id, start, whole)
