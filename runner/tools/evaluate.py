"""Retrieval evaluated from Python: documents, queries and judgments in; tables, tests, a drawing and a page out.

The records and figures are those of `run beir`: an evaluation compares, and decides nothing.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from runner.base.canonical import slug, write_atomic
from runner.base.errors import InputError, NegativeVerdict
from runner.base.given_files import printable
from runner.base.records import ImportedCell
from runner.eval_set import catalog
from runner.eval_set.given import Retriever, Table, given_collection, given_queries, given_run
from runner.eval_set.plan import default_plan_text, plan_of, plan_problems
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import load_lists, load_receipt, load_results, newest_version

if TYPE_CHECKING:
    from pandas import DataFrame

    from runner.tools.compare import Compared

SOURCE = "beir"
"""The source of the catalog whose versions are compared and never decided."""

CELLS = ("bm25 x whole_doc",)

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


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found: results.json, lists.json and receipt.json."""

    results: Results
    lists: RankedLists
    receipt: Receipt
    _page: bytes = field(repr=False)

    def __repr__(self) -> str:
        """Return the verdict, the table of cells and what they do not show, as the terminal has them."""
        from runner.report.summary import run_summary

        return run_summary(self.results)

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
            return table(self.results, self.lists, "cells")[list(RANKING)]
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

    def html(self, path: str | Path) -> Path:
        """Write the results page, one file that needs no network, and return where it lies."""
        write_atomic(Path(path), self._page)
        return Path(path)

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
    qrels: Table,
    cells: str | Sequence[str] = CELLS,
    *,
    retrievers: Mapping[str, Retriever] | None = None,
    relevant_grade: int = 1,
    name: str = "these documents",
    folder: str | Path | None = None,
) -> Evaluation:
    """Score cells and your own retrievers on your documents and queries; the first cell is the baseline.

    Documents and queries are dicts by id, rows as dicts, or DataFrames (columns `id`, `text`, of documents also
    `title`). `qrels` are query -> document -> grade, a DataFrame of `query_id`, `doc_id`, `grade`, or a TREC file;
    queries without judgments are left out. `retrievers` are functions from a query's text to document ids, best first,
    or such lists by query id, or TREC run files; each becomes a cell `trec:NAME`. Recall and MRR count grades from
    `relevant_grade` on. With `folder` the record is kept there. Raises InputError for whatever is wrong with what was
    given.
    """
    from runner.evening.external import Given, GivenEvaluation

    if not name.strip():
        raise InputError("The name is empty: say in a few words what the documents are.")
    plan = _plan([cells] if isinstance(cells, str) else list(cells), relevant_grade)
    # Each input is held to its form before anything is searched.
    asked = given_queries(queries)
    collection = given_collection(documents, asked, qrels, name)
    ids = frozenset(document.doc_id for document in collection.documents)
    runs = [given_run(cell, given, collection.queries, asked, ids) for cell, given in (retrievers or {}).items()]
    if repeated := sorted({run.cell for run in runs if sum(run.cell == other.cell for other in runs) > 1}):
        raise InputError(f"Two retrievers have the name {repeated[0]}. Give each one of its own.")
    # The record is that of `run beir`, so that both give the same figures.
    with tempfile.TemporaryDirectory() if folder is None else nullcontext(str(folder)) as parent:
        version = newest_version(SOURCE, Path(parent))
        session = GivenEvaluation(version, given=Given(collection, plan, runs))
        with suppress(NegativeVerdict):  # the verdict says so itself
            session.run()
        results = load_results(version)
        return Evaluation(
            results=results,
            lists=load_lists(version),
            receipt=load_receipt(version.record / "receipt.json"),
            _page=(version.record / "results.html").read_bytes(),
        )


def _plan(cells: Sequence[str], relevant_grade: int) -> Plan:
    """Return the plan of a collection with these cells; an InputError names every one that cannot be run."""
    source = catalog.source(SOURCE)
    if not cells:
        raise InputError(f"No cells: name at least one, such as {CELLS[0]!r}. The first is the baseline.")
    if relevant_grade not in (1, 2, 3):
        raise InputError(f"relevant_grade is {relevant_grade!r}, not 1, 2 or 3.")
    default = plan_of(yaml.safe_load(default_plan_text(source, rehearsal=False)))
    plan = default.model_copy(update={"cells": list(cells), "baseline": cells[0], "relevant_grade": relevant_grade})
    if broken := plan_problems(plan, Path("plan.yaml"), source, 1, rehearsal=False):
        raise InputError("\n".join(broken))
    return plan
