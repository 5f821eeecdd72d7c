"""Stratified samples in hash order: the same documents whatever order they came in."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from runner.base.canonical import sha256
from runner.base.records import Document
from samplers.source_format import Card

Sampled = TypeVar("Sampled", Document, Card)
"""A document or, of a corpus whose texts lie on the disk, its card."""

Families = Literal["versions", "parts"]
"""What the documents of a family are to one another: see `SourceFormat.families`."""


def stratified_sample(
    documents: Iterable[Sampled],
    size: int,
    seed: int,
    families: Families = "versions",
    clusters: Mapping[str, str] | None = None,
) -> list[Sampled]:
    """Return at most `size` documents, allotted over strata in proportion; sorted by doc_id.

    If families are versions of one text, one of each is drawn. Of a family the first in hash order stays, so neither
    stage, date nor input order decides and every stage keeps its chance of being sampled (preferring the latest would
    leave enrolled bills alone). Documents of one near-duplicate cluster (`clusters`, by doc_id) count as one family.
    If families are parts of one whole, whole families are drawn: see `_whole_families`.

    Seats go to strata by largest remainder with at least one each where `size` allows; within a stratum, and on equal
    remainders, hash order decides (SHA-256 of seed and id). A `size` above the number of families returns one of each.
    """
    if families == "parts":
        return _in_id_order(_whole_families(documents, size, seed))
    return _in_id_order(_seated(one_per_family(documents, seed, clusters), size, seed))


def reading_pack(documents: Iterable[Sampled], count: int, seed: int) -> list[Sampled]:
    """Return a stratified sample for authors of queries, in hash order: who stops early has read a mixed part of it.

    Drawn from a sample, in which families are settled; documents with a status are left out.
    """
    live = [document for document in documents if not document.status]
    return in_hash_order(_seated(in_hash_order(live, seed), count, seed), seed)


def in_hash_order(documents: Iterable[Sampled], seed: int) -> list[Sampled]:
    """Return the documents sorted by SHA-256 of seed and doc_id."""
    return sorted(documents, key=lambda document: _hash(seed, document.doc_id))


def one_per_family(documents: Iterable[Sampled], seed: int, clusters: Mapping[str, str] | None = None) -> list[Sampled]:
    """Return the first document of each family in hash order, in hash order; a cluster joins the families in it."""
    ordered = in_hash_order(documents, seed)
    joined = _joined(ordered, clusters or {})
    first: dict[str, Sampled] = {}
    for document in ordered:
        first.setdefault(joined.get(document.family, document.family), document)
    return list(first.values())


def cut_families(chosen: Iterable[Sampled], documents: Iterable[Sampled]) -> dict[str, tuple[int, int]]:
    """Return the families of which a sample holds a part only: how many documents, and of how many."""
    drawn = Counter(document.family for document in chosen)
    whole = Counter(document.family for document in documents)
    return {family: (n, whole[family]) for family, n in sorted(drawn.items()) if n < whole[family]}


def allotment(sizes: Mapping[str, int], seats: int, seed: int) -> dict[str, int]:
    """Return how many of `seats` each stratum gets: never more than its size, all of it if `seats` cover everything.

    Largest remainder (Hamilton): seats go one by one to the stratum whose proportional share is least filled.
    """
    total = sum(sizes.values())
    seats = min(seats, total)
    given = dict.fromkeys(sizes, 1 if seats >= len(sizes) else 0)
    order = sorted(sizes, key=lambda stratum: _hash(seed, stratum))
    while sum(given.values()) < seats:
        # Shares are compared as integers (seats * size - given * total), so that no rounding breaks a tie.
        unfilled = (stratum for stratum in order if given[stratum] < sizes[stratum])
        neediest = max(unfilled, key=lambda s: seats * sizes[s] - given[s] * total)
        given[neediest] += 1
    return given


def _seated(ordered: Sequence[Sampled], size: int, seed: int) -> list[Sampled]:
    """Return the first documents of each stratum, as many as it has seats."""
    strata: dict[str, list[Sampled]] = defaultdict(list)
    for document in ordered:
        strata[document.stratum].append(document)
    seats = allotment({stratum: len(members) for stratum, members in strata.items()}, size, seed)
    return [document for stratum, members in strata.items() for document in members[: seats[stratum]]]


def _joined(documents: Iterable[Sampled], clusters: Mapping[str, str]) -> dict[str, str]:
    """Return one family for each that a chain of clusters connects; families that stand alone are left out."""
    parent: dict[str, str] = {}

    def root(family: str) -> str:
        while family in parent:
            family = parent[family]
        return family

    first: dict[str, str] = {}
    for document in documents:
        if document.doc_id in clusters:
            known = root(first.setdefault(clusters[document.doc_id], document.family))
            mine = root(document.family)
            if mine != known:
                parent[mine] = known
    return {family: root(family) for family in parent}


def _whole_families(documents: Iterable[Sampled], size: int, seed: int) -> list[Sampled]:
    """Return families drawn whole, in hash order of their names, until the seats of their stratum are filled.

    A family's stratum is the one that most of its documents have. A family larger than what is left is passed over
    for a smaller one; the first of a stratum, if it is larger than all its seats, gives its first documents in id
    order instead, so that large families are not left to chance. Seats that stay empty go to whole families of any
    stratum.
    """
    families: dict[str, list[Sampled]] = defaultdict(list)
    for document in _in_id_order(documents):
        families[document.family].append(document)
    ordered = sorted(families, key=lambda family: _hash(seed, family))
    stratum: dict[str, str] = {}
    sizes: Counter[str] = Counter()
    for family, members in families.items():
        counts = Counter(document.stratum for document in members)
        stratum[family] = min(counts, key=lambda name: (-counts[name], name))
        sizes[stratum[family]] += len(members)
    left = allotment(sizes, size, seed)
    # First round: whole families into the seats of their own stratum.
    drawn: dict[str, list[Sampled]] = {}
    begun: set[str] = set()
    for family in ordered:
        members, seats = families[family], left[stratum[family]]
        if seats and (len(members) <= seats or stratum[family] not in begun):
            drawn[family] = members[:seats]
            left[stratum[family]] -= len(drawn[family])
        begun.add(stratum[family])
    # Second round: what no family of a stratum fitted goes to any family that fits.
    spare = sum(left.values())
    for family in ordered:
        if family not in drawn and len(families[family]) <= spare:
            drawn[family] = families[family]
            spare -= len(families[family])
    return [document for members in drawn.values() for document in members]


def _in_id_order(documents: Iterable[Sampled]) -> list[Sampled]:
    return sorted(documents, key=lambda document: document.doc_id)


def _hash(seed: int, name: str) -> str:
    return sha256(f"{seed}\n{name}")
