"""What the operator asks of rented machines, and what is asked where nothing is said."""

from dataclasses import dataclass

from runner.base.errors import InputError
from runner.embed.cost.prices import GIVEN_PRICE, PRICE_SOURCE, container_price, known_gpu, positive

GPU = "L4"
MAX_USD = 5.0
CONTAINERS = 4


@dataclass(frozen=True)
class RemoteOptions:
    """What the operator asks of rented machines; an InputError for a GPU without a price and for what is no amount."""

    gpu: str = GPU
    max_usd: float = MAX_USD
    price_per_second: float | None = None
    """Of one container; None for the table's."""
    containers: int = CONTAINERS

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu", known_gpu(self.gpu))
        positive("--max-usd", self.max_usd)
        if self.price_per_second is not None:
            positive(GIVEN_PRICE, self.price_per_second)
        if self.containers < 1:
            raise InputError(f"--containers {self.containers}: at least 1 is needed.")

    @property
    def price(self) -> float:
        """Dollars a second of one container."""
        return container_price(self.gpu) if self.price_per_second is None else self.price_per_second

    @property
    def price_source(self) -> str:
        """Where the price is from."""
        return PRICE_SOURCE if self.price_per_second is None else GIVEN_PRICE
