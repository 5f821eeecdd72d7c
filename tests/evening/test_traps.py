"""A collection full of traps is read, searched and scored right, and what was done to its texts is counted."""

import json
import unicodedata

import pytest

from runner.base.records import SCORE_UNIT
from runner.eval_set.version import load_results
from runner.report.sentences import weaknesses
from samplers.corpus.language import language_of
from tests.support.small_collection import documents, evaluate, external_version
from tests.support.trap_collection import EMPTY, GERMAN, RENORMALISED, TRAPS, write_german, write_traps

CELLS = ("bm25 x whole_doc", "bm25-plain x whole_doc", "bm25-okapi x whole_doc")


@pytest.fixture(scope="module")
def trapped(tmp_path_factory):
    place = tmp_path_factory.mktemp("traps")
    version = external_version(place, cells=CELLS)
    evaluate(version, write_traps(place / "collection"))
    return version, load_results(version)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_no_trap_catches_bm25(trapped, trap):
    _, results = trapped
    place = [query.id for query in results.queries].index(trap.name)
    (row,) = (row for row in results.cells if row.cell == CELLS[0])
    assert row.scores["ndcg@10"].per_query[place] == SCORE_UNIT
    assert row.scores["recall@10"].per_query[place] == SCORE_UNIT


def test_the_traps_are_some_as_words_alone_do_not_find_every_answer_first(trapped):
    _, results = trapped
    places = [place for place, query in enumerate(results.queries) if query.id in {trap.name for trap in TRAPS}]
    for row in results.cells[1:]:
        assert sum(row.scores["ndcg@10"].per_query[place] for place in places) < (len(places) - 2) * SCORE_UNIT


def test_what_was_left_out_or_changed_is_counted(trapped):
    _, results = trapped
    facts = results.collection
    assert facts is not None
    assert facts.documents == len(documents()) + sum(len(trap.rows()) for trap in TRAPS) + len(EMPTY)
    assert (facts.empty_documents, facts.renormalised, facts.language) == (len(EMPTY), RENORMALISED, "")
    assert any("NFC" in sentence for sentence in weaknesses(results))
    for query in results.queries:
        assert unicodedata.is_normalized("NFC", query.text)


def test_files_in_nfc_say_nothing_of_it(trapped):
    _, results = trapped
    clean = results.collection.model_copy(update={"renormalised": 0})
    assert "renormalised" not in json.loads(clean.model_dump_json())
    said = weaknesses(results.model_copy(update={"collection": clean}))
    assert not any("NFC" in sentence for sentence in said)


def test_german_is_said_on_the_terminal_and_on_the_page(tmp_path, capsys):
    version = external_version(tmp_path, cells=CELLS[:1])
    evaluate(version, write_german(tmp_path / "collection"))
    results = load_results(version)
    assert results.collection is not None
    assert results.collection.language == "german"
    assert "bm25@de x whole_doc" in capsys.readouterr().err
    assert any("German" in sentence for sentence in weaknesses(results))


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("german", GERMAN),
        ("english", ["The clerk of the court shall keep a record of every order that is made in it."]),
        ("french", ["Le maire peut, dans les cas prévus par la loi, fermer le pont qui est sur la rivière."]),
        ("", ["Zinc Copper Lead", "Mn Fe Co Ni"]),
        ("", []),
    ],
)
def test_a_language_is_told_by_its_stop_words(language, texts):
    assert language_of(texts) == language
