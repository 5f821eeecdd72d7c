from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import Document
from samplers.corpus.sampling import (
    allotment,
    cut_families,
    in_hash_order,
    one_per_family,
    reading_pack,
    stratified_sample,
)


def document(family: int, version: str, stratum: str) -> Document:
    return Document(f"{family}{version}", "text", "title", stratum, str(family), "")


@st.composite
def corpora(draw: st.DrawFn) -> list[Document]:
    families = draw(st.lists(st.sampled_from("abcd"), max_size=30))
    return [
        document(family, version, f"{stratum}/{version}")
        for family, stratum in enumerate(families)
        for version in draw(st.lists(st.sampled_from(["ih", "rh", "enr"]), min_size=1, unique=True))
    ]


SIZES = st.integers(0, 40)
SEEDS = st.integers(0, 5)


@given(corpora(), SIZES, SEEDS, st.randoms(use_true_random=False))
def test_input_order_does_not_matter(corpus: list[Document], size: int, seed: int, rng: object) -> None:
    shuffled = list(corpus)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert stratified_sample(corpus, size, seed) == stratified_sample(shuffled, size, seed)
    assert reading_pack(corpus, size, seed) == reading_pack(shuffled, size, seed)


@given(corpora(), SIZES, SEEDS)
def test_a_sample_has_the_size_asked_for_and_no_family_twice(corpus: list[Document], size: int, seed: int) -> None:
    sample = stratified_sample(corpus, size, seed)
    families = {item.family for item in corpus}
    assert len(sample) == min(size, len(families))
    assert len({item.family for item in sample}) == len(sample)
    assert sample == sorted(sample, key=lambda item: item.doc_id)
    assert all(item in corpus for item in sample)


@given(corpora(), SIZES, SEEDS)
def test_every_stratum_gets_its_share_to_within_one_seat(corpus: list[Document], size: int, seed: int) -> None:
    sizes = Counter(item.stratum for item in one_per_family(corpus, seed))
    given_seats = Counter(item.stratum for item in stratified_sample(corpus, size, seed))
    size = min(size, sizes.total())
    for stratum, members in sizes.items():
        share = Fraction(size * members, sizes.total())
        assert given_seats[stratum] <= max(1, -(-share // 1))
        if size >= len(sizes):
            assert given_seats[stratum] >= 1


@pytest.mark.parametrize(
    ("sizes", "seats", "expected"),
    [
        ({"a": 60, "b": 30, "c": 10}, 10, {"a": 6, "b": 3, "c": 1}),
        ({"a": 98, "b": 1, "c": 1}, 10, {"a": 8, "b": 1, "c": 1}),
        ({"a": 50, "b": 30, "c": 20}, 1, {"a": 1, "b": 0, "c": 0}),
        ({"a": 26, "b": 4}, 3, {"a": 2, "b": 1}),
        ({"a": 2, "b": 1}, 99, {"a": 2, "b": 1}),
        ({"a": 2, "b": 1}, 0, {"a": 0, "b": 0}),
        ({}, 5, {}),
    ],
)
def test_seats_are_allotted_by_largest_remainder(sizes: dict[str, int], seats: int, expected: dict[str, int]) -> None:
    assert allotment(sizes, seats, seed=1) == expected


def test_the_version_that_stays_is_neither_always_the_first_nor_the_last() -> None:
    corpus = [document(n, version, "s") for n in range(300) for version in ("ih", "rh", "enr")]
    kept = Counter(item.doc_id.lstrip("0123456789") for item in one_per_family(corpus, seed=7))
    assert all(70 < kept[version] < 130 for version in ("ih", "rh", "enr"))


def test_a_reading_pack_mixes_strata_from_its_beginning() -> None:
    corpus = [document(n, "ih", "abcde"[n % 5]) for n in range(500)]
    pack = reading_pack(corpus, 25, seed=3)
    assert pack == in_hash_order(pack, seed=3)
    assert Counter(item.stratum for item in pack) == dict.fromkeys("abcde", 5)
    assert len({item.stratum for item in pack[:10]}) >= 4


FROZEN = ["10ih", "12ih", "13rh", "17rh", "19rh", "5rh", "6ih", "7ih", "8ih", "9rh"]
"""Drawn by the first version of the sampler: manifests that were written then must be drawn again."""


def test_the_draw_of_frozen_manifests_does_not_change() -> None:
    corpus = [document(n, version, "abc"[n % 3]) for n in range(20) for version in ("ih", "rh")]
    assert [item.doc_id for item in stratified_sample(corpus, 10, seed=2026)] == FROZEN


def test_documents_of_a_cluster_count_as_one_family() -> None:
    corpus = [document(n, version, "s") for n in range(6) for version in ("ih", "rh")]
    clusters = {item.doc_id: item.doc_id for item in corpus} | {"1rh": "0ih", "2ih": "0ih", "2rh": "2rh", "3ih": "2rh"}
    sample = stratified_sample(corpus, 100, seed=1, clusters=clusters)
    joined = [item for item in sample if item.family in {"0", "1", "2", "3"}]
    assert len(joined) == 1
    assert {item.family for item in sample} >= {"4", "5"}


def part(family: str, n: int, stratum: str, status: str = "") -> Document:
    return Document(f"{family}-s{n:03}", "text", "title", stratum, family, "", status=status)


@st.composite
def wholes(draw: st.DrawFn) -> list[Document]:
    sizes = draw(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("ab")), max_size=12))
    return [part(f"law{n:02}", i, stratum) for n, (size, stratum) in enumerate(sizes) for i in range(size)]


