"""Where encoders run: in this process, on Modal's machines, or behind an address."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from runner.embed.encoder import Encoder
from runner.embed.local_encoder import local_encoder
from runner.embed.weights import is_here
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from runner.embed.cost.estimate import Total
    from runner.embed.cost.prices import RemoteOptions

BackendName = Literal["local", "modal", "http"]


class Work(NamedTuple):
    """What one encoder still has to embed: distinct texts, tokens that it reads, and how these are known."""

    encoder: str
    texts: int
    tokens: int
    source: str = "counted"


class Backend:
    """Hands out encoders while it is open; closing it stops whatever it started elsewhere.

    Of itself it rents nothing, spends nothing, and has nobody to ask.
    """

    name: BackendName
    """As records have it."""
    concurrent = False
    """Whether its encoders embed at the same time."""
    rented: "RemoteOptions | None" = None
    """What is asked of rented machines."""
    max_usd: float | None = None
    """The ceiling of all that it may spend."""

    def encoder(self, name: str) -> Encoder:
        """Return the encoder of a name, nothing loaded yet; an InputError for an unknown or excluded name."""
        return self.encoder_of(catalog.encoder(name))

    def encoder_of(self, spec: EncoderSpec) -> Encoder:
        """Return the encoder of any row, nothing loaded yet."""
        raise NotImplementedError

    def located(self, spec: EncoderSpec) -> str:
        """Return where an encoder's weights are already, "" if they have to come from the model hub; nothing is
        downloaded.
        """
        raise NotImplementedError

    def check(self, encoders: Sequence[str]) -> None:
        """Raise BackendError if the account or the key is refused; called before the first long step."""

    def account(self) -> str:
        """Return whose account is charged, "" if nobody's; BackendError if it is refused or does not answer."""
        return ""

    def prepare(self, work: Sequence[Work], judging: "Total | None" = None) -> None:
        """Raise BackendError if the work may not begin; called before the first text is sent.

        `judging` is what will be judged afterwards, under the same ceiling.
        """

    def dollars(self, encoder: str) -> float | None:
        """Return what this encoder cost so far, None if nothing is metered."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class LocalBackend(Backend):
    """Encoders in this process, one after the other."""

    name: BackendName = "local"

    def __init__(self, encoders: Callable[[str], Encoder] | None = None) -> None:
        """`encoders` gives a caller's own by their names."""
        self._given = encoders

    def encoder(self, name: str) -> Encoder:
        """Return the encoder of a name, nothing loaded yet; an InputError for an unknown or excluded name."""
        return self._given(name) if self._given else super().encoder(name)

    def encoder_of(self, spec: EncoderSpec) -> Encoder:
        """Return the encoder of any row, nothing loaded yet."""
        return local_encoder(spec)

    def located(self, spec: EncoderSpec) -> str:
        """Return whether its files are here, as a caller's own and a plug-in's are.

        A BackendError if the libraries that run it are not.
        """
        # Neither has files of the hub that could be missing.
        if self._given or catalog.plugged_encoder(spec.name):
            return "on this machine"
        # The identity names the libraries' versions, so it is where a missing one shows, without loading any.
        local_encoder(spec).identity()
        return "on this machine" if is_here(spec) else ""
