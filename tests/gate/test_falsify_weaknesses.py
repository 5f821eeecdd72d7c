"""The thirteen measured weaknesses of falsify-eval 0.2.0, one test each: what it does, what the gate here does.

docs/null-gate.md lists them in this order.
"""

import math

import falsify_eval
import numpy as np
import pytest
from falsify_eval.mcp_server import METRICS

from runner.gate.single_gold import four_null_gate

NULLS = "ABCD"


def theirs(rows, golds, name, pool, *, rel=None, **more):
    """falsify-eval's own gate with its own measure of that name."""
    measure, k = name.split("@")
    return falsify_eval.four_null_gate(
        rows,
        golds,
        rel or [3] * len(golds),
        lambda retrieved, gold, relevance: METRICS[measure](retrieved, gold, relevance, int(k)),
        item_pool=pool,
        **({"k": int(k)} | more),
    )


def ours(rows, golds, metric, pool, **more):
    return four_null_gate(rows, golds, [3] * len(golds), metric, item_pool=pool, **more)


def blind(n, n_pool, depth, seed):
    """Golds drawn evenly, lists drawn at random: an engine that never looks at the query."""
    rng = np.random.default_rng(seed)
    pool = [f"d{i}" for i in range(n_pool)]
    golds = [pool[i] for i in rng.integers(n_pool, size=n)]
    return [[pool[i] for i in rng.choice(n_pool, depth, replace=False)] for _ in range(n)], golds, pool


def zipf_golds(labels, n, rng):
    weights = 1 / np.arange(1, len(labels) + 1)
    return [labels[i] for i in rng.choice(len(labels), n, p=weights / weights.sum())]


def percent(retrieved, gold, rel):
    return 100.0 if gold in retrieved[:5] else 0.0


def test_01_a_blind_random_engine_passes_no_more_often_than_alpha():
    for n in (10, 30):
        for name in ("recall@5", "ndcg@5"):
            assert blind_passes(ours, n, name, 100) <= 0.05 * 100
    assert blind_passes(theirs, 10, "recall@5", 30) >= 0.15 * 30


def blind_passes(gate, n, name, repetitions):
    benches = (blind(n, 20, 5, seed) for seed in range(repetitions))
    return sum(gate(rows, golds, name, pool)["gate_passes"] for rows, golds, pool in benches)


def test_02_a_weak_but_real_engine_fails_by_the_size_of_its_effect_and_is_told_so():
    pool = [f"d{i}" for i in range(20_000)]
    golds = pool[:400]
    rows = [[pool[1000 + i], golds[i] if i < 19 else pool[2000 + i]] for i in range(400)]
    assert not theirs(rows, golds, "recall@10", pool, n_trials=5)["gate_passes"]
    found = ours(rows, golds, "recall@10", pool, n_trials=1999)
    assert found["verdict"] == "fail"
    assert found["p_values"] == pytest.approx(dict.fromkeys(NULLS, 0.0005))
    assert found["reasons"][2] == "null C: beats it (p 0.0005), but by 0.047, less than tau 0.05"
    assert ours(rows, golds, "recall@10", pool, n_trials=1999, tau=0.04)["verdict"] == "pass"


def test_03_a_cheater_that_knows_the_source_passes_pooled_nulls_and_fails_within_sources():
    rng = np.random.default_rng(3)
    rows, golds, sources, pool = [], [], [], []
    for source in ("bills", "code", "hearings", "reports"):
        labels = [f"{source}{i}" for i in range(40)]
        pool += labels
        golds += zipf_golds(labels, 60, rng)
        rows += [labels[:5]] * 60
        sources += [source] * 60
    assert theirs(rows, golds, "recall@5", pool, n_trials=15)["gate_passes"]
    assert ours(rows, golds, "recall@5", pool)["verdict"] == "pass"
    found = ours(rows, golds, "recall@5", pool, strata=sources)
    assert found["verdict"] == "fail"
    assert found["deltas"]["D"] == pytest.approx(0, abs=1e-12)
    assert any(reason.startswith("null D: does not beat it") for reason in found["reasons"])


