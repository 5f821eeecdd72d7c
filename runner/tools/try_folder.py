"""A folder of anybody's documents, tried: a ranked table and a page, with queries of a file or headings of its own.

`evaluate` does the work, and nothing is recorded. Where nobody says which documents are right, the cells are held
against each other.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from chunkers.registry import chunker
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.records import Document, Run
from runner.base.terminal import table, terminal_width
from runner.eval_set.given import given_collection, given_documents, given_queries, wanted_documents
from runner.eval_set.plan import DEFAULT_SEED
from runner.eval_set.version import newest_version
from runner.evening.external import Given, GivenEvaluation
from runner.queries.headings import asked_by_heading
from runner.report.lists_page import lists_page
from runner.report.sentences import found, tried
from runner.report.summary import WIDTH, ranking_table, wrapped
from runner.retrieve.words import unspaced
from runner.tools.evaluate import SOURCE, Evaluation, evaluate, plan_with
from samplers.corpus.sampling import in_hash_order

ENCODER = "minilm-l6-v2"
CHUNKERS = ("fixed_token_256_25", "by_heading_256_v1")
CELLS = tuple(f"{retriever} x {name}" for retriever in (ENCODER, "bm25", f"sum(bm25,{ENCODER})") for name in CHUNKERS)
"""The first is what the others are held against."""

MOST_TEXTS = 2500
"""Chunks that are embedded, those of both chunkers: under a minute on two idle cores (34 CPU seconds a thousand)."""

N_HEADINGS = 20

DEPTH = 10
"""Documents at the head of lists that nobody judged, in which cells are held against each other."""


class Scope(NamedTuple):
    """What was searched, of what was there, for how many queries.

    `headings` if these are the documents' own, `judged` if somebody says which documents are right, `unspaced` if most
    are in a script without spaces between words.
    """

    searched: int
    documents: int
    queries: int
    headings: bool
    judged: bool
    unspaced: bool


@dataclass(frozen=True)
class Lists:
    """What each cell finds for queries of which nobody says what is right."""

    runs: Mapping[str, Run]
    queries: Mapping[str, str]
    documents: Sequence[Document]

    def __repr__(self) -> str:
        """Return how far the cells agree with the first one, the nearest first."""
        first, *others = self.runs
        most = min(DEPTH, len(self.documents))
        shared = {cell: self._shared(first, cell) for cell in others}
        rows = [
            (cell, f"{same} of {len(self.queries)}", f"{both / len(self.queries):.1f} of {most}")
            for cell, (both, same) in sorted(shared.items(), key=lambda item: item[1], reverse=True)
        ]
        head = ("cell", "same first document", "documents in common")
        return "\n".join(table(head, [(first, "compared with it", ""), *rows], terminal_width(WIDTH)))

    def _shared(self, first: str, cell: str) -> tuple[int, int]:
        """Return how many of the first DEPTH two cells share, over all queries; and how often the first one."""
        both = same = 0
        for query in self.queries:
            one, other = ([hit.doc_id for hit in self.runs[each].hits[query][:DEPTH]] for each in (first, cell))
            both, same = both + len({*one} & {*other}), same + (one[:1] == other[:1])
        return both, same

    def page_with_passages(self) -> bytes:
        """Return a page of the lists side by side, with the chunk that ranked each document."""
        return lists_page(self.runs, self.queries, self.documents)


@dataclass(frozen=True)
class Tried:
    """What a trial found: scores, or lists that nobody judged."""

    name: str
    found: Evaluation | Lists
    scope: Scope

    def __str__(self) -> str:
        """Return the table, what it does not say, and what to do next."""
        width = terminal_width(WIDTH)
        if isinstance(self.found, Lists):
            lines = [repr(self.found)]
        else:
            results = self.found.results
            lines = [*wrapped(f"{self.name}: {found(results)}", width), ranking_table(results, width)]
        lines += [line for said in tried(self.scope, MOST_TEXTS) for line in wrapped(said, width)]
        return "\n".join(lines)


def try_folder(folder: Path, queries: Path | None = None) -> Tried:
    """Return what six cells find in a folder: for the queries of a file, or for N_HEADINGS headings of its own.

    InputError if there are too few documents to rank, or no heading to ask for.
    """
    documents = given_documents(folder)
    if len(documents) < 2:
        raise InputError(f"{folder} has 1 document, and nothing can be ranked. Give a folder with 20 or more.")
    if queries is None:
        asked, qrels, documents = _by_headings(documents, folder)
    else:
        given = given_queries(queries)
        asked, qrels = given.texts, wanted_documents(given, documents)
    searched = _cut(documents, frozenset(doc_id for grades in qrels.values() for doc_id in grades))
    scope = Scope(
        searched=len(searched),
        documents=len(documents),
        queries=len(asked),
        headings=queries is None,
        judged=bool(qrels),
        unspaced=unspaced(asked.values()),
    )
    name = printable(folder.resolve().name) or "documents"
    if qrels:
        # What was left out is known to the results, and so to the page.
        return Tried(name, evaluate(documents, asked, qrels, CELLS, name=name, sample_size=len(searched)), scope)
    collection = given_collection(searched, asked, None, name)
    with tempfile.TemporaryDirectory() as parent:
        version = newest_version(SOURCE, Path(parent))
        runs = GivenEvaluation(version, given=Given(collection, plan_with(CELLS), [])).found()
    return Tried(name, Lists(runs, asked, searched), scope)


def _by_headings(
    documents: Sequence[Document], folder: Path
) -> tuple[dict[str, str], dict[str, dict[str, int]], tuple[Document, ...]]:
    """Return headings as queries, whose documents they are, and all documents as they are without them."""
    pairs = asked_by_heading(documents, N_HEADINGS, DEFAULT_SEED)
    if len(pairs) < 2:
        raise InputError(
            f"{len(pairs)} of {len(documents)} documents in {folder} has a heading that only it has, with text below. "
            "Give --queries FILE: a query a line, or a CSV file with query,document."
        )
    own = {document.doc_id: document for _, document in pairs}
    asked = {f"q{number}": heading for number, (heading, _) in enumerate(pairs, start=1)}
    qrels = {query: {document.doc_id: 1} for query, (_, document) in zip(asked, pairs, strict=True)}
    return asked, qrels, tuple(own.get(document.doc_id, document) for document in documents)


def _cut(documents: Sequence[Document], wanted: frozenset[str]) -> list[Document]:
    """Return the documents whose chunks are within MOST_TEXTS, in id order: those wanted, then others in hash order."""
    ordered = sorted(in_hash_order(documents, DEFAULT_SEED), key=lambda document: document.doc_id not in wanted)
    kept: list[Document] = []
    n_texts = 0
    for document in ordered:
        n_texts += sum(len(chunker(name)(document)) for name in CHUNKERS)
        if n_texts > MOST_TEXTS and document.doc_id not in wanted:
            break
        kept.append(document)
    return sorted(kept, key=lambda document: document.doc_id)
