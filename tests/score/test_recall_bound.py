import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runner.base.records import SCORE_UNIT
from runner.score.recall_bound import recall_bounds, recall_state

ALPHA = 0.05


def bounds(rows, alpha=ALPHA):
    return recall_bounds(np.array(rows, np.int64), alpha=alpha)


def capital(changes, mean):
    """What betting that differences lie above `mean` makes of 1, as the paper has it: over X in [0, 1]."""
    spread, total = {1.0: 0.8, 0.9: 0.05, 0.75: 0.05, 0.5: 0.05, 0.25: 0.05}, 0.0
    m = (1 + mean) / 2
    for stake, weight in spread.items():
        for change in changes:
            weight *= 1 + stake / m * ((1 + change) / 2 - m)
        total += weight
    return total


@given(
    arrays.arrays(
        np.int64,
        st.integers(1, 40),
        elements=st.sampled_from([0, 0, 0, 1, 2, 5, -2, -5]).map(lambda f: f * SCORE_UNIT // 5),
    ),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_the_lower_bound_is_where_betting_stops_paying(row, alpha):
    ((low, high),), scores = bounds([row], alpha=alpha), row / SCORE_UNIT
    assert -1 <= low <= scores.mean() <= high <= 1
    if low > -1 + 1e-6:
        assert capital(scores, low - 1e-6) >= 1 / alpha
    assert capital(scores, low + 1e-6) < 1 / alpha
    assert bounds([-row], alpha=alpha) == [[-high, -low]]


@pytest.mark.parametrize(("n", "size"), [(25, 1), (50, 1), (50, 2), (100, 1), (100, 5)])
@pytest.mark.parametrize("loss", [0.02, 0.04, 0.08])
def test_a_cell_that_loses_passes_no_more_often_than_stated(n, size, loss):
    """Exactly, by the binomial distribution: a query loses 1 / `size` or nothing, and so `loss` on average."""
    chance, passed = loss * size, 0.0
    for lost in range(n + 1):
        row = [-SCORE_UNIT // size] * lost + [0] * (n - lost)
        if recall_state(bounds([row])[0], loss) == "shown not to fall":
            passed += math.comb(n, lost) * chance**lost * (1 - chance) ** (n - lost)
    assert passed <= ALPHA


@pytest.mark.parametrize(("n", "excluded"), [(25, 0.118), (30, 0.099), (50, 0.061), (150, 0.0206)])
def test_queries_without_a_loss_exclude_nearly_what_an_exact_bound_would(n, excluded):
    found = -bounds([np.zeros(n, np.int64)])[0][0]
    assert found == pytest.approx(excluded, abs=6e-4)
    exact = 1 - ALPHA ** (1 / n)  # of a loss of 1 in a share of all queries
    assert exact < found < 1.05 * exact


def test_states_compare_four_places():
    level = np.zeros(160, np.int64)
    (shown,) = bounds([level])
    assert recall_state(shown, 0.02) == "shown not to fall"
    assert recall_state(shown, round(-shown[0], 4)) == "open"
    assert recall_state(bounds([level - SCORE_UNIT // 2])[0], 0.02) == "shown to fall"
    assert recall_state(bounds([level[:25]])[0], 0.02) == "open"


def test_ends_of_what_can_happen():
    worst, best = bounds(np.outer([-1, 1], np.full(200, SCORE_UNIT)))
    assert (worst[0], recall_state(worst, 0.02)) == (-1, "shown to fall")
    assert worst[1] < -0.9
    assert best == [-worst[1], 1]
    assert bounds(np.empty((0, 25))) == []


def test_five_thousand_queries_do_not_overflow():
    rows = np.random.default_rng(1).choice([0, SCORE_UNIT, -SCORE_UNIT], size=(1, 5000), p=[0.9, 0.06, 0.04])
    ((low, high),) = bounds(rows)
    assert 0 < low < rows.mean() / SCORE_UNIT < high < 0.1


@pytest.mark.parametrize("alpha", [0, 1, math.nan])
def test_levels_are_shares(alpha):
    with pytest.raises(ValueError, match="alpha"):
        bounds([[0]], alpha=alpha)
