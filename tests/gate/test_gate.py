import json
from itertools import permutations, product

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import Run
from runner.eval_set.catalog import SOURCES
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan
from runner.gate.gate import DOTS, Gate, overall
from runner.gate.nulls import GATES, GRADED, Drawn
from runner.score.score import score
from tests.support.graded_sets import (
    CHUNKS,
    DOCS,
    LENGTHS,
    SETTINGS,
    gate_of,
    graded,
    in_one_stratum,
    oracle,
    run_of,
    verdict,
    verdicts,
)

NAMES = ["permuted qrels", "random retrieval", "most retrieved", "length sorted", "shuffled top 10"]
LONGEST = sorted(DOCS, key=lambda d: (-LENGTHS[d], d))[:10]


def ndcg(run, qrels):
    return list(score(run, list(qrels), qrels, 2).values["ndcg@10"])


def test_tools_that_no_plan_binds_take_the_gate_of_the_default_plan():
    plan = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["bills"], rehearsal=False)))
    assert GATES[plan.null_gate.nulls] is GRADED


def test_an_oracle_passes_every_null():
    qrels = graded(25)
    found = verdict(oracle(qrels), qrels)
    assert found.verdict == "pass"
    assert [null.name for null in found.nulls] == NAMES
    assert found.real == 1
    assert all(null.p == pytest.approx(1 / 501) for null in found.nulls)
    assert all(null.delta > 0.8 for null in found.nulls[:4])


@given(st.integers(0, 10_000))
def test_the_real_score_is_the_one_that_the_page_shows(seed):
    qrels, rng = graded(6, seed), np.random.default_rng(seed)
    qrels["q00"] = {DOCS[0]: -1, DOCS[1]: 0}
    del qrels["q03"][min(qrels["q03"])]
    run = run_of({q: rng.choice(DOCS, rng.integers(0, 40), replace=False).tolist() for q in qrels})
    found = verdict(run, qrels, draws=20)
    assert found.real == pytest.approx(sum(ndcg(run, qrels)) / 6 / 1e9, abs=1e-12)


def popular_list(n_queries=30):
    """A list that ignores the query, in a set where it holds much of what is relevant."""
    qrels = graded(n_queries)
    for query_id in list(qrels)[:20]:
        qrels[query_id] |= {DOCS[150]: 3, DOCS[151]: 3}
    return run_of(dict.fromkeys(qrels, DOCS[150:160])), qrels, None


def stratum_lists():
    """Another such list in each of two strata."""
    strata = {f"q{i:02}": "house" if i % 2 else "senate" for i in range(30)}
    lists = {"house": DOCS[:10], "senate": DOCS[100:110]}
    rng = np.random.default_rng(6)
    qrels = {q: dict.fromkeys(rng.choice(lists[strata[q]], 4, replace=False).tolist(), 3) for q in strata}
    return run_of({q: lists[strata[q]] for q in strata}), qrels, strata


def crowded_by_what_it_retrieves():
    """Each query's own document second, after one of five that are relevant to all and better together."""
    qrels = {f"q{i:02}": {DOCS[i]: 3} | dict.fromkeys(DOCS[180:185], 3) for i in range(30)}
    return run_of({q: [DOCS[180 + i % 5], DOCS[i], DOCS[60]] for i, q in enumerate(qrels)}), qrels, None


def beaten_by_the_longest():
    """Each query's own document last, where the longest is relevant to all."""
    qrels = {f"q{i:02}": {DOCS[i]: 3, LONGEST[0]: 1} for i in range(30)}
    return run_of({q: [*DOCS[60:69], DOCS[i]] for i, q in enumerate(qrels)}), qrels, None


def right_ten_worst_first():
    qrels = graded(30)
    run = oracle(qrels)
    return Run("cell", {q: tuple(reversed(hits)) for q, hits in run.hits.items()}), qrels, None


@pytest.mark.parametrize(
    ("cheater", "failed"),
    [
        (popular_list, {"permuted qrels", "most retrieved"}),
        (stratum_lists, {"permuted qrels", "shuffled top 10"}),
        (crowded_by_what_it_retrieves, {"most retrieved"}),
        (beaten_by_the_longest, {"length sorted"}),
    ],
)
def test_each_null_catches_its_cheater(cheater, failed):
    run, qrels, strata = cheater()
    found = verdict(run, qrels, strata)
    assert {name for name, said in verdicts(found).items() if said == "fail"} == failed
    assert found.verdict == "fail"


