"""A backend that knows a plan's own encoders beside the catalog's."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from runner.base.errors import InputError
from runner.embed.backends import Backend, BackendName, Work
from runner.embed.cost.ledger import SPEND, Budget, Ledger
from runner.embed.cost.prices import positive
from runner.embed.encoder import Encoder
from runner.eval_set.catalog import EncoderSpec, plugged_encoder

if TYPE_CHECKING:
    from runner.embed.cost.estimate import Total
    from runner.embed.over_http.service import ServiceEncoder


class PlanBackend(Backend):
    """Another backend, whose context it is, and the services that a plan names.

    A plan's own models of the hub run where that backend's encoders do. A service is asked by itself, each request
    within `max_usd`, and its ledger lies with the others of `work`. `own` is asked once, when an encoder is first
    needed: an evening writes its plan after it has begun. An encoder of a plug-in runs in this process or not at all.
    """

    max_usd: float

    def __init__(
        self, backend: Backend, own: Callable[[], Mapping[str, EncoderSpec]], work: Path, max_usd: float
    ) -> None:
        self.name: BackendName = backend.name
        self.concurrent = backend.concurrent
        self._backend, self._ask = backend, own
        self.rented = backend.rented
        self._ledger, self.max_usd = work / SPEND, positive("--max-usd", max_usd)
        self._services: dict[str, ServiceEncoder] = {}
        self._open = ExitStack()

    @cached_property
    def _own(self) -> Mapping[str, EncoderSpec]:
        return self._ask()

    def encoder(self, name: str) -> Encoder:
        """Return the plan's own encoder of that name, else the backend's; nothing is loaded or sent yet."""
        if (spec := self._own.get(name)) is not None:
            return self.encoder_of(spec)
        if self.name != "local" and plugged_encoder(name):
            raise InputError(
                f"{name} is a plug-in's encoder, which runs on this machine alone. Leave it out of the cells, or embed "
                "here."
            )
        return self._backend.encoder(name)

    def encoder_of(self, spec: EncoderSpec) -> Encoder:
        """Return the encoder of any row; one for each service, since its requests share connections and a ceiling."""
        return self._service(spec) if spec.api else self._backend.encoder_of(spec)

    def check(self, encoders: Sequence[str]) -> None:
        """Ask the backend and each service whether they take the key; a BackendError if one does not."""
        services = [name for name in encoders if self._is_service(name)]
        # Accounts first: a refused key of the rented machines would otherwise show after each service was paid a word.
        self._backend.check([name for name in encoders if name not in services])
        for name in services:
            self._service(self._own[name]).check()

    def account(self) -> str:
        """Return the other backend's account; each service has its own key."""
        return self._backend.account()

    def located(self, spec: EncoderSpec) -> str:
        """Return that it is at the service, which embeds one word, else where the other backend has it."""
        return self._service(spec).located() if spec.api else self._backend.located(spec)

    def prepare(self, work: Sequence[Work], judging: "Total | None" = None) -> None:
        """Raise BudgetError, before a text is sent, if services and what comes after them are beyond the ceiling."""
        from runner.embed.cost.estimate import TokenCount, Total, of_services

        # Services and rented machines spend from one ceiling, so the other backend is told what services take.
        served = of_services({part.encoder: TokenCount(part.tokens, part.source) for part in work}, self._own)
        total = replace(judging or Total(self.max_usd), embedding=served.usd)
        if served.usd:
            total = replace(total, spent=sum(entry.usd for entry in Ledger(self._ledger).entries()))
            total.check(served.lines)
        self._backend.prepare([part for part in work if not self._is_service(part.encoder)], total)

    def dollars(self, encoder: str) -> float | None:
        """Return what the encoder cost so far, None if nothing is metered."""
        service = self._services.get(encoder)
        return self._backend.dollars(encoder) if service is None else service.budget.spent(encoder)

    def _is_service(self, name: str) -> bool:
        return name in self._own and bool(self._own[name].api)

    def _service(self, spec: EncoderSpec) -> "ServiceEncoder":
        if spec.name not in self._services:
            from runner.embed.over_http.service import ServiceEncoder

            self._services[spec.name] = ServiceEncoder(spec, Budget(self._ledger, self.max_usd))
            self._open.callback(self._services[spec.name].close)
        return self._services[spec.name]

    def __enter__(self) -> Self:
        self._open.enter_context(self._backend)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()
