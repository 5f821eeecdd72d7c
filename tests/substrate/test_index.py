"""Indexes in both stores: what they hold, how they are read back, what a further run changes, whom they refuse."""

import json
from dataclasses import replace

import apsw
import numpy as np
import pandas
import pyarrow.dataset
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner import open_index
from runner.base.canonical import sha256
from runner.base.errors import BackendError, InputError, IntegrityError
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import Embeddable
from runner.embed.probe import signed_texts
from runner.evening import embed
from runner.retrieve.variants import cut_rows, int8_codes
from runner.substrate import open_index as opening
from runner.substrate.index import Held, bucket_of, differences, document_key, keys_of
from runner.substrate.open_index import index_at
from samplers.corpus.parse import read_corpus
from tests.support.modal_words import SPEC, Words, planted_bench, planted_probe  # noqa: F401  # fixtures
from tests.support.small_index import (
    CELL,
    SOURCE,
    Counting,
    bills,
    changed,
    content,
    fill,
    made_by,
)
from tests.support.small_set import SmallEncoder
from tests.support.substrate_builder import writing_connection

NAMES = ("index.db", "index")
BILLS = bills(30)
MINILM = "minilm-l6-v2"


def rows_of(path, statement):
    connection = writing_connection(path)
    rows = list(connection.execute(statement))
    connection.close()
    return rows


def floats(path, column="embedding", kind="<f4"):
    return np.array([np.frombuffer(row, kind) for (row,) in rows_of(path, f"SELECT {column} FROM bills_chunks_vec0")])


def test_a_key_lies_in_its_bucket_and_sqlite_can_hold_it():
    for document in BILLS:
        key = document_key(document.doc_id)
        first, last = keys_of(bucket_of(key))
        assert 0 <= first <= key <= last < 1 << 63


def test_both_stores_hold_every_chunk_as_it_is_cut_and_embedded(tmp_path):
    encoder, chunks = SmallEncoder(MINILM), chunk_corpus(BILLS, "fixed_token_256_25")
    texts = {document.doc_id: document for document in BILLS}
    expected = {
        document_key(chunk.doc_id) + chunk.index: (
            chunk.doc_id,
            chunk.span.start,
            chunk.span.end,
            chunk.context,
            texts[chunk.doc_id].text[chunk.span.start : chunk.span.end],
        )
        for chunk in chunks
    }
    for name in NAMES:
        assert fill(tmp_path / name, BILLS) == (30, len(chunks), 0, 0)
    said = "SELECT chunk_id, chunk_index, document_id, char_start, char_end, context, text FROM bills_chunks"
    rows = rows_of(tmp_path / NAMES[0], said)
    keys = {number: document_key(row[0]) + index for number, index, *row in rows}
    assert {keys[number]: tuple(row) for number, _, *row in rows} == expected
    # sqlite-vec compares ids as 32-bit numbers where a search is held to some.
    assert sorted(keys) == list(range(1, len(rows) + 1))
    within = "SELECT count(*) FROM bills_chunks_vec0 WHERE embedding MATCH ? AND k = 4096 AND chunk_id IN ({})"
    connection = writing_connection(tmp_path / NAMES[0])
    query = encoder.encode(["a bill"], "query")[0].astype("<f4").tobytes()
    (found,) = connection.execute(within.format("SELECT chunk_id FROM bills_chunks"), (query,))
    assert found == (len(rows),)
    frame = pandas.read_parquet(tmp_path / NAMES[1])
    shown = zip(frame["document"], frame["start"], frame["end"], frame["context"], frame["text_sha256"], strict=True)
    digests = {number: (*row[:4], sha256(row[4])) for number, row in expected.items()}
    assert dict(zip(frame["id"], shown, strict=True)) == digests
    assert set(zip(frame["document"], frame["document_sha256"], strict=True)) == {(d.doc_id, d.sha256) for d in BILLS}
    # The vector of each, within what the neighbours in a batch change.
    stored = dict(zip(frame["id"], frame["vector"], strict=True))
    ours = {
        document_key(chunk.doc_id) + chunk.index: encoder.encode([chunk.reading(texts[chunk.doc_id])], "document")[0]
        for chunk in chunks
    }
    assert max(np.abs(stored[number] - row).max() for number, row in ours.items()) < 1e-6
    in_database = dict(rows_of(tmp_path / NAMES[0], "SELECT chunk_id, embedding FROM bills_chunks_vec0"))
    assert {keys[number]: row for number, row in in_database.items()} == {
        number: row.astype("<f4").tobytes() for number, row in stored.items()
    }