@given(wholes(), st.integers(0, 60), SEEDS, st.randoms(use_true_random=False))
def test_families_of_parts_are_drawn_whole_but_for_one_a_stratum(
    corpus: list[Document], size: int, seed: int, rng: object
) -> None:
    sample = stratified_sample(corpus, size, seed, families="parts")
    assert len(sample) <= size
    assert sample == sorted(sample, key=lambda item: item.doc_id)
    cut = cut_families(sample, corpus)
    assert len({item.stratum for item in corpus if item.family in cut}) == len(cut)
    for family, (n, _) in cut.items():
        of_family = sorted(item.doc_id for item in corpus if item.family == family)
        assert [item.doc_id for item in sample if item.family == family] == of_family[:n]
    shuffled = list(corpus)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert stratified_sample(shuffled, size, seed, families="parts") == sample


@given(wholes(), SEEDS)
def test_seats_for_all_parts_draw_all_of_them(corpus: list[Document], seed: int) -> None:
    sample = stratified_sample(corpus, len(corpus), seed, families="parts")
    assert {item.doc_id for item in sample} == {item.doc_id for item in corpus}


def test_a_family_too_large_for_what_is_left_is_passed_over_for_a_smaller_one() -> None:
    corpus = [part(f"law{n}", i, "s") for n, size in enumerate((40, 3, 3, 3, 3, 3, 3)) for i in range(size)]
    draws = [stratified_sample(corpus, 12, seed, families="parts") for seed in range(30)]
    first_is_large = [sample for sample in draws if cut_families(sample, corpus)]
    others = [sample for sample in draws if not cut_families(sample, corpus)]
    assert first_is_large
    assert others
    assert all(cut_families(sample, corpus) == {"law0": (12, 40)} for sample in first_is_large)
    assert all(len(sample) == 12 and len({item.family for item in sample}) == 4 for sample in others)


def test_a_reading_pack_leaves_out_what_no_query_should_be_written_from() -> None:
    corpus = [part(f"law{n % 3}", n, "s", status="repealed" if n % 2 else "") for n in range(40)]
    pack = reading_pack(corpus, 25, seed=1)
    assert len(pack) == 20
    assert {item.status for item in pack} == {""}
