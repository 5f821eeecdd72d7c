"""The chunks of each document, as a cell's file counts them in the order of corpus.jsonl."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from runner.base.errors import IntegrityError
from tests.support.judge_cases import comparison_of

CELL = "bm25 x whole_doc"


def comparison(counts, documents):
    found = comparison_of({CELL: {"q0": ["d1"]}}, {})
    return replace(found, facts={CELL: SimpleNamespace(chunks_per_document=counts)}, document_lengths=documents)


def test_counts_are_those_of_the_corpus_in_its_order():
    assert comparison([2, 0], {"d1": 90, "d2": 70}).document_chunks(CELL) == {"d1": 2, "d2": 0}


@pytest.mark.parametrize("counts", [[], [2], [2, 0, 1]])
def test_counts_of_another_corpus_are_refused(counts):
    with pytest.raises(IntegrityError, match=CELL):
        comparison(counts, {"d1": 90, "d2": 70}).document_chunks(CELL)
