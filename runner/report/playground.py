"""One offline page in which the null gate is played with: sliders make a bench, and the verdict follows them.

The page's script does what `runner.gate.single_gold.gate` does, over the bench that `bench` makes here; tests hold the
two to each other. A few cases are worked out here, by the gate itself, for readers without script.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import accumulate
from typing import Any, Literal
from urllib.parse import urlencode

from runner.gate.single_gold.gate import four_null_gate
from runner.report.page_frame import rendered
from runner.score.mulberry32 import SEEDS, uniforms

Lists = list[list[int]]

_APART = 0x9E3779B1
_ENOUGH = 100
"""Numbers that a list takes at most: of ten documents of forty, each drawn in vain with a chance below a quarter."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the controls of the page choose, in their order."""

    predictor: Literal["constant", "popularity", "source", "random", "engine"] = "constant"
    skill: float = 0.3
    queries: int = 150
    labels: int = 40
    skew: float = 0.0
    sources: int = 5
    tau: float = 0.05
    within: bool = False
    measure: Literal["recall", "mrr", "ndcg"] = "recall"
    k: int = 5
    pool: int = 200
    alpha: float = 0.05
    trials: int = 999
    seed: int = 1

    @property
    def address(self) -> str:
        """What differs from the page's beginning, as its address has it; the predictor always."""
        plain = Settings()
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name == "predictor" or getattr(self, field.name) != getattr(plain, field.name)
        }
        return "#" + urlencode(
            {name: value if isinstance(value, str) else f"{value:g}" for name, value in given.items()}
        )


@dataclass(frozen=True, slots=True)
class Slider:
    """A setting with both ends and a step."""

    name: str
    label: str
    hint: str
    low: float
    high: float
    step: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting with a few values and what each is called."""

    name: str
    label: str
    hint: str
    options: tuple[tuple[str, str], ...]


CONTROLS: dict[str, tuple[Slider | Choice, ...]] = {
    "Who answers": (
        Choice(
            "predictor",
            "Predictor",
            "all but the last read no query",
            (
                ("constant", "constant: one document for all"),
                ("popularity", "popularity: the commonest answers"),
                ("source", "source prior: favourites by source"),
                ("random", "random: documents drawn for each query"),
                ("engine", "engine: reads the query"),
            ),
        ),
        Slider("skill", "Skill of the engine", "share of queries whose answer it finds", 0, 1, 0.05),
    ),
    "The test questions": (
        Slider("queries", "Queries", "one right answer each", 1, 200, 1),
        Slider("labels", "Different right answers", "labels of the queries", 1, 40, 1),
        Slider("skew", "Skew of the labels", "0: all equally common; 1: as 1, 1/2, 1/3, ...", 0, 2, 0.1),
        Slider("sources", "Sources", "each has its own answers", 1, 8, 1),
    ),
    "The gate": (Slider("tau", "Threshold τ", "least distance to each null", 0, 0.5, 0.01),),
    "More": (
        Choice("measure", "Measure", "", (("recall", "recall"), ("mrr", "reciprocal rank"), ("ndcg", "nDCG"))),
        Slider("k", "Length of the lists, k", "", 1, 10, 1),
        Slider("pool", "Documents in the pool", "", 40, 1000, 10),
        Choice("alpha", "Level α", "", (("0.01", "0.01"), ("0.05", "0.05"), ("0.1", "0.1"))),
        Choice("trials", "Draws of each null", "", (("99", "99"), ("199", "199"), ("499", "499"), ("999", "999"))),
        Slider("seed", "Seed", "of random lists and of draws", 0, 999, 1),
    ),
}
"""The page's controls by their legend; `within`, a box to tick, is none of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """Settings worth a look, and what is to be seen there."""

    title: str
    look: str
    settings: Settings


_SKEWED = Settings(skew=1.0)
_PRIOR = Settings(predictor="source", skew=1.0, k=3)
_ENGINE = Settings(predictor="engine", skew=1.0)

CASES = (
    Case("One answer for everybody", "All answers are equally common, and it is right as often as chance.", Settings()),
    Case(
        "The same, labels skewed",
        "Now its answer is right for nearly a quarter of the queries. It beats three nulls; D, which draws labels as "
        "often as they occur, scores as much.",
        _SKEWED,
    ),
    Case(
        "Favourites of each source",
        "It knows where a query comes from and has not read it. It beats all four nulls: the gate is taken in.",
        _PRIOR,
    ),
    Case(
        "The same, tested within sources",
        "Labels are exchanged among the queries of one source, and D scores as much again.",
        replace(_PRIOR, within=True),
    ),
    Case("An engine that reads", "It finds three answers in ten, and beats every null by far.", _ENGINE),
    Case(
        "Too small a test",
        "A perfect engine, three different answers: one exchange of labels in six changes nothing. The gate does not "
        "decide.",
        Settings(predictor="engine", skill=1.0, labels=3),
    ),
)


