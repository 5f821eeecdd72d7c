"""Why a relevant document is not among a query's first ten, told from the record alone.

One cause a document, the first that holds:

| cause | holds if |
| --- | --- |
| fusion | the cell joins lists, and one of them has the document among its first ten |
| copies | the list has it below rank 10, and fewer than ten different texts above it |
| unread | the encoder read less than half of the characters that the judge marked |
| below | the cell's list, or one that it joins, has it in ranks 11 to 100 |
| absent | no list has it among its first 100 |

Documents count as one text if they are one by digest, or of one family and of nearly one length: versions differ by a
few words, and parts of a whole by more. A sum keeps the lists that it joins. Those of other cells are looked up among
the plan's cells; one that is not there is not known, and the cell's own list stands alone.
"""

from collections.abc import Iterable, Mapping, Sequence

from runner.base.errors import InputError
from runner.base.records import ArmLists, Arms, HybridCell, Run, Span, merged, n_characters, n_shared, parse_cell
from runner.eval_set.shapes.corpus import CorpusRow
from runner.eval_set.shapes.lists import Cause

FIRST = 10
"""Hits that nDCG@10 counts."""

LONGER = 1.1
"""How many times as long the next longer version of a text is at most."""

Unread = Mapping[str, Sequence[Sequence[int]]]
"""By document, the characters that a cell's encoder read in no chunk."""


Ranks = Mapping[str, Mapping[str, int]]
"""A list by query: each of its documents with its place, from 0."""


def joined(cell: str, runs: Mapping[str, Run], arms: Mapping[str, ArmLists]) -> list[Ranks]:
    """Return the lists that a cell joins: of `arms` for a sum, else of those that `runs` has; none of a single list.

    A re-ranking cell takes BM25's documents in another order: what BM25 had among its first ten is lost by it.
    """
    if cell in arms:
        return [
            {query_id: _ranks(found, half) for query_id, found in arms[cell].items()} for half in ("words", "meaning")
        ]
    try:
        parsed = parse_cell(cell)
    except InputError:  # an imported list, or one of a Python program, which has a name alone
        return []
    if not isinstance(parsed, HybridCell) or parsed.method == "sum":
        return []
    names = [f"{parsed.variant} x whole_doc"]
    if parsed.method == "rrf":
        names.append(f"{parsed.encoder} x {parsed.chunker}")
    return [runs[name].ranks for name in names if name in runs]


def _ranks(found: Iterable[Arms], half: str) -> dict[str, int]:
    """Return one arm's documents, each with its place; of equal values the greater id comes first."""
    values = [(value, each.doc_id) for each in found if (value := getattr(each, half)) is not None]
    return {doc_id: place for place, (_, doc_id) in enumerate(sorted(values, reverse=True))}


def same_texts(corpus: Iterable[CorpusRow]) -> dict[str, str]:
    """Return of each document the first of those that count as one text with it."""
    first: dict[str, str] = {}
    by_digest: dict[str, str] = {}
    before: CorpusRow | None = None
    for row in sorted(corpus, key=lambda row: (row.family, row.n_chars, row.doc_id)):
        is_version = before is not None and row.family == before.family != "" and row.n_chars <= LONGER * before.n_chars
        named = first[before.doc_id] if is_version and before else row.doc_id
        first[row.doc_id] = by_digest.setdefault(row.sha256, named)
        before = row
    return first


def cause(
    doc_id: str,
    query_id: str,
    run: Run,
    arms: Sequence[Ranks],
    *,
    text_of: Mapping[str, str],
    marks: Iterable[Span],
    unread: Unread,
) -> Cause | None:
    """Return why the document is not among the query's first ten, None if it is.

    `arms` are the lists that the cell joins, `marks` what the judge marked, `text_of` what `same_texts` gives.
    """
    rank = run.ranks[query_id].get(doc_id)
    if rank is not None and rank < FIRST:
        return None
    arm_ranks = [arm[query_id][doc_id] for arm in arms if doc_id in arm[query_id]]
    if any(place < FIRST for place in arm_ranks):
        return "fusion"
    if rank is not None and len({text_of[hit.doc_id] for hit in run.hits[query_id][:rank]}) < FIRST:
        return "copies"
    marked = merged(marks)
    hidden = merged(Span(start, end) for start, end in unread.get(doc_id, ()))
    if 2 * n_shared(marked, hidden) > n_characters(marked):
        return "unread"
    return "absent" if rank is None and not arm_ranks else "below"
