"""The single-gold gate: exact laws against enumeration, p-values, verdicts, and what is refused."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.gate.single_gold import four_null_gate

NULLS = "ABCD"
POOL = list("abcdef")
MEASURES = ["ndcg@2", "recall@2", "mrr@3"]


@st.composite
def tiny_benches(draw):
    """(rows, golds, relevances, strata) of at most four queries over a pool of six ids."""
    n = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.sampled_from(POOL), unique=True, max_size=4), min_size=n, max_size=n))
    golds = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    rel = draw(st.lists(st.sampled_from([1, 3]), min_size=n, max_size=n))
    strata = draw(st.one_of(st.none(), st.lists(st.sampled_from("xy"), min_size=n, max_size=n)))
    return rows, golds, rel, strata


def value(row, gold, rel, name):
    measure, cutoff = name.split("@")
    head = row[: int(cutoff)]
    if gold not in head or (measure == "ndcg" and rel == 0):
        return 0.0
    rank = head.index(gold) + 1
    return {"ndcg": 1 / math.log2(rank + 1), "recall": 1.0, "mrr": 1 / rank}[measure]


def enumerated(rows, golds, rel, name, null, k):
    """Every total of a null over one stratum, with its probability."""
    n, labels = len(rows), sorted(set(golds))
    if null == "C":
        lists = list(itertools.permutations(POOL, k))
        scores = [[value(drawn, gold, r, name) for drawn in lists] for gold, r in zip(golds, rel, strict=True)]
        laws = [distribution(row, [1 / len(lists)] * len(lists)) for row in scores]
        return convolved(laws)
    if null == "A":
        ways = [dict(zip(labels, order, strict=True)) for order in itertools.permutations(labels)]
        assigned = [([way[gold] for gold in golds], 1 / len(ways)) for way in ways]
    else:
        chance = {label: 1 / len(labels) if null == "B" else golds.count(label) / n for label in labels}
        assigned = [
            (list(way), math.prod(chance[label] for label in way)) for way in itertools.product(labels, repeat=n)
        ]
    totals = [
        sum(value(row, gold, r, name) for row, gold, r in zip(rows, way, rel, strict=True)) for way, _ in assigned
    ]
    return distribution(totals, [chance for _, chance in assigned])


def distribution(totals, chances):
    law = {}
    for total, chance in zip(totals, chances, strict=True):
        law[round(total, 9)] = law.get(round(total, 9), 0.0) + chance
    return law


def convolved(laws):
    whole = {0.0: 1.0}
    for law in laws:
        pairs = [(a + b, p * q) for a, p in whole.items() for b, q in law.items()]
        whole = distribution([total for total, _ in pairs], [chance for _, chance in pairs])
    return whole


def null_law(bench, name, null):
    """The law of the null's total over the bench, strata apart."""
    rows, golds, rel, strata = bench
    strata = strata or ["all"] * len(rows)
    k = int(name.split("@")[1])
    laws = []
    for stratum in sorted(set(strata)):
        kept = [i for i, found in enumerate(strata) if found == stratum]
        laws.append(
            enumerated([rows[i] for i in kept], [golds[i] for i in kept], [rel[i] for i in kept], name, null, k)
        )
    return convolved(laws)


def gate(bench, name, **more):
    rows, golds, rel, strata = bench
    return four_null_gate(rows, golds, rel, name, item_pool=POOL, strata=strata, **more)


@given(tiny_benches(), st.sampled_from(MEASURES), st.booleans())
def test_expectations_and_p_are_those_of_every_draw_there_is(bench, name, by_name):
    metric = name if by_name else partial(value, name=name)
    found, n = gate(bench, metric, k=int(name.split("@")[1]), n_trials=400), len(bench[0])
    total = found["real_mean"] * n
    for null in NULLS:
        law = null_law(bench, name, null)
        mean = sum(reached * chance for reached, chance in law.items())
        # Of a function the mean of the draws alone is known.
        variance = 0 if by_name else sum((reached - mean) ** 2 * chance for reached, chance in law.items())
        assert found["null_means"][null] * n == pytest.approx(mean, abs=1e-7 + 5.5 * math.sqrt(variance / 400))
        exact = sum(chance for reached, chance in law.items() if reached >= total - 1e-7)
        error = 5.5 * math.sqrt(max(exact * (1 - exact), 0) / 400)
        assert abs(found["p_values"][null] - max(exact, 1 / 401)) <= error + 0.01


