"""How many tokens a second an encoder reads in one container: a cautious default until a session has measured it."""

from collections.abc import Iterable
from typing import NamedTuple

from runner.embed.cost.ledger import LedgerRow
from runner.embed.cost.prices import CORES, CPU, GPUS, known_gpu


class Rate(NamedTuple):
    """Tokens a second of one container, and where the figure is from: "default" or "measured on DATE"."""

    tokens_per_second: float
    label: str


class Size(NamedTuple):
    """What reading a token takes of an encoder, in GFLOP, and how much is downloaded for it, in GB."""

    gflop_per_token: float
    weights_gb: float


SIZES: dict[str, Size] = {
    "arctic-l-v2.0": Size(0.66, 2.27),
    "mxbai-large-v1": Size(0.66, 0.67),
    "nomic-v1.5": Size(0.25, 0.55),
    "mpnet-base-v2": Size(0.19, 0.44),
    "minilm-l6-v2": Size(0.026, 0.09),
    "minilm-static-384": Size(0.0, 0.09),
}
"""GFLOP: twice the parameters outside the embedding table (303, 303, 113, 85, 11 million, none), and 4 x layers x width
x 512 for attention within 512 tokens. Longer texts cost more: 8,192 tokens at once twice to three times as much a
token."""

UTILISATION = 0.3
"""Share of the peak that encoders reach: batches are padded, and an L4 throttles at 72 W long before its peak."""

_CORE_GFLOPS = 15
"""Single precision, of one rented core."""

CEILING = 100_000
"""No default is above this: one core's tokeniser and the way back of the rows then hold up the device."""

MEASURED_SECONDS = 5.0
"""A session counts as a measurement from this many busy container-seconds on; shorter ones measure the network."""


def rate(encoder: str, gpu: str, sessions: Iterable[LedgerRow]) -> Rate:
    """What the newest session of this encoder on this GPU measured; the default where none did."""
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


def size(encoder: str) -> Size:
    """The encoder's row; one without a row is taken for the largest of all."""
    return SIZES.get(encoder, max(SIZES.values()))
