"""What a public collection's texts are in: another form of Unicode, nothing at all, another language."""

import json
import unicodedata

import pytest

from runner.base.records import SCORE_UNIT
from runner.eval_set.version import load_results
from runner.report.sentences import weaknesses
from samplers.corpus.language import language_of
from tests.support.small_collection import documents, evaluate, external_version, qrels, write_collection
from tests.support.small_set import QUERIES

CELLS = ("bm25 x whole_doc", "bm25-plain x whole_doc")
COMPOSED, DECOMPOSED = "NFC", "NFD"
FORMS = {
    "accent": (
        unicodedata.normalize(DECOMPOSED, "El Niño crème brûlée"),
        unicodedata.normalize(COMPOSED, "El Niño spoils crème brûlée."),
        *("El Nino: creme brulee.", "n n ni o bru le e cre me"),
    ),
    "decomposed": (
        unicodedata.normalize(COMPOSED, "señal de público"),
        unicodedata.normalize(DECOMPOSED, "La señal es de uso público."),
        *("De las senas, de lo publico.", "De se al de p blico."),
    ),
}
"""A query in one form, the text that answers it in the other, and texts that must stand below."""

EMPTY = [{"_id": "empty-0", "title": "", "text": ""}, {"_id": "empty-1", "text": " \n"}]
GERMAN = (
    "Der Bürgermeister hat das Recht, die Brücke zu sperren, wenn das Wasser über den Pegel steigt und es dunkel ist.",
    "Die Gebühr für den Markt wird von der Stadt mit dem Beginn des Jahres erhoben und nicht von den Händlern selbst.",
    "Wer einen Hund in der Stadt hält, ist verpflichtet, ihn an der Leine zu führen, auch wenn er noch sehr jung ist.",
)


@pytest.fixture(name="results", scope="module")
def _results(tmp_path_factory):
    """The results over FORMS, empty documents and the small collection, so that a gate has enough."""
    place = tmp_path_factory.mktemp("traps")
    rows = [{"_id": f"{name}-{n}", "text": text} for name, (_, *texts) in FORMS.items() for n, text in enumerate(texts)]
    queries = {f"q{place}": text for place, (_, text) in enumerate(QUERIES, start=1)}
    collection = write_collection(
        place / "collection",
        rows=[*documents(), *rows, *EMPTY],
        queries=queries | {name: query for name, (query, *_) in FORMS.items()},
        judged=qrels() | {name: {f"{name}-0": 1} for name in FORMS},
    )
    version = external_version(place, cells=CELLS)
    evaluate(version, collection)
    return load_results(version)


@pytest.mark.parametrize("name", FORMS)
def test_either_form_of_a_letter_finds_the_other(results, name):
    place = [query.id for query in results.queries].index(name)
    for row in results.cells:
        assert row.scores["ndcg@10"].per_query[place] == row.scores["recall@10"].per_query[place] == SCORE_UNIT


def test_what_was_left_out_or_changed_is_counted(results):
    facts = results.collection
    assert facts is not None
    assert results.corpus.n_read == len(documents()) + 6
    # A query and an answer are not in NFC.
    assert (facts.empty_documents, facts.renormalised, facts.language) == (len(EMPTY), 2, "")
    assert any("NFC" in sentence for sentence in weaknesses(results))
    for query in results.queries:
        assert unicodedata.is_normalized("NFC", query.text)
    clean = facts.model_copy(update={"renormalised": 0})
    assert "renormalised" not in json.loads(clean.model_dump_json())
    said = weaknesses(results.model_copy(update={"collection": clean}))
    assert not any("NFC" in sentence for sentence in said)


def test_german_is_said_on_the_terminal_and_on_the_page(tmp_path, capsys):
    """Every document twenty times with another number, each query a document's words."""
    rows = [{"_id": f"d{n}-{i}", "text": f"{text} Nummer {n}."} for n in range(20) for i, text in enumerate(GERMAN)]
    queries = {f"q{n}": f"{GERMAN[n % 3]} Nummer {n}" for n in range(20)}
    judged = {f"q{n}": {f"d{n}-{n % 3}": 1} for n in range(20)}
    version = external_version(tmp_path, cells=CELLS[:1])
    evaluate(version, write_collection(tmp_path / "collection", rows=rows, queries=queries, judged=judged))
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
