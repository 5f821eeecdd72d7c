import gc

import pytest

from runner.base.places import CACHE_VARIABLE
from runner.base.records import Document, Section, Span
from runner.eval_set.catalog import source
from runner.eval_set.corpus import sample_of
from runner.eval_set.shapes.plan import Sample
from samplers.corpus import near_duplicates, shelf
from samplers.corpus.shelf import Shelf, Texts
from tests.support.small_set import write_corpus

SECTIONS = (Section(Span(0, 9), 1, "title", ""), Section(Span(2, 5), 2, "section", "§ 1. Fées"))


@pytest.mark.parametrize("in_memory", [0, 40, 10**6])
def test_a_document_comes_back_as_it_was_put(tmp_path, monkeypatch, in_memory):
    monkeypatch.setattr(shelf, "IN_MEMORY", in_memory)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    documents = [
        Document("a", "Twelve § words", "A title", "house/long", "a", "https://x.example", SECTIONS, "reserved"),
        Document("b", "\ud800 alone", "", "house/long", "b", ""),
        Document("c", "x" * 1_000, "", "", "c", ""),
    ]
    held = Shelf()
    cards = {document.doc_id: held.put(document, f"of {document.doc_id}") for document in documents}
    assert [held.document(cards[doc_id]) for doc_id in "cab"] == [documents[2], *documents[:2]]
    assert dict(Texts(held, cards)) == {document.doc_id: document.text for document in documents}
    assert (cards["a"].file, cards["a"].n_characters, cards["a"].n_sections) == ("of a", 14, 2)
    # The file has no name, so that nothing is left of it.
    assert not list(tmp_path.glob("cache/*"))


def test_no_document_is_in_memory_while_others_are_compared_and_only_the_sample_is_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(shelf, "IN_MEMORY", 0)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    before, compared = in_memory(), []
    clusters = near_duplicates.near_duplicates
    monkeypatch.setattr(
        near_duplicates, "near_duplicates", lambda texts: compared.append(in_memory()) or clusters(texts)
    )
    drawn = sample_of(source("bills"), Sample(size=5, seed=1), write_corpus(tmp_path / "bills"))
    assert len(drawn.reading.cards) > 10
    assert (compared[0] - before, in_memory() - before) == (0, 5)


def in_memory() -> int:
    """How many documents there are."""
    gc.collect()
    return sum(type(each) is Document for each in gc.get_objects())
