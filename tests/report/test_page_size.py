"""How many bytes a page takes at the sizes that it is made for; benchmarks/report.py says how long it takes."""

import re

import pytest

from runner.base.places import CHECKOUT
from runner.report.by_query import MOST_QUERIES, matrix
from tests.support.full_results import big_scored, full_receipt, page

MB = 1_000_000


def size(queries, cells, depth, *, passages=False):
    found, lists = big_scored(queries, cells, depth, passages=passages)
    return len(page(found, full_receipt(found), lists=lists))


@pytest.fixture(name="of_record", scope="module")
def _of_record():
    return size(25, 10, 30)


def test_the_page_of_a_record_takes_less_than_half_a_megabyte(of_record):
    assert of_record < 0.5 * MB


@pytest.mark.slow
def test_a_copy_with_passages_takes_less_than_one(of_record):
    assert of_record < size(25, 10, 30, passages=True) < MB


SIZES = [pytest.param(0, (25, 10, 30), id="record"), pytest.param(1, (200, 20, 10), marks=pytest.mark.slow, id="large")]


@pytest.mark.parametrize(("column", "shape"), SIZES)
def test_the_table_of_times_says_what_pages_take(column, shape):
    said = re.search(r"^\| results page, .*\|([^|]*)\|$", (CHECKOUT / "docs" / "install.md").read_text(), re.M)
    sizes = re.findall(r"([\d.]+) MB", said[1])
    assert float(sizes[column]) * MB == pytest.approx(size(*shape), rel=0.1)


def test_queries_beyond_those_shown_add_next_to_nothing_and_are_counted():
    found, lists = big_scored(MOST_QUERIES + 40, 2, 1)
    html = page(found, None, lists=lists).decode()
    shown = matrix(found, lists)
    assert (len(shown.rows), shown.left_out) == (MOST_QUERIES, 40)
    least = min(abs(row.scores[1] - row.scores[0]) for row in shown.rows)
    named = {row.query.id for row in shown.rows}
    base, best = (next(row for row in found.cells if row.cell == name) for name in shown.cells[:2])
    for query, *values in zip(found.queries, *(row.scores["ndcg@10"].per_query for row in (base, best)), strict=True):
        assert query.id in named or abs(values[1] - values[0]) <= least
    for link in re.findall(r'href="#([^"]+)"', html):
        assert f'id="{link}"' in html, link


def test_many_queries_grow_the_page_by_so_little_a_query_that_a_hundred_fit_into_two():
    few, more = size(10, 20, 10), size(20, 20, 10)
    assert few + (MOST_QUERIES - 10) / (20 - 10) * (more - few) < 2 * MB
