"""Documents, queries, judgments and rankings as a person or a program has them: files, dicts, rows, pandas' tables.

What is wrong is one InputError that names the id or the row.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field

from runner.base.canonical import JSON, digest, read_jsonl, slug
from runner.base.csv_files import QUERY, QUERY_FACTS, Faults, csv_rows
from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, printable
from runner.base.progress import say
from runner.base.records import RUN_DEPTH, Document, Hit, Run
from runner.base.schema import FrozenModel, checked
from runner.eval_set.corpus import title_fits
from runner.eval_set.trec import WHOLE, read_trec_qrels, read_trec_run
from samplers.sources import beir

Table = Any
"""A mapping from id to text (of a document also to its title and text), rows as mappings, or a pandas DataFrame.

Documents may also be `Document` records, or the path of a folder or file; queries may be the path of a file.
"""

Retriever = Callable[[str], Sequence[str]] | Mapping[str, Sequence[str]] | str | Path
"""Ids of documents, best first: by a query's text, by its id, or as a TREC run file."""

LONGEST_NAME = 100
HIGHEST_GRADE = 1000
MOST_NAMED = 5


def _id(value: object) -> str:
    text = str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not beir.is_id(text):
        raise ValueError("an id is a number or a text without white space and control characters")
    return text


def _text(value: object) -> str:
    """Return a text; "" for a missing one, which pandas says by nan or NA."""
    if value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType":
        return ""
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds half of a surrogate pair; read the text as UTF-8") from error
    return value


def _whole(value: object) -> object:
    """Return a number as an int if it is whole, numpy's and 2.0 among them; True and False are not."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Id = Annotated[str, BeforeValidator(_id)]
_Text = Annotated[str, BeforeValidator(_text)]


class _Row(FrozenModel):
    """A query, or a document; further columns of a table are left alone."""

    model_config = ConfigDict(extra="ignore")

    id: _Id
    title: _Text = ""
    text: _Text = ""
    document: Annotated[str, BeforeValidator(lambda value: _text(str(value) if isinstance(value, int) else value))] = ""


class _Judgment(FrozenModel):
    """A grade; as in TREC's files, a negative one marks a document that was not judged."""

    model_config = ConfigDict(extra="ignore")

    query_id: _Id
    doc_id: _Id
    grade: Annotated[int, BeforeValidator(_whole), Field(le=HIGHEST_GRADE)]


_Model = TypeVar("_Model", bound=FrozenModel)


class GivenQueries(NamedTuple):
    """What is asked, by id; and where in what was given somebody wants which documents for it."""

    texts: dict[str, str]
    wanted: dict[str, list[tuple[str, str]]]


def given_queries(given: Table) -> GivenQueries:
    """Return what is asked: of a file a query a line, a CSV file with `query` and perhaps `document`, or JSON lines.

    A query that stands in several rows of a file wants the documents of all of them.
    """
    texts: dict[str, str] = {}
    wanted: dict[str, list[tuple[str, str]]] = {}
    if isinstance(given, str | Path):
        ids: dict[str, str] = {}
        faults = Faults()
        for where, fields in _query_rows(Path(given)):
            with faults.of_row():
                row = checked(_Row, fields, where)
                text = " ".join(row.text.split())
                if not text or not text.isprintable():
                    raise InputError(f"{where}: no text, or one that cannot be shown. Leave the row out, or mend it.")
                own = ids.setdefault(text, row.id)
                texts[own] = text
                wanted.setdefault(own, []).extend([(where, row.document.strip())] if row.document.strip() else [])
        faults.stop()
    else:
        for row in _texts(given, "queries"):
            texts[row.id] = row.text.strip()
            wanted[row.id] = [(f"queries: {printable(row.id)}", row.document.strip())] if row.document.strip() else []
            if not texts[row.id]:
                raise InputError(f"queries: {printable(row.id)} has no text. Leave it out, or write what is asked.")
    if not texts:
        raise InputError(f"{display(given)} has no queries. Write one a line, or a CSV file: query,document.")
    return GivenQueries(texts, wanted)


