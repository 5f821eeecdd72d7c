from math import comb

import numpy as np
import pytest

from runner.gate.bench import Bench
from runner.gate.controls import controls, most_by_chance
from runner.gate.gate import Gate
from runner.gate.nulls import BY_NAME, GRADED
from runner.gate.nulls import CONTROL_DRAWS as DRAWS
from tests.support.graded_sets import CHUNKS, DOCS, LENGTHS, SETTINGS, gate_of, graded, run_of, verdicts

NAMES = ["oracle", "constant", "popularity", "random", "marginal-matched", "source-prior"]


def controls_of(qrels, strata=None, docs=DOCS, **settings):
    chunks, lengths = ({d: table[d] for d in docs} for table in (CHUNKS, LENGTHS))
    return {row.name: row for row in controls(gate_of(qrels, strata, lengths, **settings), chunks)}


def misbehaving(found):
    return {name for name, row in found.items() if not row.behaves}


def two_strata(n_queries=24):
    """Queries of two strata, each of which has its own ten documents that are mostly relevant, and their qrels."""
    strata = {f"q{i:02}": "house" if i % 2 else "senate" for i in range(n_queries)}
    documents = {"house": DOCS[:12], "senate": DOCS[100:112]}
    rng = np.random.default_rng(1)
    grades = {q: rng.choice(4, 12, p=[0.2, 0.1, 0.1, 0.6]).tolist() for q in strata}
    return {q: dict(zip(documents[strata[q]], grades[q], strict=True)) for q in strata}, strata


@pytest.mark.parametrize("make", [lambda: (graded(25), None), two_strata])
def test_on_a_healthy_set_every_control_behaves(make):
    qrels, strata = make()
    found = controls_of(qrels, strata)
    assert list(found) == NAMES
    assert misbehaving(found) == set()
    oracle = found.pop("oracle")
    assert (oracle.expected, oracle.mean, oracle.draws, oracle.passes, oracle.bound) == ("pass", 1, 1, 1, 1)
    assert {row.expected for row in found.values()} == {"fail"}
    assert [row.draws for row in found.values()] == [1, 1, DRAWS, DRAWS, 1]
    assert [row.bound for row in found.values()] == [0, 0, 21, 21, 0]
    assert all(row.passes <= row.bound for row in found.values())


CAUGHT = [(null.name, name) for null in GRADED for name in null.controls]


@pytest.mark.parametrize(("null", "control"), CAUGHT)
def test_a_null_catches_the_controls_of_its_row(null, control):
    gate = gate_of(*two_strata(), nulls=GRADED)
    rankings = next(iter(BY_NAME[null].controls[control](gate.trials)))
    run = run_of({q: [DOCS[d] for d in row if d >= 0] for q, row in zip(gate.bench.query_ids, rankings, strict=True)})
    assert verdicts(gate.judge(run, CHUNKS))[null] == "fail"


def test_the_more_a_cheater_knows_the_higher_it_scores():
    found = controls_of(*two_strata())
    assert found["random"].mean < found["marginal-matched"].mean < found["source-prior"].mean < 1
    assert found["constant"].mean < found["popularity"].mean < found["source-prior"].mean


def test_the_constant_control_is_the_document_that_gains_most_not_the_one_graded_highest():
    crowded = {f"q{i:02}": dict.fromkeys([DOCS[i], *DOCS[40:48]], 3) for i in range(12)}
    qrels = crowded | {f"r{i:02}": {DOCS[30]: 1} for i in range(6)}
    assert controls_of(qrels)["constant"].mean == pytest.approx(6 / 18)


def test_strata_of_one_query_do_not_make_the_source_prior_an_oracle():
    qrels = graded(12)
    found = controls_of(qrels, {q: q for q in qrels})
    assert found["source-prior"].mean == found["popularity"].mean
    assert misbehaving(found) == set()


def test_queries_that_share_one_qrels_let_no_oracle_pass():
    found = controls_of({f"q{i:02}": {DOCS[3]: 3, DOCS[7]: 1} for i in range(25)})
    assert misbehaving(found) == {"oracle"}
    assert (found["oracle"].mean, found["oracle"].passes) == (1, 0)


def test_no_relevant_document_and_too_few_queries_let_no_oracle_pass():
    assert misbehaving(controls_of({f"q{i}": {DOCS[i]: 0} for i in range(25)})) == {"oracle"}
    assert misbehaving(controls_of(graded(3))) == {"oracle"}


def test_a_corpus_of_fewer_than_ten_documents_is_judged_by_its_order():
    qrels = {f"q{i:02}": {DOCS[i % 8]: 3} for i in range(24)}
    assert misbehaving(controls_of(qrels, docs=DOCS[:8])) == set()


def test_a_gate_that_never_permutes_lets_the_source_prior_pass_and_that_is_seen(monkeypatch):
    qrels, strata = two_strata()
    none = np.zeros(SETTINGS["draws"], np.int64)
    monkeypatch.setattr(Bench, "exchanged", lambda *_: (none, None))
    assert misbehaving(controls_of(qrels, strata)) == {"source-prior"}


def test_a_gate_that_passes_everything_or_half_of_everything_or_nothing_is_seen(monkeypatch):
    qrels = graded(12)
    monkeypatch.setattr(Gate, "trial", lambda *_: (0.5, True))
    assert misbehaving(controls_of(qrels)) == set(NAMES) - {"oracle"}
    rng = np.random.default_rng(1)
    monkeypatch.setattr(Gate, "trial", lambda *_: (0.5, rng.random() < 0.5))
    assert misbehaving(controls_of(qrels)) >= {"random", "marginal-matched"}
    monkeypatch.setattr(Gate, "trial", lambda *_: (0.5, False))
    assert misbehaving(controls_of(qrels)) == {"oracle"}


@pytest.mark.parametrize("draws", [2, 50, 200])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.3])
def test_the_bound_is_the_least_number_that_chance_hardly_exceeds(draws, share):
    def beyond(count):
        return sum(comb(draws, k) * share**k * (1 - share) ** (draws - k) for k in range(count + 1, draws + 1))

    bound = most_by_chance(draws, share)
    assert beyond(bound) <= 0.001
    assert bound == 0 or beyond(bound - 1) > 0.001


def test_the_seed_makes_the_draws():
    qrels = graded(8)
    first = controls_of(qrels)
    assert controls_of(qrels) == first
    assert controls_of(qrels, seed=2)["random"].mean != first["random"].mean
