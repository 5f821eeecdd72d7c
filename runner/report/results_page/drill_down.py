"""What a sceptic opens for one query: its documents, what judges said of them, and where every cell has them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from runner.base.canonical import JSON
from runner.base.figures import figure
from runner.decide.passages.query_words import Terms, marked, query_terms
from runner.report.anchors import anchor
from runner.report.results_page.heat_map import contenders

_LINK = re.compile(r"https?://[^\s⟨⟩]+", re.IGNORECASE)

UNRANKED = "-"
"""One byte, where a dash has three: most places of a rank column hold it."""


def drill_down(results: Mapping[str, JSON]) -> dict[str, JSON]:
    """Queries in their own order with their documents, from results as inert JSON; all figures are texts.

    `cells` are in the order of the ranking, `left` and `right` the two that are shown side by side at first. `hits`
    of a query are what the page's script reads: for every cell, apart by semicolons, the place of each document in
    the query's table and the two ends of its evidence, apart by spaces. `judge` gave most of the grades: rows name
    the others alone.
    """
    lists = results["lists"]
    names = [row["cell"] for row in results["cells"]]
    pair = contenders(results)
    left, right = pair or (0, min(1, len(names) - 1))
    judges = Counter(row["judge"] for query in lists["queries"] for row in query["documents"] if row["judge"])
    page = _Page(lists, names, max(judges, key=lambda name: (judges[name], name), default=""))
    by_id = {query["id"]: query for query in lists["queries"]}
    return {
        "cells": [_cell(number, row) for number, row in enumerate(results["cells"], start=1)],
        "left": left + 1,
        "right": right + 1,
        "depth": lists["depth"],
        "texts": lists["texts"],
        "marks": any(row["spans"] for query in lists["queries"] for row in query["documents"]),
        "judge": page.judge,
        "width": page.width,
        "queries": [page.query(query, by_id[query["id"]]) for query in results["queries"] if query["id"] in by_id],
    }


def _cell(number: int, row: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"number": number, "cell": row["cell"], "baseline": row["role"] == "baseline"}


class _Page:
    """What all queries share: documents, the names of cells in their order, the judge whom no row names."""

    def __init__(self, lists: Mapping[str, JSON], cells: Sequence[str], judge: str) -> None:
        self.documents = [_document(row) for row in lists["documents"]]
        self.cells = cells
        self.judge = judge
        self.texts = lists["texts"]
        self.width = max(len(str(lists["depth"])), len(str(len(cells)))) + 1

    def query(self, query: Mapping[str, JSON], lists: Mapping[str, JSON]) -> dict[str, JSON]:
        """One query with its table's rows."""
        hits = [lists["hits"].get(cell, []) for cell in self.cells]
        ranks = [{row: rank for rank, (row, _, _) in enumerate(found, start=1)} for found in hits]
        terms = query_terms(query["text"]) if self.texts else frozenset()
        return {
            **query,
            "anchor": anchor(query["id"]),
            "relevant": lists["relevant"],
            "hits": ";".join(" ".join(f"{row} {start} {end}" for row, start, end in found) for found in hits),
            "documents": [
                self.row(pair, [rank.get(place) for rank in ranks], terms)
                for place, pair in enumerate(lists["documents"])
            ],
        }

    def row(self, pair: Mapping[str, JSON], ranks: Sequence[int | None], terms: Terms) -> dict[str, JSON]:
        """One document of a query's table."""
        return {
            **self.documents[pair["document"]],
            "grade": pair["grade"],
            "judge": "" if pair["judge"] == self.judge else pair["judge"],
            "reason": pair["reason"],
            "readings": pair["readings"],
            "spans": ", ".join(_span(start, end) for start, end in pair["spans"]),
            "ranks": "".join((UNRANKED if rank is None else str(rank)).rjust(self.width) for rank in ranks),
            "passages": [
                {"where": _span(passage["start"], passage["end"]), "parts": marked(passage["text"], terms)}
                for passage in pair["passages"]
            ],
        }


def _document(row: Mapping[str, JSON]) -> dict[str, JSON]:
    """A document as rows name it; an address that is none of the web's is no link."""
    return {"doc_id": row["doc_id"], "title": row["title"], "url": row["url"] if _LINK.fullmatch(row["url"]) else ""}


def _span(start: int, end: int) -> str:
    return f"{figure(start)}–{figure(end)}"
