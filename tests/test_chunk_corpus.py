from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.chunk_corpus import HEADER, chunk_corpus, chunk_health, chunks_to_rows, rows_to_chunks
from runner.errors import InputError
from runner.records import Chunk, Document, Span
from runner.schemas import ChunkHealth


def document(doc_id: str, text: str) -> Document:
    return Document(doc_id, text, "Quay Act", "s", doc_id, "https://example.org")


CHUNKS = st.builds(
    Chunk,
    doc_id=st.from_regex(r"[A-Za-z0-9.-]+", fullmatch=True),
    index=st.integers(0, 9),
    span=st.tuples(st.integers(0, 99), st.integers(1, 99)).map(lambda pair: Span(pair[0], pair[0] + pair[1])),
    context=st.text(st.characters(codec="utf-8", exclude_characters="\t\n"), max_size=20),
    n_tokens=st.integers(1, 512),
)


@given(st.lists(CHUNKS, max_size=5))
def test_rows_hold_everything(chunks: list[Chunk]) -> None:
    rows = chunks_to_rows(chunks)
    assert rows_to_chunks(rows) == chunks
    assert chunks_to_rows(rows_to_chunks(rows)) == rows


def test_rows_are_tab_separated_and_hold_no_text() -> None:
    rows = chunks_to_rows(chunk_corpus([document("a", "Mend the quay.")], "whole_doc"))
    assert rows.decode() == f"{HEADER}\na\t0\t0\t14\t9\tQuay Act\n"


@pytest.mark.parametrize("row", ["a\t0\t0\t14\t8", "a\t0\tx\t14\t8\tc", "a\t0\t5\t5\t8\tc", ""])
def test_a_damaged_row_is_named(row: str) -> None:
    with pytest.raises(InputError, match="Chunk row 2 is damaged"):
        rows_to_chunks(f"{HEADER}\n{row}\n".encode())


def test_other_files_are_no_chunk_rows() -> None:
    with pytest.raises(InputError, match="no chunk rows"):
        rows_to_chunks(b"query_id\trank\n")


def test_documents_keep_their_order() -> None:
    documents = [document("b", "One. " * 400), document("a", "Two.")]
    chunks = chunk_corpus(documents, "fixed_token_256_25")
    assert [chunk.doc_id for chunk in chunks] == ["b"] * (len(chunks) - 1) + ["a"]
    assert chunk_corpus([], "recursive_v1") == []


def test_an_unknown_chunker_is_refused_even_without_documents() -> None:
    with pytest.raises(InputError, match="did you mean 'whole_doc'"):
        chunk_corpus([], "whole_docs")


def test_health_counts_duplicates_misses_and_sizes() -> None:
    documents = [document("a", "mend the quay"), document("b", "mend  it"), document("c", "mend")]
    chunks = [
        Chunk("a", 0, Span(0, 8), "", 2),
        Chunk("a", 1, Span(5, 8), "", 1),
        Chunk("b", 0, Span(0, 4), "", 1),
        Chunk("c", 0, Span(0, 4), "", 9),
    ]
    assert chunk_health(chunks, documents) == ChunkHealth(
        count=4,
        tokens_p50=1,
        tokens_p95=9,
        tokens_max=9,
        duplicate_share=0.25,
        coverage=1 - 6 / 21,
        chunks_per_document_max=2,
    )


def test_health_of_nothing_is_zero() -> None:
    assert set(chunk_health([], []).model_dump().values()) == {0}


@pytest.mark.shared
def test_health_of_real_bills_reports_full_coverage(shared: Path) -> None:
    from samplers.sample_bills import read_bill

    paths = sorted((shared / "corpora" / "bills").rglob("*.xml"))[:12]
    documents = [read_bill(path.read_bytes(), path.name) for path in paths]
    health = chunk_health(chunk_corpus(documents, "section_aware_bills_v1"), documents)
    assert health.coverage == 1.0
    assert health.tokens_p50 <= health.tokens_p95 <= health.tokens_max <= 512
