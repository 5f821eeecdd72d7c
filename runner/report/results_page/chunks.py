"""What the tables of #chunks hold: each encoder's reading of each chunker's chunks once, and every chunker's health."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.base.figures import whole_percent
from runner.eval_set.shapes.cell import ChunkHealth, Provenance, Truncation
from runner.eval_set.shapes.results import Results

MUCH = 0.05
"""Share of tokens not read from which on the page says so before the section is unfolded."""


class ChunkTables(NamedTuple):
    """Rows in the order of the ranking, without what several cells share.

    `read` is by encoder and chunker, `health` by chunker; of `imported` cells nothing is known. `headline` says which
    encoder loses most.
    """

    read: Mapping[str, Provenance]
    health: Mapping[str, ChunkHealth]
    imported: Sequence[str]
    headline: str


def chunk_tables(results: Results) -> ChunkTables:
    """Return the tables of #chunks."""
    read: dict[str, Provenance] = {}
    health: dict[str, ChunkHealth] = {}
    cut: dict[str, Truncation] = {}
    for row in results.cells:
        origin, chunker = row.provenance, row.cell.rpartition(" x ")[2]
        if origin.encoder is not None and origin.truncation is not None:
            name = f"{origin.encoder['encoder']} x {chunker}"
            read.setdefault(name, origin)
            cut.setdefault(name, origin.truncation)
        if origin.chunks is not None:
            health.setdefault(chunker, origin.chunks)
    worst = max(cut, key=lambda name: cut[name].share, default="")
    headline = "No encoder cut much."
    if worst and cut[worst].share >= MUCH:
        headline = f"{worst} loses most: {whole_percent(cut[worst].share)} of the tokens not read."
    elif not any(one.lost for one in cut.values()):
        headline = "No encoder cut anything."
    return ChunkTables(
        read, health, [row.cell for row in results.cells if row.provenance.imported is not None], headline
    )
