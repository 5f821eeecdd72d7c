import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.embed.chunk_health import BINS, TIMES, lengths

TOKENS = st.lists(st.integers(1, 3_000), min_size=1, max_size=60)


def counted(n_tokens, limit):
    return lengths(np.array(n_tokens, np.int64), limit)


@given(TOKENS, st.integers(0, 1_200))
def test_every_chunk_is_in_one_bin_and_the_bin_holds_its_length(n_tokens, limit):
    found = counted(n_tokens, limit)
    last = len(found.counts) - 1
    assert sum(found.counts) == len(n_tokens)
    for number, count in enumerate(found.counts):
        start, end = number * found.width, (number + 1) * found.width
        assert count == sum(start < n <= end or (number == last and n > end) for n in n_tokens)


@given(TOKENS, st.integers(1, 75))
def test_a_limit_of_whole_sixteenths_parts_the_chunks_that_are_cut_from_the_others(n_tokens, sixteenth):
    limit = BINS * sixteenth
    found = counted(n_tokens, limit)
    assert found.limit == limit
    assert found.width == -(-min(limit, max(n_tokens)) // BINS)
    if max(n_tokens) > limit:
        assert sum(found.counts[BINS:]) == sum(n > limit for n in n_tokens)


@given(TOKENS, st.integers(1, 1_200))
def test_only_a_chunk_of_more_than_five_times_the_limit_is_longer_than_its_bin(n_tokens, limit):
    found = counted(n_tokens, limit)
    if max(n_tokens) > len(found.counts) * found.width:
        assert max(n_tokens) > TIMES * limit
        assert len(found.counts) == TIMES * BINS + 1


@given(TOKENS)
def test_without_a_limit_the_bins_reach_to_the_longest_chunk(n_tokens):
    found = counted(n_tokens, 0)
    assert (found.limit, len(found.counts)) == (0, BINS)
    assert max(n_tokens) <= BINS * found.width


@pytest.mark.parametrize("limit", [0, 256])
def test_no_chunks_are_none_in_every_bin(limit):
    assert counted([], limit).counts == [0] * BINS


def test_an_empty_chunk_is_with_the_shortest():
    assert counted([0, 1, 16, 256], 256).counts[:2] == [3, 0]
