import re
from collections import Counter

import pytest

from chunkers.registry import CHUNKERS
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.base.records import DenseCell, parse_cell
from runner.eval_set import catalog
from runner.eval_set.catalog import ENCODERS, REFUSED, SOURCES
from runner.eval_set.corpus import EXTERNAL_READER
from runner.eval_set.plan import default_cells
from samplers.feeds.table import FEEDS
from samplers.registry import SAMPLERS, source_format
from samplers.source_format import SourceFormat

EXTERNAL = [spec for spec in SOURCES.values() if spec.policy == "external"]
EVALUATED = [spec for spec in SOURCES.values() if spec.policy != "external"]


def test_the_roster_holds_each_place_of_the_bulk_order_once():
    assert sorted(spec.trigger_order for spec in EVALUATED) == list(range(len(EVALUATED)))


def test_every_baseline_is_a_dense_cell_of_known_parts():
    for spec in EVALUATED:
        cell = parse_cell(spec.baseline)
        assert isinstance(cell, DenseCell)
        assert catalog.encoder(cell.encoder).name == cell.encoder
        assert cell.chunker in CHUNKERS


def test_every_source_has_a_reader_and_a_structural_chunker():
    for spec in EVALUATED:
        assert spec.reader in SAMPLERS
        assert isinstance(source_format(spec.reader), SourceFormat)
        assert spec.structural_chunker in CHUNKERS
        assert spec.predicted_best in CHUNKERS


def test_every_source_has_a_feed_or_says_where_to_look():
    for spec in SOURCES.values():
        assert (spec.name in FEEDS) != ("/" in spec.elsewhere)
    assert all({"since", "until", "congress"}.issuperset(feed.takes) for feed in FEEDS.values())


def test_no_two_sources_are_known_by_the_same_mark_and_each_marks_files_for_a_reader_of_its_own():
    marks = Counter(mark for spec in SOURCES.values() for part in spec.known_by for mark in part)
    assert [mark for mark, count in marks.items() if count > 1 and mark != "bill"] == []
    assert {spec.name for spec in SOURCES.values() if any(spec.known_by)} == set(SAMPLERS)


def test_a_public_collection_is_compared_with_bm25_and_belongs_to_no_bulk_order():
    (beir,) = EXTERNAL
    assert (beir.name, beir.baseline, beir.reader, beir.trigger_order) == (
        *("beir", "bm25 x whole_doc", EXTERNAL_READER, 0),
    )


def test_an_embedded_corpus_is_part_of_the_checkout():
    for spec in SOURCES.values():
        assert not spec.corpus or list((CHECKOUT / spec.corpus).glob("*.xml"))


OPEN = ("embeddinggemma-300m", "qwen3-embedding-0.6b", "granite-embedding-english-r2")
"""Encoders whose commit a plan pins at first use."""


def test_every_usable_encoder_is_pinned_to_a_commit_or_by_the_plan_and_then_in_no_default_one():
    assert [name for name, spec in ENCODERS.items() if not (spec.revision or spec.excluded)] == [*OPEN]
    for source in SOURCES.values():
        cells = [cell for rehearsal in (0, 1) for cell in default_cells(source, rehearsal=rehearsal)]
        assert not [cell for cell in cells if any(name in cell for name in OPEN)]
    for spec in ENCODERS.values():
        assert spec.excluded or re.fullmatch(r"([0-9a-f]{40})?", spec.revision)
        assert spec.excluded or spec.revision or (spec.config and spec.pooling and spec.licence)
        assert not spec.dense or spec.dense[-1] == spec.dim
        assert not spec.package or re.fullmatch(r"[0-9a-f]{64}", spec.weights_sha256)


@pytest.mark.parametrize(
    ("look_up", "typed", "meant"),
    [
        *(
            (catalog.source, *pair)
            for pair in (("bils", "bills"), ("us-code", "us_code"), ("gao_report", "gao_reports"))
        ),
        *((catalog.encoder, *pair) for pair in (("minilm", "minilm-l6-v2"), ("arctic-l-v2", "arctic-l-v2.0"))),
    ],
)
def test_a_misspelt_name_is_answered_with_the_near_one_and_the_whole_roster(look_up, typed, meant):
    with pytest.raises(InputError, match=f"did you mean '{meant}'") as caught:
        look_up(typed)
    assert all(name in str(caught.value) for name in (SOURCES if look_up is catalog.source else ENCODERS))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_source_is_told_why(name):
    assert name not in SOURCES
    with pytest.raises(InputError, match=f"^{name} is not evaluated: .*(metadata|keyword)"):
        catalog.source(name)


def test_an_excluded_encoder_is_told_why_and_a_source_like_no_other_gets_no_suggestion():
    with pytest.raises(InputError, match=r"arctic-m-v2\.0 is excluded: .*crashed"):
        catalog.encoder("arctic-m-v2.0")
    with pytest.raises(InputError) as caught:
        catalog.source("zzzzzz")
    assert "did you mean" not in str(caught.value)