def _query_rows(path: Path) -> Iterator[tuple[str, dict[str, JSON]]]:
    """Yield place and fields of each query in a file, its row's number as its id if it has none."""
    kind = path.suffix.lower()
    rows: Iterator[tuple[int, Mapping[str, Any]]]
    if kind == ".csv":
        rows = iter(csv_rows(path, QUERY, QUERY_FACTS))
    elif kind in (".jsonl", ".ndjson"):
        rows = read_jsonl(path)
    else:
        rows = ((number, {"text": decoded(line, f"{display(path)}:{number}")}) for number, line in numbered_lines(path))
    for number, row in rows:
        text = row.get("query", row.get("text", ""))
        query_id = row.get("query_id") or row.get("id") or f"q{number}"
        yield f"{display(path)}:{number}", {**row, "id": query_id, "text": text}


def wanted_documents(asked: GivenQueries, documents: Iterable[Document]) -> dict[str, dict[str, int]]:
    """Return qrels in which each query has the documents that it wants; InputError names rows whose document is none.

    A document is named as `document_named` takes it.
    """
    known = {document.doc_id for document in documents}
    qrels: dict[str, dict[str, int]] = {}
    faults = Faults()
    for query_id, where, name in ((query_id, *pair) for query_id, pairs in asked.wanted.items() for pair in pairs):
        with faults.of_row():
            qrels.setdefault(query_id, {})[document_named(name, known, where)] = 1
    faults.stop()
    return qrels


def document_named(name: str, known: Collection[str], where: str) -> str:
    """Return the id of a document that is named by it, or by its file's path in the folder, with its suffix or without.

    InputError, with `where` it is named, if there is none.
    """
    from samplers.formats.documents import places_of
    from samplers.registry import DOCUMENTS, source_format

    if name in known:
        return name
    # Without a suffix a path may still have a full stop: only what the reader reads is cut off.
    path = name.removeprefix("./")
    file = path if path.lower().endswith(source_format(DOCUMENTS.name).suffixes) else f"{path}.md"
    if (place := places_of(file)[0]["place"]) in known:
        return place
    near = get_close_matches(place, sorted(known), n=1)
    hint = f"; is it {near[0]!r}?" if near else "."
    raise InputError(f"{where}: no document {printable(name)!r}{hint}")


def given_documents(given: Table) -> tuple[Document, ...]:
    """Return the documents in id order; those of a place on the disk as the reader of anybody's documents reads them.

    What cannot be read there is said, and left out.
    """
    if isinstance(given, str | Path):
        from samplers.corpus.parse import read_corpus, unread_lines
        from samplers.registry import DOCUMENTS

        reading = read_corpus(Path(given), DOCUMENTS.name, whole=False)
        for line in unread_lines(reading.quarantined):
            say(f"not read: {line}")
        if reading.ignored:
            kinds = ", ".join(f"{n:,} {kind}" for kind, n in reading.ignored.most_common(MOST_NAMED))
            say(f"files of other kinds: {reading.ignored.total():,} ({kinds})")
        return reading.documents
    records = [each for each in given if isinstance(each, Document)] if isinstance(given, list | tuple) else []
    texts = {document.doc_id: document for document in records}
    if len(texts) < len(records):
        raise InputError("documents: an id is there twice. Keep one document of each id.")
    for row in _texts(given, "documents") if not records else ():
        if not (row.title.strip() or row.text.strip()):
            raise InputError(f"documents: {printable(row.id)} has no text. Leave it out: nothing can find it.")
        # Documents are kept in NFC, as readers make them.
        title, text = (unicodedata.normalize("NFC", each) for each in (row.title, row.text.strip()))
        texts[row.id] = beir.collection_document(row.id, " ".join(title.split()), text, title_fits)
    return tuple(texts[doc_id] for doc_id in sorted(texts))


