"""Print the figures of docs/findings.md: what one choice changes in nDCG@10, over all sources and by kind of question.

Also at which mix of questions another cell would be recommended, and what a million chunks weigh. `--figure FILE` draws
the first, `--topic SOURCE ID` prints one topic's scores.

Each source says how its questions went under two cells; sources are pooled as `pooled` pools the gains of a kind of
cell (docs/statistics.md). A source without a cell of a contrast, or without a question of a group, is left out of it.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from runner.base.canonical import read_json, write_atomic
from runner.base.figures import signed
from runner.base.records import SCORE_UNIT
from runner.base.schema import checked
from runner.decide.roster import newest_locked
from runner.eval_set.asked import AskedWording, asked
from runner.eval_set.kinds import kind_of
from runner.eval_set.shapes.results import Results, Turning
from runner.report.drawings import Axis, axis_over
from runner.score.pooling import Effect, SourceGains, effect_of

ENCODER = "minilm-l6-v2"

Picked = Callable[["Source"], str | None]
"""The cell of a source that stands on one side of a contrast, None if it has none."""


class Contrast(NamedTuple):
    """The scores of one cell less those of another."""

    name: str
    one: Picked
    other: Picked


class Source(NamedTuple):
    """A source's results: scores (asked,) of each cell, what was asked, and at which mix another cell would be chosen.

    `cells` has the files of its cells.
    """

    name: str
    baseline: str
    scores: Mapping[str, npt.NDArray[np.float64]]
    asked: Sequence[AskedWording]
    groups: Sequence[str]
    turnings: Sequence[Turning]
    cells: Path

    def chunkers(self) -> Iterator[tuple[str, str]]:
        """Yield the cells of the baseline's encoder, whole vectors alone, with their kinds."""
        yield from ((cell, kind_of(cell, self.baseline)) for cell in self.scores if cell.startswith(f"{ENCODER} x "))

    def cut(self) -> str | None:
        """Return the structural chunker, cut at what the encoder reads."""
        return next((cell.partition(" x ")[2] for cell, kind in self.chunkers() if kind == "structural cut"), None)


def _over(retriever: str, chunker: str) -> Picked:
    def picked(source: Source) -> str | None:
        name = f"{retriever} x {source.cut() if chunker == 'cut' else chunker}"
        return name if name in source.scores else None

    return picked


def _uncut(source: Source) -> str | None:
    return next((cell for cell, kind in source.chunkers() if kind == "structural"), None)


SUM, FIXED, PATH = f"sum(bm25,{ENCODER})", "fixed_token_256_25", "fixed_path_256_25"

CONTRASTS = (
    Contrast("sum over cut structure, to fixed windows", _over(SUM, "cut"), _over(ENCODER, FIXED)),
    Contrast("sum over fixed windows, to vectors alone", _over(SUM, FIXED), _over(ENCODER, FIXED)),
    Contrast("sum over cut structure, to vectors alone", _over(SUM, "cut"), _over(ENCODER, "cut")),
    Contrast("words, to vectors, over cut structure", _over("bm25", "cut"), _over(ENCODER, "cut")),
    Contrast("windows under their path, to windows", _over(ENCODER, PATH), _over(ENCODER, FIXED)),
    Contrast("cut structure, to fixed windows", _over(ENCODER, "cut"), _over(ENCODER, FIXED)),
    Contrast("cut structure, to windows under their path", _over(ENCODER, "cut"), _over(ENCODER, PATH)),
    Contrast("cut structure, to uncut", _over(ENCODER, "cut"), _uncut),
    Contrast("sum over cut structure, to sum over paths", _over(SUM, "cut"), _over(SUM, PATH)),
    Contrast("vectors as bytes, to whole", _over(f"{ENCODER}@int8", FIXED), _over(ENCODER, FIXED)),
    Contrast("static vectors, to MiniLM", _over("minilm-static-384", FIXED), _over(ENCODER, FIXED)),
    Contrast("mpnet, to MiniLM", _over("mpnet-base-v2", FIXED), _over(ENCODER, FIXED)),
)

GROUPS = ("all", "citation", "quote or attribution", "plain", "paraphrased")


def group_of(one: AskedWording, kinds: Mapping[str, str]) -> str:
    """Return the group of what is asked: its wording, or the kind of a topic that has one wording."""
    kind = kinds[one.topic]
    return one.wording or ("quote or attribution" if kind in ("quote", "attribution") else kind)


