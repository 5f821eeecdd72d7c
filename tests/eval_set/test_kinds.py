import pytest

from runner.eval_set.catalog import PRIOR, SOURCES
from runner.eval_set.kinds import kind_of
from runner.eval_set.plan import default_cells

BASELINE = "minilm-l6-v2 x fixed_token_256_25"


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("minilm-l6-v2 x section_aware_bills_v1", "structural"),
        ("minilm-l6-v2 x speaker_turn_v1-bare", "structural"),
        ("minilm-l6-v2@256 x section_aware_bills_v1", "structural"),
        ("minilm-l6-v2 x section_aware_bills_256_v1", "structural cut"),
        ("minilm-l6-v2 x fixed_token_512_50", "window"),
        ("minilm-l6-v2 x recursive_256_v1", "window"),
        ("minilm-l6-v2 x whole_doc", "window"),
        ("minilm-l6-v2 x fixed_path_512_50", "path"),
        ("rrf(bm25,minilm-l6-v2) x section_aware_bills_v1", "hybrid"),
        ("sum(bm25,minilm-l6-v2) x fixed_path_256_25", "sum"),
        ("bm25>minilm-l6-v2 x fixed_token_256_25", "re-rank"),
        ("rerank(bm25,ms-marco-minilm-l6) x whole_doc", "re-rank"),
        ("bm25-okapi x whole_doc", "BM25"),
        ("bm25@de x section_aware_bills_v1", "BM25"),
        ("mpnet-base-v2 x section_aware_bills_v1", "other encoder"),
        ("mpnet-base-v2@bit x fixed_token_256_25", "other encoder"),
        ("of-the-plan x fixed_token_256_25", "other encoder"),
        ("trec:their-system", "other encoder"),
        ("minilm-l6-v2@int8 x fixed_token_256_25", "quantised"),
        ("minilm-l6-v2@bit x fixed_token_256_25", "quantised"),
        ("minilm-static-384 x section_aware_bills_v1", "static"),
    ],
)
def test_a_cell_is_of_the_kind_of_what_it_changes(cell, kind):
    assert kind_of(cell, BASELINE) == kind


def test_beside_a_baseline_without_vectors_its_chunkers_are_told_apart_and_encoders_are_others():
    assert kind_of("bm25 x section_aware_bills_v1", "bm25 x whole_doc") == "structural"
    assert kind_of("minilm-l6-v2 x whole_doc", "bm25 x whole_doc") == "other encoder"
    assert kind_of("bm25-plain x whole_doc", "bm25 x whole_doc") == "BM25"


@pytest.mark.parametrize("rehearsal", [False, True])
@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_the_catalog_has_a_prior_of_every_challenger_of_a_default_plan(source, rehearsal):
    baseline, *others = default_cells(source, rehearsal=rehearsal)
    assert {kind_of(cell, baseline) for cell in others} <= PRIOR.keys()
