"""One offline page on which the null gate is played with: controls make a bench, and the verdict follows them.

The page's script does what `runner.gate.single_gold` does. The table of cases on it is the gate's own.
"""

from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, Literal
from urllib.parse import urlencode

from runner.gate.cheaters import CHEATERS, Exam, Lists
from runner.gate.single_gold import four_null_gate
from runner.report.page_frame import rendered
from runner.score.mulberry32 import SEEDS, uniforms

K = 5
POOL = 200
ALPHA = 0.05
TRIALS = 999

_APART = 0x9E3779B1
_ENOUGH = 60
"""Numbers that a list takes at most."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that the controls of the page choose; `within` exchanges and draws labels within sources only."""

    predictor: Literal["constant", "popularity", "source-prior", "random", "engine"] = "constant"
    skill: float = 0.3
    queries: int = 150
    labels: int = 40
    skew: float = 0.0
    sources: int = 5
    tau: float = 0.05
    within: bool = False

    @property
    def address(self) -> str:
        """The end of the page's address that chooses these settings."""
        return "#" + urlencode(
            {name: f"{value:g}" if isinstance(value, float) else value for name, value in asdict(self).items()}
        )


SLIDERS = (
    ("skill", "Skill of the engine", 0, 1, 0.05),
    ("queries", "Queries, one right answer each", 1, 200, 1),
    ("labels", "Different right answers", 1, 40, 1),
    ("skew", "Skew: 0 all equally common, 1 as 1, 1/2, 1/3, ...", 0, 2, 0.1),
    ("sources", "Sources, each with its own answers", 1, 8, 1),
    ("tau", "Threshold τ, least distance to each null", 0, 0.5, 0.01),
)
"""Name, label, both ends and step."""

PREDICTORS = {name: CHEATERS[name].broken for name in ("constant", "popularity", "source-prior", "random")}
PREDICTORS["engine"] = "reads the query, and finds the answer to a share of the queries, its skill"

_PRIOR = Settings("source-prior", skew=1.0)

CASES = (
    ("One answer for everybody: all answers are equally common, and it is right as often as chance.", Settings()),
    ("The same, labels skewed: it beats three nulls. D, which draws by frequency, scores as much.", Settings(skew=1.0)),
    ("Favourites of each source: it has read no query and beats all four nulls. The gate is taken in.", _PRIOR),
    ("The same, tested within sources: D scores as much again.", replace(_PRIOR, within=True)),
    ("An engine that reads: it finds three answers in ten, and beats every null.", Settings("engine", skew=1.0)),
    ("Too small a test: a perfect engine, three answers. It does not decide.", Settings("engine", 1.0, labels=3)),
)
"""What is to be seen, and the settings that show it."""


def page() -> bytes:
    """Return the page as UTF-8, the same bytes each time."""
    rows = [(title, settings.address, verdict(settings)) for title, settings in CASES]
    return rendered(
        "playground.html.j2",
        styles=("playground_style.css.j2",),
        scripts=("playground_gate.js.j2", "playground.js.j2"),
        plain=asdict(Settings()),
        sliders=SLIDERS,
        predictors=PREDICTORS,
        cases=rows,
    )


def verdict(settings: Settings) -> dict[str, Any]:
    """Return what the null gate says of the bench that the settings make."""
    gold, sources, lists = bench(settings)
    return four_null_gate(
        lists,
        gold,
        [1] * len(gold),
        f"recall@{K}",
        item_pool=[_id(document) for document in range(POOL)],
        n_trials=TRIALS,
        tau=settings.tau,
        alpha=ALPHA,
        strata=sources if settings.within else None,
    )


def bench(settings: Settings) -> tuple[list[str], list[str], Lists]:
    """Return each query's answer, its source and what was retrieved; the page makes the same.

    Document d answers a share of the queries as 1 / (d + 1) ** skew, and belongs to the sources in turn.
    """
    up_to = list(accumulate(rank**-settings.skew for rank in range(1, settings.labels + 1)))
    # Each query stands in the middle of its part of the whole, and takes the label whose share reaches there.
    places = [(query + 0.5) * up_to[-1] for query in range(settings.queries)]
    answers = [next((label for label, end in enumerate(up_to) if end * settings.queries > at), 0) for at in places]
    gold, sources = (
        [_id(answer) for answer in answers],
        [f"source {answer % settings.sources + 1}" for answer in answers],
    )
    if settings.predictor in ("engine", "random"):
        skill = settings.skill if settings.predictor == "engine" else 0.0
        return gold, sources, [_engine(query, answer, skill) for query, answer in enumerate(answers)]
    exam = Exam([{answer: 1} for answer in gold], [_id(document) for document in range(POOL)], sources, [], depth=K)
    return gold, sources, CHEATERS[settings.predictor].lists(exam)


def _engine(query: int, answer: int, skill: float) -> list[str]:
    """Draw a list of random documents, for a share of the queries with the answer first."""
    # Seeded by query: moving one slider leaves the other queries' draws as they are.
    dice = iter(uniforms((2 + (query + 1) * _APART) % SEEDS, _ENOUGH).tolist())
    documents = [answer] if next(dice) < skill else []
    while len(documents) < K:
        drawn = int(next(dice) * POOL)
        if drawn not in documents:
            documents.append(drawn)
    return [_id(document) for document in documents]


def _id(document: int) -> str:
    return f"{document:03}"