STORED = {
    CELL: (lambda rows: rows, 48),
    CELL.replace(" x", "@24 x"): (lambda rows: cut_rows(rows, 24), 24),
    CELL.replace(" x", "@bit x"): (lambda rows: rows, 48),
    "sum(bm25,minilm-l6-v2) x fixed_token_256_25": (lambda rows: rows, 48),
    "rrf(bm25,minilm-l6-v2) x fixed_token_256_25": (lambda rows: rows, 48),
    "bm25>minilm-l6-v2 x fixed_token_256_25": (lambda rows: rows, 48),
}


@pytest.mark.parametrize("cell", STORED)
def test_vectors_are_stored_as_the_cell_has_them_and_hybrids_have_their_words(cell, tmp_path):
    whole, other = tmp_path / "whole.db", tmp_path / "index.db"
    fill(whole, BILLS)
    fill(other, BILLS, cell)
    fill(tmp_path / "index", BILLS, cell)
    stored, dim = STORED[cell]
    assert np.array_equal(floats(other), stored(floats(whole)))
    (differing,) = rows_of(
        other, "SELECT count(*) FROM bills_chunks_vec0 WHERE embedding_bq IS NOT vec_quantize_binary(embedding)"
    )
    assert differing == (0,)
    frame = pandas.read_parquet(tmp_path / "index")
    assert np.array_equal(sorted(map(tuple, frame["vector"])), sorted(map(tuple, floats(other))))
    assert frame["vector"].map(len).eq(dim).all()
    # Words of whole documents beside those of chunks, for the two cells whose BM25 reads these.
    found = (
        "SELECT document_id FROM bills_documents WHERE document_key IN (SELECT rowid FROM bills_documents_fts('{}'))"
    )
    if cell.startswith(("rrf", "bm25>")):
        assert rows_of(other, found.format('"Section 7"')) == [(BILLS[6].doc_id,)]
    else:
        with pytest.raises(apsw.SQLError, match="no such table"):
            rows_of(other, found.format("x"))


def test_int8_is_stored_as_codes_beside_the_floats_of_a_database_and_alone_in_parquet(tmp_path):
    cell = CELL.replace(" x", "@int8 x")
    for name in NAMES:
        fill(tmp_path / name, BILLS, cell)
    codes, rows = floats(tmp_path / NAMES[0], "embedding_int8", "i1"), floats(tmp_path / NAMES[0])
    assert np.array_equal(codes, int8_codes(rows))
    frame = pandas.read_parquet(tmp_path / NAMES[1])
    assert sorted(map(tuple, frame["vector"])) == sorted(map(tuple, codes))


@pytest.mark.parametrize("cell", ["bm25 x fixed_token_256_25", "rerank(bm25,minilm-l6-v2) x fixed_token_256_25"])
def test_a_cell_without_an_encoder_has_words_and_no_vectors(cell, tmp_path):
    for name in NAMES:
        assert fill(tmp_path / name, BILLS, "bm25 x fixed_token_256_25").documents == 30
    assert rows_of(tmp_path / NAMES[0], "SELECT count(*) FROM bills_fts('section')")[0][0] >= 30
    with pytest.raises(apsw.SQLError, match="no such table"):
        floats(tmp_path / NAMES[0])
    assert "vector" not in pandas.read_parquet(tmp_path / NAMES[1])
    with pytest.raises(InputError, match="no vectors"):
        open_index(tmp_path / NAMES[0], SOURCE)


