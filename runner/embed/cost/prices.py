"""What a second of a rented container costs: a dated table, since no provider is asked before anything starts."""

import math
from typing import NamedTuple

from runner.base.errors import InputError

PRICE_SOURCE = "list price, second-hand, 2026-06-27"
"""Modal's list prices as two third parties printed them (techbytes 2026-05-07, beam.cloud 2026-06-27); they agree."""

GIVEN_PRICE = "--price-per-second"
"""The source of a price that the operator gave."""

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
    """The name as the table has it, whatever its case; an InputError lists the known ones."""
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
    """The value, when it is a finite number above 0; an InputError names the flag otherwise."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{flag}: {value} is no number of dollars above 0.")
    return value


def shown(usd: float) -> str:
    """Dollars as messages have them: cents, and two figures of what is less than ten of them."""
    return f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.2g}"
