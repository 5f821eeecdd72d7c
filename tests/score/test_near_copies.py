"""Near-copies stand outside of the tested family, and are asked what they lose."""

import pytest

from runner.base.records import SCORE_UNIT
from runner.decide.sample_size import error_for
from runner.score.gain_test import most_lost
from tests.support.example_results import row
from tests.support.judge_cases import BASELINE, comparison_of, evening, plan

WHOLE = "minilm-l6-v2 x section_aware_bills_v1"
INT8, BIT = (f"minilm-l6-v2@{stored} x section_aware_bills_v1" for stored in ("int8", "bit"))
OTHERS = ["cell-1 x whole_doc", "cell-2 x whole_doc"]


@pytest.fixture(name="compared", scope="module")
def _compared():
    made = evening(3, n_cells=4, lift=0.8)
    ranked = {
        cell: {q: [hit.doc_id for hit in hits] for q, hits in run.hits.items()} for cell, run in made.runs.items()
    }
    base, gaining, *others = ranked.values()
    # int8 swaps two hits of every third query, bits lose nothing.
    swapped = {
        q: [docs[2], docs[1], docs[0], *docs[3:]] if n % 3 else docs for n, (q, docs) in enumerate(gaining.items())
    }
    cells = [base, gaining, swapped, gaining, *others]
    rankings = dict(zip([BASELINE, WHOLE, INT8, BIT, *OTHERS], cells, strict=True))
    return comparison_of(rankings, made.qrels, settings=plan(cells=list(rankings), baseline=BASELINE, first=[WHOLE]))


def test_the_family_is_the_same_with_and_without_near_copies(compared):
    alone = comparison_of(
        {
            cell: {q: [hit.doc_id for hit in hits] for q, hits in compared.runs[cell].hits.items()}
            for cell in compared.runs
            if cell not in (INT8, BIT)
        },
        compared.qrels,
        settings=compared.plan.model_copy(update={"cells": [BASELINE, WHOLE, *OTHERS]}),
    )
    assert compared.family == alone.family == [WHOLE, *OTHERS]
    assert compared.gain_tests == alone.gain_tests
    assert {cell: compared.tests[cell] for cell in alone.tests} == alone.tests
    assert compared.false_alarm() == alone.false_alarm()
    assert error_for(compared.plan, OTHERS[0]) == error_for(alone.plan, OTHERS[0]) == pytest.approx(0.05 * 0.2 / 2)


def test_a_near_copy_has_a_bound_of_its_loss_against_its_own_cell_and_no_part_in_what_is_said_of_gains(compared):
    whole, copied = (compared.scores[cell].values["ndcg@10"] for cell in (WHOLE, INT8))
    lost = [a - b for a, b in zip(whole, copied, strict=True)]
    loss = compared.losses[INT8]
    assert loss == most_lost(lost, 0.05)
    assert 0 < sum(lost) / (50 * SCORE_UNIT) < loss < 0.2
    told, none = (row(INT8).model_copy(update={"loss": compared.losses[cell]}).loses_at_most for cell in (INT8, BIT))
    assert float(told) >= loss > float(told) - 0.001
    assert none == "0.000"
    assert compared.losses.keys() == {INT8, BIT}
    assert compared.recall_bounds.keys() == compared.tests.keys() == compared.runs.keys() - {BASELINE}
    assert not {INT8, BIT} & (compared.gain_tests.keys() | compared.expected_gains.keys())