def test_the_order_of_the_first_ten_refuses_nobody():
    run, qrels, _ = right_ten_worst_first()
    found = verdict(run, qrels)
    assert (found.nulls[4].p, found.nulls[4].delta < -0.1) == (1, True)
    assert {name for name, said in verdicts(found).items() if said != "pass"} == {"shuffled top 10"}
    assert found.verdict == "pass"


def test_a_null_that_a_perfect_engine_alone_would_pass_is_insufficient_and_stands_against_nobody():
    # Five long documents that suit everybody: with its own one first, a run halfway to them still scores less.
    qrels = {f"q{i:02}": {DOCS[i]: 3} | dict.fromkeys(LONGEST[:5], 3) for i in range(30)}
    run = run_of({q: [DOCS[i], DOCS[60], DOCS[61]] for i, q in enumerate(qrels)})
    assert verdicts(verdict(oracle(qrels), qrels))["length sorted"] == "pass"
    found = verdict(run, qrels)
    assert verdicts(found)["length sorted"] == "insufficient"
    assert found.nulls[3].p > 0.95
    assert found.verdict == "pass"


def told(verdicts):
    qrels, words = graded(25), {"p": "pass", "i": "insufficient", "f": "fail"}
    nulls = verdict(oracle(qrels), qrels).nulls
    return [
        null.model_copy(update={"verdict": words[said]}) for null, said in zip(nulls, verdicts.split(), strict=True)
    ]


@pytest.mark.parametrize(
    ("nulls", "whole"),
    [
        ("p p p p p", "pass"),
        ("p p p p f", "pass"),
        ("i p p p i", "pass"),
        ("p p p i f", "pass"),
        ("i p i p p", "insufficient"),
        ("i i i i p", "insufficient"),
        ("i i i i i", "insufficient"),
        ("p f p p p", "fail"),
        ("i i f i i", "fail"),
    ],
)
def test_one_insufficient_null_or_the_order_alone_never_refuses_a_run(nulls, whole):
    assert overall(told(nulls), spare=1) == whole


def test_retrieval_worse_than_chance_fails_random_retrieval():
    qrels = {f"q{i:02}": {DOCS[i % 10]: 3} for i in range(30)}
    others = {q: [d for d in DOCS[:10] if d not in grades] for q, grades in qrels.items()}
    run = run_of({q: [*others[q][:3], *grades, *others[q][3:]] for q, grades in qrels.items()})
    lengths = dict.fromkeys(DOCS[:10], 100)
    found = gate_of(qrels, lengths=lengths).judge(run, dict.fromkeys(lengths, 3))
    assert found.nulls[1].verdict == "fail"
    assert found.nulls[1].mean > found.real


def test_only_permuting_within_strata_sees_that_a_cheater_knows_the_stratum():
    run, qrels, strata = stratum_lists()
    assert verdicts(verdict(run, qrels, strata))["permuted qrels"] == "fail"
    assert verdicts(verdict(run, qrels))["permuted qrels"] == "pass"


def passes(make_run, n_gates=150):
    """By null, how many of so many runs have p <= alpha; and how many pass the whole gate, tau set aside."""
    qrels, small, whole = graded(12), np.zeros(5, int), 0
    for seed in range(n_gates):
        found = verdict(make_run(qrels, np.random.default_rng(seed)), qrels, seed=seed, draws=99, tau=0.0)
        small += [null.p <= 0.05 for null in found.nulls]
        whole += found.verdict == "pass"
    return dict(zip(NAMES, small.tolist(), strict=True)), whole


def by_chunks(qrels, rng):
    weights = np.array(list(CHUNKS.values())) / sum(CHUNKS.values())
    return run_of({q: rng.choice(DOCS, 10, replace=False, p=weights).tolist() for q in qrels})


def by_popularity(qrels, rng):
    weights = np.array([sum(grades.get(d, 0) for grades in qrels.values()) for d in DOCS])
    return run_of({q: rng.choice(DOCS, 10, replace=False, p=weights / weights.sum()).tolist() for q in qrels})


# Of 150 tests of a true null at 0.05, more than 17 or none have p <= alpha with a probability below 0.001 each.
def test_random_retrieval_passes_its_null_as_often_as_alpha_and_the_gate_no_more_often():
    small, whole = passes(by_chunks)
    assert 1 <= small["permuted qrels"] <= 17
    assert 1 <= small["random retrieval"] <= 17
    assert whole <= 17


def test_documents_drawn_by_their_grades_beat_random_retrieval_but_pass_the_gate_no_more_often_than_alpha():
    small, whole = passes(by_popularity)
    assert small["random retrieval"] > 60
    assert 1 <= small["permuted qrels"] <= 17
    assert whole <= 17