def test_three_clients_find_the_same_ten_neighbours(tmp_path):
    import lancedb  # takes seconds

    for name in NAMES:
        fill(tmp_path / name, bills(120))
    encoder = SmallEncoder(MINILM)
    queries = encoder.encode([" ".join(document.text.split()[5:25]) for document in BILLS[:12]], "query")
    frame = pandas.read_parquet(tmp_path / NAMES[1])
    matrix, ids = np.stack(frame["vector"].to_list()), frame["id"].to_numpy()
    shards = pyarrow.dataset.dataset(tmp_path / NAMES[1]).to_table()
    table = lancedb.connect(tmp_path / "store").create_table("bills", shards)
    connection = writing_connection(tmp_path / NAMES[0])
    rows = connection.execute("SELECT chunk_id, document_id, chunk_index FROM bills_chunks")
    keys = {number: document_key(document) + index for number, document, index in rows}
    for query in queries:
        by_pandas = ids[np.argsort(-(matrix @ query), kind="stable")[:10]].tolist()
        found = table.search(query).distance_type("cosine").limit(10).to_list()
        nearest = "SELECT chunk_id FROM bills_chunks_vec0 WHERE embedding MATCH ? AND k = 10 ORDER BY distance"
        assert [row["id"] for row in found] == by_pandas
        assert [keys[number] for (number,) in connection.execute(nearest, (query.tobytes(),))] == by_pandas
    # Words as FTS5 finds them: of one document alone, by its number.
    (found,) = rows_of(tmp_path / NAMES[0], "SELECT rowid FROM bills_fts('\"Section 77\"')")
    assert frame["document"][frame["id"] == keys[found[0]]].to_list() == [bills(120)[76].doc_id]


# A further run