def engine(n, *, share, n_labels=12, n_pool=60, depth=6, seed=0):
    """A bench with skewed golds whose engine has the gold among its first places for a share of the queries."""
    rng = np.random.default_rng(seed)
    pool = [f"d{i}" for i in range(n_pool)]
    weights = 1 / np.arange(1, n_labels + 1)
    golds = [pool[i] for i in rng.choice(n_labels, n, p=weights / weights.sum())]
    rows = []
    for gold in golds:
        row = [pool[i] for i in rng.choice(n_pool, depth, replace=False)]
        if rng.random() < share:
            row = [gold, *[item for item in row if item != gold]][:depth]
        rows.append(row)
    return rows, golds, pool


def hit(retrieved, gold, rel):
    return 1.0 if gold in retrieved[:5] else 0.0


def test_a_good_engine_passes_by_name_and_by_function():
    rows, golds, pool = engine(80, share=0.8)
    for metric in ("recall@5", hit):
        found = four_null_gate(rows, golds, [1] * 80, metric, item_pool=pool)
        assert found["verdict"] == "pass", found["reasons"]
        assert found["reasons"] == []
        assert found["passes"] == dict.fromkeys(NULLS, True)
        assert found["k"] == 5


def test_intervals_cover_the_delta_of_a_large_bench():
    rows, golds, pool = engine(4000, share=0.4, seed=9)
    large = four_null_gate(rows, golds, [1] * 4000, "recall@5", item_pool=pool)
    covered = 0
    for seed in range(200):
        rows, golds, pool = engine(60, share=0.4, seed=1000 + seed)
        found = four_null_gate(rows, golds, [1] * 60, "recall@5", item_pool=pool)
        low, high = found["intervals"]["C"]
        covered += low <= large["deltas"]["C"] <= high
    assert 180 <= covered <= 199


@given(st.permutations(range(12)), st.sampled_from(["recall@5", "ndcg@5", hit]))
@settings(max_examples=15)
def test_equivariance_under_renaming_of_every_id_is_exact(order, metric):
    """The check that falsify-eval names an equivariance certificate, for any bijection and not ordered ones alone."""
    rows, golds, pool = engine(30, share=0.2, n_pool=12, n_labels=6)
    names = {item: ("é", number) if number % 2 else number for item, number in zip(pool, order, strict=True)}
    renamed = [[names[item] for item in row] for row in rows], [names[gold] for gold in golds]
    before = four_null_gate(rows, golds, [1] * 30, metric, item_pool=pool)
    after = four_null_gate(*renamed, [1] * 30, metric, item_pool=[names[item] for item in pool])
    assert after == before


def test_a_function_is_called_for_no_pair_that_was_not_drawn():
    rows, golds, pool = engine(30, share=0.5, n_labels=5)
    calls = []

    def counted(retrieved, gold, rel):
        calls.append((tuple(retrieved), gold))
        return hit(retrieved, gold, rel)

    found = four_null_gate(rows, golds, [1] * 30, counted, item_pool=pool, n_trials=40)
    assert found["verdict"] == "pass"
    own = [call for call in calls if list(call[0]) in rows]
    assert len(own) <= 30 * (3 * 5 + 8)  # three nulls over five labels, and the scores themselves
    assert len(calls) - len(own) <= 30 * 40 + 30  # random lists, and rows cut to k


def test_rubbish_fails_even_where_three_nulls_cannot_decide():
    found = four_null_gate([["b", "c"]] * 8, ["a"] * 8, [1] * 8, "recall@2", item_pool=POOL)
    assert found["verdict"] == found["verdicts"]["C"] == "fail"


