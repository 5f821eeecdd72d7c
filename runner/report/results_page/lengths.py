"""Where the bars of the chunks' lengths stand, and how much of them an encoder never read; the template draws them."""

from collections.abc import Iterable, Mapping, Sequence

from runner.base.canonical import JSON
from runner.base.figures import whole_percent
from runner.report.chart import Axis, axis_over

HEIGHT = 44
GROUND = 41
TALLEST = 28
"""Pixels: the strip, where bars stand, and the highest bar of a row."""

LEAST = 1.5
"""Pixels of the lowest bar, so that a single chunk is seen."""

MUCH = 0.05
"""Share of tokens not read from which on a row says so in bold."""


def length_rows(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """Rows of chunks by length, in the order of the ranking, from results as JSON; positions in per cent of the width.

    `encoders` has a row for every encoder and chunker, in the encoder's own tokens, `chunkers` one for each chunker of
    cells without an encoder, and `health` one for every chunker, `degenerate` those of them that are. Cells whose
    chunks are the same share a row. `heaviest` is the row that loses the largest share of its tokens, None where none
    loses MUCH; `imported` are the cells of which nothing is known.
    """
    cells = results["cells"]
    read = _shared((_after(row), row["provenance"]["truncation"], row) for row in cells)
    whole = [row for row in cells if row["provenance"]["encoder"] is None]
    unread = _shared((_chunker(row["cell"]), row["provenance"]["chunks"], row) for row in whole)
    chunked = _shared((_chunker(row["cell"]), row["provenance"]["chunks"], row) for row in cells)
    health: list[dict[str, JSON]] = [{"name": name, "cells": of, "chunks": chunks} for name, chunks, of in chunked]
    rows = [_encoder_row(*shared) for shared in read]
    return {
        "height": HEIGHT,
        "ground": GROUND,
        "encoders": _panel(rows),
        "chunkers": _panel([_chunker_row(*shared) for shared in unread]),
        "heaviest": max((row for row in rows if row["much"]), key=lambda row: row["figures"]["share"], default=None),
        "health": health,
        "degenerate": [row for row in health if row["chunks"]["degenerate"]],
        "imported": [row["cell"] for row in cells if row["provenance"]["imported"] is not None],
    }


Shared = tuple[str, Mapping[str, JSON], list[str]]


def _shared(rows: Iterable[tuple[str, Mapping[str, JSON] | None, Mapping[str, JSON]]]) -> list[Shared]:
    """One entry for what has the same name and figures, with its cells; what has no figures is left out."""
    found: list[Shared] = []
    for name, figures, row in rows:
        same = next((names for other, known, names in found if (other, known) == (name, figures)), None)
        if same is not None:
            same.append(row["cell"])
        elif figures is not None:
            found.append((name, figures, [row["cell"]]))
    return found


def _chunker(cell: str) -> str:
    return cell.rpartition(" x ")[2]


def _retrieval(cell: str) -> str:
    return cell.rpartition(" x ")[0]


def _after(row: Mapping[str, JSON]) -> str:
    """Encoder and chunker as a dense cell of theirs is called; "" for a cell without an encoder."""
    encoder = row["provenance"]["encoder"]
    return f"{encoder['encoder']} x {_chunker(row['cell'])}" if encoder else ""


def _encoder_row(name: str, cut: Mapping[str, JSON], cells: list[str]) -> dict[str, JSON]:
    limit = cut["lengths"]["limit"]
    share = cut["chunks_cut"] / cut["chunks"] if cut["chunks"] else 0.0
    said = f"{cut['chunks_cut']:,} of {cut['chunks']:,} chunks cut ({whole_percent(share)})"
    return {
        "name": name,
        "in": [_retrieval(cell) for cell in cells if cell != name],
        "also": name in cells,
        "figures": cut,
        "lengths": cut["lengths"],
        "longest": cut["tokens_max"],
        "reads": f"reads {limit:,} tokens" if limit else "reads any length",
        "cut": said if cut["chunks_cut"] else f"none of {cut['chunks']:,} chunks cut",
        "lost": f"{whole_percent(cut['share'])} of the tokens not read" if cut["lost"] else "",
        "much": cut["share"] >= MUCH,
        "hatched": True,
    }


def _chunker_row(name: str, chunks: Mapping[str, JSON], cells: list[str]) -> dict[str, JSON]:
    limit = chunks["lengths"]["limit"]
    return {
        "name": name,
        "in": [_retrieval(cell) for cell in cells],
        "also": False,
        "figures": chunks,
        "lengths": chunks["lengths"],
        "longest": chunks["tokens_max"],
        "reads": f"keeps to {limit:,} tokens" if limit else "any length",
        "cut": f"{chunks['count']:,} chunks",
        "lost": "",
        "much": False,
        "hatched": False,
    }


def _panel(rows: Sequence[dict[str, JSON]]) -> dict[str, JSON]:
    """The rows over one axis from 0 to the longest chunk that has a bin of its own; no rows, no ticks."""
    axis = axis_over([_end(row) for row in rows], include=[0.0])
    for row in rows:
        row |= _drawn(row, axis)
    return {"rows": list(rows), "ticks": [{"at": tick.at, "text": f"{tick.value:,.0f}"} for tick in axis.ticks]}


def _end(row: Mapping[str, JSON]) -> float:
    """Where a row's bars end: at its longest chunk, or at the last bin where that holds all longer ones."""
    lengths = row["lengths"]
    return float(min(row["longest"], len(lengths["counts"]) * lengths["width"]))


def _drawn(row: Mapping[str, JSON], axis: Axis) -> dict[str, JSON]:
    """Bars as high as their share of the row's fullest bin, and the parts of them that lie past an encoder's limit."""
    lengths, end = row["lengths"], _end(row)
    width, limit, counts = lengths["width"], lengths["limit"], lengths["counts"]
    spans = [
        (number * width, min((number + 1) * width, end), count / max(counts))
        for number, count in enumerate(counts)
        if count
    ]
    past = [(max(first, limit), last, share) for first, last, share in spans if last > limit]
    at = axis.at(limit)
    return {
        "bars": [_bar(axis, *span) for span in spans],
        "past": [_bar(axis, *span) for span in past] if limit and row["hatched"] else [],
        "limit": {"at": at, "text": f"{limit:,}", "before": at > 80} if 0 < limit <= axis.high else None,
        "beyond": axis.at(end) if row["longest"] > end else None,
    }


def _bar(axis: Axis, start: float, end: float, share: float) -> dict[str, float]:
    height = round(max(LEAST, share * TALLEST), 1)
    left, right = axis.at(start), axis.at(end)
    return {"x": left, "width": round(right - left, 2), "y": round(GROUND - height, 1), "height": height}
