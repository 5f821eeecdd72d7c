from pathlib import Path

import pytest

from chunkers.registry import limit_of
from runner.base.records import Chunk, Document, Span
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.chunk_health import chunk_health
from runner.eval_set.shapes.cell import ChunkHealth


def document(doc_id, text, sections=()):
    return Document(doc_id, text, "Harbors Act", "s", doc_id, "", tuple(sections))


def chunk(doc_id, index, start, end, n_tokens=3):
    return Chunk(doc_id, index, Span(start, end), "", n_tokens)


def test_health_counts_duplicates_misses_and_sizes():
    documents = [document("a", "mend the quay"), document("b", "mend  it"), document("c", "mend")]
    chunks = [chunk("a", 0, 0, 8, 2), chunk("a", 1, 5, 8, 1), chunk("b", 0, 0, 4, 1), chunk("c", 0, 0, 4, 9)]
    assert chunk_health(chunks, documents, 0) == ChunkHealth(
        count=4,
        tokens_p50=1,
        tokens_p95=9,
        tokens_max=9,
        duplicate_share=0.25,
        coverage=1 - 6 / 21,
        chunks_per_document_max=2,
        degenerate=[
            "25.0% of the chunks repeat an earlier one, more than 5%",
            "6 characters other than white space are in no chunk",
        ],
    )


def test_health_of_nothing_is_zero():
    values = chunk_health([], [], 512).model_dump()
    assert values.pop("degenerate") == []
    assert set(values.values()) == {0}


def test_an_empty_chunk_and_one_above_the_limit_are_degenerate():
    found = chunk_health([chunk("a", 0, 0, 3, 600), chunk("a", 1, 3, 5, 600)], [document("a", "abc  ")], 512)
    assert found.degenerate == [
        "95 % of the chunks have up to 600 tokens, above the chunker's limit of 512",
        "1 chunks are empty",
    ]


def test_a_chunker_without_limit_is_never_too_long():
    assert chunk_health([chunk("a", 0, 0, 3, 10**6)], [document("a", "abc")], limit_of("whole_doc")).degenerate == []


def test_repeats_of_up_to_five_percent_are_no_defect():
    documents = [document(f"d{n}", "same words" if n in (3, 7) else f"other words {n}") for n in range(20)]
    chunks = [chunk(d.doc_id, 0, 0, len(d.text)) for d in documents]
    found = chunk_health(chunks, documents, 512)
    assert found.duplicate_share == pytest.approx(0.05)
    assert found.degenerate == []


@pytest.mark.shared
def test_health_of_real_bills_reports_full_coverage(shared: Path):
    from samplers.sources.bills import FORMAT

    paths = sorted((shared / "corpora" / "bills").rglob("*.xml"))[:12]
    documents = [FORMAT.read(path.read_bytes(), path.name, frozenset()).documents[0] for path in paths]
    name = "section_aware_bills_v1"
    health = chunk_health(chunk_corpus(documents, name), documents, limit_of(name))
    assert health.coverage == 1.0
    assert health.tokens_p50 <= health.tokens_p95 <= health.tokens_max <= 512
    assert not health.degenerate
