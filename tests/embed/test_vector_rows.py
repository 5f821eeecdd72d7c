import os

import numpy as np
import pytest

from runner.base.errors import BackendError
from runner.embed.vectors import blocks, gathered

ROWS = np.random.default_rng(0).standard_normal((1000, 24), dtype=np.float32)
PICKED = np.array([999, 0, 3, 3, 500])


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


def joined(matrix, n_rows):
    found = [(start, block.copy()) for start, block in blocks(matrix, n_rows)]
    assert [start for start, _ in found] == list(range(0, len(matrix), n_rows))
    return np.concatenate([block for _, block in found])


@pytest.mark.parametrize("n_rows", [1, 7, 999, 1000, 5000])
def test_blocks_of_any_size_are_the_matrix(mapped, n_rows):
    assert (joined(ROWS, n_rows) == ROWS).all()
    assert (joined(mapped, n_rows) == ROWS).all()
    assert (joined(mapped[5:], n_rows) == ROWS[5:]).all()


@pytest.mark.parametrize("part", [range(1000), range(3, 17), range(995, 1000), range(0)])
def test_a_part_of_the_rows_is_gone_through_in_blocks(mapped, part):
    for matrix in (ROWS, mapped, np.asfortranarray(ROWS)):
        found = [(start, block.copy()) for start, block in blocks(matrix, 7, part)]
        assert [start for start, _ in found] == list(range(part.start, part.stop, 7))
        assert (np.concatenate([block for _, block in found] or [ROWS[:0]]) == ROWS[part.start : part.stop]).all()


@pytest.mark.parametrize("rows", [[5, 6, 7, 900], [7, 6, 5], [0, 1, 1, 2, 999], [4]])
def test_rows_that_lie_together_are_gathered_like_others(mapped, rows):
    assert (gathered(mapped, np.array(rows)) == ROWS[rows]).all()


def test_rows_are_gathered_in_the_order_asked_for(mapped):
    assert (gathered(ROWS, PICKED) == ROWS[PICKED]).all()
    assert (gathered(mapped, PICKED) == ROWS[PICKED]).all()
    assert (gathered(mapped[3:], np.array([0])) == ROWS[3:4]).all()
    assert gathered(mapped, np.empty(0, np.int64)).shape == (0, 24)
    for matrix in (ROWS, mapped):
        into = np.full((len(PICKED) + 1, 24), np.nan, np.float32)
        gathered(matrix, PICKED, into[:-1])
        assert (into[:-1] == ROWS[PICKED]).all()
        assert np.isnan(into[-1]).all()


def test_a_whole_map_is_read_from_its_file_and_never_touched(mapped):
    assert not any(np.shares_memory(block, mapped) for _, block in blocks(mapped, 100))
    assert not np.shares_memory(gathered(mapped, PICKED), mapped)


def test_a_map_of_other_numbers_is_read_as_what_it_is(tmp_path):
    np.save(tmp_path / "wide.npy", ROWS.astype(np.float64))
    np.save(tmp_path / "turned.npy", np.asfortranarray(ROWS))
    for name in ("wide", "turned"):
        matrix = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        assert (joined(matrix, 64) == ROWS).all()
        assert (gathered(matrix, PICKED) == ROWS[PICKED]).all()


def test_a_file_that_ends_too_soon_is_an_error_that_names_it(mapped, tmp_path):
    os.truncate(tmp_path / "rows.npy", ROWS.nbytes)
    with pytest.raises(BackendError, match=r"rows\.npy ends before its row 1000"):
        joined(mapped, 2048)
    with pytest.raises(BackendError, match=r"rows\.npy ends before its row 1000"):
        gathered(mapped, PICKED)


def test_a_matrix_without_rows_has_no_blocks():
    assert list(blocks(np.empty((0, 24), np.float32), 10)) == []
