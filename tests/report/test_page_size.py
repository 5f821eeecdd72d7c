"""How many bytes a page takes at the sizes that it is made for; benchmarks/report.py says how long it takes."""

import re

import pytest

from runner.report.results_page.by_query import MOST_QUERIES, drill_down, heat_map
from runner.report.results_page.render import page
from tests.support.full_results import big_results, full_receipt

MB = 1_000_000


def size(queries, cells, depth, *, passages=False):
    found = big_results(queries, cells, depth, passages=passages)
    return len(page(found, full_receipt(found)))


@pytest.fixture(name="of_record", scope="module")
def _of_record():
    return size(25, 10, 30)


def test_the_page_of_a_record_takes_less_than_a_megabyte_and_a_half(of_record):
    assert of_record < 1.5 * MB


@pytest.mark.slow
def test_a_copy_with_passages_takes_less_than_eight(of_record):
    assert of_record < size(25, 10, 30, passages=True) < 8 * MB


def test_queries_beyond_those_shown_add_next_to_nothing_and_are_counted():
    found = big_results(MOST_QUERIES + 40, 2, 1)
    html = page(found, None).decode()
    heat, lists = heat_map(found), drill_down(found)
    assert (len(heat.rows), len(lists.queries), heat.others) == (MOST_QUERIES, MOST_QUERIES, 40)
    assert {query.query.id for query in lists.queries} == heat.shown
    assert min(row.spread.value for row in heat.rows) >= max(
        max(values) - min(values)
        for query, *values in zip(found.queries, *(row.scores["ndcg@10"].per_query for row in found.cells), strict=True)
        if query.id not in heat.shown
    )
    for link in re.findall(r'href="#([^"]+)"', html):
        assert f'id="{link}"' in html, link


def test_many_queries_grow_the_page_by_so_much_a_query_that_two_hundred_fit_into_eight():
    few, more = size(10, 20, 10), size(20, 20, 10)
    assert few + (200 - 10) / (20 - 10) * (more - few) < 8 * MB
