"""Stratified samples in hash order: the same documents whatever order they came in."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from runner.canonical import sha256
from runner.records import Document


def stratified_sample(documents: Iterable[Document], size: int, seed: int) -> list[Document]:
    """At most `size` documents, one of each family, allotted over strata in proportion; sorted by doc_id.

    Of a family's versions the first in hash order stays, so neither stage, date nor input order decides and every
    stage keeps its chance of being sampled (preferring the latest would leave enrolled bills alone). Seats go to
    strata by largest remainder with at least one each where `size` allows; within a stratum, and on equal remainders,
    hash order decides (SHA-256 of seed and id). A `size` above the number of families returns one of each.
    """
    families = one_per_family(documents, seed)
    strata: dict[str, list[Document]] = defaultdict(list)
    for document in families:
        strata[document.stratum].append(document)
    seats = allotment({stratum: len(members) for stratum, members in strata.items()}, size, seed)
    chosen = [document for stratum, members in strata.items() for document in members[: seats[stratum]]]
    return sorted(chosen, key=lambda document: document.doc_id)


def reading_pack(documents: Iterable[Document], count: int, seed: int) -> list[Document]:
    """A stratified sample for authors of queries, in hash order: who stops early has read a mixed part of it."""
    return in_hash_order(stratified_sample(documents, count, seed), seed)


def in_hash_order(documents: Iterable[Document], seed: int) -> list[Document]:
    """The documents sorted by SHA-256 of seed and doc_id."""
    return sorted(documents, key=lambda document: _hash(seed, document.doc_id))


def one_per_family(documents: Iterable[Document], seed: int) -> list[Document]:
    """The first document of each family in hash order, in hash order."""
    first: dict[str, Document] = {}
    for document in in_hash_order(documents, seed):
        first.setdefault(document.family, document)
    return list(first.values())


def allotment(sizes: Mapping[str, int], seats: int, seed: int) -> dict[str, int]:
    """How many of `seats` each stratum gets: never more than its size, all of it where `seats` cover everything.

    Largest remainder (Hamilton): seats go one by one to the stratum whose proportional share is least filled.
    """
    total = sum(sizes.values())
    seats = min(seats, total)
    given = dict.fromkeys(sizes, 1 if seats >= len(sizes) else 0)
    order = sorted(sizes, key=lambda stratum: _hash(seed, stratum))
    while sum(given.values()) < seats:
        # Shares are compared as integers (seats * size - given * total), so that no rounding breaks a tie.
        neediest = max(_unfilled(order, sizes, given), key=lambda s: seats * sizes[s] - given[s] * total)
        given[neediest] += 1
    return given


def _unfilled(order: Sequence[str], sizes: Mapping[str, int], given: Mapping[str, int]) -> list[str]:
    return [stratum for stratum in order if given[stratum] < sizes[stratum]]


def _hash(seed: int, name: str) -> str:
    return sha256(f"{seed}\n{name}")
