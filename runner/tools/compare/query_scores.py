"""Per-query scores of one system, from a run file of ruflo's form or from a cell of our results.json."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, parsed, printable, quoted
from runner.base.records import SCORE_UNIT
from runner.base.schema import checked
from runner.eval_set.lock import verified
from runner.eval_set.shapes.results import Results

MAX_QUERIES = 100_000
MAX_NAME = 1_000

NDCG = "ndcg@10"
"""The measure of run files and of published means; a row of a run file names it without "@"."""


@dataclass(frozen=True)
class QueryScores:
    """A system's scores in one measure, in [0, 1], in the order of its file; at least one.

    `baselines` are published means of the same measure by name. `dataset` and `texts` (query id to text) tell whether
    two systems answered the same queries; they are empty if the file does not say. `provisional` results have
    unjudged pairs.
    """

    name: str
    measure: str
    values: Mapping[str, float]
    baselines: Mapping[str, float] = field(default_factory=dict)
    dataset: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    provisional: bool = False


def read_scores(path: Path, cell: str | None = None) -> QueryScores:
    """Return the nDCG@10 that a file holds.

    A file with `perQuery` is ruflo's and holds one system; one with `cells` is ours, and `cell` names which.
    InputError, naming file and query, for anything else: a query twice, a value that is no number from 0 to 1.
    """
    where = display(path)
    document = _read_object(path, where)
    if "perQuery" in document:
        if cell is not None:
            raise InputError(f"{where} holds one system, so it has no cell {cell!r}. Leave the cell out.")
        return _from_run(document, where)
    if "cells" in document:
        verified(path)
        return scores_of_cell(checked(Results, document, where), cell, where)
    raise InputError(f"{where} has neither `perQuery` nor `cells`. Give a run with per-query scores or a results.json.")


def read_baselines(path: Path) -> dict[str, float]:
    """Return published means by name, from a JSON object {name: score}; InputError names the one that is wrong."""
    return named_means(_read_object(path, display(path)), display(path))


def named_means(value: Any, where: str) -> dict[str, float]:  # noqa: ANN401 - whatever JSON holds
    """Return `value` as means by name; InputError if it is no object or a mean is no number from 0 to 1."""
    if not isinstance(value, dict):
        raise InputError(f'{where}: baselines are an object such as {{"BM25": 0.325}}.')
    return {
        _text(name, f"{where}: baseline"): _share(mean, f"{where}: baseline {name!r}") for name, mean in value.items()
    }


def query_values(pairs: Iterable[tuple[Any, Any]], where: str) -> dict[str, float]:
    """Return scores by query id; InputError names the query that comes twice or has no score from 0 to 1."""
    values: dict[str, float] = {}
    for place, (given, value) in enumerate(pairs, start=1):
        query = _text(str(given) if type(given) is int else given, f"{where}: id of query {place}")
        if query in values:
            raise InputError(f"{where}: query {query!r} occurs twice. Keep one of them.")
        values[query] = _share(value, f"{where}: query {query!r}")
    if not 0 < len(values) <= MAX_QUERIES:
        raise InputError(f"{where}: {len(values):,} queries; from 1 to {MAX_QUERIES:,} can be compared.")
    return values


def need_same_queries(run: QueryScores, other: QueryScores) -> None:
    """Raise InputError unless two runs answered the same queries: of one dataset, with the same texts."""
    if run.dataset and other.dataset and run.dataset != other.dataset:
        raise InputError(f"{run.name} is over {quoted(run.dataset)}, {other.name} over {quoted(other.dataset)}.")
    for here, there in ((run, other), (other, run)):
        if alone := [query for query in here.values if query not in there.values]:
            raise InputError(
                f"{len(alone)} of {len(here.values)} queries of {here.name} are not in {there.name}, the first "
                f"{alone[0]!r}. Score both over the same queries."
            )
    told = [query for query in run.texts if query in other.texts]
    if changed := [query for query in told if run.texts[query] != other.texts[query]]:
        raise InputError(f"Query {changed[0]!r} is another text in {run.name} than in {other.name}.")


def _from_run(document: Mapping[str, Any], where: str) -> QueryScores:
    rows = document["perQuery"]
    name = NDCG.replace("@", "")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and {"qid", name} <= row.keys() for row in rows):
        raise InputError(f"{where}: perQuery is a list of objects, each with `qid` and `{name}`.")
    dataset = document.get("dataset", "")
    return QueryScores(
        where,
        NDCG,
        query_values(((row["qid"], row[name]) for row in rows), where),
        named_means(document.get("baselines", {}), where),
        dataset=dataset if isinstance(dataset, str) else "",
    )


def scores_of_cell(results: Results, cell: str | None, where: str, measure: str = NDCG) -> QueryScores:
    """Return a cell's scores in one measure; InputError if there is no such cell or measure."""
    rows = {row.cell: row.scores for row in results.cells}
    if cell is None or cell not in rows:
        raise InputError(f"{where}: say which of its cells: {printable('; '.join(rows), longest=2000)}.")
    if measure not in rows[cell]:
        raise InputError(f"{where}: {cell} has no {measure!r}. It has {', '.join(rows[cell])}.")
    units = rows[cell][measure].per_query
    if len(units) != len(results.queries):
        raise InputError(f"{where}: {cell} has {len(units)} scores for {len(results.queries)} queries.")
    return QueryScores(
        f"{where}: {printable(cell)}",
        measure,
        query_values(
            ((query.id, unit / SCORE_UNIT) for query, unit in zip(results.queries, units, strict=True)), where
        ),
        texts={query.id: query.text for query in results.queries},
        provisional=results.provisional,
    )


def _text(value: Any, where: str) -> str:  # noqa: ANN401 - whatever JSON holds
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        raise InputError(f"{where}: {quoted(value)} is not a name: up to {MAX_NAME} printable characters are expected.")
    return value


def _share(value: Any, where: str) -> float:  # noqa: ANN401 - whatever JSON holds
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise InputError(f"{where}: {quoted(value)} is not a number from 0 to 1.")
    return float(value)


def _read_object(path: Path, where: str) -> dict[str, Any]:
    text = "\n".join(decoded(line, f"{where}:{number}") for number, line in numbered_lines(path))
    document = parsed(text, where, "Correct it, or give another file.")
    if not isinstance(document, dict):
        raise InputError(f"{where}: a JSON object is expected, with `perQuery`, `cells`, or baselines by name.")
    return document
