"""The tipping point: each step against every error that could have been made, the end against all sets of errors."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.score.score import score
from runner.score.tipping_point import tipping_point
from tests.support.graded_sets import run_of

DOCS = [f"d{number:02}" for number in range(14)]


def lists(cell, baseline):
    """Two runs from lists by query."""
    names = [f"q{number}" for number in range(len(cell))]
    return [run_of(dict(zip(names, each, strict=True))) for each in (cell, baseline)]


def gain(runs, qrels):
    """The cell's summed nDCG@10 less the baseline's, in units."""
    cell, baseline = (sum(score(run, list(qrels), qrels, 1).values["ndcg@10"]) for run in runs)
    return cell - baseline


def shown(runs, qrels):
    """The judged pairs that either list has."""
    tops = [{(q, hit.doc_id) for q, hits in run.hits.items() for hit in hits[:10]} for run in runs]
    return sorted(pair for pair in tops[0] | tops[1] if qrels.get(pair[0], {}).get(pair[1], -1) >= 0)


def wrong(qrels, errors):
    """The judgments with these pairs one grade off."""
    moved = {q: dict(grades) for q, grades in qrels.items()}
    for (query, document), step in errors:
        moved[query][document] += step
    return moved


def possible(pair, qrels, highest):
    return [(pair, step) for step in (-1, 1) if 0 <= qrels[pair[0]][pair[1]] + step <= highest]


def greedily(runs, qrels, highest):
    """One error after the other, each the one of all that leaves the least gain."""
    left, n_wrong = shown(runs, qrels), 0
    while gain(runs, qrels) > 0:
        errors = [error for pair in left for error in possible(pair, qrels, highest)]
        after = {error: gain(runs, wrong(qrels, [error])) for error in errors}
        if not after or min(after.values()) >= gain(runs, qrels):
            return None
        error = min(after, key=after.get)
        qrels, n_wrong = wrong(qrels, [error]), n_wrong + 1
        left.remove(error[0])
    return n_wrong


def made(seed, n_queries=3, depth=4, highest=3):
    rng = np.random.default_rng(seed)
    rankings = [[rng.choice(DOCS, depth, replace=False).tolist() for _ in range(n_queries)] for _ in range(2)]
    qrels = {
        f"q{number}": {d: int(rng.integers(-1, highest + 1)) for d in rng.choice(DOCS, 9, replace=False).tolist()}
        for number in range(n_queries)
    }
    return lists(*rankings), qrels


@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([1, 3]))
def test_each_error_is_the_worst_of_all_that_could_be_made(seed, depth, highest):
    runs, qrels = made(seed, depth=depth, highest=highest)
    found = tipping_point(*runs, list(qrels), qrels, highest)
    if gain(runs, qrels) <= 0:
        assert found is None
    else:
        assert (found.wrong, found.pairs) == (greedily(runs, qrels, highest), len(shown(runs, qrels)))


@given(st.integers(0, 10_000))
def test_no_smaller_set_of_errors_undoes_the_gain_if_queries_have_one_pair_each(seed):
    rng = np.random.default_rng(seed)
    # Lists of one document, and another that neither has.
    runs = lists([["d00"]] * 5, [[]] * 5)
    qrels = {f"q{number}": {"d00": int(rng.integers(4)), "d01": int(rng.integers(3))} for number in range(5)}
    if gain(runs, qrels) <= 0:
        return
    errors = [possible(pair, qrels, 3) for pair in shown(runs, qrels)]
    sizes = (
        size
        for size in range(6)
        for chosen in combinations(errors, size)
        if any(gain(runs, wrong(qrels, made)) <= 0 for made in product(*chosen))
    )
    assert tipping_point(*runs, list(qrels), qrels, 3).wrong == next(sizes, None)


def test_a_document_that_both_have_counts_by_its_ranks_and_an_unjudged_one_is_no_pair():
    qrels = {"q0": {"d00": 1, "d01": 0}}
    runs = lists([["d00", "d01", "d02"]], [["d01", "d00", "d04"]])
    found = tipping_point(*runs, ["q0"], qrels, 3)
    # As good as one another, they make two lists of equal worth.
    assert (found.wrong, found.pairs) == (1, 2)
    assert tipping_point(*reversed(runs), ["q0"], qrels, 3) is None


@pytest.mark.parametrize(("grade", "wrong"), [(1, 3), (2, None)])
def test_one_grade_off_undoes_what_the_lowest_grade_gave_and_no_more(grade, wrong):
    qrels = {f"q{number}": {"d00": grade} for number in range(3)}
    found = tipping_point(*lists([["d00"]] * 3, [[]] * 3), list(qrels), qrels, 3)
    assert (found.wrong, found.pairs) == (wrong, 3)
