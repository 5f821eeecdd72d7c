"""Print the tables of docs/findings.md: what one choice changes in nDCG@10, over all sources and by kind of question.

Each source says how its questions went under two cells; sources are pooled as `pooled` pools the gains of a kind of
cell (docs/statistics.md). A source without a cell of a contrast, or without a question of a group, is left out of it.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from runner.base.canonical import read_json
from runner.base.figures import signed
from runner.base.records import SCORE_UNIT
from runner.base.schema import checked
from runner.decide.roster import newest_locked
from runner.eval_set.asked import AskedWording, asked
from runner.eval_set.kinds import kind_of
from runner.eval_set.shapes.results import Results
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
    return Source(read.plan.source, read.plan.baseline, scores, texts, [group_of(one, kinds) for one in texts])


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


def _told(effect: Effect | None) -> str:
    if effect is None:
        return ""
    return f"{signed(effect.mean, 3)} [{signed(effect.low, 3)}, {signed(effect.high, 3)}] of {effect.sources}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, help="results.json of a source; by default every rehearsal")
    paths = parser.parse_args().results or newest_locked(rehearsal=True)
    sources = [source for path in paths if (source := read_source(path)).scores]
    print("\n".join(lines(sources)))


if __name__ == "__main__":
    main()
