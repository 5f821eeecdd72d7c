import math
from collections import Counter

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from runner.base.records import LANGUAGES, RUN_DEPTH, Chunk, Span
from runner.retrieve.bm25 import BM25_VARIANTS, K1, B, bm25_description, bm25_run, plain_tokens
from runner.retrieve.words import stemmed_terms, terms_in

WORDS = [
    *("appropriation", "water", "grant", "authority", "secretary", "veteran"),
    *("highway", "tax", "credit", "tribal", "school", "wildfire"),
]


def corpus(n_documents=160, n_chunks=400, seed=0):
    rng = np.random.default_rng(seed)
    owners = sorted([*range(n_documents), *rng.integers(n_documents, size=n_chunks - n_documents).tolist()])
    counts: Counter[int] = Counter()
    chunks, texts = [], []
    for owner in owners:
        index = counts[owner]
        counts[owner] += 1
        chunks.append(Chunk(f"d{owner:03}", index, Span(10 * index, 10 * index + 10), "", 5))
        picked = rng.choice(WORDS, size=rng.integers(1, 12), p=np.arange(1, 13) / 78)
        texts.append(" ".join(picked))
    return chunks, texts


QUERIES = {
    "two": "water grants",
    "again": "tax tax tax credit",
    "unknown": "zebra",
    "stop": "the of and",
    "empty": "",
    "common": "wildfire schools tribal",
}


def lucene_scores(corpus_tokens, query_tokens):
    """Lucene's BM25 written out: Kamphuis et al. 2020, table 1."""
    n, lengths = len(corpus_tokens), [len(tokens) for tokens in corpus_tokens]
    average = sum(lengths) / n
    scores = [0.0] * n
    for term in query_tokens:
        df = sum(term in tokens for tokens in corpus_tokens)
        idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
        for i, tokens in enumerate(corpus_tokens):
            tf = tokens.count(term)
            scores[i] += idf * tf / (tf + K1 * (1 - B + B * lengths[i] / average))
    return scores


def expected_hits(chunks, scores):
    best = {}
    for chunk, score in zip(chunks, scores, strict=True):
        key = (round(score * 100_000), -chunk.index)
        if key[0] > 0 and key > best.get(chunk.doc_id, ((0, 0), None))[0]:
            best[chunk.doc_id] = (key, chunk.span)
    order = sorted(best, key=lambda d: (best[d][0][0], d), reverse=True)[:RUN_DEPTH]
    return [(doc_id, best[doc_id][0][0] / 100_000, best[doc_id][1]) for doc_id in order]


def flat(hits):
    return [(hit.doc_id, hit.score, hit.span) for hit in hits]


def test_bm25_equals_lucenes_formula_written_out():
    chunks, texts = corpus()
    run = bm25_run("bm25 x c", "bm25", QUERIES, chunks, texts).run
    tokens = [stemmed_terms(text) for text in texts]
    for query_id, text in QUERIES.items():
        assert flat(run.hits[query_id]) == expected_hits(chunks, lucene_scores(tokens, stemmed_terms(text)))
    assert len(run.hits["common"]) == RUN_DEPTH


GERMAN = {  # the text, and its terms as somebody who knows the stemmer would write them
    "Die Häuser der Gemeinde Köln": ["haus", "gemeind", "koln"],
    "Haeuser und Straßen in KOELN": ["haus", "strass", "koln"],
    "STRASSE": ["strass"],
    "§ 5a Abs. 2 des Gesetzes": ["5a", "abs", "2", "gesetz"],
    "Bundeswahlgesetz, E-Mail; nicht die Wahl": ["bundeswahlgesetz", "mail", "e-mail", "wahl"],
    "Ko\u0308ln": ["koln"],
    "der die das": [],
}


def test_german_terms_fold_umlauts_and_keep_compounds_whole():
    assert {text: terms_in("de", text) for text in GERMAN} == GERMAN


