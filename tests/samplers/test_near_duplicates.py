import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.places import CHECKOUT
from samplers.corpus.near_duplicates import PRICE_OF_PAIR, SHORTEST, jaccard, near_duplicates
from tests.support.small_bills import in_folder, numbered

VOCABULARY = [f"word{n}" for n in range(5_000)]


def words(seed: int, n: int = 400) -> list[str]:
    return random.Random(seed).choices(VOCABULARY, k=n)


def changed(of: list[str], n: int, seed: int) -> list[str]:
    """The words with `n` of them replaced, far enough from one another to touch five runs each."""
    copy = list(of)
    for place in random.Random(seed).sample(range(10, len(of) - 10, 10), n):
        copy[place] = f"changed{seed}"
    return copy


def documents(words_by_id: dict[str, list[str]]) -> dict[str, str]:
    return {doc_id: " ".join(of) for doc_id, of in words_by_id.items()}


def brute_force(corpus: dict[str, str], threshold: float) -> dict[str, str]:
    """Clusters by comparing every pair of sets of word 5-tuples."""
    sets = {}
    for doc_id, text in corpus.items():
        tokens = text.lower().split()
        sets[doc_id] = {tuple(tokens[i : i + 5]) for i in range(len(tokens) - 4)}
    cluster = {doc_id: doc_id for doc_id in sets}
    for first in sorted(sets):
        for second in sorted(sets):
            if len(sets[first] & sets[second]) >= threshold * len(sets[first] | sets[second]):
                low, high = sorted((cluster[first], cluster[second]))
                cluster = {doc_id: low if of == high else of for doc_id, of in cluster.items()}
    return cluster


def test_case_and_white_space_do_not_keep_two_texts_apart():
    text = " ".join(words(1))
    corpus = {"a": text, "b": text.upper(), "c": text.replace(" ", "\n  ")}
    assert set(near_duplicates(corpus).values()) == {"a"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_clusters_are_those_of_a_comparison_of_all_pairs(seed):
    rng = random.Random(seed)
    texts = {f"d{n:03}": words(1000 * seed + n, rng.randint(100, 500)) for n in range(60)}
    for n in range(60, 160):
        of = texts[f"d{rng.randrange(n):03}"]
        texts[f"d{n:03}"] = changed(of, rng.randint(0, len(of) // 25), n)
    corpus = documents(texts)
    found, expected = near_duplicates(corpus), brute_force(corpus, 0.8)
    assert len(set(expected.values())) < 150
    assert found == expected


def test_similarity_just_under_the_threshold_is_not_enough():
    original = words(5, 504)
    corpus = documents({"a": original, "b": changed(original, 11, 1), "c": changed(original, 12, 2)})
    # 500 runs, of which each changed word replaces 5: 445 of 555 are shared, and 440 of 560.
    assert near_duplicates(corpus, threshold=0.8) == {"a": "a", "b": "a", "c": "c"}


def test_short_documents_are_clustered_where_they_are_equal_only():
    short = words(1, SHORTEST - 1)
    corpus = documents({"a": short, "b": short, "c": [*short[:-1], "other"], "d": ["Reserved."], "e": ["reserved."]})
    assert near_duplicates(corpus) == {"a": "a", "b": "a", "c": "c", "d": "d", "e": "d"}


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), max_size=12), st.randoms())
def test_the_order_of_documents_does_not_matter_and_every_document_is_in_one_cluster(texts, rng):
    corpus = documents({f"d{n:02}": of for n, of in enumerate(texts)})
    shuffled = list(corpus.items())
    rng.shuffle(shuffled)
    clusters = near_duplicates(corpus)
    assert near_duplicates(dict(shuffled)) == clusters
    assert list(clusters) == sorted(corpus)
    assert all(clusters[cluster] == cluster <= doc_id for doc_id, cluster in clusters.items())


DRAW = """
import sys
from pathlib import Path
from runner.eval_set.corpus import sample_of
from runner.eval_set.shapes.plan import Sample
from samplers.registry import SOURCES
drawn = sample_of(SOURCES["bills"], Sample(size=7, seed=1), Path(sys.argv[1]))
print([document.doc_id for document in drawn.documents], drawn.report)
"""


def test_the_hash_seed_of_the_interpreter_does_not_matter_to_a_sample(tmp_path):
    files = {f"{n}.xml": numbered(n, " ".join(changed(words(n % 20), n % 7, n))) for n in range(1, 100)}
    command = [sys.executable, "-c", DRAW, str(in_folder(tmp_path, files))]
    one, other = (
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, cwd=CHECKOUT, capture_output=True, check=True
        )
        for seed in ("1", "2")
    )
    assert one.stdout == other.stdout
    assert one.stdout.count(b"BILLS-") == 7


def test_a_thousand_copies_are_one_cluster():
    text = " ".join(words(1))
    corpus = {f"d{n:04}": text + f" {n}" for n in range(1_000)}
    assert set(near_duplicates(corpus).values()) == {"d0000"}


def test_texts_that_are_all_nearly_alike_enough_cost_no_square_of_their_number(monkeypatch):
    compared = []
    monkeypatch.setattr(
        "samplers.corpus.near_duplicates.jaccard", lambda one, other: compared.append(1) or jaccard(one, other)
    )
    monkeypatch.setattr("samplers.corpus.near_duplicates.MAX_COMPARED", 100)
    corpus = documents({f"d{n:03}": changed(words(1, 240), 4, n) for n in range(300)})
    assert len(set(near_duplicates(corpus).values())) > 100
    assert 300 < len(compared) <= 300 * (100 // PRICE_OF_PAIR + 1)