def test_04_a_constant_prediction_has_the_deltas_that_arithmetic_gives_it():
    labels = [f"L{i:02}" for i in range(12)]
    golds = zipf_golds(labels, 300, np.random.default_rng(4))
    share = golds.count("L00") / 300
    found = ours([["L00"]] * 300, golds, "ndcg@5", labels)
    gains = sum(1 / math.log2(rank + 1) for rank in range(1, 6))
    expected = {"A": share - 1 / 12, "B": share - 1 / 12, "C": share - gains / 12, "D": 0.0}
    assert found["deltas"] == pytest.approx(expected, abs=1e-12)
    assert found["verdict"] == "fail"
    reference = theirs([["L00"]] * 300, golds, "ndcg@5", labels)
    assert reference["deltas"] == pytest.approx(expected, abs=0.03)
    assert set(reference["passes"].values()) == {True, False}


def test_05_one_gold_class_is_insufficient_for_an_oracle_as_for_a_constant():
    pool = list("abcdefghijklmnopqrstuvwxyz")
    oracle = [["a", "b"]] * 20, ["a"] * 20, "recall@1", pool
    assert not theirs(*oracle)["gate_passes"]
    assert theirs(*oracle, tau=0.0)["gate_passes"]
    for tau in (0.05, 0.0):
        found = ours(*oracle, tau=tau)
        assert found["verdict"] == "insufficient"
        assert [reason[:7] for reason in found["reasons"]] == ["null A:", "null B:", "null D:"]
        assert "all queries have the same gold label" in found["warnings"][0]


def graded_ndcg(retrieved, gold, qrels):
    gains = [qrels.get(item, 0) / math.log2(rank + 2) for rank, item in enumerate(retrieved[:10])]
    ideal = [grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(qrels.values(), reverse=True)[:10])]
    return sum(gains) / sum(ideal)


def test_06_graded_qrels_in_the_place_of_a_relevance_are_refused_or_called_untestable():
    rng = np.random.default_rng(6)
    pool = [f"d{i}" for i in range(300)]
    qrels = [{pool[i]: int(rng.integers(1, 4)) for i in rng.choice(300, 8, replace=False)} for _ in range(30)]
    golds = [min(found) for found in qrels]
    rows = [[*list(found)[:4], *[item for item in pool[:8] if item not in found]] for found in qrels]
    reference = falsify_eval.four_null_gate(rows, golds, qrels, graded_ndcg, item_pool=pool, k=10, n_trials=5)
    assert reference["real_mean"] > 0.3
    assert [abs(reference["deltas"][null]) < 1e-9 for null in NULLS] == [True, True, False, True]
    assert not reference["gate_passes"]
    found = four_null_gate(rows, golds, qrels, graded_ndcg, item_pool=pool, k=10)
    assert found["verdicts"] == {"A": "insufficient", "B": "insufficient", "C": "pass", "D": "insufficient"}
    assert any("graded gate can" in warning for warning in found["warnings"])
    with pytest.raises(ValueError, match=r"rel_list\[0\] is dict .* graded gate"):
        four_null_gate(rows, golds, qrels, "ndcg@10", item_pool=pool)


def test_07_a_measure_in_percent_does_not_buy_a_blind_engine_its_pass():
    def gates(gate, n_trials):
        found = []
        for seed in range(20):
            rows, golds, pool = blind(60, 20, 5, seed)
            found.append(gate(rows, golds, [3] * 60, percent, item_pool=pool, k=5, n_trials=n_trials))
        return found

    assert sum(found["gate_passes"] for found in gates(falsify_eval.four_null_gate, 5)) >= 4
    own = gates(four_null_gate, 40)
    assert sum(found["gate_passes"] for found in own) <= 1
    assert all(any("tau is meant for a measure between 0 and 1" in w for w in found["warnings"]) for found in own)


def near_threshold():
    """An engine whose exact delta to null D is just below .05: right for some queries, with nothing for the rest."""
    pool = [f"d{i}" for i in range(400)]
    golds = zipf_golds(pool[:12], 150, np.random.default_rng(8))
    for n_right in range(150):
        rows = [[gold] if i < n_right else [pool[30]] for i, gold in enumerate(golds)]
        if ours(rows, golds, "recall@1", pool)["deltas"]["D"] >= 0.05:
            break
    rows[n_right - 1] = [pool[30]]
    return rows, golds, pool


