import pytest

from runner.eval_set.catalog import SOURCES
from runner.eval_set.shapes.queries import LITERAL_KINDS
from runner.queries.kinds import KINDS, expected, whole_shares

WITH_KINDS = [name for name, row in SOURCES.items() if row.queries]


def test_every_source_of_the_catalog_has_kinds_but_a_collection_that_brings_its_queries():
    assert set(SOURCES) - set(WITH_KINDS) == {name for name, row in SOURCES.items() if row.policy == "external"}


@pytest.mark.parametrize("source", WITH_KINDS)
def test_the_kinds_of_a_source_weigh_twenty_and_are_known_each_once(source):
    kinds = SOURCES[source].queries
    assert sum(kind.weight for kind in kinds) == 20
    assert len({kind.kind for kind in kinds}) == len(kinds)
    assert {kind.kind for kind in kinds} <= set(KINDS)
    assert all(kind.weight > 0 and kind.example.isprintable() and kind.wanted for kind in kinds)


def test_sources_that_are_asked_by_citation_or_by_speaker_are_drafted_so():
    heaviest = {source: max(SOURCES[source].queries, key=lambda kind: kind.weight).kind for source in WITH_KINDS}
    assert heaviest["us_code"] == heaviest["public_laws"] == "citation"
    assert heaviest["hearing_transcripts"] == heaviest["congressional_record"] == "attribution"
    assert heaviest["committee_reports"] == "authority"
    for source in WITH_KINDS:
        literal = sum(kind.weight for kind in SOURCES[source].queries if kind.kind in LITERAL_KINDS)
        assert literal <= 11, "more than half would be found by their words alone"


def test_what_is_expected_sums_to_the_number_of_queries():
    for source in WITH_KINDS:
        assert sum(expected(SOURCES[source].queries, 25).values()) == pytest.approx(25)
    assert expected((), 25) == {}
    assert whole_shares((), 25) == {}


@pytest.mark.parametrize("n_queries", [0, 1, 7, 17, 25, 26])
@pytest.mark.parametrize("source", WITH_KINDS)
def test_whole_shares_sum_to_the_number_of_queries_and_none_is_off_by_one(source, n_queries):
    shares = whole_shares(SOURCES[source].queries, n_queries)
    assert sum(shares.values()) == n_queries
    assert all(abs(shares[kind] - share) < 1 for kind, share in expected(SOURCES[source].queries, n_queries).items())
