"""Retrieval evaluated from Python: documents, queries and judgments in; tables, tests, a drawing and a page out.

The records and figures are those of `run beir`: an evaluation compares, and decides nothing.
"""

import tempfile
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from runner.base.canonical import json_bytes, slug, write_atomic
from runner.base.errors import InputError, NegativeVerdict
from runner.base.given_files import printable
from runner.base.plug_ins import lent
from runner.base.progress import say
from runner.base.records import Document, ImportedCell, parse_cell
from runner.eval_set import catalog
from runner.eval_set.given import (
    Retriever,
    Table,
    given_collection,
    given_documents,
    given_queries,
    given_run,
    wanted_documents,
)
from runner.eval_set.plan import check_cell, default_plan_text, plan_of, plan_problems
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import load_lists, load_receipt, load_results, newest_version

if TYPE_CHECKING:
    from pandas import DataFrame

    from runner.tools.compare import Compared
    from runner.tools.lent import Cut, Encode
    from samplers.sources.beir import Collection

SOURCE = "beir"
"""The source of the catalog whose versions are compared and never decided."""

CELLS = ("bm25 x whole_doc",)
SHOWN = 10
"""Queries without a grade that a line names."""

RANKING = (
    "cell",
    *(f"ndcg@10_{part}" for part in ("mean", "low", "high")),
    "difference_ndcg@10_mean",
    *(f"simultaneous_{part}" for part in ("low", "high")),
    "p_adjusted",
    "recall@10_mean",
    "mrr_mean",
    "gate",
)
"""The columns of the table `cells` that a reader wants first."""

SOURCES = ("source_first_ten", "source_mrr")
"""Those that come with them where queries name the document that they were written from."""


@dataclass(frozen=True)
class Evaluation:
    """The results, lists and receipt of an evaluation."""

    results: Results
    lists: RankedLists
    receipt: Receipt
    unjudged: Mapping[str, str]
    """Queries without a grade, by id: none of the figures has them."""
    documents: tuple[Document, ...] = field(repr=False)

    def __repr__(self) -> str:
        """Return the verdict, the table of cells and what they do not show, as the terminal has them."""
        from runner.report.summary import run_summary

        return "\n".join([run_summary(self.results), *_left_out(self.unjudged)])

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two."""
        from runner.report.sentences import found

        return found(self.results)

    def table(self, name: str = "ranking") -> "DataFrame":
        """Return a row per cell with its main figures; or the whole table `cells`, `queries` or `hits`.

        Columns are those of `export`. An InputError names the extra to install if pandas is missing.
        """
        from runner.report.export import TABLES, table

        if name not in ("ranking", *TABLES):
            raise InputError(f"There is no table {printable(name)!r}. There are ranking, {', '.join(TABLES)}.")
        if name == "ranking":
            sources = SOURCES if self.results.sources else ()
            return table(self.results, self.lists, "cells")[[*RANKING, *sources]]
        return table(self.results, self.lists, name)

    def compare(self, cell: str, other: str, measure: str = "ndcg@10") -> "Compared":
        """Return one cell less another, paired by query; a retriever may be named as it was given.

        The p is that of these two alone, not adjusted for their having been picked from several.
        """
        from runner.tools.compare import compare, scores_of_cell

        own, against = (scores_of_cell(self.results, self._cell(each), "results", measure) for each in (cell, other))
        return compare(own, against)

    def plot(self) -> "Drawing":
        """Return every cell's difference to the first one, with its interval; a notebook draws it."""
        from runner.report.results_page import forest_svg

        return Drawing(forest_svg(self.results))

    def html(self, path: str | Path, *, passages: bool = False) -> Path:
        """Write the results page, one file that needs no network, and return where it lies.

        With `passages` it shows titles and what was found of the documents, for the reader's own machine.
        """
        write_atomic(Path(path), self.page_with_passages() if passages else self._page(self.lists))
        return Path(path)

    def page_with_passages(self) -> bytes:
        """Return the results page with titles, and with what was found of the documents."""
        from runner.decide.passages import with_passages
        from runner.decide.tiers import beside_baseline
        from runner.eval_set.asked import asked

        known = {document.doc_id: document for document in self.documents}
        queries = {one.id: one.text for one in asked(self.results.queries)}
        lists = with_passages(self.lists, known, queries, beside_baseline(self.results.cells, self.results.plan))
        return self._page(lists, local_copy=True)

    def _page(self, lists: RankedLists, *, local_copy: bool = False) -> bytes:
        from runner.report.results_page import page

        written, listed = (json_bytes(each.model_dump()) for each in (self.results, lists))
        return page(written, listed, self.receipt, local_copy=local_copy)

    def _cell(self, name: str) -> str:
        imported = str(ImportedCell(slug(name)))
        return imported if imported in {row.cell for row in self.results.cells} else name


