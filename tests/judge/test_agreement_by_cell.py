from itertools import permutations

import numpy as np
import pytest

from runner.base.records import Hit, Run, Span
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double
from tests.support.judge_cases import BASELINE, evening, favouring, off_by_one, read_twice


def double(doc_id, first, second, query_id="q1"):
    return Double(query_id, doc_id, first, second, "a", "b", "", "")


def run(cell, *doc_ids, query_id="q1"):
    return Run(cell, {query_id: tuple(Hit(doc_id, 1.0, Span(0, 1)) for doc_id in doc_ids)})


def runs(**found):
    return {cell: run(cell, *doc_ids) for cell, doc_ids in found.items()}


def fair(case, rng):
    return off_by_one(case.qrels, rng)


def strict(case, rng):
    return {q: {d: max(0, grade - 1) for d, grade in row.items()} for q, row in fair(case, rng).items()}


def favours_cell(place, read=fair):
    """A judge who reads by `read`, and then gives one more for everything in the first ten of a cell."""
    return lambda case, rng: favouring(read(case, rng), list(case.runs.values())[place])


def judged(seed, first, second, lift=0.0):
    """The test's rows for an invented evening whose judges read so, three pairs in ten of them both."""
    case, rng = evening(seed, lift=lift, n_queries=25), np.random.default_rng([seed, 1])
    twice = read_twice(first(case, rng), second(case, rng), 0.3, rng)
    return [*favours(twice, case.runs, BASELINE, alpha=0.05, seed=seed, draws=499).values()]


def significant(p):
    return p is not None and p <= 0.05


P_VALUES = ("p_for_cell", "p_for_baseline")


@pytest.mark.parametrize(
    "lift", [pytest.param(0.0, id="equal cells", marks=pytest.mark.slow), pytest.param(2.0, id="unequal")]
)
@pytest.mark.parametrize("second", [fair, strict], ids=["equal judges", "a harsher second judge"])
def test_judges_who_err_at_random_are_not_found_to_favour_a_cell(second, lift):
    found = [judged(seed, fair, second, lift) for seed in range(30)]
    # 30 runs at .05: more than 5 alarms come three times in a thousand.
    for name in P_VALUES:
        assert sum(any(significant(getattr(row, name)) for row in rows) for rows in found) <= 5


def test_a_judge_who_favours_one_cell_is_found_and_no_other_cell_blamed():
    found = [judged(seed, favours_cell(1), fair) for seed in range(20)]
    assert sum(significant(rows[0].p_for_cell) for rows in found) >= 15
    assert sum(significant(row.p_for_cell) for rows in found for row in rows[1:]) <= 2
    assert sum(any(significant(row.p_for_baseline) for row in rows) for rows in found) <= 4


def test_a_judge_who_favours_the_baseline_is_found_on_the_other_side():
    for seed in range(3):
        rows = judged(seed, favours_cell(0), fair)
        assert any(significant(row.p_for_baseline) for row in rows)
        assert not any(significant(row.p_for_cell) for row in rows)


SMALL = [
    double("d1", 2, 0),
    double("d2", 1, 0),
    double("d3", 1, 1),
    double("d4", 0, 1),
    double("d5", 0, 2),
    double("d6", 2, 1),
    double("d7", 2, 2),
    double("d8", 1, 2),
    double("d9", 0, 0),
]


def test_p_is_the_share_of_all_exchanges_within_bands():
    found = runs(base=["d5", "d4", "d7", "d9"], one=["d1", "d2", "d6", "d9"])
    row = favours(SMALL, found, "base", alpha=0.4, seed=1, draws=20_000)["one"]
    bands = [[0, 1, 2, 3, 4], [5, 6, 7]]
    weight = {0: 3, 1: 3, 5: 3, 3: -3, 4: -3, 6: -3}
    values = [pair.first - pair.second for pair in SMALL]

    def total(order):
        return sum(weight.get(place, 0) * values[pair] for place, pair in order)

    observed = total([(place, place) for band in bands for place in band])
    totals = [
        total([*zip(bands[0], low, strict=True), *zip(bands[1], high, strict=True)])
        for low in permutations(bands[0])
        for high in permutations(bands[1])
    ]
    assert row.p_for_cell == pytest.approx(np.mean(np.array(totals) >= observed), abs=0.01)
    assert row.p_for_baseline == pytest.approx(np.mean(np.array(totals) <= observed), abs=0.01)
    assert row.contrast == pytest.approx((observed - np.mean(totals)) / 9)
    assert (row.n_cell, row.n_baseline) == (3, 3)


def test_with_the_judges_exchanged_the_contrast_is_the_other_way_round():
    found = runs(base=["d5", "d4", "d7", "d9"], one=["d1", "d2", "d6", "d9"])
    swapped = [double(pair.doc_id, pair.second, pair.first) for pair in SMALL]
    one, other = (favours(pairs, found, "base", alpha=0.4, seed=1)["one"] for pairs in (SMALL, swapped))
    assert one.contrast == pytest.approx(-other.contrast)
    assert one.p_for_cell == pytest.approx(other.p_for_baseline, abs=0.02)


def test_a_difference_is_significant_exactly_where_it_passes_what_is_needed():
    for seed in range(6):
        rows = judged(seed, favours_cell(1), fair)
        for row in rows:
            if row.beyond_chance is not None and abs(row.contrast - row.beyond_chance) > 1e-9:
                assert significant(row.p_for_cell) == (row.contrast > row.beyond_chance)


@pytest.mark.parametrize(
    ("found", "n_read"), [({"base": ["d1"], "one": ["d1"]}, (0, 0)), ({"base": ["d9"], "one": ["d1"]}, (1, 0))]
)
def test_a_side_without_readings_has_no_contrast(found, n_read):
    row = favours([double("d1", 1, 0), double("d2", 2, 2)], runs(**found), "base", alpha=0.05, seed=1)["one"]
    assert (row.n_cell, row.n_baseline) == n_read
    assert (row.contrast, row.p_for_cell) == (None, None)


def test_without_a_second_reading_or_another_cell_there_is_nothing_to_say():
    row = favours([], runs(base=["d1"], one=["d2"]), "base", alpha=0.05, seed=1)["one"]
    assert (row.n_cell, row.p_for_cell) == (0, None)
    assert favours(SMALL, runs(base=["d1"]), "base", alpha=0.05, seed=1) == {}


def test_judges_who_always_agree_favour_nothing_that_could_be_shown():
    pairs = [double(f"d{n}", n % 4, n % 4) for n in range(40)]
    found = runs(base=[f"d{n}" for n in range(10)], one=[f"d{n}" for n in range(10, 20)])
    row = favours(pairs, found, "base", alpha=0.05, seed=1)["one"]
    assert row.p_for_cell is None


def test_the_eleventh_hit_of_a_run_counts_no_more():
    hits = [f"d{n}" for n in range(1, 12)]
    pairs = [double("d10", 1, 0), double("d11", 0, 1)]
    row = favours(pairs, runs(base=["x"], one=hits), "base", alpha=0.05, seed=1)["one"]
    assert row.n_cell == 1