def given_collection(
    documents: Sequence[Document],
    asked: Mapping[str, str],
    qrels: Table | None,
    name: str,
    sources: Mapping[str, str] | None = None,
) -> beir.Collection:
    """Return what was given as a public collection is read: queries without judgments are left out.

    `sources` are the documents that queries were written from, which need no judgment. `qrels` are a mapping query ->
    document -> grade, rows, a DataFrame or a TREC file; None if nothing is to be scored, and all queries stay.
    """
    # Whatever the qrels name has to be there: a mistyped id would lower every score in silence.
    judged: dict[str, dict[str, int]] = {query_id: {} for query_id in asked} if qrels is None else {}
    if qrels is not None:
        judged = read_trec_qrels(qrels) if isinstance(qrels, str | Path) else _qrels(qrels)
    _check_known("queries", judged, asked)
    ids = {document.doc_id for document in documents}
    _check_known("documents", (doc_id for grades in judged.values() for doc_id in grades), ids)
    if qrels is not None and not any(grade > 0 for grades in judged.values() for grade in grades.values()):
        raise InputError("No query has a relevant document: the qrels have no grade above 0.")
    judged_queries = {
        query_id: unicodedata.normalize("NFC", asked[query_id]) for query_id in asked if query_id in judged
    }
    if len(judged_queries) < 2 and qrels is not None:
        raise InputError(
            f"Of {len(judged_queries)} queries somebody says which document is right. At least 2 are needed, and 25 "
            "or more to see anything."
        )
    # There are no files to take digests of; those of the content stand in their place.
    rows, asking = [[document.doc_id, document.sha256] for document in documents], digest(judged_queries)
    if sources:
        asking = digest([judged_queries, sources])
    return beir.Collection(
        name=name,
        documents=tuple(documents),
        empty={},
        n_duplicates=0,
        queries=judged_queries,
        n_unjudged_queries=len(asked) - len(judged_queries),
        n_renormalised=sum(judged_queries[query_id] != asked[query_id] for query_id in judged_queries),
        qrels={query_id: judged[query_id] for query_id in judged_queries},
        missing_documents=(),
        split=name,
        sha256=beir.CollectionDigests(digest(rows), asking, digest(judged)),
        sources=sources or {},
    )


def given_run(
    name: str, retriever: Retriever, queries: Mapping[str, str], asked: Collection[str], documents: Collection[str]
) -> Run:
    """Return what a retriever finds for every query, its first 100 documents; the run's cell is the name as a slug.

    A query that a mapping or a file leaves out has no hits, and scores 0; of those that were `asked`, `queries` are
    judged.
    """
    where, cell = f"retriever {printable(str(name), 40)}", slug(str(name))
    if not cell[:1].isalnum() or len(cell) > LONGEST_NAME:
        raise InputError(f"{where}: give it a name of letters and digits, {LONGEST_NAME} at most.")
    answers: Mapping[str, Any]
    if isinstance(retriever, str | Path):
        hits_of = read_trec_run(retriever).run.hits
        answers = {query_id: [hit.doc_id for hit in hits] for query_id, hits in hits_of.items()}
    elif isinstance(retriever, Mapping):
        answers = {str(query_id): doc_ids for query_id, doc_ids in retriever.items()}
    elif callable(retriever):
        answers = {query_id: retriever(text) for query_id, text in queries.items()}
    else:
        raise InputError(f"{where} is {_shown(retriever)}. Give a function of a query, ids by query, or a TREC file.")
    _check_known("queries", answers, asked, f"{where} answers")
    hits = {}
    for query_id in queries:
        ids = _ranking(answers.get(query_id, ()), f"{where}, query {printable(query_id)}", documents)
        # Ids come without scores, so that ranks count down to 1.
        hits[query_id] = tuple(Hit(doc_id, float(len(ids) - rank), WHOLE) for rank, doc_id in enumerate(ids))
    if not any(hits.values()):
        raise InputError(f"{where} returned no document for any query.")
    return Run(cell, hits)