def read_source(results: Path) -> Source:
    """Return a version's results; one that asks in one wording alone has no scores here."""
    read = checked(Results, read_json(results), results)
    kinds, texts = {row.id: row.kind for row in read.queries}, asked(read.queries)
    scores = {row.cell: np.array(row.by_wording["ndcg@10"], float) / SCORE_UNIT for row in read.cells if row.by_wording}
    groups, cells = [group_of(one, kinds) for one in texts], results.parent / "cells"
    return Source(read.plan.source, read.plan.baseline, scores, texts, groups, read.turnings, cells)


def differences(source: Source, contrast: Contrast, group: str) -> npt.NDArray[np.float64]:
    """Return a contrast's difference per topic of a group, of two wordings their mean; empty without one."""
    one, other = contrast.one(source), contrast.other(source)
    if one is None or other is None:
        return np.empty(0)
    by_topic: dict[str, list[float]] = {}
    for asked_one, name, difference in zip(
        source.asked, source.groups, source.scores[one] - source.scores[other], strict=True
    ):
        if group in ("all", name):
            by_topic.setdefault(asked_one.topic, []).append(float(difference))
    return np.array([np.mean(values) for values in by_topic.values()])


def pooled(sources: Sequence[Source], contrast: Contrast, group: str) -> Effect | None:
    """Return a contrast's mean over sources with its interval, None if no source has two topics for it."""
    given = []
    for source in sources:
        values = differences(source, contrast, group)
        if len(values) > 1:
            # Where no query differs, the error is not 0: it would outweigh every other source.
            error = max(float(values.var(ddof=1)) / len(values), 1e-8)
            gain = np.array([values.mean()])
            given.append(SourceGains(source.name, (contrast.name,), ("sum",), gain, np.array([[error]]), len(values)))
    return effect_of("sum", given)


