"""The size of a benchmark: what is measured, or with PSE_BENCH_SMALL=1 the least that runs every line of it."""

import os
from typing import TypeVar

SMALL = os.environ.get("PSE_BENCH_SMALL") == "1"

T = TypeVar("T")


def sized(full: T, small: T) -> T:
    """`small` where the environment asks for it: figures of such a run mean nothing."""
    return small if SMALL else full