CORPORA = st.lists(st.dictionaries(st.sampled_from(range(12)), st.booleans(), min_size=1), min_size=1, max_size=4)
"""One corpus after the other: numbers of bills, each as introduced or as amended."""


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpora=CORPORA, prunes=st.booleans())
def test_runs_one_after_the_other_end_where_one_run_does(name, corpora, prunes, tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("runs"), {}
    for numbers in corpora:
        now = {n: changed(BILLS[n]) if amended else BILLS[n] for n, amended in numbers.items()}
        done = fill(folder / name, now.values(), prune=prunes)
        assert done.kept == sum(known.get(n) == document for n, document in now.items())
        assert done.documents == len(now) - done.kept
        known = now if prunes else known | now
    fill(folder / f"once-{name}", known.values())
    gone = [known[n] for n in known.keys() - corpora[-1].keys()]
    if gone:
        fill(folder / f"once-{name}", [known[n] for n in corpora[-1]])  # which marks them
    assert content(folder / name) == content(folder / f"once-{name}")
    held = {}
    index = index_at(folder / name, SOURCE)
    index.fingerprint()
    for bucket in range(256):
        held |= index.held(bucket)
    assert held == {each.doc_id: Held(each.sha256, vanished=each in gone) for each in known.values()}


@pytest.mark.parametrize("name", NAMES)
def test_one_changed_document_in_a_hundred_costs_its_own_texts_alone(name, tmp_path):
    documents, encoder = bills(200), Counting(MINILM)
    fill(tmp_path / name, documents, encoder=encoder)
    n_all, encoder.n_texts = encoder.n_texts, 0
    again = [changed(document) if place in (7, 150) else document for place, document in enumerate(documents)]
    assert fill(tmp_path / name, again, encoder=encoder)[:1] == (2,)
    in_probe = sum(len(texts) for texts, _ in signed_texts(encoder.spec))
    assert 0 < encoder.n_texts - 2 * in_probe <= 0.015 * n_all
    fill(tmp_path / f"once-{name}", again)
    assert content(tmp_path / name) == content(tmp_path / f"once-{name}")


@pytest.mark.model
def test_a_batch_of_the_packaged_model_depends_on_its_own_document_alone(tmp_path):
    from runner.base.places import CHECKOUT
    from runner.embed.local_encoder import encoder_for

    documents = read_corpus(CHECKOUT / "eval-sets" / "demo" / "corpus", "bills").documents
    acts = sorted((act for act in documents if len(act.text) > 1_500), key=lambda act: len(act.text))[:4]  # of 3 chunks
    fill(tmp_path / "index", acts, encoder=encoder_for(MINILM))
    fill(tmp_path / "grown", [acts[1], changed(acts[3])], encoder=encoder_for(MINILM))
    fill(tmp_path / "grown", acts, encoder=encoder_for(MINILM))
    assert content(tmp_path / "index") == content(tmp_path / "grown")


def test_documents_that_are_there_twice_are_sent_once_and_held_twice(tmp_path):
    twin = replace(BILLS[0], doc_id="twin")
    encoders = [Counting(MINILM), Counting(MINILM)]
    for folder, documents, encoder in zip(("one", "two"), (BILLS[:1], [BILLS[0], twin]), encoders, strict=True):
        (tmp_path / folder).mkdir()
        fill(tmp_path / folder / "index.db", documents, encoder=encoder)
    assert encoders[0].n_texts == encoders[1].n_texts
    by_document = "SELECT embedding FROM bills_chunks_vec0 JOIN bills_chunks USING (chunk_id) WHERE document_id = '{}'"
    one, two = (rows_of(tmp_path / "two" / "index.db", by_document.format(each)) for each in (BILLS[0].doc_id, "twin"))
    assert one == two != []


@settings(max_examples=20)
@given(parts=st.lists(st.integers(1, 5), min_size=1, max_size=5), seed=st.integers(0, 9))
def test_parts_share_no_forward_batch_and_get_the_rows_that_each_gets_alone(parts, seed, tmp_path_factory):
    from runner.base.store import Store

    store = Store(tmp_path_factory.mktemp("parts"))
    texts = [
        [f"grant {seed} {part % 2} {n} " + "river " * (n * 7) for n in range(size)] for part, size in enumerate(parts)
    ]
    flat = [text for part in texts for text in part]
    together = Embeddable(store, SmallEncoder(MINILM), flat, "document", parts=parts).vectors().rows
    alone = [Embeddable(store, SmallEncoder(MINILM), part, "document").vectors().rows for part in texts]
    assert np.array_equal(together, np.concatenate(alone))


def test_a_run_on_modal_with_faults_makes_the_bytes_of_a_local_one(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "WINDOW_TEXTS", 8)
    made, cell = bench(), "words x fixed_token_256_25"
    documents = bills(24)
    first = documents[0].text[:40]

    def holds(one):
        return one.function == "Embedder.embed" and any(first in text for text in one.args[2])

    made.server.faults.kill_container(holds)
    made.server.faults.change_output(lambda said: {**said, "data": bytes(64)}, when=holds)
    for name in NAMES:
        fill(tmp_path / name, documents, cell, Words())
        fill(made.folder / name, documents, cell, made.encoder, made.backend)
        assert content(made.folder / name) == content(tmp_path / name)


# Whom it refuses


class Lying(SmallEncoder):
    """Says the row that is catalogued, and embeds by another; `noise` moves its rows."""

    def __init__(self, name=MINILM, limit=None, prompts=("", ""), noise=0.0, topic=""):
        super().__init__(name)
        self.limit, self.noise, self.topic = limit, noise, topic
        self.prompts = dict(zip(("query", "document"), prompts, strict=True))

    def encode(self, texts, side):
        cut = [" ".join(f"{self.prompts[side]}{text} {self.topic}".split()[: self.limit]) for text in texts]
        rows = super().encode(cut, side) + np.float32(self.noise) * super().encode(["noise"], side)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def row_with(**fields):
    encoder = SmallEncoder(MINILM)
    encoder.spec = encoder.spec.model_copy(update=fields)
    return encoder


OTHER_ROWS = [
    *(({"model": f"other/model-{n}"}, "model") for n in range(10)),
    *(({"revision": f"{n:040x}"}, "revision") for n in range(24)),
    *(({"weights_sha256": f"{n:064x}"}, "weights_sha256") for n in range(5)),
    *(({"query_prompt": f"ask {n}: "}, "query_prompt") for n in range(10)),
    *(({"document_prompt": f"text {n}: "}, "document_prompt") for n in range(10)),
    *(({"max_tokens": n}, "max_tokens") for n in (0, *range(8, 120, 14))),
    *(({"pooling": pooling}, "pooling") for pooling in ("cls", "mean", "max", "lasttoken")),
]
LIES = [
    *({"limit": n} for n in range(10, 100, 10)),
    *({"prompts": (prompt, "")} for prompt in ("query: ", "search_query: ", "ask ", "Represent this sentence: ")),
    *({"prompts": ("", prompt)} for prompt in ("passage: ", "search_document: ", "title: none | text: ")),
    *({"noise": noise} for noise in (0.05, 0.1, 0.5, 2.0)),
    *({"topic": topic} for topic in ("banks", "fish")),
]
OTHER_CELLS = [
    *((CELL.replace("256_25", size), "chunker") for size in ("512_50", "1024_100")),
    *((CELL.replace(" x", f"@{variant} x"), "cell") for variant in ("24", "int8", "bit")),
    (CELL.replace("l6-v2", "static-384"), "encoder"),
]


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for name in NAMES:
        fill(folder / name, BILLS)
    return folder


def test_a_hundred_wrong_makers_are_refused_by_both_stores_and_named(made):
    before = {name: content(made / name) for name in NAMES}
    tried = 0
    new = [*BILLS, replace(BILLS[0], doc_id="new")]
    for name in NAMES:
        for fields, what in OTHER_ROWS:
            tried += 1
            with pytest.raises(IntegrityError, match=rf"(?s)was made otherwise.*{what}: "):
                fill(made / name, new, encoder=row_with(**fields))
        for lie in LIES:
            tried += 1
            with pytest.raises(IntegrityError, match=r"(?s)was made otherwise.*vectors of the probe's texts"):
                fill(made / name, new, encoder=Lying(**lie))
        for cell, what in OTHER_CELLS:
            tried += 1
            with pytest.raises(IntegrityError, match=rf"(?s)was made otherwise.*{what}: "):
                fill(made / name, new, cell)
    assert tried == 2 * 100
    assert before == {name: content(made / name) for name in NAMES}


def test_another_decision_and_another_code_of_the_chunker_are_named():
    index = made_by(CELL, SmallEncoder(MINILM))
    assert differences(index, index) == []
    other = index.model_copy(update={"decision_sha256": "1" * 64, "chunkers_sha256": "2" * 64})
    assert [line.partition(":")[0] for line in differences(index, other)] == ["decision_sha256", "chunkers_sha256"]


@pytest.mark.parametrize("name", NAMES)
def test_a_client_gets_vectors_of_its_queries_or_is_refused(name, made):
    right = SmallEncoder(MINILM)
    ask = open_index(made / name, SOURCE, lambda texts, side: right.encode(texts, side))
    assert np.allclose(ask(["grants to States"]), right.encode(["grants to States"], "query"), atol=1e-6)
    for lie in LIES:
        with pytest.raises(IntegrityError, match="vectors of the probe"):
            open_index(made / name, SOURCE, Lying(**lie).encode)
    with pytest.raises(IntegrityError, match="other dimensions"):
        open_index(made / name, SOURCE, lambda texts, side: np.ones((len(texts), 7)))
    assert ask([]).shape == (0, 48)
    for wrong, said in (("grants", "One text"), (["grants", None], r"texts\[1\] is None")):
        with pytest.raises(InputError, match=said):
            ask(wrong)


def test_by_itself_a_client_takes_the_catalogs_encoder_and_refuses_one_that_moved_on(tmp_path, monkeypatch):
    from runner.eval_set.catalog import ENCODERS

    right = SmallEncoder(MINILM)
    fill(tmp_path / "index.db", BILLS[:3])
    monkeypatch.setitem(ENCODERS, MINILM, right.spec)
    monkeypatch.setattr(opening, "local_encoder", lambda spec: right)
    assert open_index(tmp_path / "index.db", SOURCE)(["a"]).shape == (1, 48)
    monkeypatch.setitem(ENCODERS, MINILM, right.spec.model_copy(update={"revision": "f" * 40}))
    with pytest.raises(IntegrityError, match="revision: "):
        open_index(tmp_path / "index.db", SOURCE)


def test_a_place_that_holds_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "text.db").write_text("no database, but long enough to be one of them" * 30)
    (tmp_path / "other.db").touch()
    connection = writing_connection(tmp_path / "other.db")
    connection.execute("CREATE TABLE bills_chunks (id)")
    connection.close()
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "letter.txt").write_text("dear")
    for place, what in (
        ("text.db", "is damaged or encrypted"),
        ("other.db", "did not write it"),
        ("papers", "is not empty"),
    ):
        with pytest.raises(InputError, match=what):
            fill(tmp_path / place, BILLS)
    assert [path.name for path in (tmp_path / "papers").iterdir()] == ["letter.txt"]
    (tmp_path / "nothing").mkdir()
    for name, what in (("nothing.db", "does not exist"), ("nothing", "no index")):
        with pytest.raises(InputError, match=what):
            open_index(tmp_path / name, SOURCE)
    with pytest.raises(BackendError, match="could not be written"):
        fill(tmp_path / "no" / "such" / "index.db", BILLS)


def test_damaged_fingerprints_and_shards_are_named(tmp_path):
    fill(tmp_path / "index", BILLS)
    shard = min((tmp_path / "index").glob("*.parquet"))
    shard.write_bytes(shard.read_bytes()[:99])
    with pytest.raises(InputError, match=shard.name):
        fill(tmp_path / "index", BILLS)
    path = tmp_path / "index" / "_fingerprint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "dtype": 7}))
    with pytest.raises(InputError, match="dtype"):
        fill(tmp_path / "index", BILLS)