@dataclass(frozen=True, slots=True)
class Bench:
    """For each query the document that answers it, its source and what was retrieved, best first.

    Documents are numbers from 0 to one less than the pool's size, and the first of them are answers.
    """

    gold: list[int]
    sources: list[int]
    lists: Lists


def page() -> bytes:
    """The page as UTF-8, the same bytes each time."""
    return rendered(
        "playground.html.j2",
        styles=("playground_style.css.j2",),
        scripts=("playground_bench.js.j2", "playground_gate.js.j2", "playground_view.js.j2"),
        controls=[_group(legend, each) for legend, each in CONTROLS.items()],
        cases=[
            {"title": case.title, "look": case.look, "address": case.settings.address, **_figures(case.settings)}
            for case in CASES
        ],
    )


def bench(settings: Settings) -> Bench:
    """The bench that the page makes of the same settings."""
    gold = _answers(settings)
    sources = [answer % settings.sources for answer in gold]
    return Bench(gold, sources, _PREDICTORS[settings.predictor](gold, sources, settings))


def gate(settings: Settings, made: Bench) -> dict[str, Any]:
    """What the null gate says of a bench under the settings; its draws are those of its own generator."""
    return four_null_gate(
        made.lists,
        made.gold,
        [1] * len(made.gold),
        f"{settings.measure}@{settings.k}",
        item_pool=range(settings.pool),
        n_trials=settings.trials,
        tau=settings.tau,
        alpha=settings.alpha,
        strata=[f"source {source + 1}" for source in made.sources] if settings.within else None,
    )


def _group(legend: str, controls: Iterable[Slider | Choice]) -> dict[str, Any]:
    """Controls as the template takes them, each with its value at the beginning."""
    plain = asdict(Settings())
    rows = [{**asdict(each), "value": plain[each.name], "choice": isinstance(each, Choice)} for each in controls]
    return {"legend": legend, "rows": rows}


def _figures(settings: Settings) -> dict[str, Any]:
    found = gate(settings, bench(settings))
    names = ("real_mean", "null_means", "deltas", "intervals", "verdicts", "verdict")
    return {name: found[name] for name in names}


def _answers(settings: Settings) -> list[int]:
    """The answer to each query, in order of documents: document d has a share as 1 / (d + 1) ** skew."""
    up_to = list(accumulate(rank**-settings.skew for rank in range(1, settings.labels + 1)))
    places = ((query + 0.5) * up_to[-1] for query in range(settings.queries))
    return [next((label for label, end in enumerate(up_to) if end * settings.queries > at), 0) for at in places]


def _favourites(gold: Iterable[int]) -> list[int]:
    """The documents that answer the most queries, most first, of equals the first."""
    counts = Counter(gold)
    return sorted(counts, key=lambda document: (-counts[document], document))


def _constant(gold: Sequence[int], sources: Sequence[int], settings: Settings) -> Lists:
    first = _favourites(gold)[:1]
    return [first for _ in gold]


def _popularity(gold: Sequence[int], sources: Sequence[int], settings: Settings) -> Lists:
    first = _favourites(gold)[: settings.k]
    return [first for _ in gold]


def _source_prior(gold: Sequence[int], sources: Sequence[int], settings: Settings) -> Lists:
    of = {name: [answer for answer, own in zip(gold, sources, strict=True) if own == name] for name in set(sources)}
    first = {name: _favourites(answers)[: settings.k] for name, answers in of.items()}
    return [first[name] for name in sources]


def _random(gold: Sequence[int], sources: Sequence[int], settings: Settings) -> Lists:
    return _engine(gold, sources, replace(settings, skill=0.0))


def _engine(gold: Sequence[int], sources: Sequence[int], settings: Settings) -> Lists:
    return [_engine_list(query, answer, settings) for query, answer in enumerate(gold)]


def _engine_list(query: int, answer: int, settings: Settings) -> list[int]:
    """Random documents, for a share of the queries with the answer among them: half of these first, a quarter next."""
    dice = iter(uniforms((2 * settings.seed + (query + 1) * _APART) % SEEDS, _ENOUGH).tolist())
    found, beyond, place = next(dice) < settings.skill, next(dice), 0
    while beyond < 0.5 and place < settings.k - 1:
        beyond, place = 2 * beyond, place + 1
    drawn: list[int] = []
    while len(drawn) < settings.k - found:
        document = int(next(dice) * settings.pool)
        if document not in drawn and not (found and document == answer):
            drawn.append(document)
    return [*drawn[:place], answer, *drawn[place:]] if found else drawn


_PREDICTORS: dict[str, Callable[[Sequence[int], Sequence[int], Settings], Lists]] = {
    "constant": _constant,
    "popularity": _popularity,
    "source": _source_prior,
    "random": _random,
    "engine": _engine,
}
