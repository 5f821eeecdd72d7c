"""A bench of fifty queries to try the gate on, predictors whose verdict is known beforehand, and the story of Mira."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from runner.base.canonical import jsonl_bytes, write_atomic
from runner.base.errors import InputError
from runner.base.store import disk_errors
from runner.base.terminal import Signs
from runner.tools.grade.bench_file import Bench
from runner.tools.grade.grade import ALPHA, TAU, grade_bench

DEPTH = 5
SEED = 2026

# How often each of the fictional bills is the answer, by the subject that its queries belong to.
_ASKED = {
    "transport": {
        "hr101-night-ferry": 9,
        "hr102-bridge-weights": 6,
        "hr103-cycle-lanes": 5,
        "hr104-pilot-fees": 3,
        "hr105-tram-bells": 2,
        "hr106-snow-plows": 2,
    },
    "schools": {
        "hr201-school-lunch": 7,
        "hr202-reading-rooms": 5,
        "hr203-chalk-dust": 4,
        "hr204-bell-times": 3,
        "hr205-swim-lessons": 2,
        "hr206-lost-mittens": 2,
    },
}
_FIRST_PLACES = 35
"""Queries of the fifty whose answer the sample's engine puts first; on the others it guesses."""

Predictor = Callable[[Bench, Sequence[str], np.random.Generator], list[list[str]]]
"""Lists of at most DEPTH items, one per query, that a predictor returns on a bench and its pool."""


def sample_bench(seed: int = SEED) -> tuple[Bench, list[str]]:
    """Fifty queries with a plausible engine's lists of five, and the pool of twelve labels.

    Every label is some query's answer, two to nine times; six belong to each of two strata. The engine puts the
    answer of 35 queries first, whatever the seed, and returns five labels at random for the others.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    pool = [label for labels in _ASKED.values() for label in labels]
    stratum_of = {label: stratum for stratum, labels in _ASKED.items() for label in labels}
    asked = [label for labels in _ASKED.values() for label, times in labels.items() for _ in range(times)]
    gold = [asked[i] for i in generator.permutation(len(asked))]
    known = set(generator.permutation(len(gold))[:_FIRST_PLACES].tolist())
    retrieved = []
    for place, answer in enumerate(gold):
        drawn = [pool[i] for i in generator.permutation(len(pool))]
        drawn.sort(key=lambda label: place in known and label != answer)
        retrieved.append(drawn[:DEPTH])
    return Bench(retrieved, gold, [3] * len(gold), [stratum_of[label] for label in gold]), pool


def write_quickstart(folder: Path) -> list[Path]:
    """`bench.jsonl` and `pool.txt` with the sample bench, in a folder made if missing; InputError if one is there."""
    bench, pool = sample_bench()
    columns = zip(bench.retrieved, bench.gold, bench.rel, strata_of(bench), strict=True)
    fields = ("retrieved", "gold", "rel", "stratum")
    rows = [dict(zip(fields, row, strict=True)) for row in columns]
    contents = {"bench.jsonl": jsonl_bytes(rows), "pool.txt": "".join(f"{label}\n" for label in pool).encode()}
    taken = [str(folder / name) for name in contents if (folder / name).exists() or (folder / name).is_symlink()]
    if taken:
        raise InputError(f"{' and '.join(taken)} would be overwritten. Give an empty folder, or remove what is there.")
    with disk_errors(folder):
        for name, content in contents.items():
            write_atomic(folder / name, content)
    return [folder / name for name in contents]


def predicted(bench: Bench, pool: Sequence[str], predictor: Predictor, seed: int = SEED) -> Bench:
    """The bench with another predictor's lists."""
    return replace(bench, retrieved=predictor(bench, pool, np.random.default_rng(np.random.PCG64(seed))))


def oracle(bench: Bench, _pool: Sequence[str], _generator: np.random.Generator) -> list[list[str]]:
    """The answer alone."""
    return [[gold] for gold in bench.gold]


def constant(bench: Bench, _pool: Sequence[str], _generator: np.random.Generator) -> list[list[str]]:
    """The most frequent answer alone, whatever is asked."""
    return [popular(bench.gold)[:1] for _ in bench.gold]


def popularity(bench: Bench, _pool: Sequence[str], _generator: np.random.Generator) -> list[list[str]]:
    """The most frequent answers, whatever is asked."""
    return [popular(bench.gold)[:DEPTH] for _ in bench.gold]


def source_prior(bench: Bench, _pool: Sequence[str], _generator: np.random.Generator) -> list[list[str]]:
    """The most frequent answers of the query's stratum, whatever is asked there."""
    strata = strata_of(bench)
    asked = {
        name: [gold for gold, stratum in zip(bench.gold, strata, strict=True) if stratum == name]
        for name in set(strata)
    }
    lists = {name: popular(gold)[:DEPTH] for name, gold in asked.items()}
    return [lists[stratum] for stratum in strata]