def test_08_a_delta_near_tau_depends_on_neither_seed_nor_names():
    rows, golds, pool = near_threshold()
    reference = [theirs(rows, golds, "recall@1", pool, seed=seed, n_trials=10)["gate_passes"] for seed in range(30)]
    assert 0 < sum(reference) < 30
    exact = ours(rows, golds, "recall@1", pool)
    assert 0.04 < exact["deltas"]["D"] < 0.05
    for seed in range(30):
        found = ours(rows, golds, "recall@1", pool, seed=seed)
        assert found["deltas"] == exact["deltas"]
        assert found["verdict"] == "fail"
        names = {item: f"{seed}-{number}" for number, item in enumerate(np.random.default_rng(seed).permutation(pool))}
        renamed = [[names[item] for item in row] for row in rows], [names[gold] for gold in golds]
        assert ours(*renamed, "recall@1", [names[item] for item in pool]) == exact


def test_09_stuffing_repeats_after_the_first_guess_gains_nothing():
    rows, golds, pool = blind(100, 20, 5, 9)
    stuffed = [[row[0], row[1], row[1], row[1], row[1]] for row in rows]
    bare = [row[:2] for row in rows]
    assert theirs(stuffed, golds, "ndcg@5", pool)["real_mean"] > theirs(bare, golds, "ndcg@5", pool)["real_mean"]
    for metric in ("ndcg@5", lambda row, gold, rel: METRICS["ndcg"](row, gold, rel, 5)):
        found, plain = ours(stuffed, golds, metric, pool, k=5), ours(bare, golds, metric, pool, k=5)
        assert found["warnings"].pop(0) == "100 row(s) hold an id more than once; it counts once, at its first place"
        assert found == plain


def test_10_repeated_pool_entries_count_once():
    rows, golds, pool = blind(50, 20, 5, 10)
    junk = [*pool, *["junk"] * 200]
    assert theirs(rows, golds, "recall@5", junk)["null_means"]["C"] < 0.05
    for metric in ("recall@5", lambda row, gold, _: float(gold in row[:5])):
        found, plain = ours(rows, golds, metric, junk), ours(rows, golds, metric, [*pool, "junk"])
        assert found["null_means"]["C"] == pytest.approx(5 / 21, abs=0.03)
        assert found["warnings"].pop(0) == "item_pool holds 220 entries but 21 different ids; each counts once"
        assert found == plain


def test_11_a_k_that_is_not_the_measure_s_cutoff_is_refused():
    rows, golds, pool = blind(60, 20, 10, 11)
    assert theirs(rows, golds, "recall@10", pool, k=1)["deltas"]["C"] > 0.35
    with pytest.raises(ValueError, match="k=1 differs from the cutoff of recall@10"):
        ours(rows, golds, "recall@10", pool, k=1)
    with pytest.raises(ValueError, match=r"metric_fn reads below place k=1 \(query \d+\)"):
        ours(rows, golds, lambda row, gold, _: float(gold in row[:10]), pool, k=1)
    assert ours(rows, golds, lambda row, gold, _: float(gold in row[:1]), pool, k=1)["k"] == 1


def test_12_ids_of_another_type_and_scores_that_are_no_number_are_refused():
    golds, pool = list(range(20)), list(range(40))
    rows = [[str(gold), "x"] for gold in golds]
    assert theirs(rows, golds, "recall@2", pool)["real_mean"] == 0.0
    for metric in ("recall@2", lambda row, gold, _: float(gold in row)):
        with pytest.raises(ValueError, match="first is str '0', and the first gold label is int 0"):
            ours(rows, golds, metric, pool, k=2)
    sometimes = {7: math.nan}
    reference = falsify_eval.four_null_gate(
        rows, golds, golds, lambda row, gold, _: sometimes.get(gold, 1.0), item_pool=pool, n_trials=2
    )
    assert not reference["gate_passes"]
    with pytest.raises(ValueError, match="metric_fn gave nan for query 7"):
        four_null_gate(rows, golds, golds, lambda row, gold, _: sometimes.get(gold, 1.0), item_pool=pool)


def test_12_ids_outside_of_the_pool_are_a_warning():
    rows, golds, pool = blind(30, 20, 5, 12)
    found = ours([[*row[:4], "elsewhere"] for row in rows], golds, "recall@5", pool)
    assert found["warnings"][0].startswith(
        "30 place(s) hold an id that is not in item_pool, the first of them str 'else"
    )


def test_13_rows_that_are_plain_strings_are_refused():
    golds = list("abcdefghij") * 4
    rows = [gold + "xyz" for gold in golds]
    pool = list("abcdefghijxyz")
    assert theirs(rows, golds, "recall@4", pool)["gate_passes"]
    with pytest.raises(ValueError, match=r"retrieved_lists\[0\] is str 'axyz'; a list of ids, best first, is expected"):
        ours(rows, golds, "recall@4", pool)
