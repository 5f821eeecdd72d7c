"""The single-gold gate against falsify-eval 0.2.0: its recorded vectors, and itself on made-up benches."""

import json
import math

import falsify_eval
import pytest
from falsify_eval.mcp_server import METRICS

from runner.gate.single_gold import four_null_gate
from tests.gate.test_single_gold import engine

NULLS = "ABCD"
KEYS = {"real_mean", "null_means", "deltas", "passes", "gate_passes", "tau", "n_trials", "warnings"}

# Verdicts that differ on purpose, each with the reason.
OTHER_VERDICT = {
    "single_class_tau0": "one gold label: exchanging it changes nothing, so A, B and D cannot decide; theirs passes",
    "N1": "one query: nothing can be shown; theirs fails it",
}
# nDCG values that differ on purpose.
OTHER_VALUE = {
    "x g g g g": ("an id that is repeated counts once, at its first place", 3 / math.log2(3) / 3),
    "g a b c d": ("a negative relevance is not relevant, as in trec_eval; theirs scores 2.58", 0.0),
}


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "vectors" / "parity.json").read_text(encoding="utf-8"))


def theirs(name):
    measure, k = name.split("@")
    return lambda retrieved, gold, rel: METRICS[measure](retrieved, gold, rel, int(k))


def ours(case, metric, **more):
    given_ = case["input"]
    settings_ = {"item_pool": given_["pool"], "k": given_["k"], "tau": given_["tau"], "seed": given_["seed"]}
    return four_null_gate(given_["retrieved"], given_["gold"], given_["rel"], metric, **(settings_ | more))


@pytest.mark.shared
def test_real_means_and_expectations_agree_to_the_twelfth_place(vectors):
    assert len(vectors["gate"]) == 15
    for case in vectors["gate"]:
        found = ours(case, case["input"]["metric"])
        assert found["real_mean"] == pytest.approx(case["output"]["real_mean"], abs=1e-12), case["name"]
        for null in NULLS:
            recorded = case["output"]["n_trials_large"][null]
            assert abs(found["null_means"][null] - recorded["expected_null_mean_exact"]) <= 1e-12, case["name"]
            assert abs(found["deltas"][null] - recorded["expected_delta_exact"]) <= 1e-12, case["name"]


@pytest.mark.shared
def test_verdicts_agree_but_where_a_reason_is_named(vectors):
    for case in vectors["gate"]:
        for n_trials in (50, 400):
            found = ours(case, case["input"]["metric"], n_trials=n_trials)
            if case["name"] in OTHER_VERDICT:
                assert found["verdict"] == "insufficient", OTHER_VERDICT[case["name"]]
            else:
                assert found["gate_passes"] == case["output"]["n_trials_50"]["gate_passes"], case["name"]


@pytest.mark.shared
def test_single_values_agree_but_where_a_reason_is_named(vectors):
    assert len(vectors["metrics"]) == 15
    differences = 0
    for case in vectors["metrics"]:
        found = four_null_gate(
            [case["retrieved"]],
            [case["gold"]],
            [case["rel"]],
            f"{case['metric']}@{case['k']}",
            item_pool=list("abcdgwxyz"),
        )
        reason, value = OTHER_VALUE.get(" ".join(case["retrieved"]), ("", case["out"]))
        differs = case["metric"] == "ndcg" and bool(reason)
        differences += differs
        assert found["real_mean"] == pytest.approx(value if differs else case["out"], abs=1e-12), (case, reason)
    assert differences == len(OTHER_VALUE)


def test_the_result_has_their_keys_in_plain_types():
    rows, gold, pool = engine(40, share=0.9, n_labels=8, n_pool=15, seed=2)
    for metric in ("ndcg@5", theirs("ndcg@5")):
        found = four_null_gate(rows, gold, [3] * 40, metric, item_pool=pool, k=5)
        assert found.keys() >= KEYS
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert all(type(value) is bool for value in [*found["passes"].values(), found["gate_passes"]])
        assert all(type(value) is float for value in [*found["deltas"].values(), found["real_mean"]])


REFUSED = {
    "lengths": ({"retrieved_lists": [["a"]]}, True),
    "no query": ({"retrieved_lists": [], "gold_list": [], "rel_list": []}, True),
    "k": ({"k": 0}, True),
    "n_trials": ({"n_trials": 0}, True),
    "n_trials of another type": ({"n_trials": 5.0}, True),
    "tau": ({"tau": 1.5}, True),
    "tau NaN": ({"tau": math.nan}, True),
    "seed": ({"seed": -1}, True),
    "empty pool": ({"item_pool": []}, True),
    "k above pool": ({"k": 9}, True),
    "golds missing": ({"item_pool": list("xyzuvw")}, True),
    "k before n_trials": ({"k": -1, "n_trials": -1}, True),
    "lengths before k": ({"rel_list": [], "k": 0}, True),
    "tau before seed": ({"tau": -1, "seed": -1}, True),
    "pool missing": ({"item_pool": None}, False),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_they_refuse_is_refused_in_their_order_and_words(name):
    change, same_words = REFUSED[name]
    arguments = {
        "retrieved_lists": [["a", "x"], ["b", "y"]],
        "gold_list": ["a", "b"],
        "rel_list": [3, 3],
        "metric_fn": theirs("recall@2"),
        "item_pool": list("abcdxyz"),
        "k": 2,
    } | change
    lists = [arguments.pop(key) for key in ("retrieved_lists", "gold_list", "rel_list", "metric_fn")]
    with pytest.raises(ValueError) as reference:
        falsify_eval.four_null_gate(*lists, **arguments)
    with pytest.raises(ValueError) as refusal:
        four_null_gate(*lists, **arguments)
    if same_words:
        assert str(refusal.value) == str(reference.value)
    else:  # theirs goes on to speak of its own earlier versions
        assert str(refusal.value).startswith("null_c_random_retrieval requires item_pool")