def test_the_right_documents_in_random_order_pass_the_shuffled_null_as_often_as_alpha():
    def unordered(qrels, rng):
        return run_of({q: rng.permutation(sorted(grades)).tolist() for q, grades in qrels.items()})

    small, _ = passes(unordered)
    assert 1 <= small["shuffled top 10"] <= 17
    assert small["permuted qrels"] == 150


def test_p_of_permuted_qrels_is_the_share_of_all_permutations():
    qrels = {f"q{i}": {DOCS[i]: 3, DOCS[i + 1]: 1} for i in range(6)}
    run = run_of({f"q{i}": [DOCS[i + 1], DOCS[9], DOCS[(i * 5) % 6]] for i in range(6)})
    real, names = sum(ndcg(run, qrels)), list(qrels)
    totals = [
        sum(ndcg(run, dict(zip(names, (qrels[name] for name in order), strict=True)))) for order in permutations(names)
    ]
    found = verdict(run, qrels, draws=20_000).nulls[0]
    assert found.p == pytest.approx(sum(total >= real for total in totals) / 720, abs=0.012)
    assert found.mean == pytest.approx(sum(totals) / 720 / 6e9, abs=0.005)


def test_p_of_a_constant_list_is_the_share_of_all_sign_flips():
    qrels = {f"q{i}": {DOCS[i]: 3, LONGEST[i % 4]: 2} for i in range(8)}
    run = run_of({f"q{i}": [DOCS[i]] if i % 2 else [DOCS[60], LONGEST[i % 4]] for i in range(8)})
    constant = ndcg(run_of(dict.fromkeys(qrels, LONGEST)), qrels)
    differences = np.array(ndcg(run, qrels)) - constant
    flipped = np.array(list(product([1, -1], repeat=8))) @ differences
    found = verdict(run, qrels, draws=20_000).nulls[3]
    assert 0.02 < found.p < 0.3
    assert found.p == pytest.approx((flipped >= differences.sum()).mean(), abs=0.012)


def test_a_constant_list_is_one_system_without_spread():
    run, qrels, _ = crowded_by_what_it_retrieves()
    most = [DOCS[60], *DOCS[180:185], *DOCS[:4]]
    for null, documents in zip(verdict(run, qrels).nulls[2:4], (most, LONGEST), strict=True):
        mean = sum(ndcg(run_of(dict.fromkeys(qrels, documents)), qrels)) / len(qrels) / 1e9
        assert null.mean == pytest.approx(mean)
        assert (null.low, null.high) == (null.mean, null.mean)


@pytest.mark.parametrize(("draws", "part"), [(DOTS, 1), (2_000, 50)])
def test_each_dot_is_a_draw_from_its_own_fortieth_of_them(draws, part):
    totals = np.random.default_rng(3).permutation(10**7 * np.arange(draws))
    gate = gate_of(graded(25), draws=draws)
    found = gate._result(GRADED[0], gate._drawn(np.ones(25), Drawn(totals)))
    ordered = np.sort(totals) / 25e9
    assert len(found.dots) == DOTS
    for dot, own in zip(found.dots, ordered.reshape(DOTS, part), strict=True):
        assert own[0] <= dot <= own[-1]
        assert dot in own


def test_a_constant_list_has_no_dots_and_every_other_null_has_its_own():
    qrels = graded(25)
    for null in verdict(oracle(qrels), qrels).nulls:
        if null.name in ("most retrieved", "length sorted"):
            assert null.dots == []
        else:
            assert null.dots == sorted(null.dots)
            assert null.low - 1e-12 <= null.dots[1] <= null.dots[-2] <= null.high + 1e-12


def spare(grades):
    return next(document for document in reversed(DOCS) if document not in grades)


def test_an_effect_below_tau_fails_however_small_its_p_and_a_tau_beyond_an_oracle_s_is_insufficient():
    qrels = graded(25)
    worse = run_of({q: [spare(grades), *sorted(grades, key=lambda d: -grades[d])] for q, grades in qrels.items()})
    found = verdict(worse, qrels, tau=0.8).nulls[0]
    assert (found.p < 0.01, found.verdict) == (True, "fail")
    assert verdict(oracle(qrels), qrels, tau=0.99).nulls[0].verdict == "insufficient"


@pytest.mark.parametrize(
    ("p", "delta", "passed"), [(0.05003, 1.0, True), (0.05006, 1.0, False), (0.0, 0.04996, True), (0.0, 0.04994, False)]
)
def test_alpha_and_tau_are_compared_at_the_four_places_of_the_page(p, delta, passed):
    qrels = graded(25)
    gate = gate_of(qrels)
    null = verdict(oracle(qrels), qrels).nulls[0].model_copy(update={"p": p, "delta": delta})
    assert gate._passes(GRADED[0], null) is passed


