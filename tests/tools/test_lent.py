from functools import partial

import numpy as np
import pytest

from chunkers.registry import CHUNKERS, chunker
from runner import cohens_d, evaluate, needed_n
from runner.base.errors import InputError
from runner.base.plug_ins import lent, plug_in
from runner.base.records import Chunk, Document, Span
from runner.tools.lent import lent_chunker, lent_encoder
from tests.support.few import few  # noqa: F401  # a fixture

WORDS = ["ferry", "lorry", "lunch", "well", "eel", "rain", "barn", "loom", "mast", "tarn"]
DOCUMENTS = {
    f"d{n}": {"title": f"On {word}", "text": f"A {word} is old.\n\nThe {word} of the {WORDS[n - 1]} is mended."}
    for n, word in enumerate(WORDS)
}
ASKED = {f"q{n}": f"old {word}" for n, word in enumerate(WORDS)}
GOLD = {f"q{n}": {f"d{n}": 1} for n in range(len(WORDS))}
DOCUMENT = Document("d", "One two.\n\nThree four.\n\nOne two.", "T", "s", "d", "")


def bag(texts, seed=0):
    """Vectors that count words by a table of random signs: an encoder of a few lines."""
    rows = np.zeros((len(texts), 64))
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(".", " ").split():
            row += np.random.default_rng([seed, *word.encode()]).choice([-1.0, 1.0], 64)
    return rows


def figures(found, but=""):
    return {
        row.cell.replace(but, ""): [scores.per_query for scores in row.scores.values()] for row in found.results.cells
    }


def spans_of(cut):
    with lent([lent_chunker("mine", cut, [DOCUMENT])]):
        return [(chunk.span.start, chunk.span.end) for chunk in chunker("mine")(DOCUMENT)]


@pytest.mark.parametrize(
    "cut",
    [
        lambda text: text.split("\n\n"),
        lambda text: [(0, 8), (10, 21), (23, 31)],
        lambda text: [Span(23, 31), [np.int64(0), np.int64(8)], (10, 21), (8, 10)],
        lambda document: [(at, at + 8) for at in (0, 23)] + [(10, 21)] if document.doc_id == "d" else [],
    ],
)
def test_pieces_and_spans_of_a_text_or_a_document_are_chunks(cut):
    assert spans_of(cut) == [(0, 8), (10, 21), (23, 31)]


@pytest.mark.parametrize(("cut", "missed"), [(lambda text: [text[:9]], "71 %"), (lambda text: text.split(), "")])
def test_how_much_of_the_text_is_in_no_chunk_is_said(cut, missed, capsys):
    spans_of(cut)
    said = capsys.readouterr().err
    assert (f"chunker mine: {missed} of the text" in said) if missed else not said


def test_pieces_may_overlap_and_a_chunk_keeps_its_context():
    assert spans_of(lambda text: [text[:12], text[5:20], text[10:]]) == [(0, 12), (5, 20), (10, 31)]
    made = lent_chunker("mine", lambda document: [Chunk("d", 0, Span(0, 8), "of\nmine", 1)], [DOCUMENT]).load()
    (chunk,) = made.cut(DOCUMENT)
    assert (chunk.context, chunk.n_tokens) == ("of mine", 5)


def test_a_built_in_chunker_that_is_lent_scores_as_by_its_name():
    cut = CHUNKERS["recursive_v1"].cut
    by_name = evaluate(DOCUMENTS, ASKED, GOLD, ["bm25 x recursive_v1"])
    own = evaluate(DOCUMENTS, ASKED, GOLD, ["bm25 x mine"], chunkers={"mine": cut})
    assert figures(own, "mine") == figures(by_name, "recursive_v1")
    assert plug_in("chunkers", "mine") is None


def test_what_one_function_made_is_not_taken_for_another_s():
    cells = ["toy x paragraphs", "bm25 x paragraphs", "sum(bm25,toy) x whole_doc"]
    chunkers = {"paragraphs": lambda text: text.split("\n\n")}
    run = partial(evaluate, DOCUMENTS, ASKED, GOLD, cells, chunkers=chunkers)
    found, again = (run(encoders={"toy": bag}) for _ in range(2))
    assert again.results == found.results
    other = run(encoders={"toy": partial(bag, seed=1)})
    pair = run(encoders={"toy": (bag, lambda texts: bag(texts))})
    assert figures(pair) == figures(found)
    assert [row.provenance.encoder for row in other.results.cells] != [
        row.provenance.encoder for row in found.results.cells
    ]
    # What a function reads of a text, nobody knows.
    assert {row.provenance.truncation for row in found.results.cells} == {None}


