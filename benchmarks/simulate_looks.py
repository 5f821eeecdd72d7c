"""What planned looks cost and save: error over all looks, power, and the queries that are judged.

    python benchmarks/simulate_looks.py [RUNS]

RUNS evenings (2,000 unless told) of each kind, looked at after 25, 50 and 100 queries: by spending alpha, by testing at
all of alpha each time (what nobody should do), and by e-value; beside them one look after 100. The worlds in which no
cell gains are those of simulate_decision.py; in the others queries are weighted so that the first challenger alone
gains, or that every cell loses. 2,999 draws a test where a real run takes 100,000, so that the first look, which spends
.0001, can hardly confirm here. Seeds are fixed; in brackets stand Monte Carlo standard errors. Part of `make simulate`.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import sys
from collections import Counter

import numpy as np
from simulate_decision import ALPHA, NULLS, RULE, Draw, Evening, evenings, means_of, real
from sizes import sized
from worlds import percent, print_table

from runner.base.records import SCORE_UNIT
from runner.decide.tiers import CellFigures, unmet_criteria
from runner.score.comparison import mean
from runner.score.gain_test import gain_tests, shares
from runner.score.looks import FUTILE_CHANCE, Look, chance_at_last, e_value

LOOKS, DRAWS, FIRST = [25, 50, 100], sized(2999, 199), 1
GAINING: dict[str, Draw] = {f"the first gains {gain:g}": real(means_of(gain)) for gain in (0.03, 0.05, 0.1)}
LOSING: dict[str, Draw] = {"every cell loses 0.05": real(np.full(8, -0.05))}


def look_at(evening: Evening, seed: int, asked: int, found: Counter[str]) -> None:
    """One evening under every rule; a claim counts if it is of one of the first `asked` cells."""
    ended, over = "", set()
    for number, n_queries in enumerate(LOOKS, start=1):
        look = Look.of_plan(LOOKS, number, ALPHA)
        gains, recall = evening.gains[:, :n_queries], evening.recall[:, :n_queries]
        p = [one.p for one in gain_tests(gains, FIRST, draws=DRAWS, seed=seed)]
        parts = shares(FIRST, len(gains) - FIRST)
        means = list(map(mean, gains))
        worth = [e_value(row.tolist(), part) for row, part in zip(gains, parts, strict=True)]
        rules = {
            "spent": map(look.adjusted, p),
            "each": p,
            "once": p if look.is_last else [1.0] * len(p),
            "e-value": (0.0 if e >= 1 / ALPHA else 1.0 for e in worth),
        }
        for rule, adjusted in rules.items():
            figures = zip(means, map(mean, recall), adjusted, strict=True)
            met = [not unmet_criteria(CellFigures(*each, "pass", 1.0), RULE, ALPHA) for each in figures]
            over |= {rule} if any(met[:asked]) else set()
            if rule == "spent" and any(met) and not ended:
                ended = "confirmed" if any(met[:asked]) else "another confirmed"
        sds = gains.std(axis=1, ddof=1) / SCORE_UNIT
        chances = [
            chance_at_last(*each, look, RULE.min_gain, part) for *each, part in zip(means, sds, parts, strict=True)
        ]
        if not ended and not look.is_last and all(chance < FUTILE_CHANCE for chance in chances):
            ended = "stopped"
        if (ended or look.is_last) and "counted" not in over:
            found["queries"] += n_queries
            over.add("counted")
    found.update(over | {ended})


def main() -> None:
    """Print the table as Markdown."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(2000, 2)
    rows: list[list[object]] = []
    for name, draw in (NULLS | LOSING | GAINING).items():
        found: Counter[str] = Counter()
        for seed, evening in evenings(draw, LOOKS[-1], runs):
            look_at(evening, seed, FIRST if name in GAINING else len(evening.gains), found)
        columns = ("confirmed", "spent", "stopped", "once", "each", "e-value")
        one, *others = (percent(found[what], runs) for what in columns)
        rows.append([name, one, *others[:2], f"{found['queries'] / runs:.0f}", *others[2:]])
    heads = ["world", "confirmed", "if it never gives up", "stopped", "queries judged"]
    heads += ["one look at 100", f"at {ALPHA:g} each time", "e-value"]
    print_table(f"Looks after {', '.join(map(str, LOOKS))} queries; {runs:,} evenings a row", heads, rows)


if __name__ == "__main__":
    main()
