"""Queries that people asked, out of a search log: what could name a person dropped, repeats folded, drawn in bands.

Only a query's words and how often it was asked leave this module. Who asked, when and from where is read for two things
alone, to count an asker once per query and to skip events that are no queries, and is kept nowhere.
"""

import csv
import io
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runner.base.canonical import JSON, refuse_special
from runner.base.errors import InputError
from runner.base.given_files import STDIN, decoded, display, numbered_lines, parsed, printable
from runner.base.records import TRAFFIC, Document
from runner.eval_set.shapes.queries import QueryRow
from runner.queries.draft_answers import quotations, with_number
from runner.queries.draft_asks import MOST_CHARS
from runner.queries.query_file import plain
from runner.queries.wording import alike_in_words, reading, stems
from runner.retrieve.words import stemmed

FILE = "traffic.yaml"
"""Where the drawn queries wait to be looked at, in the reading pack."""

BANDS = ("head", "torso", "tail")
"""Thirds of what was asked, the most asked queries first; what was asked once is always tail."""

QUERY_COLUMNS = ("user_query", "query", "search_query", "search_term", "keyword", "q")
COUNT_COLUMNS = ("count", "times", "frequency", "searches", "impressions")
ASKER_COLUMNS = ("client_id", "user_id", "userid", "session_id", "ip", "client_ip")

_BULK_ACTIONS = frozenset({"index", "create"})
_MOST_ASKED = 10**9

PERSONAL: dict[str, re.Pattern[str]] = {
    "an e-mail address": re.compile(r"\S@\S+\.\w|\b\w+ ?(?:\(at\)|\[at\]) ?\w"),
    "an account of a network": re.compile(r"(?<!\S)@\w"),
    "an address of the web or a machine": re.compile(
        r"://|\bwww\.|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|(?:[0-9a-f]{0,4}:){3,}[0-9a-f]", re.IGNORECASE
    ),
    "a number like a Social Security number": re.compile(r"(?<![\w-])\d{3}([ .-])\d{2}\1\d{4}(?![\w-])"),
    "a number like a telephone's": re.compile(
        r"(?<!\w)(?:\+?\d{1,2}[ .-]?)?"
        r"(?:\(\d{3}\) ?\d{3}[ .-]?\d{4}|\d{3}([ .-]?)\d{3}\1\d{4}|\d{3} \d{3}-\d{4})(?!\w)|"
        r"\+\d(?:[ ./()-]{0,2}\d){6,14}"
    ),
    "a long number": re.compile(r"(?<!\d)\d{9,}(?!\d)|\d{4}[ -]\d{4}[ -]\d{4}"),
    "a street address": re.compile(
        r"\b\d{1,5} (?:[^\W\d_]+\.? ){1,3}(?:street|st|avenue|ave|road|rd|drive|dr|lane|ln|boulevard|blvd|court|ct|"
        r"way|apt|apartment)\b",
        re.IGNORECASE,
    ),
    "a date of birth": re.compile(
        r"\b(?:dob|date of birth)\b.*\d|\b(?:born|birthday|birthdate)\b.*\d{1,2}([/. -])\d{1,2}\1\d{2}", re.IGNORECASE
    ),
    "somebody's own words of themselves": re.compile(
        r"\bmy (?:name|ssn|social security number|case number|claim number|phone|address)\b.* (?:is|:)|\bi am called\b",
        re.IGNORECASE,
    ),
}
"""What is dropped by its form alone, by the reason that is counted. A name is told otherwise: see `PublicWords`."""

NAME = "two words that may be a person's name"
NO_WORDS = "no word with content"
TOO_LONG = f"more than {MOST_CHARS} characters"


_WORD = re.compile(r"(?:\b[od]['\u2019])?[^\W\d_]+", re.IGNORECASE)
_NEIGHBOURS = re.compile(rf"(?<![\w'-])({_WORD.pattern})(?=[.,]?\s+({_WORD.pattern})(?![\w-]))", re.IGNORECASE)
"""Words with a blank between them: "Jane Roe", "J. Roe", "Roe, Jane", and not the letters of 5(a)(1)(B) or EPA-HQ."""


class Asked(NamedTuple):
    """A query as it is spelt most often, and how often it was asked."""

    text: str
    times: int


@dataclass(frozen=True)
class Traffic:
    """What a log's queries came to: those that may be drawn, most asked first, and what was left out.

    `dropped` counts distinct queries by reason. Neither they nor any field of the log but the queries are kept.
    """

    asked: tuple[Asked, ...]
    n_rows: int
    n_without_query: int
    dropped: dict[str, int]

    @cached_property
    def bands(self) -> dict[str, tuple[Asked, ...]]:
        """The queries of each band; queries asked equally often are in one band."""
        total = sum(one.times for one in self.asked)
        alike: dict[int, list[Asked]] = defaultdict(list)
        for one in self.asked:
            alike[one.times].append(one)
        found: dict[str, list[Asked]] = {band: [] for band in BANDS}
        before = 0
        for times, group in alike.items():
            weight = times * len(group)
            third = 3 * (2 * before + weight) // (2 * total)  # of the middle of the group
            found[BANDS[-1] if times == 1 else BANDS[third]] += group
            before += weight
        return {band: tuple(group) for band, group in found.items()}


