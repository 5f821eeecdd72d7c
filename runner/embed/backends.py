"""Where encoders run: in this process, on Modal's machines, or behind an address."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

from runner.embed.encoder import Encoder
from runner.embed.local_encoder import TransformerEncoder, encoder_for
from runner.embed.weights import is_here
from runner.eval_set.catalog import ENCODERS, EncoderSpec, plugged_encoder

if TYPE_CHECKING:
    from runner.embed.cost.estimate import Total
    from runner.embed.cost.prices import RemoteOptions

BackendName = Literal["local", "modal", "http"]


class Work(NamedTuple):
    """What one encoder still has to embed: distinct texts, and the tokens of them that it reads."""

    encoder: str
    texts: int
    tokens: int


class Backend(Protocol):
    """Hands out encoders while it is open; closing it stops whatever it started elsewhere."""

    @property
    def name(self) -> BackendName:
        """As records have it."""

    @property
    def concurrent(self) -> bool:
        """Whether its encoders embed at the same time."""

    def encoder(self, name: str) -> Encoder:
        """The encoder of a catalogued name, nothing loaded yet; an InputError for an unknown or excluded name."""

    def encoder_of(self, spec: EncoderSpec) -> Encoder:
        """The encoder of any row, nothing loaded yet."""

    def check(self, encoders: Sequence[str]) -> None:
        """Raise BackendError if the account or the key is refused; called before the first long step."""

    @property
    def rented(self) -> "RemoteOptions | None":
        """What is asked of rented machines; None if nothing is rented."""

    @property
    def max_usd(self) -> float | None:
        """The ceiling of all that it may spend; None if it spends nothing."""

    def account(self) -> str:
        """Whose account is charged, "" if nobody's; a BackendError if it is refused or does not answer."""

    def located(self, spec: EncoderSpec) -> str:
        """Where an encoder's weights are already, "" if they have to come from the model hub; nothing is downloaded."""

    def prepare(self, work: Sequence[Work], judging: "Total | None" = None) -> None:
        """Called before the first text is sent; a BackendError if the work may not begin.

        `judging` is what will be judged afterwards, under the same ceiling.
        """

    def billed(self, run_id: str, began: datetime) -> float | None:
        """Dollars that the provider billed for a run since it began, None if nobody answers that."""

    def dollars(self, encoder: str) -> float | None:
        """What this encoder cost so far, None if nothing is metered."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Unmetered:
    """The part of a backend that rents nothing."""

    rented = None
    max_usd = None

    def account(self) -> str:
        """Nobody's."""
        return ""

    def check(self, encoders: Sequence[str]) -> None:
        """Nobody to ask."""

    def prepare(self, work: Sequence[Work], judging: "Total | None" = None) -> None:
        """Ask for nothing."""

    def billed(self, run_id: str, began: datetime) -> None:
        """Nobody to ask."""

    def dollars(self, encoder: str) -> None:
        """None: nothing is metered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LocalBackend(Unmetered):
    """Encoders in this process, one after the other."""

    name: BackendName = "local"
    concurrent = False

    def __init__(
        self,
        encoders: Callable[[str], Encoder] = encoder_for,
        of_rows: Callable[[EncoderSpec], Encoder] = TransformerEncoder,
    ) -> None:
        self.encoder, self.encoder_of = encoders, of_rows

    def located(self, spec: EncoderSpec) -> str:
        """On this machine, or nowhere yet; a caller's own encoders and those of plug-ins are here.

        A BackendError if the libraries that run it are not.
        """
        if self.encoder is not encoder_for or plugged_encoder(spec.name):
            return "on this machine"
        one = self.encoder(spec.name) if spec.name in ENCODERS else self.encoder_of(spec)
        one.identity()
        return "on this machine" if is_here(spec) else ""