@dataclass(frozen=True)
class Drawing:
    """An SVG that a notebook shows."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


def evaluate(
    documents: Table,
    queries: Table,
    qrels: Table | None = None,
    cells: str | Sequence[str] = CELLS,
    *,
    baseline: str = "",
    chunkers: "Mapping[str, Cut] | None" = None,
    encoders: "Mapping[str, Encode | tuple[Encode, Encode]] | None" = None,
    retrievers: Mapping[str, Retriever] | None = None,
    relevant_grade: int = 1,
    name: str = "these documents",
    folder: str | Path | None = None,
    sample_size: int | None = None,
) -> Evaluation:
    """Score cells and your own retrievers on your documents and queries, beside the `baseline`, by default the first.

    Documents and queries are dicts by id, rows as dicts, or DataFrames (columns `id`, `text`, of documents also
    `title`); or paths: of a folder of Markdown, text, HTML, PDF or JSON, and of a file with a query a line, or with the
    columns `query` and `document`. `qrels` are query -> document -> grade, a DataFrame of `query_id`, `doc_id`,
    `grade`, or a TREC file; without them a query's `document` is the one that it wants, with them the one that it was
    written from (`source_` columns of the table). Queries without either are not scored, and named.

    `chunkers` and `encoders` are functions by the names that cells have for them: from a text to pieces of it or spans
    (from a Document, if the parameter is called `document`), and from a list of texts to an array, or a pair of those
    for queries and documents. `retrievers` are functions from a query's text to document ids, best first, or such
    lists by query id, or TREC run files; each becomes a cell `trec:NAME`. Recall and MRR count grades from
    `relevant_grade` on. With `folder` the record is kept there. With `sample_size` so many documents
    are searched, those with a grade among them: it is faster, and scores are too high. Raises InputError for whatever
    is wrong with what was given.
    """
    from runner.evening.external import Given, GivenEvaluation

    if not name.strip():
        raise InputError("The name is empty: say in a few words what the documents are.")
    if isinstance(cells, Set):
        raise InputError("cells is a set, and no cell of it comes first to be the baseline. Give a list.")
    listed = [cells] if isinstance(cells, str) else list(cells)
    # Each input is held to its form before anything is searched.
    asked, texts = given_queries(queries), given_documents(documents)
    wanted = wanted_documents(asked, texts)
    if qrels is None and not wanted:
        raise InputError("No query has a grade. Give qrels, or queries with the document that each wants.")
    # Beside judgments the one document that a query was written from is a second measure, which no judge bends.
    sources = {} if qrels is None else {query_id: next(iter(one)) for query_id, one in wanted.items() if len(one) == 1}
    collection = given_collection(texts, asked.texts, wanted if qrels is None else qrels, name, sources)
    ids = frozenset(document.doc_id for document in texts)
    runs = [given_run(cell, given, collection.queries, asked.texts, ids) for cell, given in (retrievers or {}).items()]
    if repeated := sorted({run.cell for run in runs if sum(run.cell == other.cell for other in runs) > 1}):
        raise InputError(f"Two retrievers have the name {repeated[0]}. Give each one of its own.")
    unjudged = {query_id: text for query_id, text in asked.texts.items() if query_id not in collection.queries}
    for line in _left_out(unjudged):
        say(line)
    # The record is that of `run beir`, so that both give the same figures.
    with ExitStack() as stack:
        _lend(stack, listed, chunkers or {}, encoders or {}, collection)
        plan = plan_with(listed, relevant_grade, sample_size)
        if baseline:
            known = {cell: cell for cell in listed} | {name: str(ImportedCell(slug(name))) for name in retrievers or {}}
            if baseline not in {**known, **dict.fromkeys(known.values())}:
                raise InputError(f"baseline: {printable(baseline)!r} is neither a cell nor a retriever that was given.")
            plan = plan.model_copy(update={"baseline": known.get(baseline, baseline)})
        parent = stack.enter_context(tempfile.TemporaryDirectory()) if folder is None else str(folder)
        version = newest_version(SOURCE, Path(parent))
        # A folder that is thrown away needs no page.
        session = GivenEvaluation(version, given=Given(collection, plan, runs), writes_page=folder is not None)
        with suppress(NegativeVerdict):  # the verdict says so itself
            session.run()
        return Evaluation(
            results=load_results(version),
            lists=load_lists(version),
            receipt=load_receipt(version.record / "receipt.json"),
            unjudged=unjudged,
            documents=texts,
        )


def _left_out(unjudged: Mapping[str, str]) -> list[str]:
    """Return the line that names the queries without a grade, none if all have one."""
    if not unjudged:
        return []
    named = ", ".join(printable(query_id, 40) for query_id in list(unjudged)[:SHOWN])
    more = f" and {len(unjudged) - SHOWN} more" if len(unjudged) > SHOWN else ""
    return [f"not scored, as nothing says which document is right: {named}{more}"]


def _lend(
    stack: ExitStack,
    cells: Sequence[str],
    chunkers: "Mapping[str, Cut]",
    encoders: "Mapping[str, Encode | tuple[Encode, Encode]]",
    collection: "Collection",
) -> None:
    """Lend the functions that cells name; InputError for one that no cell does, and for a cell that cannot be run."""
    from runner.embed.chunk_corpus import chunk_corpus
    from runner.tools.lent import lent_chunker, lent_encoder

    named = [parse_cell(cell) for cell in cells]
    for part, given in (("chunker", chunkers), ("encoder", encoders)):
        if idle := [name for name in given if name not in {getattr(cell, part, None) for cell in named}]:
            raise InputError(f"No cell names the {part} {printable(str(idle[0]), 40)}: ENCODER x CHUNKER is a cell.")
    documents = {document.doc_id: document for document in collection.documents}
    stack.enter_context(lent([lent_chunker(name, cut, documents.values()) for name, cut in chunkers.items()]))
    # Functions that embed may take long: what else is wrong is said before.
    for cell in named:
        if getattr(cell, "encoder", None) not in encoders:
            check_cell(cell)
    asked = list(collection.queries.values())
    parts = []
    for name, encode in encoders.items():
        own = {cell.chunker for cell in named if getattr(cell, "encoder", None) == name}
        chunks = [chunk for chunker in sorted(own) for chunk in chunk_corpus([*documents.values()], chunker)]
        readings = [chunk.reading(documents[chunk.doc_id]) for chunk in chunks]
        parts.append(lent_encoder(name, encode, {"query": asked, "document": readings}))
    stack.enter_context(lent(parts))


def plan_with(cells: Sequence[str], relevant_grade: int = 1, sample_size: int | None = None) -> Plan:
    """Return the plan of a collection with these cells; an InputError names every one that cannot be run."""
    source = catalog.source(SOURCE)
    if not cells:
        raise InputError(f"No cells: name at least one, such as {CELLS[0]!r}.")
    if relevant_grade not in (1, 2, 3):
        raise InputError(f"relevant_grade is {relevant_grade!r}, not 1, 2 or 3.")
    if sample_size is not None and sample_size < 1:
        raise InputError(f"sample_size is {sample_size!r}. Give a number of documents, or leave it out to search all.")
    default = plan_of(yaml.safe_load(default_plan_text(source, rehearsal=False)))
    sample = default.sample if sample_size is None else default.sample.model_copy(update={"size": sample_size})
    plan = default.model_copy(
        update={"cells": list(cells), "baseline": cells[0], "relevant_grade": relevant_grade, "sample": sample}
    )
    if broken := plan_problems(plan, Path("plan.yaml"), source, 1, rehearsal=False):
        raise InputError("\n".join(broken))
    return plan
