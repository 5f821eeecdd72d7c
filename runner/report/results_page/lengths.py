"""Where the bars of the chunks' lengths stand, and how much of them an encoder never read; the template draws them."""

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from runner.base.figures import whole_percent
from runner.eval_set.shapes.cell import ChunkHealth, Lengths, Truncation
from runner.eval_set.shapes.results import CellResult, Results
from runner.report.chart import Axis, Label, Tick, axis_over

HEIGHT = 44
GROUND = 41
TALLEST = 28
"""Pixels: the strip, where bars stand, and the highest bar of a row."""

LEAST = 1.5
"""Pixels of the lowest bar, so that a single chunk is seen."""

MUCH = 0.05
"""Share of tokens not read from which on a row says so in bold."""


class Histogram(NamedTuple):
    """A bar of a row, or the part of one that lies past an encoder's limit."""

    x: float
    width: float
    y: float
    height: float


class LengthRow(NamedTuple):
    """Chunks by length, of an encoder in its own tokens; `also` says whether a cell has this very name.

    `others` are further retrievals over the same chunks. A row that loses `much` of its tokens says so in bold.
    `beyond` is where the last bar ends, if it holds all longer chunks too.
    """

    name: str
    others: Sequence[str]
    also: bool
    figures: Truncation | ChunkHealth
    longest: int
    reads: str
    cut: str
    lost: str = ""
    share: float = 0.0
    much: bool = False
    hatched: bool = False
    bars: Sequence[Histogram] = ()
    past: Sequence[Histogram] = ()
    limit: Label | None = None
    beyond: float | None = None

    @property
    def end(self) -> float:
        """Where a row's bars end: at its longest chunk, or at the last bin if that holds all longer ones."""
        lengths = self.figures.lengths
        return float(min(self.longest, len(lengths.counts) * lengths.width))


class LengthPanel(NamedTuple):
    """Rows over one axis."""

    rows: Sequence[LengthRow]
    ticks: Sequence[Tick]


Figures = TypeVar("Figures", Truncation, ChunkHealth)


class Shared(NamedTuple, Generic[Figures]):
    """What has the same name and figures, and the cells that have them."""

    name: str
    figures: Figures
    cells: list[str]


class LengthPlot(NamedTuple):
    """Rows of chunks by length, in the order of the ranking; positions in per cent of the width.

    `encoders` has a row for every encoder and chunker, in the encoder's own tokens, `chunkers` one for each chunker of
    cells without an encoder, and `health` one for every chunker, `degenerate` those of them that are. Cells whose
    chunks are the same share a row. `heaviest` is the row that loses the largest share of its tokens, None if none
    loses MUCH; `imported` are the cells of which nothing is known.
    """

    encoders: LengthPanel
    chunkers: LengthPanel
    heaviest: LengthRow | None
    health: Sequence[Shared[ChunkHealth]]
    degenerate: Sequence[Shared[ChunkHealth]]
    imported: Sequence[str]
    height: int = HEIGHT
    ground: int = GROUND


def length_rows(results: Results) -> LengthPlot:
    """The strips and the tables of #chunks."""
    cells = results.cells
    read = _shared((_after(row), row.provenance.truncation, row.cell) for row in cells)
    unread = _shared(
        (_chunker(row.cell), row.provenance.chunks, row.cell) for row in cells if row.provenance.encoder is None
    )
    health = _shared((_chunker(row.cell), row.provenance.chunks, row.cell) for row in cells)
    rows = [_encoder_row(*shared) for shared in read]
    return LengthPlot(
        encoders=_panel(rows),
        chunkers=_panel([_chunker_row(*shared) for shared in unread]),
        heaviest=max((row for row in rows if row.much), key=lambda row: row.share, default=None),
        health=health,
        degenerate=[row for row in health if row.figures.degenerate],
        imported=[row.cell for row in cells if row.provenance.imported is not None],
    )


def _shared(rows: Iterable[tuple[str, Figures | None, str]]) -> list[Shared[Figures]]:
    """One entry for what has the same name and figures, with its cells; what has no figures is left out."""
    found: list[Shared[Figures]] = []
    for name, figures, cell in rows:
        same = next((one.cells for one in found if (one.name, one.figures) == (name, figures)), None)
        if same is not None:
            same.append(cell)
        elif figures is not None:
            found.append(Shared(name, figures, [cell]))
    return found


def _chunker(cell: str) -> str:
    return cell.rpartition(" x ")[2].partition("+")[0]


def _retrieval(cell: str) -> str:
    return cell.rpartition(" x ")[0]


def _after(row: CellResult) -> str:
    """Encoder and chunker as a dense cell of theirs is called; "" for a cell without an encoder."""
    encoder = row.provenance.encoder
    return f"{encoder['encoder']} x {_chunker(row.cell)}" if encoder else ""


def _encoder_row(name: str, cut: Truncation, cells: list[str]) -> LengthRow:
    limit = cut.lengths.limit
    share = cut.chunks_cut / cut.chunks if cut.chunks else 0.0
    said = f"{cut.chunks_cut:,} of {cut.chunks:,} chunks cut ({whole_percent(share)})"
    return LengthRow(
        name=name,
        others=[_retrieval(cell) for cell in cells if cell != name],
        also=name in cells,
        figures=cut,
        longest=cut.tokens_max,
        reads=f"reads {limit:,} tokens" if limit else "reads any length",
        cut=said if cut.chunks_cut else f"none of {cut.chunks:,} chunks cut",
        lost=f"{whole_percent(cut.share)} of the tokens not read" if cut.lost else "",
        share=cut.share,
        much=cut.share >= MUCH,
        hatched=True,
    )


def _chunker_row(name: str, chunks: ChunkHealth, cells: list[str]) -> LengthRow:
    limit = chunks.lengths.limit
    return LengthRow(
        name=name,
        others=[_retrieval(cell) for cell in cells],
        also=False,
        figures=chunks,
        longest=chunks.tokens_max,
        reads=f"keeps to {limit:,} tokens" if limit else "any length",
        cut=f"{chunks.count:,} chunks",
    )


def _panel(rows: Sequence[LengthRow]) -> LengthPanel:
    """The rows over one axis from 0 to the longest chunk that has a bin of its own; no rows, no ticks."""
    axis = axis_over([row.end for row in rows], include=[0.0])
    return LengthPanel(
        [_drawn(row, row.figures.lengths, axis) for row in rows],
        [tick._replace(text=f"{tick.value:,.0f}") for tick in axis.ticks],
    )


def _drawn(row: LengthRow, lengths: Lengths, axis: Axis) -> LengthRow:
    """Bars as high as their share of the row's fullest bin, and the parts of them that lie past an encoder's limit."""
    width, limit, counts, end = lengths.width, lengths.limit, lengths.counts, row.end
    spans = [
        (number * width, min((number + 1) * width, end), count / max(counts))
        for number, count in enumerate(counts)
        if count
    ]
    past = [(max(first, limit), last, share) for first, last, share in spans if last > limit]
    return row._replace(
        bars=[_bar(axis, *span) for span in spans],
        past=[_bar(axis, *span) for span in past] if limit and row.hatched else [],
        limit=Label(axis.at(limit), f"{limit:,}") if 0 < limit <= axis.high else None,
        beyond=axis.at(end) if row.longest > end else None,
    )


def _bar(axis: Axis, start: float, end: float, share: float) -> Histogram:
    height = round(max(LEAST, share * TALLEST), 1)
    left, right = axis.at(start), axis.at(end)
    return Histogram(left, round(right - left, 2), round(GROUND - height, 1), height)
