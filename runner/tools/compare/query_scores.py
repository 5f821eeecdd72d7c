"""Per-query scores of one system, from a run file of ruflo's form or from a cell of our results.json."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict

from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, parsed, printable, quoted
from runner.base.records import SCORE_UNIT
from runner.base.schema import FrozenModel, checked
from runner.eval_set.lock import verified

MAX_QUERIES = 100_000
MAX_NAME = 1_000

BASELINE_MEASURE = "ndcg10"
"""What the baselines of a run file were measured in; for other measures they are left aside."""

_Value = TypeVar("_Value")


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


def read_scores(path: Path, measure: str, cell: str | None = None) -> QueryScores:
    """The scores that a file holds in one measure, whose "@" may be left out: ndcg@10 or ndcg10.

    A file with `perQuery` is ruflo's and holds one system; one with `cells` is ours, and `cell` names which.
    InputError, naming file and query, for anything else: a query twice, a value that is no number from 0 to 1.
    """
    where = display(path)
    document = _read_object(path, where)
    if "perQuery" in document:
        if cell is not None:
            raise InputError(f"{where} holds one system, so it has no cell {cell!r}. Leave the cell out.")
        return _from_run(document, measure, where)
    if "cells" in document:
        verified(path)
        return scores_of_cell(document, measure, cell, where)
    raise InputError(f"{where} has neither `perQuery` nor `cells`. Give a run with per-query scores or a results.json.")


def read_baselines(path: Path) -> dict[str, float]:
    """Published means by name, from a JSON object {name: score}; InputError names the one that is wrong."""
    return named_means(_read_object(path, display(path)), display(path))


def named_means(value: Any, where: str) -> dict[str, float]:  # noqa: ANN401 - whatever JSON holds
    """`value` as means by name in its order; InputError if it is no object or a mean is no number from 0 to 1."""
    if not isinstance(value, dict):
        raise InputError(f'{where}: baselines are an object such as {{"BM25": 0.325}}.')
    return {
        _text(name, f"{where}: baseline"): _share(mean, f"{where}: baseline {name!r}") for name, mean in value.items()
    }


def query_values(pairs: Iterable[tuple[Any, Any]], where: str) -> dict[str, float]:
    """Scores by query id in their order; InputError names the query that comes twice or has no score from 0 to 1."""
    values: dict[str, float] = {}
    for place, (given, value) in enumerate(pairs, start=1):
        query = _text(str(given) if type(given) is int else given, f"{where}: id of query {place}")
        if query in values:
            raise InputError(f"{where}: query {query!r} occurs twice. Keep one of them.")
        values[query] = _share(value, f"{where}: query {query!r}")
    if not 0 < len(values) <= MAX_QUERIES:
        raise InputError(f"{where}: {len(values):,} queries; from 1 to {MAX_QUERIES:,} can be compared.")
    return values


def shared_queries(run: QueryScores, other: QueryScores, *, allow_unmatched: bool) -> tuple[str, ...]:
    """The queries that two runs both answered, in the first one's order.

    InputError if there is none, if datasets or the text under one id differ, and, unless `allow_unmatched`, if only one
    run has a query.
    """
    shared = tuple(query for query in run.values if query in other.values)
    if not shared:
        raise InputError(f"{run.name} and {other.name} have no query in common.")
    if run.dataset and other.dataset and run.dataset != other.dataset:
        raise InputError(f"{run.name} is over {quoted(run.dataset)}, {other.name} over {quoted(other.dataset)}.")
    told = [query for query in shared if query in run.texts and query in other.texts]
    if changed := [query for query in told if run.texts[query] != other.texts[query]]:
        raise InputError(f"Query {changed[0]!r} is another text in {run.name} than in {other.name}.")
    for here, there in ((run, other), (other, run)):
        alone = [query for query in here.values if query not in there.values]
        if alone and not allow_unmatched:
            raise InputError(
                f"{len(alone)} of {len(here.values)} queries of {here.name} are not in {there.name}, the first "
                f"{alone[0]!r}. Score both over the same queries, or allow unmatched ones (--allow-unmatched)."
            )
    return shared


def _from_run(document: Mapping[str, Any], measure: str, where: str) -> QueryScores:
    rows = document["perQuery"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "qid" in row for row in rows):
        raise InputError(f"{where}: perQuery is a list of objects, each with `qid` and its scores.")
    pairs = [(row["qid"], _of_measure(row, measure, f"{where}: query {quoted(row['qid'])}")) for row in rows]
    dataset = document.get("dataset", "")
    named = named_means(document.get("baselines", {}), where)
    return QueryScores(
        where,
        measure,
        query_values(pairs, where),
        named if _plain(measure) == BASELINE_MEASURE else {},
        dataset=dataset if isinstance(dataset, str) else "",
    )


class Loose(FrozenModel):
    """A part of results.json, whatever else stands there."""

    model_config = ConfigDict(extra="ignore")


class _Query(Loose):
    id: str
    text: str


class _Measure(Loose):
    per_query: list[Any]


class _Cell(Loose):
    cell: str
    scores: dict[str, _Measure]


class _Results(Loose):
    queries: list[_Query]
    cells: list[_Cell]
    provisional: bool


def scores_of_cell(document: Mapping[str, Any], measure: str, cell: str | None, where: str) -> QueryScores:
    """A cell's scores in one measure, from what results.json holds; InputError if there is no such cell or measure."""
    results = checked(_Results, document, where)
    rows = {row.cell: row.scores for row in results.cells}
    if cell is None or cell not in rows:
        raise InputError(f"{where}: say which of its cells: {printable('; '.join(rows), longest=2000)}.")
    name = printable(cell)
    units = _of_measure(rows[cell], measure, f"{where}: {name}").per_query
    if len(units) != len(results.queries):
        raise InputError(f"{where}: {name} has {len(units)} scores for {len(results.queries)} queries.")
    pairs = [(query.id, _from_units(unit, query.id, where)) for query, unit in zip(results.queries, units, strict=True)]
    return QueryScores(
        f"{where}: {name}",
        measure,
        query_values(pairs, where),
        texts={query.id: query.text for query in results.queries},
        provisional=results.provisional,
    )


def _from_units(value: object, query: str, where: str) -> float:
    if type(value) is not int or not 0 <= value <= SCORE_UNIT:
        raise InputError(f"{where}: query {query!r}: {quoted(value)} is no whole number of 1e-9 from 0 to 1.")
    return value / SCORE_UNIT


def _of_measure(row: Mapping[str, _Value], measure: str, where: str) -> _Value:
    for name, value in row.items():
        if _plain(name) == _plain(measure):
            return value
    raise InputError(f"{where} has no {measure!r}. It has {printable(', '.join(row))}.")


def _plain(measure: str) -> str:
    return measure.replace("@", "")


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