def test_three_queries_decide_nothing_and_five_do():
    for n, verdict in ((3, "insufficient"), (5, "pass")):
        found = four_null_gate(
            [[x] for x in POOL[:n]], POOL[:n], [1] * n, "recall@1", item_pool=range_pool(), n_trials=2000
        )
        assert found["verdict"] == verdict


def range_pool():
    return [*POOL, *range(100)]


def test_too_few_trials_decide_nothing():
    rows, golds, pool = engine(80, share=0.9)
    for n_trials, verdict in ((18, "insufficient"), (20, "pass")):
        found = four_null_gate(rows, golds, [1] * 80, "recall@5", item_pool=pool, n_trials=n_trials)
        assert found["verdict"] == verdict
    assert len(found["reasons"]) == 0


def test_a_tau_that_no_engine_reaches_is_insufficient_not_a_fail():
    golds = ["a"] * 96 + [1, 2, 3, 4, 5, 6]
    found = four_null_gate([[gold] for gold in golds], golds, [1] * 102, "recall@1", item_pool=range_pool(), tau=0.2)
    assert found["verdict"] == found["verdicts"]["D"] == "insufficient"
    assert [reason[:7] for reason in found["reasons"]] == ["null D:"]


def test_two_labels_cannot_be_exchanged_often_enough():
    golds = ["a", "b"] * 50
    found = four_null_gate([[gold] for gold in golds], golds, [1] * 100, "recall@1", item_pool=range_pool())
    assert found["verdicts"] == {"A": "insufficient", "B": "pass", "C": "pass", "D": "pass"}
    assert found["p_values"]["A"] == pytest.approx(0.5, abs=0.3)


@pytest.mark.parametrize("n_labels", [4, 5])
def test_a_perfect_engine_over_few_labels_never_fails_and_passes_with_more_draws(n_labels):
    golds = POOL[:n_labels] * 10
    rows = [[gold] for gold in golds]
    verdicts = set()
    for seed in range(40):
        found = four_null_gate(rows, golds, [1] * len(golds), "recall@1", item_pool=range_pool(), seed=seed)
        verdicts.add(found["verdict"])
    assert "fail" not in verdicts
    found = four_null_gate(rows, golds, [1] * len(golds), "recall@1", item_pool=range_pool(), n_trials=3000)
    assert found["verdict"] == "pass"


def test_a_list_as_long_as_the_pool_cannot_be_told_from_random_ones():
    golds = POOL * 5
    rows = [[gold, *[item for item in POOL if item != gold]] for gold in golds]
    found = four_null_gate(rows, golds, [1] * 30, "recall@6", item_pool=POOL)
    assert found["verdicts"]["C"] == "insufficient"
    sampled = four_null_gate(rows, golds, [1] * 30, lambda row, gold, _: float(gold in row), item_pool=POOL, k=6)
    assert sampled["verdicts"]["C"] == "insufficient"


def test_a_p_near_alpha_is_said_to_hang_on_the_seed_and_a_clear_one_is_not():
    rows, golds, pool = engine(20, share=0.15, seed=27)
    verdicts, warned = set(), 0
    for seed in range(30):
        found = four_null_gate(rows, golds, [1] * 20, "recall@5", item_pool=pool, seed=seed)
        verdicts.add(found["verdict"])
        warned += any("another seed may decide otherwise" in warning for warning in found["warnings"])
    assert verdicts == {"pass", "fail"}
    assert warned > 20
    rows, golds, pool = engine(80, share=0.9)
    clear = four_null_gate(rows, golds, [1] * 80, "recall@5", item_pool=pool)
    assert not any("seed" in warning for warning in clear["warnings"])