class PublicWords:
    """What the documents say of a name: words that they write in lower case, and pairs of words that they print.

    Two neighbouring words of a query look like somebody's name if the documents write no form of either in lower case
    and nowhere print the two together. "puerto rico" stands in documents, "jane roe" does not.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        ordinary: set[str] = set()
        self._printed: set[tuple[str, str]] = set()
        for document in documents:
            text = reading(document)
            ordinary.update(word for word in _WORD.findall(text) if word.islower())
            self._printed.update(
                (first.casefold(), second.casefold())
                for first, second in _NEIGHBOURS.findall(text)
                if not (first.islower() or second.islower())
            )
        self._ordinary = frozenset(stemmed(ordinary))

    def looks_like_name(self, text: str) -> bool:
        """Whether two words in a row may be a name; initials and titles count as words."""
        return any(
            not (self._is_ordinary(first) or self._is_ordinary(second) or (first, second) in self._printed)
            for first, second in _NEIGHBOURS.findall(text.casefold())
        )

    def _is_ordinary(self, word: str) -> bool:
        return self._ordinary.issuperset(stemmed([word]))


def personal(text: str, public: PublicWords) -> str:
    """Why a query could name a person, "" if no rule says so."""
    for reason, pattern in PERSONAL.items():
        if pattern.search(text):
            return reason
    return NAME if public.looks_like_name(text) else ""


def read_traffic(path: Path, public: PublicWords, column: str = "") -> Traffic:
    """The queries of a log: CSV with a header, or JSON lines of OpenSearch's User Behavior Insights.

    A repeat is told without regard to case and white space. An asker, if the log names one, counts once per query, so
    that a probe that asks one thing all day is one asker. InputError for a file that is neither, with its line.
    """
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    times: Counter[str] = Counter()
    seen: set[tuple[str, int]] = set()
    n_rows = n_without = 0
    for row in _rows(path, column):
        n_rows += 1
        text = unicodedata.normalize("NFC", " ".join(row.text.split()))
        if not text:
            n_without += 1
            continue
        key = plain(text)
        if row.asker:
            if (key, row.asker) in seen:
                continue
            seen.add((key, row.asker))
        times[key] += row.times
        spellings[key][text] += row.times
    if not times:
        raise InputError(f"{display(path)} has {n_rows:,} rows and no query in them. {_HINT}")
    dropped: Counter[str] = Counter()
    asked = []
    for key, count in times.items():
        text = min(spellings[key], key=lambda one: (-spellings[key][one], one))
        if reason := _unusable(text) or personal(text, public):
            dropped[reason] += 1
        else:
            asked.append(Asked(text, count))
    asked.sort(key=lambda one: (-one.times, one.text))
    return Traffic(tuple(asked), n_rows, n_without, dict(sorted(dropped.items())))


def drawn(traffic: Traffic, size: int, seed: int, own: Sequence[str]) -> list[QueryRow]:
    """Rows of queries.yaml, `size` at most, a third of each band; a band that has fewer leaves its places to the next.

    Within a band every query has the same chance, whatever the seed drew from another. One that says the same as an
    earlier one of the draw, or as a text of `own`, is passed over. The band is the row's stratum, so that the page has
    scores by band. `kind` is told by form (a number of the law, a quotation, else topic) and is for a person to mend.
    """
    total = sum(one.times for one in traffic.asked)
    rows: list[QueryRow] = []
    for place, (band, group) in enumerate(traffic.bands.items()):
        order = np.random.default_rng(np.random.PCG64([seed, place])).permutation(len(group))
        wanted = (size * (place + 1)) // len(BANDS) - len(rows)
        for one in (group[index] for index in order):
            if wanted <= 0:
                break
            if not _says_the_same(one.text, [*own, *(row.text for row in rows)]):
                rows.append(_row(one, band, len(rows) + 1, total))
                wanted -= 1
    return rows


def log_account(traffic: Traffic, rows: Sequence[QueryRow]) -> str:
    """What became of a log in lines: rows, queries, what was dropped by which rule, and the bands with their share."""
    total = sum(one.times for one in traffic.asked)
    bands = ", ".join(
        f"{band} {sum(row.stratum == band for row in rows)} of {len(group):,} "
        f"({sum(one.times for one in group) / max(total, 1):.0%} of what was asked)"
        for band, group in traffic.bands.items()
    )
    dropped = "".join(f"\n  {count:,}: {reason}" for reason, count in traffic.dropped.items())
    return (
        f"{traffic.n_rows:,} rows, {traffic.n_without_query:,} of them without a query; "
        f"{len(traffic.asked) + sum(traffic.dropped.values()):,} queries once repeats are folded\n"
        f"dropped: {sum(traffic.dropped.values()):,}{dropped}\n"
        f"drawn by band: {bands}"
    )


def _says_the_same(text: str, others: Sequence[str]) -> bool:
    return any(
        pair.is_same or plain(text) == plain(others[pair.first])
        for pair in alike_in_words([*others, text])
        if pair.second == len(others)
    )


def _row(asked: Asked, band: str, number: int, total: int) -> QueryRow:
    kind = "quote" if quotations(asked.text) else "citation" if with_number(asked.text) else "topic"
    note = f"asked {asked.times:,} of {total:,} times"
    return QueryRow(id=f"t{number:02d}", text=asked.text, kind=kind, origin=TRAFFIC, stratum=band, note=note)


def _unusable(text: str) -> str:
    if len(text) > MOST_CHARS:
        return TOO_LONG
    return "" if text.isprintable() and stems(text) else NO_WORDS


class _LogRow(NamedTuple):
    text: str
    times: int
    asker: int
    """A digest of who asked, of this process alone; 0 if the log does not say."""


_HINT = (
    f"A CSV file with a header and a column of queries ({', '.join(QUERY_COLUMNS)}, or --column NAME) is expected, or "
    'JSON lines such as {"user_query": "lead pipes", "client_id": "..."}.'
)


def _rows(path: Path, column: str) -> Iterator[_LogRow]:
    if str(path) == STDIN:
        raise InputError(f"A log is read from a file, not from standard input. {_HINT}")
    refuse_special(path)
    first = next((line for _, line in numbered_lines(path)), b"")
    if not first:
        raise InputError(f"{display(path)} is empty. {_HINT}")
    return _json_rows(path) if first.lstrip().startswith(b"{") else _csv_rows(path, column)


def _json_rows(path: Path) -> Iterator[_LogRow]:
    """Queries of ubi_queries, as exported (inside `_source`) or plain; events and bulk actions are no queries."""
    for number, line in numbered_lines(path):
        where = f"{display(path)}:{number}"
        row = parsed(decoded(line, where), where, _HINT)
        if not isinstance(row, dict):
            raise InputError(f"{where}: not an object. {_HINT}")
        if len(row) == 1 and row.keys() <= _BULK_ACTIONS:
            continue
        source = row["_source"] if isinstance(row.get("_source"), dict) else row
        text = source.get("user_query")
        query = text if isinstance(text, str) and "action_name" not in source else ""
        yield _LogRow(query, 1, _asker(source.get("client_id")))


def _csv_rows(path: Path, column: str) -> Iterator[_LogRow]:
    where = ""

    def decoded_lines() -> Iterator[str]:
        nonlocal where
        for number, line in numbered_lines(path):
            where = f"{display(path)}:{number}"
            yield decoded(line, where) + "\n"

    lines = decoded_lines()  # the csv module joins those that a quoted line break parts
    header = next(lines)
    mark = max(",;\t", key=header.count)
    names = [name.strip().casefold() for name in next(csv.reader(io.StringIO(header), delimiter=mark))]
    queries = _column(names, (column.casefold(),) if column else QUERY_COLUMNS)
    if queries is None:
        raise InputError(f"{display(path)}:1: no column of queries among {printable(', '.join(names))}. {_HINT}")
    counts, askers = _column(names, COUNT_COLUMNS), _column(names, ASKER_COLUMNS)
    reader = csv.reader(lines, delimiter=mark, strict=True)
    try:
        for row in reader:
            if len(row) != len(names):
                raise InputError(f"{where}: {len(row)} columns, and the header has {len(names)}.")
            times = 1 if counts is None else _times(row[counts], where)
            yield _LogRow(row[queries], times, 0 if askers is None else _asker(row[askers]))
    except csv.Error as error:
        raise InputError(f"{where}: not CSV ({error}). {_HINT}") from error


def _column(names: Sequence[str], known: Sequence[str]) -> int | None:
    return next((names.index(name) for name in known if name in names), None)


def _times(value: str, where: str) -> int:
    digits = value.strip().replace(",", "")
    if not (digits.isascii() and digits.isdigit() and int(digits[:12]) <= _MOST_ASKED):
        raise InputError(f"{where}: {printable(value, 40)!r} is not how often a query was asked, a whole number.")
    return int(digits)


def _asker(value: JSON) -> int:
    return hash(json.dumps(value, sort_keys=True)) or 1 if value not in (None, "") else 0