def test_bm25_in_german_equals_lucenes_formula_over_german_terms():
    texts = list(GERMAN)
    chunks = [Chunk(f"d{place}", 0, Span(0, 10), "", 5) for place in range(len(texts))]
    queries = {"umlaut": "haus koeln", "compound": "Wahl", "stop": "der das"}
    run = bm25_run("bm25@de x c", "bm25@de", queries, chunks, texts).run
    tokens = list(GERMAN.values())
    asked = {"umlaut": ["haus", "koln"], "compound": ["wahl"], "stop": []}
    for query_id, terms in asked.items():
        assert flat(run.hits[query_id]) == expected_hits(chunks, lucene_scores(tokens, terms))
    assert [hit.doc_id for hit in run.hits["compound"]] == ["d4"]  # by "Wahl", not inside "Bundeswahlgesetz"


@pytest.mark.parametrize("code", list(LANGUAGES))
def test_every_language_has_a_stemmer_and_stop_words_of_its_own(code):
    described = bm25_description(f"bm25@{code}")
    assert LANGUAGES[code].capitalize() in described["stemmer"]
    assert LANGUAGES[code].capitalize() in described["stop words"]
    assert terms_in(code, "x 42 w-lan") == terms_in(code, "42 W-LAN") != []


def test_a_turkish_i_keeps_its_dot():
    assert terms_in("tr", "IRMAK") == terms_in("tr", "ırmak") != terms_in("tr", "irmak")
    assert terms_in("tr", "İZMİR") == terms_in("tr", "izmir")


@pytest.mark.parametrize("variant", list(BM25_VARIANTS))
def test_what_no_term_finds_stays_without_hits_and_the_order_of_chunks_changes_nothing(variant, capfd):
    chunks, texts = corpus()
    retrieved = bm25_run("cell", variant, QUERIES, chunks, texts)
    assert list(retrieved.run.hits) == list(retrieved.reading) == list(QUERIES)
    for query_id in ("unknown", "stop", "empty"):
        assert retrieved.run.hits[query_id] == retrieved.reading[query_id] == ()
    chunk = Chunk("d", 0, Span(0, 3), "", 1)
    for found, read in (([chunk], ["* —"]), ([], [])):
        assert bm25_run("cell", variant, {"q": "water"}, found, read).run.hits == {"q": ()}
    order = np.random.default_rng(0).permutation(len(chunks))
    assert bm25_run("cell", variant, QUERIES, [chunks[i] for i in order], [texts[i] for i in order]) == retrieved
    assert capfd.readouterr() == ("", "")


def test_okapi_scores_below_zero_are_no_hits():
    chunks = [Chunk(f"d{i}", 0, Span(0, 3), "", 1) for i in range(3)]
    texts = ["water law", "water law", "water law"]
    assert BM25Okapi([plain_tokens(text) for text in texts]).get_scores(["water"]).max() < 0
    assert bm25_run("cell", "bm25-okapi", {"q": "water"}, chunks, texts).run.hits == {"q": ()}
    assert len(bm25_run("cell", "bm25", {"q": "water"}, chunks, texts).run.hits["q"]) == 3


def test_bm25_okapi_equals_rank_bm25():
    chunks, texts = corpus()
    run = bm25_run("bm25-okapi x c", "bm25-okapi", QUERIES, chunks, texts).run
    index = BM25Okapi([plain_tokens(text) for text in texts])
    for query_id, text in QUERIES.items():
        assert flat(run.hits[query_id]) == expected_hits(chunks, index.get_scores(plain_tokens(text)).tolist())


def test_the_reading_list_holds_only_chunks_that_score():
    chunks, texts = corpus()
    retrieved = bm25_run("cell", "bm25", {"q": "veteran"}, chunks, texts)
    found = {(c.doc_id, c.span) for c, text in zip(chunks, texts, strict=True) if "veteran" in text.split()}
    kept = {hit.doc_id for hit in retrieved.run.hits["q"]}
    assert {(c.doc_id, c.span) for c in retrieved.reading["q"]} == {pair for pair in found if pair[0] in kept}


def test_chunks_without_their_texts_raise():
    chunks, texts = corpus()
    with pytest.raises(ValueError, match="400 chunks and 399 texts"):
        bm25_run("cell", "bm25", QUERIES, chunks, texts[1:])


def test_the_description_names_library_version_and_settings():
    for variant in BM25_VARIANTS:
        described = bm25_description(variant)
        assert {"library", "version", "k1", "b", "stemmer", "stop words", "tokenizer"} <= described.keys()
        assert "library" in BM25_VARIANTS[variant]
        assert "version" not in BM25_VARIANTS[variant]
