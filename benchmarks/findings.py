"""Print the figures of docs/findings.md: what one choice changes in nDCG@10, over all sources and by kind of question.

Also at which mix of questions another cell would be recommended, and what a million chunks weigh. `--figure FILE` draws
the first as SVG.

Each source says how its questions went under two cells; sources are pooled as `pooled` pools the gains of a kind of
cell (docs/statistics.md). A source without a cell of a contrast, or without a question of a group, is left out of it.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from runner.base.canonical import read_json
from runner.base.figures import signed
from runner.base.records import SCORE_UNIT
from runner.base.schema import checked
from runner.decide.roster import newest_locked
from runner.eval_set.asked import AskedWording, asked
from runner.eval_set.kinds import kind_of
from runner.eval_set.shapes.results import Results, Turning
from runner.report.drawings import axis_over
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
    """A source's results: scores (asked,) of each cell, and what was asked."""

    name: str
    baseline: str
    scores: Mapping[str, npt.NDArray[np.float64]]
    asked: Sequence[AskedWording]
    groups: Sequence[str]
    turnings: Sequence[Turning]

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
    return Source(
        read.plan.source, read.plan.baseline, scores, texts, [group_of(one, kinds) for one in texts], read.turnings
    )


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
    yield ""
    yield "| all questions, by source | " + " | ".join(source.name for source in sources) + " |"
    yield "|---" * (len(sources) + 1) + "|"
    for contrast in CONTRASTS:
        own = [differences(source, contrast, "all") for source in sources]
        yield f"| {contrast.name} | " + " | ".join(signed(float(x.mean()), 3) if len(x) else "" for x in own) + " |"


def turning_lines(sources: Sequence[Source]) -> Iterator[str]:
    """Yield for each source between which shares of a kind of question the recommendation stays."""
    yield "| the recommendation stays | " + " | ".join(source.name for source in sources) + " |"
    yield "|---" * (len(sources) + 1) + "|"
    for what in ("citations", "plain wordings"):
        found = [next((turn for turn in source.turnings if turn.what == what), None) for source in sources]
        yield f"| with {what} | " + " | ".join(_stays(turn) for turn in found) + " |"


def _stays(turn: Turning | None) -> str:
    if turn is None:
        return ""
    low, high = (None if share is None else f"{100 * share:.0f} %" for share in (turn.below, turn.above))
    kept = f"above {low}" if low else ""
    kept += (" and " if low and high else "") + (f"below {high}" if high else "")
    return f"{kept or 'at any share'} ({100 * turn.now:.0f} % now)"


def weight_lines(records: Sequence[Path]) -> Iterator[str]:
    """Yield what chunks of each kind of chunker weigh, as means over sources: tokens, and bytes of vectors."""
    weights: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        for path in sorted((record / "cells").glob("*.json")):
            cell: dict[str, Any] = read_json(path)
            if path.stem == "aa" or not (
                cell["encoder"] and cell["cell"].startswith(f"{cell['encoder']['encoder']} x ")
            ):
                continue
            n, chunker = cell["chunks"]["count"], cell["cell"].partition(" x ")[2]
            told = chunker if chunker.startswith("fixed") else "cut structure" if "_256_" in chunker else "structure"
            if cell["encoder"]["encoder"] == ENCODER:
                weights[told].append((cell["truncation"]["tokens"] / n, 1 - cell["truncation"]["share"]))
    yield "| a million chunks | million tokens | of them read |"
    yield "|---|---|---|"
    for told, values in weights.items():
        tokens, read = (mean(column) for column in zip(*values, strict=True))
        yield f"| {told} | {tokens:.0f} | {100 * read:.1f} % |"


ROW, LEFT, PANEL, GAP = 30, 275, 165, 14
"""Pixels: of a contrast, of the names, of a group, and between groups."""


def drawing(sources: Sequence[Source]) -> str:
    """Return an SVG of every contrast that three sources or more have, with its interval, a panel a group."""
    groups = [group for group in GROUPS if group != "quote or attribution"]
    rows = [(one.name, [pooled(sources, one, group) for group in groups]) for one in CONTRASTS]
    rows = [(name, effects) for name, effects in rows if effects[0] is not None and effects[0].sources > 2]
    axis = axis_over(end for _, effects in rows for one in effects if one for end in (one.low, one.high))
    height, parts = ROW * len(rows) + 70, []
    for column, group in enumerate(groups):
        left = LEFT + column * (PANEL + GAP)
        parts.append(
            f'<text x="{left + PANEL / 2}" y="20" text-anchor="middle" font-weight="bold">{TITLES[group]}</text>'
        )
        for place, told in axis.ticks[1:]:
            x = left + place * PANEL / 100
            colour = "#888" if abs(float(told.replace("−", "-"))) < 1e-9 else "#e4e4e4"
            parts.append(f'<path d="M{x:.1f} 30V{height - 30}" stroke="{colour}"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle" fill="#555" font-size="10">{told}</text>'
            )
    for number, (name, effects) in enumerate(rows):
        y = 30 + ROW * (number + 0.5)
        parts.append(f'<text x="8" y="{y + 4:.0f}">{name}</text>')
        for column, one in enumerate(effects):
            if one is not None:
                low, at, high = (
                    LEFT + column * (PANEL + GAP) + PANEL * axis.at(end) / 100 for end in (one.low, one.mean, one.high)
                )
                colour = "#1f5fa8" if one.low > 0 else "#a8431f" if one.high < 0 else "#777"
                parts.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="2"/>')
                parts.append(f'<circle cx="{at:.1f}" cy="{y}" r="4" fill="{colour}"/>')
    width = LEFT + (PANEL + GAP) * len(groups)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


TITLES = {
    "all": "all questions",
    "citation": "citations",
    "plain": "as people type",
    "paraphrased": "a layman's words",
}


def _told(effect: Effect | None) -> str:
    if effect is None:
        return ""
    return f"{signed(effect.mean, 3)} [{signed(effect.low, 3)}, {signed(effect.high, 3)}] of {effect.sources}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, help="results.json of a source; by default every rehearsal")
    parser.add_argument("--figure", type=Path, help="draw the contrasts into this SVG")
    options = parser.parse_args()
    paths = options.results or newest_locked(rehearsal=True)
    sources = [source for path in paths if (source := read_source(path)).scores]
    if options.figure:
        options.figure.write_text(drawing(sources), encoding="utf-8")
    weights = weight_lines([path.parent for path in paths])
    print("\n".join([*lines(sources), "", *turning_lines(sources), "", *weights]))


if __name__ == "__main__":
    main()
