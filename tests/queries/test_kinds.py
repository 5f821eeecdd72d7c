from collections import Counter

import pytest

from runner.eval_set.catalog import SOURCES
from runner.queries.kinds import KINDS, LITERAL_KINDS, SHAPES, assigned, expected, whole_shares

WITH_SHAPES = [name for name, shapes in SHAPES.items() if shapes]


def test_every_source_of_the_catalog_has_shapes_but_a_collection_that_brings_its_queries():
    assert set(SHAPES) == set(SOURCES)
    assert {name for name in SHAPES if not SHAPES[name]} == {
        name for name, source in SOURCES.items() if source.policy == "external"
    }


@pytest.mark.parametrize("source", WITH_SHAPES)
def test_the_shapes_of_a_source_weigh_twenty_and_are_of_known_kinds_each_once(source):
    shapes = SHAPES[source]
    assert sum(shape.weight for shape in shapes) == 20
    assert len({shape.kind for shape in shapes}) == len(shapes)
    assert {shape.kind for shape in shapes} <= set(KINDS)
    assert all(shape.weight > 0 and shape.example.isprintable() and shape.wanted for shape in shapes)


def test_sources_that_are_asked_by_citation_or_by_speaker_are_drafted_so():
    heaviest = {source: max(SHAPES[source], key=lambda shape: shape.weight).kind for source in WITH_SHAPES}
    assert heaviest["us_code"] == heaviest["public_laws"] == "citation"
    assert heaviest["hearing_transcripts"] == heaviest["congressional_record"] == "attribution"
    assert heaviest["committee_reports"] == "authority"
    for source in WITH_SHAPES:
        literal = sum(shape.weight for shape in SHAPES[source] if shape.kind in LITERAL_KINDS)
        assert literal <= 11, "more than half would be found by their words alone"


@pytest.mark.parametrize("source", WITH_SHAPES)
@pytest.mark.parametrize("n_documents", [1, 7, 20, 25])
def test_every_beginning_of_a_draft_is_spread_as_the_source_is(source, n_documents):
    pairs = assigned(source, [f"d{n}" for n in range(n_documents)], 20 // n_documents or 1)
    for end in range(1, len(pairs) + 1):
        counts = Counter(shape.kind for _, shape in pairs[:end])
        wanted = expected(source, end)
        if n_documents >= 20:
            assert all(abs(counts[kind] - share) <= 1 for kind, share in wanted.items())
    assert len(pairs) == n_documents * (20 // n_documents or 1)


def test_a_document_gets_no_kind_twice_while_there_is_another():
    pairs = assigned("bills", ["a", "b", "c"], 7)
    for doc_id in "abc":
        assert len({shape.kind for name, shape in pairs if name == doc_id}) == 7
    assert len(assigned("bills", ["a"], 9)) == 9
    assert assigned("bills", [], 3) == []


def test_what_is_expected_sums_to_the_number_of_queries():
    for source in WITH_SHAPES:
        assert sum(expected(source, 25).values()) == pytest.approx(25)
    assert expected("beir", 25) == {}
    assert whole_shares("beir", 25) == {}


@pytest.mark.parametrize("n_queries", [0, 1, 7, 17, 25, 26])
@pytest.mark.parametrize("source", WITH_SHAPES)
def test_whole_shares_sum_to_the_number_of_queries_and_none_is_off_by_one(source, n_queries):
    shares = whole_shares(source, n_queries)
    assert sum(shares.values()) == n_queries
    assert all(abs(shares[kind] - share) < 1 for kind, share in expected(source, n_queries).items())
