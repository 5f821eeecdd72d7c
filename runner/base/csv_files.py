"""Tables that a person brings as CSV: rows with their numbers, and every fault of them at once, a line each."""

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runner.base.canonical import refuse_special
from runner.base.errors import InputError
from runner.base.given_files import MAX_LINE, printable
from runner.base.progress import say

QUERY = {"query": "text question plain"}
QUERY_FACTS = {"query_id": "id qid", "document": "source_document doc_id docid"}
"""Columns of queries, each with other names that people have for it."""

MOST_FAULTS = 20
"""Faults of a table that a message names, a line each."""


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def inert_text(text: str) -> str:
    """Return a text as a field that no spreadsheet takes for a formula: behind an apostrophe if it begins like one."""
    return f"'{text}" if _FORMULA.match(text) else text


def _plain(field: str) -> str:
    """Return the text of a field that `inert_text` made."""
    return field[1:] if field[:1] == "'" and _FORMULA.match(field) else field


class Faults:
    """What is wrong with the rows of a table: collected, a line each, and raised together."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @contextmanager
    def of_row(self) -> Iterator[None]:
        """Keep the InputError of a row, which names its place, instead of raising it."""
        try:
            yield
        except InputError as error:
            self.add(str(error))

    def add(self, line: str) -> None:
        """Keep what is wrong with a row, in a line that names it."""
        self._lines.append(line)

    def stop(self, what_next: str = "") -> None:
        """Raise InputError with the faults found, if there are any, and what to do."""
        if more := len(self._lines) - MOST_FAULTS:
            self._lines[MOST_FAULTS:] = [f"and {more:,} more rows"] if more > 0 else []
        if self._lines:
            raise InputError("\n".join([*self._lines, what_next]).rstrip())


def csv_rows(path: Path, needed: Mapping[str, str], known: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
    """Return number and fields of each row of a CSV file, without blanks around; the header is row 1.

    `needed` and `known` are columns by name, each with further names for it, a blank between; the columns that are
    `known` may be missing, and others are not read. Fields are parted as in the header, by comma, semicolon or tab; the
    apostrophe of `inert_text` is taken off.
    InputError for a file that cannot be read, and with each row that has more or fewer fields than the header.
    """
    refuse_special(path)
    faults, number = Faults(), 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline(MAX_LINE)
            file.seek(0)
            # A byte order mark is passed over once more: seek goes to its front.
            table = csv.reader(file, strict=True, delimiter=max(",;\t", key=head.count))
            header = [name.strip("\ufeff ").casefold() for name in next(table, [])]
            names = {
                each: name for name, others in [*needed.items(), *known.items()] for each in (name, *others.split())
            }
            columns = {names[name]: place for place, name in reversed([*enumerate(header)]) if name in names}
            if missing := [name for name in needed if name not in columns]:
                raise InputError(
                    f"{path}:1: a header with the columns {', '.join(needed)} is expected; {', '.join(missing)} is "
                    "missing."
                )
            if unread := [name for place, name in enumerate(header) if place not in columns.values()]:
                say(f"note: {path}: columns that are not read: {', '.join(map(printable, unread))}")
            rows = []
            number = 1
            for number, row in enumerate(table, 2):
                if not any(map(str.strip, row)):
                    continue
                with faults.of_row():
                    if len(row) != len(header):
                        raise InputError(f"{path}:{number}: {len(row)} fields, and the header has {len(header)}.")
                    rows.append((number, {name: _plain(row[place].strip()).strip() for name, place in columns.items()}))
    except csv.Error as error:
        # The table was given up in the row after the last one that it gave.
        with faults.of_row():
            raise InputError(
                f"{path}:{number + 1}: not a row of CSV ({error}). Is a quotation mark never closed? One that a "
                'field in quotation marks holds is doubled: "say ""hello"" first".'
            ) from error
    except UnicodeDecodeError as error:
        line = 1 + _before_undecodable(path).count(b"\n")
        raise InputError(f"{path}:{line}: not UTF-8. Save the table as CSV in UTF-8.") from error
    except OSError as error:
        raise InputError(f"{path} is not a CSV file that can be read ({error}).") from error
    faults.stop()
    return rows


def _before_undecodable(path: Path) -> bytes:
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content[: error.start]
    return content
