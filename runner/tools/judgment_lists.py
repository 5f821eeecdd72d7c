"""Judgments as Quepid and OpenSearch have them: a CSV of ratings, a JSON list; the judge's name is kept both ways.

Those tools name a query by its words and show a judge what they please. So a list's ratings are those of whole
documents, as `labels import --unbatched` takes them, and never answers to a batch.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from runner.base.canonical import JSON, refuse_special
from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, parsed, printable, quoted
from runner.base.progress import say
from runner.eval_set.labels import version_labels
from runner.eval_set.shapes.labels import Answer, Label
from runner.eval_set.version import Version, load_corpus, load_queries
from runner.judge.answers import Given
from runner.queries.query_file import plain
from runner.report.export import harmless

ListFormat = Literal["quepid", "opensearch"]

_DOCUMENT = ("docid", "doc_id")
_RATING = "rating"
_BY = ", judged by "
_SCALE = "Grades here are 0, 1, 2 and 3; bring the list to that scale first."
_CSV_HINT = "A header 'query,docid,rating', or 'query,docid' and a column a judge, is expected."
_JSON_HINT = 'A list such as {"judgmentRatings": [{"query": "...", "ratings": [{"docId": "...", "rating": "3"}]}]}.'


class Rating(NamedTuple):
    """What a list says of a pair: the query's words, the document's id, the judge's name or ""."""

    where: str
    query: str
    doc_id: str
    rating: str
    judge: str


