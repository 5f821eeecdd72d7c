"""Files that a person names: hostile bytes in; lines, text or JSON out, or one clear error."""

import codecs
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from runner.base.canonical import JSON, parse_json
from runner.base.errors import InputError

STDIN = "-"
MAX_LINE = 1 << 28
"""Bytes of the longest line that is read; a longer one is no row of a table."""

LONGEST_LINE = 4096
"""Characters of the longest line, and of the longest path, that is printed whole."""

LARGEST_GRADE = (1 << 15) - 1
_GRADE = re.compile(r"[+-]?[0-9]{1,9}(?:\.0+)?", re.ASCII)

_PACKED_MARKS = (b"\x1f\x8b", b"BZh")
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def numbered_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield line number (from 1) and bytes of each line of a file, or of standard input for "-".

    Lines end at a newline alone, and come without white space at their end and without the file's UTF-8 byte order
    mark; blank ones are left out. Raises InputError if the file cannot be read, is UTF-16, or has a line of more
    than MAX_LINE bytes.
    """
    try:
        if str(path) == STDIN:
            yield from _lines(sys.stdin.buffer, display(path))
        else:
            with Path(path).open("rb") as stream:
                yield from _lines(stream, display(path))
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise InputError(f"{display(path)} does not exist. Give the path of a file that does.") from error
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{display(path)} cannot be read ({reason}). Give the path of a file.") from error


def keep_grade(qrels: dict[str, dict[str, int]], query_id: str, doc_id: str, grade: str) -> None:
    """Keep a line of qrels, of which an equal one may have been kept; ValueError unless its grade is a whole number.

    Some collections write grades as 1.0. Below 0 a document was not judged: `graded` leaves it out.
    """
    if not _GRADE.fullmatch(grade) or abs(float(grade)) > LARGEST_GRADE:
        raise ValueError(f"the grade is {printable(grade, 40)}, not a whole number up to {LARGEST_GRADE}")
    value = int(float(grade))
    if qrels.setdefault(query_id, {}).setdefault(doc_id, value) != value:
        raise ValueError(f"query {printable(query_id)} has {printable(doc_id)} twice, with two grades. Keep one line")


def graded(qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return qrels without negative grades; a query that has no other keeps its place with none."""
    return {query_id: {d: grade for d, grade in grades.items() if grade >= 0} for query_id, grades in qrels.items()}


def parsed(text: str, where: str, hint: str) -> JSON:
    """Return what a text of JSON holds; InputError, which ends in the hint, for NaN, a field twice, or no JSON."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({printable(str(error))}). {hint}") from error


def quoted(value: JSON) -> str:
    """Return a value as a message has it: scalars as JSON, and of the rest what kind it is."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return printable(json.dumps(value, ensure_ascii=False))


def display(path: str | Path) -> str:
    """Return a file's name as messages have it."""
    return "<stdin>" if str(path) == STDIN else printable(str(path), LONGEST_LINE)


def printable(text: str, longest: int = 200) -> str:
    """Return a string that a terminal can be shown: what is not printable as an escape, a long tail as "..."."""
    cut = text if len(text) <= longest else text[:longest] + "..."
    return "".join(c if c.isprintable() else _escape(c) for c in cut)


def decoded(line: bytes, where: str) -> str:
    """Return a line as text; InputError if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 (byte {error.start + 1}). Save the file as UTF-8.") from error


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(f"{name}:{number}: a line of more than {MAX_LINE:,} bytes. Write one row a line.")
        if number == 1:
            # The first bytes tell the kinds of file that people hand in by mistake.
            if line.startswith(_PACKED_MARKS):
                raise InputError(f"{name} is compressed. Unpack it first.")
            if line.startswith(_WIDE_MARKS):
                raise InputError(f"{name}: this is UTF-16, as PowerShell's > writes it. Save the file as UTF-8.")
            line = line.removeprefix(codecs.BOM_UTF8)
        if line := line.rstrip():
            yield number, line


def _escape(character: str) -> str:
    # Python has a byte of a file's name that is not UTF-8 as a surrogate; it is shown as the byte, \xe9.
    byte = ord(character) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(character)[1:-1]
