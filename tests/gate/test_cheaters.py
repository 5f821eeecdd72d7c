"""Every cheater gets the verdict that its row claims, and returns known documents, each once."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError
from runner.base.records import Chunk, Hit, Run, Span
from runner.embed.encoder import InProcessEncoder
from runner.embed.probe import probe
from runner.eval_set.catalog import EncoderSpec
from runner.gate import cheaters
from runner.gate.cheaters import CHEATERS, Exam
from runner.gate.gate import Gate
from runner.retrieve.bm25 import bm25_run
from runner.tools.grade.sample_bench import predicted, sample_bench
from tests.support.graded_sets import CHUNKS, DOCS, LENGTHS, gate_of, graded, run_of

TOPICS = 20
SETTINGS = {"draws": 200, "tau": 0.05, "alpha": 0.05, "seed": 2026}
BLIND = ("constant", "popularity", "random", "marginal-matched", "source-prior")
"""Cheaters over the sample bench that come from counts alone."""


@cache
def exam(*, paired: bool = False) -> Exam:
    """Twenty topics of two queries and four documents, queries of a topic far apart unless `paired`; and 120 others."""
    words = [[f"w{topic}x{n}" for n in range(4)] for topic in range(TOPICS)]
    texts = {f"x{number:03d}": f"common{number % 9} common{number % 7} rest{number}" for number in range(120)}
    for topic, terms in enumerate(words):
        for rank in range(4):
            filler = " ".join(f"common{(topic + rank + n) % 9}" for n in range(6 + rank))
            texts[f"d{topic:02d}{rank}"] = f"{' '.join(terms[: 4 - rank])} {filler}"
    order = [divmod(place, 2) if paired else divmod(place, TOPICS)[::-1] for place in range(2 * TOPICS)]
    asked = {
        f"q{number:02d}": f"common1 common2 {' '.join(words[topic][2 * half : 2 * half + 2])}"
        for number, (topic, half) in enumerate(order)
    }
    chunks = [Chunk(doc_id, 0, Span(0, len(text)), "", len(text.split())) for doc_id, text in texts.items()]
    run = bm25_run("bm25", "bm25", asked, chunks, list(texts.values())).run
    return Exam(
        grades=[{f"d{topic:02d}{rank}": 3 - rank for rank in range(3)} for topic, _ in order],
        pool=sorted(texts),
        strata=[f"s{topic % 2}" for topic, _ in order],
        engine=[[hit.doc_id for hit in hits] for hits in run.hits.values()],
        texts=texts,
        asked=list(asked.values()),
    )


def verdict(given: Exam, lists: list[list[str]]) -> str:
    ids = [f"q{place:02d}" for place in range(len(lists))]
    hits = {
        query_id: tuple(Hit(doc_id, float(-place), Span(0, 1)) for place, doc_id in enumerate(dict.fromkeys(found)))
        for query_id, found in zip(ids, lists, strict=True)
    }
    qrels, strata = dict(zip(ids, given.grades, strict=True)), dict(zip(ids, given.strata, strict=True))
    ones, lengths = dict.fromkeys(given.texts, 1), {doc_id: len(text) for doc_id, text in given.texts.items()}
    return Gate.of(ids, qrels, strata, lengths, **SETTINGS).judge(Run("x", hits), ones).verdict


@pytest.mark.parametrize("row", CHEATERS.values(), ids=lambda row: row.name)
def test_every_cheater_gets_the_verdict_that_is_claimed_for_it(row):
    # Here neighbouring queries ask for different things.
    passes = bool(row.passes) and row.name != "off by one"
    assert verdict(exam(), row.lists(exam())) == ("pass" if passes else "fail")


def test_the_engine_that_gets_broken_passes():
    assert verdict(exam(), exam().engine) == "pass"


@given(seed=st.integers(0, 10_000), n_queries=st.integers(3, 12))
def test_one_list_for_all_passes_with_no_number_of_queries(seed, n_queries):
    qrels = graded(n_queries, seed)
    engine = [sorted(grades, key=lambda d: (-grades[d], d)) for grades in qrels.values()]
    positive = [{d: grade for d, grade in grades.items() if grade > 0} for grades in qrels.values()]
    lengths = {d: "x" * n for d, n in LENGTHS.items()}
    given = Exam(positive, DOCS, [""] * n_queries, engine, seed=seed, texts=lengths)
    gate = gate_of(qrels, draws=99)
    for name in ("constant", "popularity", "stub", "longest", "first ids", "deaf"):
        lists = CHEATERS[name].lists(given)
        assert gate.judge(run_of(dict(zip(qrels, lists, strict=True))), CHUNKS).verdict != "pass"


def test_off_by_one_passes_where_neighbouring_queries_share_their_answers():
    twins = exam(paired=True)
    assert verdict(twins, CHEATERS["off by one"].lists(twins)) == "pass"


@pytest.mark.parametrize("row", CHEATERS.values(), ids=lambda row: row.name)
def test_every_list_has_known_documents_and_is_the_same_twice(row):
    lists = row.lists(exam())
    assert len(lists) == len(exam().grades)
    assert all(found and set(found) <= set(exam().pool) for found in lists)
    assert row.lists(exam()) == lists


def test_the_probe_of_encoders_refuses_hashes():
    class Hashing(InProcessEncoder):
        batch_tokens = 512
        spec = EncoderSpec(name="hashing", model="planted/hashing", revision="0" * 40, dim=64, max_tokens=32)

        def identity(self):
            return {"encoder": "hashing"}

        def token_counts(self, texts, side):
            return np.array([len(text.split()) for text in texts], np.int64)

        def encode(self, texts, side):
            rows = cheaters._digests(texts)
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    with pytest.raises(BackendError, match="paraphrases"):
        probe(Hashing())


@given(seed=st.integers(0, 2**32 - 1))
def test_no_blind_cheater_knows_the_query(seed):
    # Exchanging answers between two queries of a stratum changes no cheater's lists.
    bench, pool = sample_bench(seed)
    first, other = next(
        (i, j)
        for i in range(50)
        for j in range(i)
        if bench.strata[i] == bench.strata[j] and bench.gold[i] != bench.gold[j]
    )
    gold = list(bench.gold)
    gold[first], gold[other] = gold[other], gold[first]
    exchanged = replace(bench, gold=gold)
    for name in BLIND:
        lists = CHEATERS[name].lists
        assert predicted(bench, pool, lists, seed).retrieved == predicted(exchanged, pool, lists, seed).retrieved
