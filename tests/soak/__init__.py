"""Killed evenings, damaged files, flipped bits and failing services; `make soak` runs them, no test does."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trial:
    """One trial's end. `count` adds to its kind's target; `found` says what went wrong, "" if nothing did."""

    kind: str
    number: int
    count: int
    what: str
    seconds: float
    found: str = ""


Kind = Callable[[Path, Sequence[int], int], Iterator[Trial]]
"""`run(work, numbers, seed)` yields one Trial per number, in order; a trial is a function of its number and seed."""