def list_answers(version: Version, path: Path, form: ListFormat, judged_on: str) -> list[Given]:
    """A list's ratings of the version's queries and documents, as answers; others are counted on stderr.

    InputError for a file of another form and a rating outside 0 to 3, with its place, for words that two queries
    have, and for a list that rates nothing of the version.
    """
    ids = _ids_by_text(version)
    documents = {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    found, outside = [], Counter[str]()
    for one in (_quepid if form == "quepid" else _opensearch)(path):
        query_id = ids.get(plain(one.query))
        if query_id is None or one.doc_id not in documents:
            outside["queries" if query_id is None else "documents"] += 1
            continue
        answer = Answer(query_id=query_id, doc_id=one.doc_id, grade=_grade(one), judge=one.judge)
        found.append(Given(one.where, answer, judged_on))
    if outside:
        say(
            f"{display(path)}: left out {outside['queries']:,} ratings of queries that {version.name} lacks, and "
            f"{outside['documents']:,} of documents outside of its sample"
        )
    if not found:
        raise InputError(f"{display(path)} rates no pair of {version.name}. Queries are told by their words.")
    return found


def list_bytes(version: Version, form: ListFormat, judge: str) -> bytes:
    """The version's labels of the first round as such a list.

    Quepid: of one judge `query,docid,rating`, as a case takes it; of all (`judge` is "") a column a judge, as a book
    has it. OpenSearch: the body of a request that imports one judge's list, which its name names. InputError for a
    judge without labels, or if OpenSearch is asked for several at once.
    """
    labels = [label for label in version_labels(version) if label.round == 1]
    judges = sorted({label.judge for label in labels})
    if not labels or (judge and judge not in judges):
        who = f" of {judge!r}" if judge else ""
        raise InputError(f"{version.name} has no labels{who}. Judges: {', '.join(judges) or 'none yet'}.")
    texts = {query_id: text for text, query_id in _ids_by_text(version, as_written=True).items()}
    if form == "quepid":
        return _quepid_bytes(labels, texts, [judge] if judge else judges, is_case=bool(judge))
    if not judge and len(judges) > 1:
        raise InputError(f"An OpenSearch list is one judge's. Give --judge, one of: {', '.join(judges)}.")
    return _opensearch_bytes(version.name, labels, texts, judge or judges[0])


def _ids_by_text(version: Version, *, as_written: bool = False) -> dict[str, str]:
    found: dict[str, str] = {}
    for query in load_queries(version.queries_path):
        text = query.text if as_written else plain(query.text)
        if other := found.get(text):
            raise InputError(
                f"Queries {other} and {query.query_id} of {version.name} have the same words, and such a list tells "
                "queries by nothing else."
            )
        found[text] = query.query_id
    return found


def _grade(one: Rating) -> int:
    match = re.fullmatch(r"([0-3])(?:\.0{1,9})?", one.rating.strip())
    if match is None:
        raise InputError(f"{one.where}: the rating is {printable(one.rating, 40)!r}. {_SCALE}")
    return int(match[1])


def _quepid(path: Path) -> Iterator[Rating]:
    refuse_special(path)
    place = [""]

    def lines() -> Iterator[str]:
        for number, line in numbered_lines(path):
            place[0] = f"{display(path)}:{number}"
            yield decoded(line, place[0]) + "\n"

    reader = csv.reader(lines(), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        query, document = [*(name.casefold() for name in names[:2]), "", ""][:2]
        if query != "query" or document not in _DOCUMENT or len(names) < 3:
            raise InputError(f"{display(path)}:1: no such header. {_CSV_HINT}")
        judges = [("" if name.casefold() == _RATING else _spoken(name)) for name in names[2:]]
        for row in reader:
            if len(row) != len(names):
                raise InputError(f"{place[0]}: {len(row)} columns, and the header has {len(names)}. {_CSV_HINT}")
            for judge, rating in zip(judges, row[2:], strict=True):
                if rating.strip():  # a pair that the judge did not rate
                    yield Rating(place[0], _spoken(row[0]), row[1].strip(), rating, judge)
    except csv.Error as error:
        raise InputError(f"{place[0]}: not CSV ({error}). {_CSV_HINT}") from error


def _spoken(cell: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from taking it for a formula."""
    return cell[1:] if re.match(r"'[=+\-@\t\r]", cell) else cell


def _opensearch(path: Path) -> Iterator[Rating]:
    """The ratings of a list: the body of an import, one as the index has it (`_source`), or a search's answer."""
    refuse_special(path)
    text = "\n".join(decoded(line, f"{display(path)}:{number}") for number, line in numbered_lines(path))
    given = parsed(text, display(path), _JSON_HINT)
    for number, one in enumerate(_lists(given), start=1):
        where = f"{display(path)}, list {number}"
        name = one.get("name")
        judge = name.partition(_BY)[2] if isinstance(name, str) else ""
        for query in _objects(one.get("judgmentRatings"), f"{where}: judgmentRatings"):
            words = _text(query, "query", where)
            for rating in _objects(query.get("ratings"), f"{where}, query {printable(words, 60)!r}: ratings"):
                at = f"{where}, query {printable(words, 60)!r}"
                value = rating.get("rating")
                if isinstance(value, bool) or not isinstance(value, str | int | float):
                    raise InputError(f"{at}: a rating is {quoted(value)}. {_JSON_HINT}")
                yield Rating(at, words, _text(rating, "docId", at), str(value), judge)


def _lists(given: JSON) -> list[dict[str, JSON]]:
    if isinstance(given, dict) and isinstance(given.get("hits"), dict):
        given = given["hits"].get("hits")
    found = given if isinstance(given, list) else [given]
    return [one["_source"] if isinstance(one.get("_source"), dict) else one for one in _objects(found, "the file")]


def _objects(value: JSON, what: str) -> list[dict[str, JSON]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InputError(f"{what}: not a list of objects. {_JSON_HINT}")
    return value


def _text(row: Mapping[str, JSON], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is {quoted(value)}, not a text. {_JSON_HINT}")
    return value


def _quepid_bytes(labels: Sequence[Label], texts: Mapping[str, str], judges: Sequence[str], *, is_case: bool) -> bytes:
    grades = {(label.query_id, label.doc_id, label.judge): label.grade for label in labels}
    pairs = dict.fromkeys((label.query_id, label.doc_id) for label in labels if label.judge in judges)
    out = io.StringIO()
    write: Callable[[Sequence[object]], object] = csv.writer(out, lineterminator="\n").writerow
    write(["query", "docid", *([_RATING] if is_case else map(harmless, judges))])
    for query_id, doc_id in sorted(pairs):
        ratings = [grades.get((query_id, doc_id, judge), "") for judge in judges]
        write([harmless(texts[query_id]), doc_id, *ratings])
    return out.getvalue().encode()


def _opensearch_bytes(name: str, labels: Sequence[Label], texts: Mapping[str, str], judge: str) -> bytes:
    ratings: dict[str, list[dict[str, str]]] = {}
    for label in sorted(labels, key=lambda label: (label.query_id, label.doc_id)):
        if label.judge == judge:
            rating = {"docId": label.doc_id, "rating": f"{label.grade:.3f}"}
            ratings.setdefault(label.query_id, []).append(rating)
    body = {
        "name": f"{name}{_BY}{judge}",
        "description": "Grades 0 to 3, exported by per-source-eval.",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [{"query": texts[query_id], "ratings": rows} for query_id, rows in ratings.items()],
    }
    return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode()
