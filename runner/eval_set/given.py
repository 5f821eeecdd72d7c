"""Documents, queries, judgments and rankings as a Python program has them: dicts, rows, pandas' tables, callables.

What is wrong is one InputError that names the id or the row.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from runner.base.canonical import digest, slug
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.records import RUN_DEPTH, Document, Hit, Run
from runner.eval_set.corpus import title_fits
from runner.eval_set.trec import WHOLE, read_trec_qrels, read_trec_run
from samplers.sources import beir

Table = Any
"""A mapping from id to text (of a document also to its title and text), rows as mappings, or a pandas DataFrame."""

Retriever = Callable[[str], Sequence[str]] | Mapping[str, Sequence[str]] | str | Path
"""Ids of documents, best first: by a query's text, by its id, or as a TREC run file."""

LONGEST_NAME = 100
HIGHEST_GRADE = 1000

_QREL_COLUMNS = ("query_id", "doc_id", "grade")


def given_queries(given: Table) -> dict[str, str]:
    """What is asked, by id."""
    found = {}
    for query_id, where, row in _rows(given, "queries"):
        found[query_id] = _text(row.get("text"), where, "text").strip()
        if not found[query_id]:
            raise InputError(f"{where} has no text. Leave it out, or write what is asked.")
    return found


def given_collection(documents: Table, asked: Mapping[str, str], qrels: Table, name: str) -> beir.Collection:
    """Return what was given as a public collection is read: queries without judgments are left out.

    `qrels` are a mapping query -> document -> grade, rows, a DataFrame or a TREC file.
    """
    texts = _documents(documents)
    judged = _qrels(qrels)
    _check_known("queries", judged, asked)
    _check_known("documents", (doc_id for grades in judged.values() for doc_id in grades), texts)
    kept = {query_id: unicodedata.normalize("NFC", asked[query_id]) for query_id in asked if query_id in judged}
    if len(kept) < 2:
        raise InputError(f"{len(kept)} queries are judged; at least 2 are needed, and 25 or more to see anything.")
    rows = [[document.doc_id, document.title, document.text] for document, _ in texts.values()]
    return beir.Collection(
        name=name,
        documents=tuple(texts[doc_id][0] for doc_id in sorted(texts)),
        empty={},
        n_duplicates=0,
        queries=kept,
        n_unjudged_queries=len(asked) - len(kept),
        n_renormalised=sum(other for _, other in texts.values()) + sum(kept[each] != asked[each] for each in kept),
        qrels={query_id: judged[query_id] for query_id in kept},
        missing_documents=(),
        split=name,
        sha256=beir.CollectionDigests(digest(sorted(rows)), digest(kept), digest(judged)),
    )


def given_run(
    name: str, retriever: Retriever, queries: Mapping[str, str], asked: Collection[str], documents: Collection[str]
) -> Run:
    """What a retriever returns for every query, its first 100 documents; the run's cell is the name as a slug.

    A query that a mapping or a file leaves out has no hits, and scores 0; of those that were `asked`, `queries` are
    judged.
    """
    where = f"retriever {printable(str(name), 40)}"
    cell = slug(str(name))
    if not cell[:1].isalnum() or len(cell) > LONGEST_NAME:
        raise InputError(f"{where}: give it a name of letters and digits, {LONGEST_NAME} at most.")
    found = _answers(retriever, queries, where)
    _check_known("queries", found, asked, f"{where} answers")
    hits = {}
    for query_id in queries:
        ids = _ranking(found.get(query_id, ()), f"{where}, query {printable(query_id)}", documents)
        hits[query_id] = tuple(Hit(doc_id, float(len(ids) - place), WHOLE) for place, doc_id in enumerate(ids))
    if not any(hits.values()):
        raise InputError(f"{where} returned no document for any query.")
    return Run(cell, hits)


def _documents(given: Table) -> dict[str, tuple[Document, bool]]:
    """Documents by id, each with whether its text was in another form than NFC."""
    found: dict[str, tuple[Document, bool]] = {}
    for doc_id, where, row in _rows(given, "documents"):
        title, text = _text(row.get("title"), where, "title"), _text(row.get("text"), where, "text").strip()
        if not (title.strip() or text):
            raise InputError(f"{where} has no text. Leave it out: nothing can find it.")
        normal, plain = unicodedata.normalize("NFC", text), " ".join(unicodedata.normalize("NFC", title).split())
        document = beir.collection_document(doc_id, plain, normal, title_fits)
        found[doc_id] = document, not unicodedata.is_normalized("NFC", title + text)
    return found


def _qrels(given: Table) -> dict[str, dict[str, int]]:
    if isinstance(given, str | Path):
        return read_trec_qrels(given)
    found: dict[str, dict[str, int]] = {}
    for number, (query, document, value) in enumerate(_judgments(given), start=1):
        where = f"qrels: judgment {number}"
        query_id, doc_id, grade = _id(query, f"{where}: query"), _id(document, f"{where}: document"), _whole(value)
        if grade is None or grade > HIGHEST_GRADE:
            raise InputError(f"{where}: the grade is {_shown(value)}, not a whole number up to {HIGHEST_GRADE}.")
        grades = found.setdefault(query_id, {})
        if grades.get(doc_id, grade) != grade:
            raise InputError(f"{where}: query {printable(query_id)} has {printable(doc_id)} twice. Keep one grade.")
        grades[doc_id] = grade
    if not found:
        raise InputError("qrels are empty: nothing can be scored.")
    # As in TREC's files, a negative grade marks a document that was not judged.
    return {query_id: {d: grade for d, grade in grades.items() if grade >= 0} for query_id, grades in found.items()}


