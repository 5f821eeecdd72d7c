"""Two results side by side: one self-contained page, a pure function of both files, their decisions and the templates.

It is never part of a record: whoever asks writes it where work lies, or where they like.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import slug
from runner.base.figures import fitting, fitting_signed, places, signed
from runner.base.places import COMMAND
from runner.base.records import SCORE_UNIT
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.versions import Movement
from runner.eval_set.version import Version
from runner.report.chart import Axis, Whisker, axis_over
from runner.report.comparison.compared import (
    MEASURES,
    Compared,
    Level,
    PairRow,
    SideValues,
    compared_bulk,
    compared_results,
)
from runner.report.comparison.file import write_html
from runner.report.comparison.inputs import Pair, pair_of
from runner.report.page_frame import inert, rendered

TEMPLATE_VERSION = 1
"""Raised with every change of a template or of these modules that changes the page; the page names it."""

STYLES = ("_forest.css.j2", "_comparison.css.j2")

MOST_QUERIES = 20
"""Queries of which the page tells how they moved; of the others it says how many moved at all."""

_HEADS = {"ndcg@10": "nDCG@10", "recall@10": "Recall@10", "mrr": "MRR"}


def comparison_page(pair: Pair) -> bytes:
    """UTF-8 HTML without script, network or clock: the same bytes for the same files; whatever they hold is inert."""
    if pair.bulk is not None:
        compared = compared_bulk(pair.now, pair.bulk, pair.bulk_sha256)
    else:
        assert pair.before is not None  # a pair has one or the other
        compared = compared_results(pair.before, pair.now)
    shown = inert(compared)
    return rendered(
        "comparison.html.j2",
        styles=STYLES,
        compared=shown,
        forest=pair_forest(shown),
        moved=moved_queries(shown),
        bulk=pair.bulk is not None,
        source=inert(pair.now.results.source),
        confidence=100 * pair.now.results.plan.bootstrap.confidence,
        alpha=pair.now.results.plan.significance.alpha,
        measures=[(name, _HEADS[name]) for name in MEASURES],
        verify=inert(f"{COMMAND} verify {shlex.quote(pair.now.results.source)}"),
        template_version=TEMPLATE_VERSION,
    )


def write_comparison(version: Version, against: str, output: Path | None) -> Path:
    """Where the page went: `output`, by default comparison-with-<what>.html in the version's work folder.

    Raises InputError if there is nothing to compare or the place is in an eval set, IntegrityError if a record changed.
    """
    content = comparison_page(pair_of(version, against))
    path = output or version.work / f"comparison-with-{slug(_told(against))}.html"
    return write_html(path, content, version.work, version.folder.parent)


def _told(against: str) -> str:
    """A name of WHAT for a file's name: of a path its last folder, since every file is called results.json."""
    path = Path(against)
    return path.resolve().parent.name if path.is_file() else against


class PairMark(NamedTuple):
    """A mean with its interval; `counts` of a movement are its wins, ties and losses."""

    place: Whisker
    texts: Sequence[str]
    counts: tuple[int, int, int] = (0, 0, 0)


class PairMarks(NamedTuple):
    """A row with a mark for each side that has it, and its movement if there is one."""

    name: str
    record: str
    before: PairMark | None
    now: PairMark | None
    moved: PairMark | None
    same_run: bool


class PairForest(NamedTuple):
    """Two marks a row on one axis of nDCG@10, and the movement beside them on an axis of its own, None without any.

    Places are per cent of a strip's width.
    """

    rows: Sequence[PairMarks]
    levels: Axis
    begins: str
    moved: Axis | None


class MovedQuery(NamedTuple):
    """A query with nDCG@10 of both sides in the cell that moved furthest; `mean` and `counts` are over all cells."""

    id: str
    text: str
    by: int
    cell: str
    before: str
    now: str
    moved: str
    mean: str
    counts: tuple[int, int, int]


class MovedQueries(NamedTuple):
    """The queries that moved furthest in any cell of both sides, furthest first; `moved` of `of` moved at all."""

    rows: Sequence[MovedQuery]
    moved: int
    of: int
    cells: int


def pair_forest(compared: Compared) -> PairForest:
    """The drawing of #cells."""
    rows = compared.rows
    levels = _axis([side.scores["ndcg@10"] for row in rows for side in (row.before, row.now) if side])
    moves = [move for row in rows if (move := row.moved["ndcg@10"])]
    moving = _axis(moves, include=(0.0,), ticks=3) if moves else None
    return PairForest([_marks(row, levels, moving) for row in rows], levels, levels.ticks[0].text, moving)


def moved_queries(compared: Compared) -> MovedQueries:
    """The table of #queries."""
    sides = [(row.name, row.before, row.now) for row in compared.rows if row.moved["ndcg@10"]]
    rows = [(name, before, now) for name, before, now in sides if before and now]
    found = [_query(place, name, compared.texts, rows) for place, name in enumerate(compared.common)] if rows else []
    moving = sorted((query for query in found if query.by), key=lambda query: (-abs(query.by), query.id))
    return MovedQueries(moving[:MOST_QUERIES], len(moving), len(found), len(rows))


def _marks(row: PairRow, levels: Axis, moving: Axis | None) -> PairMarks:
    move = row.moved["ndcg@10"]
    return PairMarks(
        name=row.name,
        record=row.record,
        before=row.before and _mark(row.before.scores["ndcg@10"], levels),
        now=row.now and _mark(row.now.scores["ndcg@10"], levels),
        moved=None if move is None or moving is None else _movement(move, moving),
        same_run=row.same_run,
    )


def _mark(score: Level, axis: Axis) -> PairMark:
    return PairMark(axis.whisker(*score), [fitting(value, score.low, score.high) for value in score])


def _movement(move: Movement | Difference, axis: Axis) -> PairMark:
    values = (move.mean, move.low, move.high)
    texts = [fitting_signed(value, move.low, move.high) for value in values]
    return PairMark(axis.whisker(*values), texts, (move.wins, move.ties, move.losses))


def _axis(found: Sequence[Level | Movement | Difference], include: Sequence[float] = (), ticks: int = 5) -> Axis:
    return axis_over([end for row in found for end in (row.mean, row.low, row.high)], include=include, ticks=ticks)


def _query(
    place: int, name: str, texts: Mapping[str, str], rows: Sequence[tuple[str, SideValues, SideValues]]
) -> MovedQuery:
    moves = [now.per_query[place] - before.per_query[place] for _, before, now in rows]
    furthest = max(range(len(rows)), key=lambda number: (abs(moves[number]), -number))
    cell, before, now = rows[furthest]
    return MovedQuery(
        id=name,
        text=texts[name],
        by=moves[furthest],
        cell=cell,
        before=places(before.per_query[place] / SCORE_UNIT, 2),
        now=places(now.per_query[place] / SCORE_UNIT, 2),
        moved=signed(moves[furthest] / SCORE_UNIT, 2),
        mean=signed(sum(moves) / (len(moves) * SCORE_UNIT), 2),
        counts=(sum(m > 0 for m in moves), sum(m == 0 for m in moves), sum(m < 0 for m in moves)),
    )
