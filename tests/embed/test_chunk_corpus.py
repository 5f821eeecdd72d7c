import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import Chunk, Document, Span
from runner.embed.chunk_corpus import HEADER, chunk_corpus, chunks_to_rows, rows_to_chunks


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
