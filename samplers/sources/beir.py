"""Public collections in the layout of BEIR: corpus.jsonl, queries.jsonl, and qrels.tsv or qrels/test.tsv.

Files of this kind are made by others and for every split at once, so what does not concern the judged split is left
aside and counted, and what contradicts itself is an error that names file and line.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import JSON, file_sha256, read_jsonl, refuse_special
from runner.base.errors import InputError
from runner.base.given_files import decoded, display, graded, keep_grade, numbered_lines, printable, quoted
from runner.base.records import Document

QRELS_FILES = ("qrels/test.tsv", "qrels.tsv")
STRATUM = "collection"

_WORD = re.compile(r"(?!nan|inf)\D*", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ROW_HINT = 'Lines such as {"_id": "d1", "title": "...", "text": "..."} are expected.'
_QRELS_HINT = "lines of 'query-id, corpus-id, score', parted by tabs, are expected"


class CollectionFiles(NamedTuple):
    """Where a collection's three files lie."""

    corpus: Path
    queries: Path
    qrels: Path


class CollectionDigests(NamedTuple):
    """SHA-256 of a collection's three files."""

    corpus: str
    queries: str
    qrels: str


@dataclass(frozen=True)
class Collection:
    """Content of a folder; only queries of the judged split, in the order of queries.jsonl.

    `qrels` keep documents that the corpus does not have (`missing_documents`), as published figures do, and every
    judged query, even one without a relevant document. `n_unjudged_queries` were left out. `n_renormalised` counts
    documents and judged queries whose text was not in NFC. `split` is the file of the qrels.
    """

    name: str
    documents: tuple[Document, ...]
    """Sorted by doc_id, ids unique."""
    empty: dict[str, str]
    """Documents without title and text, which nothing can find: id and place in corpus.jsonl."""
    n_duplicates: int
    """Rows that repeat an earlier one, left out."""
    queries: dict[str, str]
    n_unjudged_queries: int
    n_renormalised: int
    qrels: dict[str, dict[str, int]]
    missing_documents: tuple[str, ...]
    split: str
    sha256: CollectionDigests
    sources: Mapping[str, str] = field(default_factory=dict)
    """The document that each query was written from, where a Python program says so."""

    @property
    def own(self) -> frozenset[str]:
        """Queries that are documents themselves, where the qrels do not grade that: it is left out of their lists."""
        ids = (document.doc_id for document in self.documents)
        return frozenset(each for each in ids if each in self.queries and each not in self.qrels[each])


def read_collection(folder: Path, *, title_fits: Callable[[str], bool]) -> Collection:
    """Return the collection in a folder.

    A title that does not fit before a chunk (`title_fits`) opens its document's text instead, so that a document read
    whole is always its title and its text, as published figures have it. InputError for a file that is missing or
    wrong, a document or query twice with different content, and a judged query without text.
    """
    files = collection_files(folder)
    qrels = _qrels(files.qrels)
    other_form: set[str] = set()
    queries, n_unjudged = _queries(files.queries, qrels, other_form)
    documents, empty, n_duplicates = _documents(files.corpus, title_fits, other_form)
    known = {*documents, *empty}
    judged = {doc_id for grades in qrels.values() for doc_id in grades}
    if not judged & documents.keys():
        raise InputError(f"{display(folder)}: no judged document is in corpus.jsonl. Do they belong together?")
    return Collection(
        name=printable(folder.resolve().name),
        documents=tuple(documents[doc_id] for doc_id in sorted(documents)),
        empty=empty,
        n_duplicates=n_duplicates,
        queries=queries,
        n_unjudged_queries=n_unjudged,
        n_renormalised=len(other_form),
        qrels={query_id: qrels[query_id] for query_id in queries},
        missing_documents=tuple(sorted(judged - known)),
        split=files.qrels.relative_to(folder).as_posix(),
        sha256=collection_digests(folder),
    )


def collection_files(folder: Path) -> CollectionFiles:
    """Return the three files of a collection; raise an InputError that says which are not there."""
    if not folder.is_dir():
        raise InputError(f"{display(folder)} is not a folder. Give the folder of a collection.")
    qrels = [name for name in QRELS_FILES if (folder / name).is_file()]
    missing = [name for name in ("corpus.jsonl", "queries.jsonl") if not (folder / name).is_file()]
    if missing or not qrels:
        lacking = [*missing, *([] if qrels else [" or ".join(QRELS_FILES)])]
        raise InputError(f"{display(folder)} has no {' and no '.join(lacking)}. BEIR's layout has them.")
    if len(qrels) > 1:
        raise InputError(f"{display(folder)} has both {' and '.join(qrels)}. Keep the one to score with.")
    return CollectionFiles(folder / "corpus.jsonl", folder / "queries.jsonl", folder / qrels[0])