def lines(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a table of contrasts by group, and one of each source's own differences."""
    yield f"| nDCG@10 over {len(sources)} sources | " + " | ".join(GROUPS) + " |"
    yield "|---" * (len(GROUPS) + 1) + "|"
    for contrast in CONTRASTS:
        effects = [pooled(sources, contrast, group) for group in GROUPS]
        yield f"| {contrast.name} | " + " | ".join(_told(effect) for effect in effects) + " |"
    for group in GROUPS:
        yield ""
        yield f"| {group}, by source | " + " | ".join(source.name for source in sources) + " |"
        yield "|---" * (len(sources) + 1) + "|"
        for contrast in CONTRASTS:
            own = [differences(source, contrast, group) for source in sources]
            yield f"| {contrast.name} | " + " | ".join(signed(float(x.mean()), 3) if len(x) else "" for x in own) + " |"
    yield ""
    yield "| brought by citations, quotes and speakers | " + " | ".join(source.name for source in sources) + " |"
    yield "|---" * (len(sources) + 1) + "|"
    shares = [f"{100 * _literal(source, CONTRASTS[1]):.0f} %" for source in sources]
    yield f"| of {CONTRASTS[1].name} | " + " | ".join(shares) + " |"


def _literal(source: Source, contrast: Contrast) -> float:
    """Return which share of a contrast's gain the topics of one wording bring."""
    everything, *parts = (differences(source, contrast, group).sum() for group in GROUPS[:3])
    return float(sum(parts) / everything)


def turning_lines(sources: Sequence[Source]) -> Iterator[str]:
    """Yield for each source between which shares of a kind of question the recommendation stays."""
    yield "| the recommendation stays | " + " | ".join(source.name for source in sources) + " |"
    yield "|---" * (len(sources) + 1) + "|"
    # A turning of citations counts quotes and speakers with them.
    for what, told in (("citations", "citations, quotes and speakers"), ("plain wordings", "plain wordings")):
        found = [next((turn for turn in source.turnings if turn.what == what), None) for source in sources]
        yield f"| with {told} | " + " | ".join(_stays(turn) for turn in found) + " |"


def _stays(turn: Turning | None) -> str:
    if turn is None:
        return ""
    low, high = (None if share is None else f"{100 * share:.0f} %" for share in (turn.below, turn.above))
    kept = f"above {low}" if low else ""
    kept += (" and " if low and high else "") + (f"below {high}" if high else "")
    return f"{kept or 'at any share'} ({100 * turn.now:.0f} % now)"


def weight_lines(sources: Sequence[Source]) -> Iterator[str]:
    """Yield the tokens of each kind of chunker's chunks, and the share that MiniLM reads, as means of sources."""
    weights: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for source in sources:
        files = {file["cell"]: file for file in map(read_json, source.cells.glob("*.json"))}
        for cell, kind in source.chunkers():
            read, chunker = files[cell]["truncation"], cell.partition(" x ")[2]
            tokens = read["tokens"] / files[cell]["chunks"]["count"]
            weights[kind if kind.startswith("structural") else chunker].append((tokens, 1 - read["share"]))
    yield "| a million chunks | million tokens | of them read |"
    yield "|---|---|---|"
    for told, values in weights.items():
        tokens, share = (mean(column) for column in zip(*values, strict=True))
        yield f"| {told} | {tokens:.0f} of {len(values)} | {100 * share:.1f} % |"


def topic_lines(source: Source, topic: str) -> Iterator[str]:
    """Yield each wording of a topic with its nDCG@10 in every cell."""
    for place, one in enumerate(source.asked):
        if one.topic == topic:
            yield f"{source.name} {topic}: {one.text}"
            yield from (f"  {scores[place]:.2f}  {cell}" for cell, scores in source.scores.items())


PANELS = {"all": "all questions", "citation": "citations", "plain": "as people type", "paraphrased": "a layman's words"}
"""Groups that are drawn, with their titles."""

ROW, LEFT, PANEL, GAP, TOP = 30, 275, 165, 14, 30
"""Pixels: of a contrast, of the names, of a group, between groups, and above all."""

GAINS, LOSES, UNSURE = "#1f5fa8", "#a8431f", "#777"


def drawing(sources: Sequence[Source]) -> str:
    """Return an SVG of every contrast that three sources or more have, with its interval, a panel a group."""
    rows = [(one.name, [pooled(sources, one, group) for group in PANELS]) for one in CONTRASTS]
    rows = [(name, effects) for name, effects in rows if effects[0] is not None and effects[0].sources > 2]
    axis = axis_over(end for _, effects in rows for one in effects if one for end in (one.low, one.high))
    width, height = LEFT + (PANEL + GAP) * len(PANELS), TOP + ROW * len(rows) + 40
    parts = [f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for number, (name, _) in enumerate(rows):
        parts.append(f'<text x="8" y="{TOP + ROW * (number + 0.5) + 4:.0f}">{name}</text>')
    for column, title in enumerate(PANELS.values()):
        left = LEFT + column * (PANEL + GAP)
        parts += _panel(axis, left, height, title)
        parts += [_mark(axis, left, number, effects[column]) for number, (_, effects) in enumerate(rows)]
    size = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n'


def _panel(axis: Axis, left: float, height: float, title: str) -> Iterator[str]:
    yield f'<text x="{left + PANEL / 2}" y="20" text-anchor="middle" font-weight="bold">{title}</text>'
    for number, (place, told) in enumerate(axis.ticks):
        x = left + place * PANEL / 100
        colour = UNSURE if place == axis.at(0) else "#e4e4e4"
        yield f'<path d="M{x:.1f} {TOP}V{height - 30}" stroke="{colour}"/>'
        # The first tick's number would touch the last one's of the panel before.
        if number:
            yield f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle" fill="#555" font-size="10">{told}</text>'


def _mark(axis: Axis, left: float, number: int, effect: Effect | None) -> str:
    if effect is None:
        return ""
    low, at, high = (left + PANEL * axis.at(end) / 100 for end in (effect.low, effect.mean, effect.high))
    y, colour = TOP + ROW * (number + 0.5), GAINS if effect.low > 0 else LOSES if effect.high < 0 else UNSURE
    line = f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="2"/>'
    return f'{line}<circle cx="{at:.1f}" cy="{y}" r="4" fill="{colour}"/>'


def _told(effect: Effect | None) -> str:
    if effect is None:
        return ""
    return f"{signed(effect.mean, 3)} [{signed(effect.low, 3)}, {signed(effect.high, 3)}] of {effect.sources}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, help="results.json of a source; by default every rehearsal")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--figure", type=Path, help="draw the contrasts into this SVG too")
    only.add_argument("--topic", nargs=2, metavar=("SOURCE", "ID"), help="print the scores of one topic alone")
    options = parser.parse_args()
    paths = options.results or newest_locked(rehearsal=True)
    sources = [source for path in paths if (source := read_source(path)).scores]
    if options.topic:
        name, topic = options.topic
        found = [line for source in sources if source.name == name for line in topic_lines(source, topic)]
        print("\n".join(found or parser.error(f"no source {name} with a topic {topic}")))
        return
    print("\n".join([*lines(sources), "", *turning_lines(sources), "", *weight_lines(sources)]))
    if options.figure:
        write_atomic(options.figure, drawing(sources).encode())


if __name__ == "__main__":
    main()