def _ranking(answer: object, where: str, documents: Collection[str]) -> list[str]:
    # A string is iterable too: its letters would pass for ids. A set has another order in every process.
    if isinstance(answer, str | bytes | Mapping | MappingView | Set) or not isinstance(answer, Iterable):
        raise InputError(f"{where}: returned {_shown(answer)}, not a list of document ids.")
    ids: list[str] = []
    for place, value in enumerate(answer, start=1):
        doc_id = str(value) if isinstance(value, Integral) else value
        if not isinstance(doc_id, str) or doc_id not in documents:
            raise InputError(f"{where}: {_shown(value)}, at rank {place}, is not the id of a document.")
        ids.append(doc_id)
    if len(set(ids)) < len(ids):
        twice = next(doc_id for place, doc_id in enumerate(ids) if doc_id in ids[:place])
        raise InputError(
            f"{where}: document {printable(twice)} is returned twice. Rank each document once, by its best chunk."
        )
    return ids[:RUN_DEPTH]


def _qrels(given: Table) -> dict[str, dict[str, int]]:
    """Return the grades by query and document, negative ones left out; one grade a pair."""
    rows: Table = given
    if isinstance(given, Mapping):
        if wrong := [query_id for query_id, grades in given.items() if not isinstance(grades, Mapping)]:
            raise InputError(f"qrels: query {_shown(wrong[0])} has {_shown(given[wrong[0]])}, not grades by document.")
        rows = [
            {"query_id": query_id, "doc_id": doc_id, "grade": grade}
            for query_id, grades in given.items()
            for doc_id, grade in grades.items()
        ]
    qrels: dict[str, dict[str, int]] = {}
    for row in _checked_rows(rows, "qrels", _Judgment):
        grades = qrels.setdefault(row.query_id, {})
        if grades.setdefault(row.doc_id, row.grade) != row.grade:
            raise InputError(
                f"qrels: query {printable(row.query_id)} has {printable(row.doc_id)} twice. Keep one grade."
            )
    return {query_id: {d: grade for d, grade in grades.items() if grade >= 0} for query_id, grades in qrels.items()}


def _texts(given: Table, what: str) -> Iterator[_Row]:
    """Yield the rows of queries or documents; an id twice is an error."""
    rows: Table = given
    if isinstance(given, Mapping):
        rows = [{**(row if isinstance(row, Mapping) else {"text": row}), "id": key} for key, row in given.items()]
    seen: set[str] = set()
    for row in _checked_rows(rows, what, _Row):
        if row.id in seen:
            raise InputError(f"{what}: {printable(row.id)} is there twice. Keep one.")
        seen.add(row.id)
        yield row


def _checked_rows(given: Table, what: str, model: type[_Model]) -> Iterator[_Model]:
    """Yield the rows of a DataFrame, or of anything that yields mappings; none at all is an error."""
    # A DataFrame by what it can do: pandas is not imported, and need not be installed.
    rows = given.to_dict("records") if hasattr(given, "to_dict") else given
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InputError(f"{what} are {_shown(rows)}. Give a dict by id, rows as dicts, or a pandas DataFrame.")
    number = 0
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise InputError(f"{what}: row {number} is {_shown(row)}, not a dict with an id and a text.")
        yield checked(model, dict(row), f"{what}: row {number}")
    if not number:
        raise InputError(f"There are no {what}.")


def _check_known(what: str, named: Iterable[str], known: Collection[str], who: str = "qrels name") -> None:
    if unknown := sorted({name for name in named if name not in known}):
        raise InputError(f"{who} {len(unknown)} {what} that were not given, {printable(unknown[0])} among them.")


def _shown(value: object) -> str:
    return printable(repr(value), 60)
