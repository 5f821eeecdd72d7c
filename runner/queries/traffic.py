"""Queries that people asked: a CSV file of texts and counts, drawn by frequency in three bands."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runner.base.csv_files import Faults, csv_rows
from runner.base.errors import InputError
from runner.base.records import TRAFFIC
from runner.eval_set.shapes.queries import QueryRow
from runner.queries.query_file import plain

BANDS = ("head", "torso", "tail")
"""Thirds of what was asked, the most asked queries first; what was asked once is always tail."""


class Asked(NamedTuple):
    """A query as it was first spelt, and how often it was asked."""

    text: str
    times: int


def read_counts(path: Path) -> list[Asked]:
    """Return the queries of a CSV file with the columns `query` and `count`, the most asked first.

    Repeats are folded without regard to case and white space. An InputError names each row that is wrong.
    """
    spelt: dict[str, str] = {}
    times: Counter[str] = Counter()
    faults = Faults()
    for number, row in csv_rows(path, {"query": "text", "count": "n times"}, {}):
        text, count = " ".join(row["query"].split()), row["count"]
        is_count = count.isascii() and count.isdigit() and int(count[:12]) > 0
        with faults.of_row():
            if not (text.isprintable() and text and is_count):
                raise InputError(f"{path}:{number}: a query and how often it was asked are expected.")
        if not is_count:
            continue
        # The first spelling stands for all; twelve digits are more than any log counts.
        spelt.setdefault(plain(text), text)
        times[plain(text)] += int(count[:12])
    faults.stop()
    return [Asked(spelt[text], count) for text, count in sorted(times.items(), key=lambda item: (-item[1], item[0]))]


def bands(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Return the queries of each band, given the most asked first; queries asked equally often are in one band."""
    total = sum(query.times for query in asked)
    alike: dict[int, list[Asked]] = defaultdict(list)
    for query in asked:
        alike[query.times].append(query)
    by_band: dict[str, list[Asked]] = {band: [] for band in BANDS}
    # A group of equally frequent queries lies where the middle of its weight lies.
    before = 0
    for times, group in alike.items():
        weight = times * len(group)
        third = 3 * (2 * before + weight) // (2 * total)  # of the middle of the group
        by_band[BANDS[-1] if times == 1 else BANDS[third]] += group
        before += weight
    return by_band


def drawn(asked: Sequence[Asked], size: int, seed: int) -> list[QueryRow]:
    """Return a third of `size` from each band, by chance within it; a band with too few hands its places on."""
    total, rows = sum(query.times for query in asked), list[QueryRow]()
    for number, (band, group) in enumerate(bands(asked).items()):
        order = np.random.default_rng(np.random.PCG64([seed, number])).permutation(len(group))
        # So many by the end of this band, less what is drawn: places that a band lacks go to the next.
        wanted = size * (number + 1) // len(BANDS) - len(rows)
        for query in (group[index] for index in order[:wanted]):
            note = f"asked {query.times:,} of {total:,} times"
            row = QueryRow(
                id=f"t{len(rows) + 1:02d}", text=query.text, kind="topic", origin=TRAFFIC, stratum=band, note=note
            )
            rows.append(row)
    return rows
