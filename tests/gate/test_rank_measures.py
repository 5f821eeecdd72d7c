import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.gate.single_gold.bench import Measure, gold_matches, parse_measure

IDS = st.lists(st.integers(0, 9), unique=True, max_size=8)


@pytest.mark.parametrize("text", ["ndcg@10", "recall@5", "mrr@1", "ndcg@999999999"])
def test_a_measure_s_text_names_it(text):
    assert str(parse_measure(text)) == text


@pytest.mark.parametrize(
    "text", ["", "ndcg", "ndcg@", "ndcg@0", "ndcg@-1", "ndcg@05", "ndcg@1.5", "ndcg@²", "ndcg@5 ", "ndcg@10\n"]
)
def test_a_cutoff_is_a_positive_number_in_plain_digits(text):
    with pytest.raises(ValueError, match=r"'name@K'|unknown metric"):
        parse_measure(text)


@pytest.mark.parametrize("text", ["map@10", "NDCG@10", "@10", "nd\x1bcg@10"])
def test_an_unknown_name_is_refused_with_the_known_ones_and_without_control_characters(text):
    with pytest.raises(ValueError, match=r"unknown metric .*'ndcg', 'recall', 'mrr'") as refusal:
        parse_measure(text)
    assert "\x1b" not in str(refusal.value)


def test_a_cutoff_of_many_digits_is_refused_before_anything_is_made_of_it():
    with pytest.raises(ValueError, match="'name@K'"):
        parse_measure("recall@" + "9" * 5000)


def test_gains_fall_by_the_logarithm_of_the_rank_by_the_rank_or_not_at_all():
    assert Measure("ndcg", 3).divisors().tolist() == [1, math.log2(3), 2]
    assert Measure("mrr", 3).divisors().tolist() == [1, 2, 3]
    assert Measure("recall", 3).divisors().tolist() == [1, 1, 1]


@given(rows=st.lists(IDS, max_size=6), labels=st.lists(st.integers(0, 9), unique=True))
def test_matches_are_the_places_of_gold_labels_by_row_and_rank(rows, labels):
    numbers = [labels.index(item) if item in labels else -1 for row in rows for item in row]
    found = gold_matches(np.array(numbers, np.int64), np.array([len(row) for row in rows], np.int64))
    expected = [
        (number, labels.index(item), place)
        for number, row in enumerate(rows)
        for place, item in enumerate(row)
        if item in labels
    ]
    assert list(zip(found.row.tolist(), found.label.tolist(), found.place.tolist(), strict=True)) == expected
