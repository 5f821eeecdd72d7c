"""What rented machines cost and how fast they embed: a dated price list, token rates, and the operator's options.

No provider is asked. A rate is a cautious default until a session has measured it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from runner.base.errors import InputError
from runner.embed.cost.ledger import LedgerRow
from runner.eval_set.catalog import ENCODERS, RERANKERS, EncoderSpec

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
    """The name as the table has it, whatever its case; an InputError if it has none."""
    for known in (*GPUS, CPU):
        if name.strip().casefold() == known.casefold():
            return known
    raise InputError(
        f"--gpu {name!r}: no price is known for it. Known are {', '.join((*GPUS, CPU))}; another needs a row in "
        "runner/embed/cost/prices.py."
    )


def container_price(gpu: str) -> float:
    """Dollars a second of one container with that GPU and the cores beside it; "cpu" for one without."""
    name = known_gpu(gpu)
    return CORES["cpu"] * CORE_USD if name == CPU else GPUS[name].usd + CORES["gpu"] * CORE_USD


def weights_price() -> float:
    """Dollars a second of the container that downloads weights."""
    return CORES["weights"] * CORE_USD


def positive(flag: str, value: float) -> float:
    """The value if it is finite and above 0; else an InputError names the flag."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{flag}: {value} is no number of dollars above 0.")
    return value


def shown(usd: float) -> str:
    """Dollars for messages: whole cents, or two significant figures below ten cents."""
    return f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.2g}"


class Rate(NamedTuple):
    """Tokens a second of one container, and where the figure is from: "default" or "measured on DATE"."""

    tokens_per_second: float
    label: str


UTILISATION = 0.3
"""Share of the peak that encoders reach: batches are padded, and an L4 throttles at 72 W long before its peak."""

_CORE_GFLOPS = 15
"""Single precision, of one rented core."""

CEILING = 100_000
"""No default is above this: one core's tokeniser and the way back of the rows then hold up the device."""

MEASURED_SECONDS = 5.0
"""A session counts as a measurement from this many busy container-seconds on; shorter ones measure the network."""


def rate(encoder: str, gpu: str, sessions: Iterable[LedgerRow]) -> Rate:
    """What the newest session of this encoder on this GPU measured; the default if none did."""
    of_it = [row for row in sessions if (row.kind, row.what, row.gpu) == ("embed", encoder, gpu)]
    measured = [row for row in of_it if row.busy_seconds >= MEASURED_SECONDS and row.busy_tokens]
    if not measured:
        return Rate(default_rate(encoder, gpu), "default")
    newest = max(measured, key=lambda row: row.started_on)
    return Rate(newest.busy_tokens / newest.busy_seconds, f"measured on {newest.started_on[:10]}")


def default_rate(encoder: str, gpu: str) -> float:
    """Tokens a second of one container, from the encoder's arithmetic and the device's peak."""
    name = known_gpu(gpu)
    gflops = CORES["cpu"] * _CORE_GFLOPS if name == CPU else 1000 * UTILISATION * GPUS[name].peak_tflops
    needed = size(encoder).gflop_per_token
    return min(CEILING, gflops / needed) if needed else CEILING


def size(encoder: str) -> EncoderSpec:
    """Return the row that says how large an encoder is; of a name without one, the catalog's largest."""
    return (ENCODERS | RERANKERS).get(encoder, ENCODERS["arctic-l-v2.0"])


GPU = "L4"

MAX_USD = 5.0

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
