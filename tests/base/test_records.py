import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import (
    SCORE_UNIT,
    BM25Cell,
    Chunk,
    CrossCell,
    DenseCell,
    Document,
    Hit,
    HybridCell,
    Interval,
    OwnCell,
    Run,
    Scores,
    Section,
    Span,
    parse_cell,
)

names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
encoders = names.filter(lambda name: name not in ("bm25", "bm25-okapi"))
variants = st.sampled_from(["bm25", "bm25-okapi", "bm25@de", "bm25@tr"])
cells = st.one_of(
    st.builds(DenseCell, encoders, names, st.sampled_from(["", "256", "int8", "bit"])),
    st.builds(BM25Cell, variants, names),
    st.builds(CrossCell, variants, names, names),
    st.builds(HybridCell, st.sampled_from(["rerank", "rrf", "sum"]), variants, names, names),
)


def document(text: str = "One line.\nAnother line.", **fields) -> Document:
    given = {"doc_id": "d1", "title": "t", "stratum": "s", "family": "f", "url": "", **fields}
    return Document(text=text, **given)


def section(start: int, end: int, label: str = "x") -> Section:
    return Section(Span(start, end), 1, "section", label)


@given(cells)
def test_a_cell_is_what_its_string_parses_to(cell: OwnCell):
    assert parse_cell(str(cell)) == cell


@given(st.text(max_size=40))
def test_any_text_is_a_cell_or_an_input_error_that_shows_it(text: str):
    with contextlib.suppress(InputError):
        assert str(parse_cell(text)) == text.strip()
        return
    with pytest.raises(InputError, match="ENCODER x CHUNKER") as caught:
        parse_cell(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "minilm-l6-v2", "minilm-l6-v2 x", "x whole_doc", "minilm-l6-v2 X whole_doc", "minilm-l6-v2xwhole_doc"),
        *("MiniLM x whole_doc", "bm25> x whole_doc", "bm24>minilm-l6-v2 x whole_doc"),
        *("rrf(minilm-l6-v2,bm25) x whole_doc", "sum(bm25, minilm-l6-v2) x whole_doc", "max(bm25,e5) x whole_doc"),
        *("minilm-l6-v2@ x whole_doc", "minilm-l6-v2@0 x whole_doc", "minilm-l6-v2@int4 x whole_doc"),
        *("bm25>minilm-l6-v2@bit x whole_doc", "engine(fts5) x whole_doc"),
        *("rrf(bm25,minilm-l6-v2 x whole_doc", "../secrets x whole_doc", "minilm-l6-v2 x ../whole_doc"),
        *("rerank(bge,bm25) x whole_doc", "rerank(bm25, bge) x whole_doc", "minilm-l6-v2 x whole_doc+first"),
        *("bm25@en x whole_doc", "bm25@zz x whole_doc", "bm25-okapi@de x whole_doc", "bm25@ x whole_doc"),
    ],
)
def test_what_is_no_cell_is_refused(text: str):
    with pytest.raises(InputError, match="is not a cell"):
        parse_cell(text)


def test_bm25_is_never_taken_for_an_encoder():
    assert parse_cell("bm25 x whole_doc") == BM25Cell("bm25", "whole_doc")
    assert parse_cell("bm25-okapi x whole_doc") == BM25Cell("bm25-okapi", "whole_doc")
    assert parse_cell("bm25-plus x whole_doc") == DenseCell("bm25-plus", "whole_doc")


@given(st.integers(-5, 10), st.integers(-5, 10))
def test_a_span_holds_at_least_one_character(start: int, end: int):
    if 0 <= start < end:
        assert Span(start, end) == Span(start, end)
    else:
        with pytest.raises(ValueError, match="empty or negative"):
            Span(start, end)


def test_spans_sort_in_text_order():
    assert sorted([Span(4, 5), Span(0, 9), Span(0, 2)]) == [Span(0, 2), Span(0, 9), Span(4, 5)]


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [
        ("text", {"doc_id": ""}, "white space"),
        ("text", {"doc_id": "a b"}, "white space"),
        ("text", {"doc_id": "a\n"}, "white space"),
        ("", {}, "empty"),
        (" \n\t", {}, "empty"),
        ("cafe\u0301", {}, "NFC"),
        ("text", {"sections": (section(0, 5),)}, "past the text"),
        ("text", {"sections": (section(2, 3), section(0, 1))}, "out of order"),
        ("text", {"sections": (section(0, 2), section(0, 4))}, "out of order"),
        ("text", {"sections": (section(0, 2), section(1, 3))}, "overlaps"),
        ("long text", {"sections": (section(0, 6), section(1, 2), section(3, 7))}, "overlaps"),
    ],
)
def test_a_document_that_breaks_its_promises_cannot_be_made(text: str, fields: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        document(text, **fields)


def test_sections_may_nest_and_follow_each_other():
    parts = (section(0, 9), section(0, 4), section(1, 2), section(4, 9))
    assert document("long text", sections=parts).sections == parts


def test_a_documents_digest_moves_with_all_that_a_chunker_sees_and_with_nothing_else():
    plain = document()
    assert document(stratum="other", family="other", url="other", doc_id="other").sha256 == plain.sha256
    seen = [document("Other"), document(title="u"), document(sections=(section(0, 3),))]
    assert len({plain.sha256, *(changed.sha256 for changed in seen)}) == 4


def test_a_chunk_reads_its_context_before_its_text_and_nothing_else():
    assert Chunk("d1", 0, Span(4, 8), "Title", 2).reading(document()) == "Title\nline"
    assert Chunk("d1", 0, Span(4, 8), "", 1).reading(document()) == "line"


def test_a_run_holds_no_document_twice_and_may_hold_none():
    hits = (Hit("d1", 2.0, Span(0, 1)), Hit("d2", 1.0, Span(0, 1)))
    assert Run("c", {"q1": hits, "q2": ()}).hits["q2"] == ()
    with pytest.raises(ValueError, match="query q1 retrieves a document twice"):
        Run("c", {"q1": (*hits, hits[0])})


@pytest.mark.parametrize("values", [(0,), (0, 1, 2), (0, -1), (0, SCORE_UNIT + 1)])
def test_scores_lie_between_0_and_1_and_cover_every_query(values: tuple[int, ...]):
    assert Scores("c", ("q1", "q2"), {"mrr": (0, SCORE_UNIT)}).values["mrr"] == (0, SCORE_UNIT)
    with pytest.raises(ValueError, match="mrr has a value outside"):
        Scores("c", ("q1", "q2"), {"mrr": values})


def test_records_are_frozen():
    for record, field in ((Interval(0.0, 1.0), "low"), (Span(0, 1), "end"), (DenseCell("a", "b"), "encoder")):
        with pytest.raises(AttributeError):
            setattr(record, field, 5)
