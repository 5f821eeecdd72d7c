"""A bench of fifty queries to try the gate on, cheaters over it, and the story of Mira."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from runner.base.canonical import jsonl_bytes, write_atomic
from runner.base.errors import InputError
from runner.base.figures import signed
from runner.base.store import disk_errors
from runner.base.terminal import MARKS
from runner.gate.cheaters import CHEATERS, Exam, Lists, oracle
from runner.tools.grade.grade import ALPHA, SEED, TAU, Bench, grade_bench

DEPTH = 5
METRIC = "ndcg@5"

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


def sample_bench(seed: int = SEED) -> tuple[Bench, list[str]]:
    """Return fifty queries with a plausible engine's lists of five, and the pool of twelve labels.

    Every label is some query's answer, two to nine times; six belong to each of two strata. The engine puts the
    answer of 35 queries first, whatever the seed, and returns five labels at random for the others.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    pool = [label for labels in _ASKED.values() for label in labels]
    stratum_of = {label: stratum for stratum, labels in _ASKED.items() for label in labels}
    asked = [label for labels in _ASKED.values() for label, times in labels.items() for _ in range(times)]
    gold = [asked[i] for i in generator.permutation(len(asked))]
    # So many that the engine knows; of the others its first guess is right one time in twelve.
    known = set(generator.permutation(len(gold))[:_FIRST_PLACES].tolist())
    retrieved = []
    for number, answer in enumerate(gold):
        drawn = [pool[i] for i in generator.permutation(len(pool))]
        drawn.sort(key=lambda label: number in known and label != answer)
        retrieved.append(drawn[:DEPTH])
    return Bench(retrieved, gold, [3] * len(gold), [stratum_of[label] for label in gold]), pool


def write_sample(folder: Path) -> list[Path]:
    """Write the sample as `bench.jsonl` and `pool.txt` into a folder, made if missing; InputError if one is there."""
    bench, pool = sample_bench()
    columns = zip(bench.retrieved, bench.gold, bench.rel, bench.strata or (), strict=True)
    rows = [dict(zip(("retrieved", "gold", "rel", "stratum"), row, strict=True)) for row in columns]
    contents = {"bench.jsonl": jsonl_bytes(rows), "pool.txt": "".join(f"{label}\n" for label in pool).encode()}
    # A link that leads nowhere is somebody's file too.
    taken = [str(folder / name) for name in contents if (folder / name).exists() or (folder / name).is_symlink()]
    if taken:
        raise InputError(f"{' and '.join(taken)} would be overwritten. Give an empty folder, or remove what is there.")
    with disk_errors(folder):
        for name, content in contents.items():
            write_atomic(folder / name, content)
    return [folder / name for name in contents]


def predicted(bench: Bench, pool: list[str], lists: Callable[[Exam], Lists], seed: int = SEED) -> Bench:
    """Return the bench with a cheater's lists of at most DEPTH."""
    strata = bench.strata or [""] * len(bench.gold)
    grades = [{gold: rel} for gold, rel in zip(bench.gold, bench.rel, strict=True)]
    exam = Exam(grades, sorted(pool), strata, bench.retrieved, depth=DEPTH, seed=seed)
    return replace(bench, retrieved=[ranking[:DEPTH] for ranking in lists(exam)])


_WIDTH = 37

_OPENING = """\
Mira never studies. She has noticed which answer is right most often and gives it to every question:
{right} of {n} right, and nothing known. A search engine can do the same: return what is popular, whatever
is asked, and have a score.

So the gate asks of a score whether systems that read no question would have had it too. Four such
systems, the nulls:
  A  right answers exchanged with one another           C  lists drawn at random
  B  right answers drawn evenly                         D  right answers drawn as often as they occur

{n} questions, {n_pool} bills to find, {metric}. Δ is the score less the null's mean,
and ✓ means Δ ≥ {tau}, p ≤ {alpha}.
"""

_THEO = """
Theo reads no question either, only the subject on the cover of the exam, and gives that subject's
favourites. Over all subjects at once he passes for an engine. Within the subjects, as strata:
"""

_END = """
`grade --sample FOLDER` writes this bench. `grade` takes your system's in the same form; name the
stratum of every row, or Theo stays unseen."""


def mira_story() -> str:
    """Return the text of four systems through the gate over the sample bench, two of them by stratum as well."""
    bench, pool = sample_bench()
    theo = predicted(bench, pool, CHEATERS["source-prior"].lists)
    first = sum(items[0] == gold for items, gold in zip(bench.retrieved, bench.gold, strict=True))
    favourite, right = Counter(bench.gold).most_common(1)[0]
    pooled = {
        f"Mira, always {favourite}": predicted(bench, pool, CHEATERS["constant"].lists),
        f"an engine, first place in {first} of {len(bench.gold)}": bench,
        "an oracle, always right": predicted(bench, pool, oracle),
        "Theo, the subject's favourites": theo,
    }
    within = {"Theo, within subjects": theo, "the engine, within subjects": bench}
    opening = _OPENING.format(
        right=right,
        n=len(bench.gold),
        n_pool=len(pool),
        metric=METRIC,
        tau=f"{TAU:.2f}",
        alpha=f"{ALPHA:.2f}",
    )
    columns = (f"{'Δ' + null:<7}" for null in "ABCD")
    header = f"{'':<{_WIDTH}}score  {'  '.join(columns)}  gate"
    whole = [_row(name, replace(system, strata=None), pool) for name, system in pooled.items()]
    parts = [_row(name, system, pool) for name, system in within.items()]
    return "\n".join([opening, header, *whole, _THEO, header, *parts, _END])


def _row(name: str, bench: Bench, pool: list[str]) -> str:
    """Return a system's score, its deltas with a mark each, and the verdict."""
    graded = grade_bench(bench, METRIC, pool)
    columns = (f"{signed(graded['deltas'][null], 2):>5} {MARKS[graded['verdicts'][null]]}" for null in "ABCD")
    return f"{name:<{_WIDTH}}{graded['real_mean']:5.2f}  {'  '.join(columns)}  {graded['verdict'].upper()}"