def test_any_cell_or_retriever_can_be_the_baseline(tmp_path):
    cells = ["bm25 x whole_doc", "bm25 x recursive_v1"]
    retrievers = {"In use": {f"q{n}": [f"d{n}"] for n in range(len(WORDS))}}
    for baseline, name in ((cells[1], cells[1]), ("In use", "trec:in-use"), ("trec:in-use", "trec:in-use")):
        found = evaluate(DOCUMENTS, ASKED, GOLD, cells, baseline=baseline, retrievers=retrievers)
        assert [row.cell for row in found.results.cells if row.test is None] == [name]
    sizes = [found.html(tmp_path / "page.html", passages=each).stat().st_size for each in (False, True)]
    assert sizes[0] < sizes[1]
    with pytest.raises(InputError, match="neither a cell nor a retriever"):
        evaluate(DOCUMENTS, ASKED, GOLD, cells, baseline="mine")


def test_queries_without_a_grade_are_named(capsys):
    found = evaluate(DOCUMENTS, ASKED | {"q98": "who", "q99": "what"}, GOLD, "bm25 x whole_doc")
    assert list(found.unjudged) == ["q98", "q99"]
    assert "q98, q99" in capsys.readouterr().err
    assert "q98, q99" in repr(found)


def test_effect_and_number_of_queries_stand_beside_evaluate():
    assert round(cohens_d([0.1, 0.3, -0.1, 0.2]), 3) == 0.732
    assert needed_n(0.05, 0.2, 0.04, bar=0.02) == 118


LIES = {
    "a span past the text": ([(0, 8), (10, 99)], r"chunk 2, \(10, 99\)"),
    "a span of fractions": ([(0.0, 8.0)], "chunk 1"),
    "other words": (["One two.", "Five six."], "chunk 2, 'Five six.'"),
    "one text": ("One two.", "'One two.' returned"),
    "white space": (["", "\n\n"], "white space"),
    "nothing": (None, "NoneType"),
}


@pytest.mark.parametrize(("answer", "said"), LIES.values(), ids=LIES)
def test_a_chunker_that_lies_is_an_error_that_names_document_and_chunk(answer, said):
    with pytest.raises(InputError, match=f"chunker mine, document d: .*{said}"):
        lent_chunker("mine", lambda text: answer, [DOCUMENT])


def wrong(rows):
    return lambda texts: rows(len(texts))


FALSE = {
    "a NaN": (wrong(lambda n: np.where(np.arange(n)[:, None] == 1, np.nan, np.ones((n, 3)))), "'two' has a NaN"),
    "zeros": (wrong(lambda n: np.zeros((n, 3))), "'one' has"),
    "a row too few": (wrong(lambda n: np.ones((n - 1, 3))), r"\(2, 3\) for 3 texts"),
    "rows of several widths": (wrong(lambda n: [[1.0] * (1 + row) for row in range(n)]), "failed"),
    "an error of its own": (wrong(lambda n: 1 / 0), "ZeroDivisionError"),
    "two widths": ((wrong(lambda n: np.ones((n, 3))), wrong(lambda n: np.ones((n, 4)))), "3 dimensions .* 4"),
    "no function": ("a-model", "not a function"),
}


@pytest.mark.parametrize(("encode", "said"), FALSE.values(), ids=FALSE)
def test_an_encoder_that_lies_is_an_error_that_names_it(encode, said):
    texts = ["one", "two", "three"]
    with pytest.raises(InputError, match=f"encoder mine.*{said}"):
        lent_encoder("mine", encode, {"query": texts, "document": texts})


def test_a_width_that_changes_between_calls_is_an_error(monkeypatch):
    monkeypatch.setattr("runner.tools.lent.TEXTS_AT_ONCE", 2)
    with pytest.raises(InputError, match="of 2 numbers each, as before"):
        lent_encoder(
            "mine", lambda texts: np.ones((len(texts), len(texts))), {"query": ["a", "b", "c"], "document": ["a"]}
        )


@pytest.mark.parametrize("name", ["Mine", "", "a b", "bm25", "minilm-l6-v2", 3])
def test_a_name_that_is_taken_or_no_name_is_refused(name):
    with pytest.raises(InputError, match="another name"):
        lent_encoder(name, bag, {"query": ["a"], "document": ["a"]})


@pytest.mark.parametrize(
    ("cells", "said"), [(["bm25 x whole_doc"], "No cell names"), (["bm25 x mine", "bm25 x by_magic"], "by_magic")]
)
def test_a_part_that_no_cell_names_and_a_cell_of_unknown_parts_are_errors(cells, said):
    with pytest.raises(InputError, match=said):
        evaluate(DOCUMENTS, ASKED, GOLD, cells, chunkers={"mine": str.splitlines})