def random_items(bench: Bench, pool: Sequence[str], generator: np.random.Generator) -> list[list[str]]:
    """Items of the pool at random."""
    return [[pool[i] for i in generator.permutation(len(pool))[:DEPTH]] for _ in bench.gold]


def marginal_matched(bench: Bench, _pool: Sequence[str], generator: np.random.Generator) -> list[list[str]]:
    """Answers drawn one after another by how frequent they are, without replacement."""
    counts = Counter(bench.gold)
    labels, shares = sorted(counts), [counts[label] / len(bench.gold) for label in sorted(counts)]
    depth = min(DEPTH, len(labels))
    drawn = (generator.choice(len(labels), depth, replace=False, p=shares).tolist() for _ in bench.gold)
    return [[labels[i] for i in places] for places in drawn]


CHEATERS: Mapping[str, Predictor] = {
    "constant": constant,
    "popularity": popularity,
    "random": random_items,
    "marginal-matched": marginal_matched,
    "source-prior": source_prior,
}
"""Predictors that read no query, so that the gate must not pass them."""


def strata_of(bench: Bench) -> list[str]:
    """The stratum of each query, one and the same if the bench names none."""
    return bench.strata or [""] * len(bench.gold)


def popular(gold: Sequence[str]) -> list[str]:
    """The answers from the most to the least frequent; ties by name."""
    counts = Counter(gold)
    return sorted(counts, key=lambda label: (-counts[label], label))


METRIC = "ndcg@5"

_WIDTH = 37

_OPENING = """\
Mira never studies. She has noticed which answer is right most often and gives it to every question:
{right} of {n} right, and nothing known. A search engine can do the same: return what is popular, whatever
is asked, and have a score.

So the gate asks of a score whether systems that read no question would have had it too. Four such
systems, the nulls:
  A  right answers exchanged with one another           C  lists drawn at random
  B  right answers drawn evenly                         D  right answers drawn as often as they occur

{n} questions, {n_pool} bills to find, {metric}. {delta} is the score less the null's mean,
and {ok} means {delta} {at_least} {tau}, p {at_most} {alpha}.
"""

_THEO = """
Theo reads no question either, only the subject on the cover of the exam, and gives that subject's
favourites. Over all subjects at once he passes for an engine. Within the subjects, as strata:
"""

_END = """
`quickstart DIR` writes this bench. `grade` takes your system's in the same form; name the stratum of
every row, or Theo stays unseen."""


def mira_story(signs: Signs) -> str:
    """Four systems through the gate over the sample bench, two of them by stratum as well; no newline at the end."""
    bench, pool = sample_bench()
    theo = predicted(bench, pool, source_prior)
    first = sum(items[0] == gold for items, gold in zip(bench.retrieved, bench.gold, strict=True))
    pooled = {
        f"Mira, always {popular(bench.gold)[0]}": predicted(bench, pool, constant),
        f"an engine, first place in {first} of {len(bench.gold)}": bench,
        "an oracle, always right": predicted(bench, pool, oracle),
        "Theo, the subject's favourites": theo,
    }
    within = {"Theo, within subjects": theo, "the engine, within subjects": bench}
    whole = [_row(name, replace(system, strata=None), pool, signs) for name, system in pooled.items()]
    parts = [_row(name, system, pool, signs) for name, system in within.items()]
    return "\n".join([_opening(bench, pool, signs), _header(signs), *whole, _THEO, _header(signs), *parts, _END])


def _opening(bench: Bench, pool: Sequence[str], signs: Signs) -> str:
    return _OPENING.format(
        right=bench.gold.count(popular(bench.gold)[0]),
        n=len(bench.gold),
        n_pool=len(pool),
        metric=METRIC,
        delta=signs.delta,
        ok=signs.ok,
        at_least=signs.at_least,
        tau=f"{TAU:.2f}",
        at_most=signs.at_most,
        alpha=f"{ALPHA:.2f}",
    )


def _header(signs: Signs) -> str:
    columns = (f"{signs.delta + null:<{len('+0.00 ' + signs.ok)}}" for null in "ABCD")
    return f"{'':<{_WIDTH}}score  {'  '.join(columns)}  gate"


def _row(name: str, bench: Bench, pool: Sequence[str], signs: Signs) -> str:
    """A system's score, its deltas with a mark each, and the verdict."""
    found = grade_bench(bench, METRIC, pool)
    columns = (
        f"{signs.signed(found['deltas'][null], 2)} {signs.of(found['verdicts'][null]):<{len(signs.ok)}}"
        for null in "ABCD"
    )
    return f"{name:<{_WIDTH}}{found['real_mean']:5.2f}  {'  '.join(columns)}  {found['verdict'].upper()}"