def collection_digests(folder: Path) -> CollectionDigests:
    """Return what tells one collection from another."""
    return CollectionDigests(*map(file_sha256, collection_files(folder)))


def _documents(
    path: Path, title_fits: Callable[[str], bool], other_form: set[str]
) -> tuple[dict[str, Document], dict[str, str], int]:
    """Return documents by id, the place of empty ones by id, and how many rows repeat an earlier one.

    The place of each document that was not in NFC goes into `other_form`.
    """
    documents: dict[str, Document] = {}
    empty: dict[str, str] = {}
    n_duplicates = 0
    for number, row in read_jsonl(path):
        where = f"{display(path)}:{number}"
        doc_id = _id(row, where)
        title = " ".join(_text(row, "title", where, other_form).split())
        text = _text(row, "text", where, other_form).strip()
        if doc_id in empty if title or text else doc_id in documents:
            raise _other(where, "document", doc_id)
        if not (title or text):
            empty[doc_id] = f"{path.name}:{number}"
            continue
        document = collection_document(doc_id, title, text, title_fits)
        known = documents.setdefault(doc_id, document)
        if known.sha256 != document.sha256:
            raise _other(where, "document", doc_id)
        n_duplicates += known is not document
    return documents, empty, n_duplicates


def collection_document(doc_id: str, title: str, text: str, title_fits: Callable[[str], bool]) -> Document:
    """Return a document under its title; one that does not fit, or has no text behind it, opens the text."""
    if not text or not title_fits(title):
        title, text = "", f"{title} {text}".strip()
    return Document(doc_id, text, title, STRATUM, doc_id, "")


def _queries(path: Path, qrels: dict[str, dict[str, int]], other_form: set[str]) -> tuple[dict[str, str], int]:
    """Return the texts of judged queries by id, and how many others there are."""
    queries: dict[str, str] = {}
    n_unjudged = 0
    for number, row in read_jsonl(path):
        where = f"{display(path)}:{number}"
        query_id = _id(row, where)
        if query_id not in qrels:
            n_unjudged += 1
            continue
        text = _text(row, "text", where, other_form).strip()
        if not text:
            raise InputError(f"{where}: query {printable(query_id)} has no text, and qrels judge it.")
        if queries.setdefault(query_id, text) != text:
            raise _other(where, "query", query_id)
    # Each judged query needs its text: scores are a mean over all of them.
    if without := [query_id for query_id in qrels if query_id not in queries]:
        raise InputError(
            f"{display(path)} lacks {len(without)} of {len(qrels)} judged queries, {printable(without[0])} among them. "
            "Do queries and qrels belong together?"
        )
    return queries, n_unjudged


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return grades by query and document; a negative grade says that a document was not judged and is left out."""
    refuse_special(path)
    qrels: dict[str, dict[str, int]] = {}
    for number, line in numbered_lines(path):
        where = f"{display(path)}:{number}"
        columns = decoded(line, where).split("\t")
        if len(columns) != 3:
            raise InputError(f"{where}: {len(columns)} columns; {_QRELS_HINT}.")
        query_id, doc_id, grade = (column.strip() for column in columns)
        if number == 1 and _WORD.fullmatch(grade):
            continue  # the header, which some collections lack
        if len(query_id.split()) != 1 or len(doc_id.split()) != 1:
            raise InputError(f"{where}: an id is empty or has white space; {_QRELS_HINT}.")
        try:
            keep_grade(qrels, query_id, doc_id, grade)
        except ValueError as error:
            raise InputError(f"{where}: {error}.") from error
    if len(qrels) < 2:
        raise InputError(f"{display(path)} judges {len(qrels)} queries; at least 2 are needed, and {_QRELS_HINT}.")
    return graded(qrels)


def _other(where: str, what: str, name: str) -> InputError:
    return InputError(f"{where}: {what} {printable(name)} was there before with other text. Keep one.")


def _id(row: dict[str, JSON], where: str) -> str:
    value = row.get("_id")
    if not isinstance(value, str) or not is_id(value):
        raise InputError(
            f"{where}: _id is {quoted(value)}, not a text without white space and control characters. {_ROW_HINT}"
        )
    return value


def is_id(value: str) -> bool:
    """Return whether a text can name a document or a query: it has no white space and no control characters."""
    return bool(value) and not re.search(r"\s", value) and not _CONTROL.search(value)


def _text(row: dict[str, JSON], name: str, where: str, other_form: set[str]) -> str:
    """Return a field in NFC; `where` goes into `other_form` if it was in another form."""
    value = row.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is {quoted(value)}, not a text. {_ROW_HINT}")
    if not unicodedata.is_normalized("NFC", value):
        other_form.add(where)
    return unicodedata.normalize("NFC", value)
