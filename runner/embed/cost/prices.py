"""Every price that is known: containers by the second, language models by the token; each table with date and source.

No provider is asked.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from runner.base.errors import InputError
from runner.base.schema import Count, FrozenModel
from runner.embed.cost import MAX_USD
from runner.eval_set.shapes.labels import undated

PRICE_SOURCE = "list price, second-hand, 2026-06-27"
"""Modal's list prices as two third parties printed them (techbytes 2026-05-07, beam.cloud 2026-06-27); they agree."""

CPU = "cpu"
"""The name that stands for a container without a GPU."""


class Gpu(NamedTuple):
    """Dollars a second, and the dense half-precision tensor peak in TFLOPS (the lower of two data sheets)."""

    usd: float
    peak_tflops: int


CORE_USD = 0.0000131
GPUS: dict[str, Gpu] = {
    "T4": Gpu(0.000164, 65),
    "L4": Gpu(0.000222, 121),
    "A10": Gpu(0.000306, 70),
    "L40S": Gpu(0.000542, 362),
    "A100-40GB": Gpu(0.000583, 312),
    "A100-80GB": Gpu(0.000694, 312),
    "H100": Gpu(0.001097, 989),
    "H200": Gpu(0.001261, 989),
}
"""By the name that Modal gives a GPU. Memory and regional surcharges are in no figure: neither is known."""

CORES = {"gpu": 1, "cpu": 4, "weights": 1}
"""Cores of a container, and the limit of what it is billed for: beside a GPU, without one, and to download weights."""


def known_gpu(name: str) -> str:
    """Return the name as the table has it, whatever its case; an InputError if it has none."""
    for known in (*GPUS, CPU):
        if name.strip().casefold() == known.casefold():
            return known
    raise InputError(
        f"--gpu {name!r}: no price is known for it. Known are {', '.join((*GPUS, CPU))}; another needs a row in "
        "runner/embed/cost/prices.py."
    )


def container_price(gpu: str) -> float:
    """Return the dollars a second of one container with that GPU and the cores beside it; "cpu" for one without."""
    name = known_gpu(gpu)
    return CORES["cpu"] * CORE_USD if name == CPU else GPUS[name].usd + CORES["gpu"] * CORE_USD


def weights_price() -> float:
    """Return the dollars a second of the container that downloads weights."""
    return CORES["weights"] * CORE_USD


def positive(flag: str, value: float) -> float:
    """Return the value if it is finite and above 0; else an InputError names the flag."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{flag}: {value} is not a number of dollars above 0.")
    return value


def shown(usd: float) -> str:
    """Return dollars for messages: whole cents, or two significant figures below ten cents."""
    return f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.2g}"


GPU = "L4"

CONTAINERS = 4


@dataclass(frozen=True)
class RemoteOptions:
    """What the operator asks of rented machines; an InputError for a GPU without a price or an impossible amount."""

    gpu: str = GPU
    max_usd: float = MAX_USD
    containers: int = CONTAINERS

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu", known_gpu(self.gpu))
        positive("--max-usd", self.max_usd)

    @property
    def price(self) -> float:
        """Dollars a second of one container."""
        return container_price(self.gpu)


# Tokens

PRICE_FLAG = "--judge-price"
TOKEN_SOURCE = "list price, second-hand, 2026-10-24"  # noqa: S105  # no password
"""Anthropic's list prices as stored copies of its pricing page have them, and as two tools that follow it printed them
(synaps 0.10.2, 2026-10-10; claudit 1.9.2, 2026-10-24); they agree."""

LONG_PROMPT = 100_000
"""Tokens from which a prompt counts as long, where that has a price of its own."""

CACHE_WRITE = 1.25
BATCH_SHARE = 0.5
"""What a request costs in a message batch, of its price alone."""


class Usage(FrozenModel):
    """Tokens of one request, as the service counted them; cached ones are in no other figure."""

    read: Count = 0
    cache_written: Count = 0
    cache_read: Count = 0
    written: Count = 0


class Price(NamedTuple):
    """Dollars per million tokens read and written; `cached` is a cached token's share of one read.

    `long` multiplies the whole request if its prompt is longer than LONG_PROMPT.
    """

    read: float
    written: float
    cached: float = 0.1
    long: float = 1.0
    source: str = TOKEN_SOURCE

    def in_batches(self) -> Self:
        """Return the price of the same in a message batch."""
        return self._replace(read=self.read * BATCH_SHARE, written=self.written * BATCH_SHARE)

    def usd(self, usage: Usage) -> float:
        """Return the dollars of one request."""
        # Cached tokens count towards the length of a prompt, whatever they cost.
        prompt = usage.read + usage.cache_written + usage.cache_read
        read = self.read * (usage.read + CACHE_WRITE * usage.cache_written + self.cached * usage.cache_read)
        factor = self.long if prompt > LONG_PROMPT else 1.0
        return factor * (read + self.written * usage.written) / 1e6


FREE = Price(0.0, 0.0, source="a server of one's own")
BY_FILE = Price(0.0, 0.0, source="answers by file")

CLAUDE: dict[str, Price] = {
    "claude-fable-5-1": Price(10, 50, 0.025),
    "claude-mythos-5-1": Price(10, 50, 0.025),
    "claude-fable-5": Price(10, 50),
    "claude-mythos-5": Price(10, 50),
    "claude-opus-5-5": Price(4, 20, 0.05),
    "claude-opus-5": Price(5, 25),
    "claude-opus-4-8": Price(5, 25),
    "claude-opus-4-7": Price(5, 25),
    "claude-opus-4-6": Price(5, 25),
    "claude-opus-4-5": Price(5, 25),
    "claude-sonnet-5-5": Price(2, 10, 0.05),
    "claude-sonnet-5": Price(2, 10),
    "claude-sonnet-4-6": Price(3, 15),
    "claude-sonnet-4-5": Price(3, 15),
    "claude-haiku-5-5": Price(0.10, 0.50, long=5.0),
    "claude-haiku-4-5": Price(1, 5),
}
"""By the id without its date."""


def price_of(model: str) -> Price:
    """Return the table's price of a Claude model; an InputError for one that it does not have."""
    price = CLAUDE.get(undated(model))
    if price is None:
        raise InputError(
            f"No price is known for {model!r}. Known are {', '.join(CLAUDE)}; give what another costs as "
            f"{PRICE_FLAG} IN,OUT, in dollars a million tokens read and written, such as {PRICE_FLAG} 3,15."
        )
    return price


def given_price(text: str) -> Price:
    """Return the price that an operator gives as IN,OUT, cached tokens at a tenth; an InputError for any other text."""
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError:
        read = written = math.nan
    if not (math.isfinite(read) and math.isfinite(written) and read >= 0 and written >= 0):
        raise InputError(
            f"{PRICE_FLAG} {text!r}: two numbers are needed, dollars a million tokens read and written, such as 3,15."
        )
    return Price(read, written, source=PRICE_FLAG)