def test_one_stratum_is_no_strata():
    rows, golds, pool = engine(40, share=0.4)
    for metric in ("ndcg@5", hit):
        plain = four_null_gate(rows, golds, [1] * 40, metric, item_pool=pool)
        whole = four_null_gate(rows, golds, [1] * 40, metric, item_pool=pool, strata=["all"] * 40)
        assert whole == plain


WRONG = {
    "metric_fn must be a name": {"metric_fn": 5},
    "unknown metric 'map'": {"metric_fn": "map@5"},
    "metric must be 'name@K'": {"metric_fn": "ndcg"},
    "k=3 differs from the cutoff of recall@2": {"k": 3},
    "k must be a positive integer, got True": {"k": True, "metric_fn": hit},
    "k must be a positive integer, got '2'": {"k": "2"},
    "n_trials must be a positive integer, got True": {"n_trials": True},
    "tau must be in \\[0, 1\\], got high": {"tau": "high"},
    "seed must be a non-negative integer, got True": {"seed": True},
    "alpha must be between 0 and 1, got 0": {"alpha": 0},
    "alpha must be between 0 and 1, got nan": {"alpha": math.nan},
    "gold_list holds something that cannot be an id .* for the graded gate": {"gold_list": ["a", ["b"]]},
    "gold_list holds NaN, which equals no id": {"gold_list": [math.nan, "b"]},
    "item_pool holds something that cannot be an id": {"item_pool": [["a"], "b"]},
    "item_pool is a string": {"item_pool": "abcdef"},
    "1 gold label\\(s\\) not present in item_pool: \\['b'\\]": {"item_pool": ["a", 1, 2]},
    "2 gold label\\(s\\) not present in item_pool: \\[1, 'b'\\]": {"item_pool": ["a", 3], "gold_list": [1, "b"]},
    "retrieved_lists\\[1\\] is str 'b'": {"retrieved_lists": [["a"], "b"]},
    "retrieved_lists\\[0\\] is set": {"retrieved_lists": [{"a"}, ["b"]]},
    "retrieved_lists\\[0\\] is NoneType": {"retrieved_lists": [None, ["b"]]},
    "retrieved_lists\\[0\\] holds something that cannot be an id": {"retrieved_lists": [[{}], ["b"]]},
    "rel_list\\[0\\] is dict .* for the graded gate": {"rel_list": [{"a": 3}, 1]},
    "rel_list\\[1\\] is float nan": {"rel_list": [1, math.nan]},
    "rel_list\\[1\\] is int 1000": {"rel_list": [1, 10**400]},
    "rel_list\\[1\\] is str '3'": {"rel_list": [1, "3"]},
    "strata must name the stratum of each of the 2 queries": {"strata": ["x"]},
    "strata must name": {"strata": "xy"},
    "strata\\[1\\] is NoneType": {"strata": ["x", None]},
    "strata\\[0\\] is str ''": {"strata": ["", "x"]},
    "metric_fn gave nan for query 0": {"metric_fn": lambda *_: math.nan},
    "metric_fn gave None for query 0": {"metric_fn": lambda *_: None},
    "metric_fn gave '1' for query 0": {"metric_fn": lambda *_: "1"},
    "metric_fn gave inf for query 1": {"metric_fn": lambda _row, gold, _rel: math.inf if gold == "b" else 1},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_tested_is_refused_by_name(message):
    arguments = {
        "retrieved_lists": [["a", "c"], ["b", "d"]],
        "gold_list": ["a", "b"],
        "rel_list": [3, 3],
        "metric_fn": "recall@2",
        "item_pool": list("abcdefgh"),
    } | WRONG[message]
    lists = [arguments.pop(key) for key in ("retrieved_lists", "gold_list", "rel_list", "metric_fn")]
    with pytest.raises(ValueError, match=message):
        four_null_gate(*lists, **arguments)


def test_rows_may_be_tuples_arrays_or_other_sequences_and_scores_any_real_number():
    golds = np.array([0, 1, 2, 3])
    rows = [(0, 5), np.array([1, 5]), range(2, 4), [3, 5]]
    plain = four_null_gate([[0, 5], [1, 5], [2, 3], [3, 5]], [0, 1, 2, 3], [1] * 4, "ndcg@2", item_pool=list(range(6)))
    assert four_null_gate(rows, golds, np.ones(4), "ndcg@2", item_pool=np.arange(6)) == plain
    for number in (True, 1, np.float32(1), np.True_, 1.0):
        found = four_null_gate(rows, golds, [1] * 4, lambda *_, n=number: n, item_pool=range(6), n_trials=5)
        assert found["real_mean"] == 1.0


def test_a_pool_given_as_a_set_is_drawn_from_in_one_order():
    rows, golds, pool = engine(20, share=0.3)
    in_order = four_null_gate(rows, golds, [1] * 20, hit, item_pool=sorted(pool))
    assert four_null_gate(rows, golds, [1] * 20, hit, item_pool=frozenset(pool)) == in_order


def test_empty_rows_stay_in_the_mean_and_are_counted():
    found = four_null_gate([["a"], [], []], ["a", "b", "c"], [1] * 3, "recall@1", item_pool=POOL)
    assert found["real_mean"] == pytest.approx(1 / 3)
    assert any(warning.startswith("2 row(s) are empty") for warning in found["warnings"])


def test_an_engine_that_finds_nothing_at_all_fails():
    for metric in ("recall@5", "ndcg@5", hit):
        found = four_null_gate([[]] * 20, POOL * 3 + ["a", "b"], [1] * 20, metric, item_pool=range_pool())
        assert found["verdict"] == "fail"
        assert found["real_mean"] == 0


def test_queries_without_relevance_score_nothing_and_limit_what_can_be_shown():
    rows, golds = [["a"], ["b"], ["c"]], ["a", "b", "c"]
    found = four_null_gate(rows, golds, [1, 0, -1], "ndcg@1", item_pool=POOL)
    assert found["real_mean"] == pytest.approx(1 / 3)
    assert found["null_means"]["C"] == pytest.approx(1 / 3 / 6)
    nothing = four_null_gate(rows, golds, [0, 0, 0], "ndcg@1", item_pool=POOL)
    assert nothing["verdict"] == "insufficient"
    assert four_null_gate(rows, golds, [0, 0, 0], "recall@1", item_pool=POOL)["real_mean"] == 1


def reciprocal_rank(retrieved, gold, rel):
    return 1 / (1 + retrieved.index(gold))


@pytest.mark.parametrize("times", [5, 11, 13])
@pytest.mark.parametrize("metric", ["ndcg@6", "mrr@6", reciprocal_rank])
def test_draws_that_equal_the_real_score_but_for_rounding_are_ties(metric, times):
    n = 6 * times
    found = four_null_gate([list("fbdace")] * n, POOL * times, [3] * n, metric, item_pool=POOL, k=6)
    assert found["p_values"]["A"] == 1.0
    assert found["deltas"]["A"] == pytest.approx(0, abs=1e-12)


def test_a_place_freed_by_a_repeat_is_taken_by_what_stands_below_the_cutoff():
    rows = [["x", "x", gold] for gold in POOL]
    found = four_null_gate(rows, POOL, [1] * 6, "mrr@2", item_pool=[*POOL, "x"])
    assert found["real_mean"] == 0.5


NOT_MEASURES = ["", "ndcg", "ndcg@", "ndcg@0", "ndcg@-1", "ndcg@05", "ndcg@1.5", "ndcg@²", "ndcg@5 ", "ndcg@10\n"]


@pytest.mark.parametrize("text", [*NOT_MEASURES, "map@10", "NDCG@10", "@10", "nd\x1bcg@10", "recall@" + "9" * 5000])
def test_a_measure_is_a_known_name_and_a_cutoff_in_plain_digits(text):
    with pytest.raises(ValueError, match=r"'name@K'|unknown metric") as refusal:
        four_null_gate([["a"]], ["a"], [1], text, item_pool=POOL)
    assert "\x1b" not in str(refusal.value)
