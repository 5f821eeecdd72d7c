"""Measures of a ranking that has one right answer: functions of the rank at which it stands."""

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints

MEASURE_NAMES = ("ndcg", "recall", "mrr")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of MEASURE_NAMES, read down to rank `cutoff`."""

    name: str
    cutoff: int

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}"

    def divisors(self) -> Floats:
        """What a gold's gain is divided by at ranks 1 to `cutoff`; further down it counts 0.

        With one relevant item the ideal of nDCG has it at rank 1 (Jarvelin & Kekalainen 2002).
        """
        ranks = range(1, self.cutoff + 1)
        if self.name == "ndcg":
            return np.array([math.log2(rank + 1) for rank in ranks])
        if self.name == "mrr":
            return np.array(ranks, float)
        return np.ones(self.cutoff)


def parse_measure(text: str) -> Measure:
    """The measure that "ndcg@10", "recall@5" or "mrr@10" names; a ValueError says what is wrong with other text."""
    name, _, cutoff = text.partition("@")
    if name not in MEASURE_NAMES:
        raise ValueError(f"unknown metric {name!r}; choices: {list(MEASURE_NAMES)}")
    if not re.fullmatch("[1-9][0-9]{0,8}", cutoff):
        raise ValueError(f"metric must be 'name@K' (e.g. 'ndcg@5'), got {text!r}")
    return Measure(name, int(cutoff))


class Matches(NamedTuple):
    """Where rows hold a gold label, one entry a place: the row, the label's number, the rank less 1."""

    row: Ints
    label: Ints
    place: Ints


def gold_matches(numbers: Ints, lengths: Ints) -> Matches:
    """The places that hold a gold label, by row and rank.

    `numbers` are the rows end to end, each id as its label's number or below 0 where it is no label; `lengths` (rows,)
    are the rows' lengths.
    """
    found = np.flatnonzero(numbers >= 0)
    row = np.repeat(np.arange(len(lengths)), lengths)[found]
    starts = np.cumsum(lengths) - lengths
    return Matches(row, numbers[found], found - starts[row])