def _judgments(given: Table) -> Iterator[tuple[object, object, object]]:
    if isinstance(given, Mapping):
        for query, grades in given.items():
            if not isinstance(grades, Mapping):
                raise InputError(f"qrels: query {_shown(query)} has {_shown(grades)}, not grades by document.")
            for document, grade in grades.items():
                yield query, document, grade
        return
    for number, row in enumerate(_records(given, "qrels"), start=1):
        if missing := [name for name in _QREL_COLUMNS if name not in row]:
            raise InputError(f"qrels: row {number} has no {', '.join(missing)}, but {_columns(row)}.")
        query, document, grade = (row[name] for name in _QREL_COLUMNS)
        yield query, document, grade


def _rows(given: Table, what: str) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Id, place in messages and fields of every row; an id twice, or none at all, is an error."""
    seen: set[str] = set()
    for number, (key, row) in enumerate(_entries(given, what), start=1):
        row_id = _id(key, f"{what}: row {number}")
        if row_id in seen:
            raise InputError(f"{what}: {printable(row_id)} is there twice. Keep one.")
        seen.add(row_id)
        yield row_id, f"{what}: {printable(row_id)}", row
    if not seen:
        raise InputError(f"There are no {what}.")


def _entries(given: Table, what: str) -> Iterator[tuple[object, Mapping[str, object]]]:
    if isinstance(given, Mapping):
        for key, value in given.items():
            yield key, value if isinstance(value, Mapping) else {"text": value}
        return
    for number, row in enumerate(_records(given, what), start=1):
        if "id" not in row:
            raise InputError(f"{what}: row {number} has no id, but {_columns(row)}.")
        yield row["id"], row


def _records(given: Table, what: str) -> Iterator[Mapping[str, object]]:
    """The rows of a DataFrame, or of anything that yields mappings."""
    rows = given.to_dict("records") if hasattr(given, "to_dict") else given
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InputError(f"{what} are {_shown(given)}. Give a dict by id, rows as dicts, or a pandas DataFrame.")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise InputError(f"{what}: row {number} is {_shown(row)}, not a dict with an id and a text.")
        yield row


def _answers(retriever: Retriever, queries: Mapping[str, str], where: str) -> Mapping[str, Any]:
    if isinstance(retriever, str | Path):
        run = read_trec_run(retriever).run
        return {query_id: [hit.doc_id for hit in hits] for query_id, hits in run.hits.items()}
    if isinstance(retriever, Mapping):
        return {_id(key, where): value for key, value in retriever.items()}
    if not callable(retriever):
        raise InputError(f"{where} is {_shown(retriever)}. Give a function of a query, ids by query, or a TREC file.")
    return {query_id: retriever(text) for query_id, text in queries.items()}


def _ranking(found: object, where: str, documents: Collection[str]) -> list[str]:
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise InputError(f"{where}: returned {_shown(found)}, not a list of document ids.")
    ids = [_id(value, where) for value in found]
    for place, doc_id in enumerate(ids, start=1):
        if doc_id not in documents:
            raise InputError(f"{where}: document {printable(doc_id)}, at rank {place}, is not among the documents.")
    if repeated := [doc_id for doc_id in dict.fromkeys(ids) if ids.count(doc_id) > 1]:
        raise InputError(
            f"{where}: document {printable(repeated[0])} is returned twice. Rank each document once, by its best chunk."
        )
    return ids[:RUN_DEPTH]


def _check_known(what: str, named: Iterable[str], known: Collection[str], who: str = "qrels name") -> None:
    if unknown := sorted({each for each in named if each not in known}):
        raise InputError(f"{who} {len(unknown)} {what} that were not given, {printable(unknown[0])} among them.")


def _id(value: object, where: str) -> str:
    text = str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not beir.is_id(text):
        raise InputError(
            f"{where}: the id is {_shown(value)}, not a number or a text without white space and control characters."
        )
    return text


def _text(value: object, where: str, field: str) -> str:
    """A field; "" if it is missing, which pandas says by nan or NA."""
    if value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType":
        return ""
    try:
        if isinstance(value, str):
            value.encode()
            return value
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: its {field} holds half of a surrogate pair. Read the text as UTF-8.") from error
    raise InputError(f"{where}: its {field} is {_shown(value)}, not a text.")


def _whole(value: object) -> int | None:
    """A whole number, numpy's and 2.0 among them; None for anything else, True and False too."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _columns(row: Mapping[str, object]) -> str:
    return printable(", ".join(map(str, row)) or "nothing")


def _shown(value: object) -> str:
    return printable(repr(value), 60)
