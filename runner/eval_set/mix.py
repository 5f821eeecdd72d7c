"""The mix of what is asked: which share of all asking each class of queries stands for, and the weights that follow.

A class is `plain` or `paraphrased`, of the topics in two wordings, or the kind of topics in one. Weights are whole
numbers, so that weighted sums are as exact as others.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from runner.eval_set.shapes.queries import WORDINGS, QueryRow

PARTS = 1000
"""The most that a topic weighs: weights that need greater numbers are rounded to thousandths of the heaviest one."""

Mix = Mapping[str, Fraction]


class Weighing(NamedTuple):
    """The weight of each topic in the order of the queries, and of each wording within a topic."""

    topics: list[int]
    wordings: dict[str, int]


def stated(mix: Mapping[str, float]) -> Mix:
    """Return a plan's mix in the numbers that it was written with: .2 is a fifth."""
    return {name: Fraction(repr(share)) for name, share in mix.items()}


def natural(queries: Sequence[QueryRow]) -> Mix:
    """Return the mix of every topic alike and of equal wordings, which is in force without another."""
    mix: dict[str, Fraction] = defaultdict(Fraction)
    for query in queries:
        for name in _classes(query):
            mix[name] += Fraction(1, len(queries) * len(_classes(query)))
    return mix


def weigh(queries: Sequence[QueryRow], mix: Mix) -> Weighing:
    """Return what each topic, and each wording, counts under a mix; a class without a query counts nowhere.

    A class's share is spread evenly over its topics.
    """
    classes = [tuple(_classes(query)) for query in queries]
    n_topics = Counter(names[0] for names in classes)
    # Topics of the same classes count alike, and there are few such.
    exact = {
        names: sum((mix.get(name, Fraction()) for name in names), Fraction()) / n_topics[names[0]]
        for names in dict.fromkeys(classes)
    }
    whole = dict(zip(exact, _whole([*exact.values()]), strict=True))
    of_wordings = _whole([mix.get(wording, Fraction()) for wording in WORDINGS])
    if not any(of_wordings):  # of topics that weigh nothing, or that there are not
        of_wordings = [1, 1]
    return Weighing([whole[names] for names in classes], {"": 1, **dict(zip(WORDINGS, of_wordings, strict=True))})


def mix_problems(mix: Mapping[str, float], queries: Sequence[QueryRow] = ()) -> list[str]:
    """Return why a plan's mix is none of these queries, each with the class or the query; [] for no mix."""
    if not mix:
        return []
    problems = [f"{name!r} has the share {share:g}; write one above 0" for name, share in mix.items() if share <= 0]
    if round(math.fsum(mix.values()), 9) != 1:
        problems.append(f"the shares sum to {math.fsum(mix.values()):g}, not to 1")
    for one, other in (WORDINGS, WORDINGS[::-1]):
        if one in mix and other not in mix:
            problems.append(f"{one!r} needs {other!r} beside it: topics in two wordings have both")
    held = {name: query.id for query in reversed(queries) for name in _classes(query)}
    problems += [f"no query is of the class {name!r}" for name in mix if queries and name not in held]
    missing = {query_id: name for name, query_id in held.items() if name not in mix}
    problems += [f"the query {one} is of the class {name!r}, which has no share" for one, name in missing.items()]
    return [f"mix: {problem}" for problem in problems]


def _classes(query: QueryRow) -> list[str]:
    return [wording or query.kind for wording in query.wordings]


def _whole(values: Sequence[Fraction]) -> list[int]:
    """Return values as whole numbers in the same proportions, rounded to PARTS of the greatest if they need more."""
    denominator = math.lcm(*(value.denominator for value in values))
    exact = [int(value * denominator) for value in values]
    greatest = math.gcd(*exact) or 1
    parts = [value // greatest for value in exact]
    if max(parts) <= PARTS:
        return parts
    unit = Fraction(max(parts), PARTS)
    # What is above 0 stays so.
    return [max(round(part / unit), 1) if part else 0 for part in parts]