def test_three_queries_are_insufficient_and_so_are_too_few_draws():
    qrels = graded(3)
    found = verdict(oracle(qrels), qrels)
    assert list(verdicts(found).values()) == ["insufficient", "pass", "insufficient", "insufficient", "pass"]
    assert found.verdict == "insufficient"
    qrels = graded(25)
    assert set(verdicts(verdict(oracle(qrels), qrels, draws=18)).values()) == {"insufficient"}
    assert verdict(oracle(qrels), qrels, draws=19).verdict == "pass"


def test_top_tens_without_grades_to_reorder_are_insufficient_and_stand_against_nothing():
    qrels = {f"q{i:02}": dict.fromkeys(DOCS[i : i + 10], 1) for i in range(25)}
    whole = verdict(oracle(qrels), qrels)
    found = whole.nulls[4]
    assert (found.verdict, found.p) == ("insufficient", 1)
    assert whole.verdict == "pass"
    qrels["q00"][DOCS[0]] = qrels["q01"][DOCS[1]] = 2
    found = verdict(oracle(qrels), qrels).nulls[4]
    assert (found.verdict, found.p) == ("pass", pytest.approx(1 / 100, abs=0.02))


def test_a_run_that_retrieves_nothing_fails():
    qrels = graded(25)
    found = verdict(run_of({q: [] for q in qrels}), qrels)
    assert (found.verdict, found.real) == ("fail", 0)
    assert all(null.p == 1 for null in found.nulls)


def test_a_prepared_gate_says_of_every_run_what_a_gate_of_its_own_says():
    qrels = graded(12)
    gate = gate_of(qrels)
    even = dict.fromkeys(CHUNKS, 1)
    for run in (oracle(qrels), by_chunks(qrels, np.random.default_rng(1))):
        for chunks in (CHUNKS, even):
            own = Gate.of(list(qrels), qrels, in_one_stratum(qrels), LENGTHS, **SETTINGS).judge(run, chunks)
            assert gate.judge(run, chunks) == own
    assert gate.judge(run, even).nulls[1] != gate.judge(run, CHUNKS).nulls[1]


IN_PAIRS = {f"q{number:02}": str(number // 2) for number in range(6)}
"""Strata in which judgments can be exchanged in eight ways, too few for any run to pass."""


@pytest.mark.parametrize(
    ("n_queries", "settings", "passing"),
    [
        *((15, {"tau": tau}, range(1, 40)) for tau in (0.0, 0.05, 0.1)),
        (6, {"strata": IN_PAIRS}, range(1, 40)),  # one null is insufficient, which is spared
        (4, {}, [0]),  # two are, which flip the signs of four differences
        (6, {"strata": IN_PAIRS, "nulls": GRADED[:1]}, [0]),  # which is not, where it is the only one
    ],
)
def test_passing_is_judged_alike_with_and_without_the_figures(n_queries, settings, passing):
    qrels = graded(n_queries)
    gate, passed = gate_of(qrels, **settings), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        run = run_of({q: [d for d in sorted(grades) if rng.random() < 0.1 * (seed % 3)] for q, grades in qrels.items()})
        if seed < 3:
            run = oracle(qrels)
        mean, passes = gate.trial(gate.bench.rankings(run), gate.bench.column(CHUNKS))
        found = gate.judge(run, CHUNKS)
        passed.append(passes)
        assert (mean, passes) == (found.real, found.verdict == "pass")
    assert sum(passed) in passing


def test_wrong_arguments_are_named():
    qrels = graded(5)
    with pytest.raises(ValueError, match="got 0 queries"):
        gate_of({})
    with pytest.raises(ValueError, match="got 0 draws"):
        gate_of(qrels, draws=0)
    with pytest.raises(ValueError, match="no document of the corpus has a chunk"):
        gate_of(qrels).judge(oracle(qrels), {})
    with pytest.raises(ValueError, match="'unknown' is not in the corpus"):
        gate_of(qrels).judge(oracle(qrels), {"unknown": 3})


def test_the_same_seed_gives_the_same_verdict_and_json_takes_it():
    qrels = graded(25)
    first, second = verdict(oracle(qrels), qrels), verdict(oracle(qrels), qrels)
    assert first == second
    assert first != verdict(oracle(qrels), qrels, seed=2)
    row = json.loads(json.dumps(first.model_dump(), allow_nan=False))
    assert (row["verdict"], row["nulls"][0]["name"]) == ("pass", "permuted qrels")
